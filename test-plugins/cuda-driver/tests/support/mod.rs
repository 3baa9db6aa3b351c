//! Shared code of the tests: the stand-in, and programs that run one scenario on it.
//!
//! The configuration of the machine is in environment variables, which the driver reads once. So a test starts its own
//! program again for each configuration, with the name of a scenario.
#![allow(dead_code, reason = "each test program uses a part of it")]

use keyway::{DType, Device, Tensor, runtime};
use keyway_test_cuda_driver::{Reason, build};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The variable with the name of the scenario that a started program runs.
const SCENARIO: &str = "KEYWAY_TEST_SCENARIO";

/// The path of the driver; without a C++ compiler `None`, with the reason on standard error.
pub fn stand_in() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf();
    match build(repository, &target) {
        Ok(driver) => Some(driver),
        Err(reason @ Reason::NoCompiler { .. }) => {
            eprintln!("skipped: {reason}");
            None
        }
        Err(reason) => panic!("{reason}"),
    }
}

/// The path of a library that is built next to this test.
pub fn built(name: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    folder.join(format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

/// Loads the backend and the CPU backend with the real loader.
pub fn load() {
    let paths = [built("keyway_backend_cpu"), built("keyway_backend_cuda")];
    let loaded = runtime::load_backends(&paths).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
}

/// Device `index`.
pub fn cuda(index: u16) -> Device {
    Device::new("cuda", index).unwrap()
}

/// Whether the driver is the stand-in, which exposes more state than a GPU.
pub fn is_stand_in() -> bool {
    std::env::var_os("KEYWAY_CUDA_DRIVER").is_some()
}

/// The scenario that this program was started for.
pub fn scenario() -> Option<String> {
    std::env::var(SCENARIO).ok()
}

/// Starts this program for a scenario, on a machine of this kind.
pub fn start(scenario: &str, driver: &Path, machine: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["scenarios", "--exact", "--nocapture", "--test-threads", "1"])
        .env(SCENARIO, scenario)
        .env("KEYWAY_CUDA_DRIVER", driver)
        .env_remove("KEYWAY_CUDA_BLAS")
        .env_remove("KEYWAY_CUDA_DNN")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("RUST_BACKTRACE")
        .envs(machine.iter().copied());
    command.output().unwrap()
}

/// Runs a scenario, which must succeed.
#[track_caller]
pub fn run(scenario: &str, driver: &Path, machine: &[(&str, &str)]) {
    let output = start(scenario, driver, machine);
    assert!(output.status.success(), "{scenario} {machine:?}: {}\n{}", output.status, texts(&output));
}

/// The number of calls of each function in a program that succeeded.
#[track_caller]
pub fn counted(scenario: &str, driver: &Path, machine: &[(&str, &str)]) -> BTreeMap<String, usize> {
    let name = format!("counts-{scenario}-{}-{}", std::process::id(), machine.len());
    let counts = driver.with_file_name(name);
    let mut machine = machine.to_vec();
    machine.push(("KEYWAY_STAND_IN_COUNT", counts.to_str().unwrap()));
    run(scenario, driver, &machine);
    let text = std::fs::read_to_string(&counts).unwrap();
    std::fs::remove_file(&counts).unwrap();
    let line = |line: &str| {
        let (name, count) = line.split_once(' ').unwrap();
        (name.to_string(), count.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// The output of a program.
pub fn texts(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Consecutive integers.
pub fn ramp(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|i| i as f32 * 0.25 - 1.0).collect(), sizes).unwrap()
}

/// The message of an error.
#[track_caller]
pub fn message<T>(result: keyway::Result<T>) -> String {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

/// The dtypes of products.
pub const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// Pseudo-random values between -1 and 1.
pub fn numbers(device: Device, dtype: DType, sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let values = (0..count).map(|i| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0).collect();
    Tensor::from_vec(values, sizes).unwrap().to_dtype(dtype).unwrap().to_device(device).unwrap()
}

/// A tensor's elements.
pub fn doubles(tensor: &Tensor) -> Vec<f64> {
    tensor.to_device(Device::CPU).unwrap().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Results of a dtype, by the largest of them.
#[track_caller]
pub fn near(name: &str, dtype: DType, expected: &[f64], got: &[f64]) {
    let within = match dtype {
        DType::F64 => 1e-13,
        DType::F32 => 2e-5,
        DType::F16 => 2e-3,
        _ => 1e-2,
    };
    let finite = expected.iter().filter(|x| x.is_finite());
    let largest = finite.fold(1f64, |most, x| most.max(x.abs()));
    for (at, (wanted, own)) in expected.iter().zip(got).enumerate() {
        let same =
            (wanted - own).abs() <= within * largest || wanted == own || wanted.is_nan() && own.is_nan();
        assert!(same, "{name} in {dtype}, element {at}: {own}, not {wanted}");
    }
}

/// The number of calls of a function.
pub fn of(counts: &BTreeMap<String, usize>, name: &str) -> usize {
    counts.get(name).copied().unwrap_or(0)
}

/// Links to the stand-ins in a folder that only its owner may write.
#[cfg(unix)]
pub fn linked(folder: &Path, files: &[&Path]) {
    use std::os::unix::fs::{DirBuilderExt, symlink};
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder).unwrap();
    for file in files {
        symlink(file, folder.join(file.file_name().unwrap())).unwrap();
    }
}

/// Whether the system's loader finds a library, with this program's environment.
#[cfg(unix)]
pub fn is_known(name: &std::ffi::CStr) -> bool {
    // SAFETY: opens a system library, which stays loaded.
    !unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) }.is_null()
}

/// Runs the scenario `once` with this configuration, which must succeed; exactly one of the lines with `no LIBRARY` has
/// these parts, or no line if no part is given.
#[track_caller]
pub fn said_once(library: &str, driver: &Path, machine: &[(&str, &str)], parts: &[&str]) {
    let output = start("once", driver, machine);
    let text = texts(&output);
    assert!(output.status.success(), "{machine:?}\n{text}");
    let none = format!("no {library}");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(&none)).collect();
    assert_eq!(lines.len(), usize::from(!parts.is_empty()), "{machine:?}\n{text}");
    for part in parts {
        assert!(lines[0].contains(part), "`{part}` is not in: {}", lines[0]);
    }
}

/// Runs the scenario `work` once for each call of the library whose functions begin with `prefix` and that `is_tried`
/// selects by name, number and count: the call fails with this `status`, which is reported as an error that names the
/// function, and the program continues. Returns the number of failures.
#[track_caller]
pub fn each_fails(
    (prefix, status): (&str, &str),
    driver: &Path,
    named: (&str, &str),
    is_tried: impl Fn(&str, usize, usize) -> bool,
) -> usize {
    let mut failures = 0;
    let counts = counted("work", driver, &[named]);
    for (name, count) in counts.iter().filter(|(name, _)| name.starts_with(prefix)) {
        for n in (1..=*count).filter(|n| is_tried(name, *n, *count)) {
            let fail = format!("{name}:{n}");
            let output = start("work", driver, &[named, ("KEYWAY_STAND_IN_FAIL", &fail)]);
            let text = texts(&output);
            assert!(output.status.success(), "{fail}: {}\n{text}", output.status);
            // Errors of destroying are not reported.
            let expected = match name.contains("Destroy") {
                true => "RESULT all is well".to_string(),
                false => format!("{name} answered {status}: an internal operation failed"),
            };
            assert!(text.contains(&expected) && !text.contains("LASTING"), "{fail}\n{text}");
            failures += 1;
        }
    }
    println!("{failures} failures");
    failures
}

/// Runs the scenario `lost` in three random orders, with the variable that makes the first call of the library lose the
/// device.
#[track_caller]
pub fn loses_the_device(driver: &Path, named: (&str, &str), breaks: &str) {
    for seed in ["1", "2", "3"] {
        run("lost", driver, &[named, ("KEYWAY_STAND_IN_SEED", seed), (breaks, "1")]);
    }
}
