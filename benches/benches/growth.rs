//! The cost of many plugins: start-up time and memory of a program with 0, 20 and 200 of them, and the time of one small call.
//!
//! `cargo xtask bench --growth` runs it and prints one JSON line for each number of plugins. A copy of `test-plugins/growth`
//! has ten ops with kernels; the first 100 copies also have a device and the first 50 a layout: 200 have 2,000 ops. Every start
//! is a separate process, which runs this program again.

use keyway::Tensor;
use keyway_dispatcher::registry;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The bytes of the file that a copy's number replaces.
const MARK: &[u8] = b"growth000";
/// Number of starts, whose median is reported.
const ROUNDS: usize = 9;
/// The variable that marks a started process.
const CHILD: &str = "KEYWAY_BENCH_GROWTH_CHILD";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let program = std::env::current_exe()?;
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let original = std::fs::read(program.with_file_name(format!("{prefix}keyway_test_growth{suffix}")))?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    for count in [0, 20, 200] {
        let plugins = folder.path().join(count.to_string());
        std::fs::create_dir(&plugins)?;
        for number in 0..count {
            let name = plugins.join(format!("{prefix}growth{number:03}{suffix}"));
            std::fs::write(name, numbered(&original, number))?;
        }
        measure(&program, &plugins, count)?;
    }
    Ok(())
}

/// A copy with another number.
fn numbered(original: &[u8], number: usize) -> Vec<u8> {
    let mut copy = original.to_vec();
    let name = format!("growth{number:03}");
    let places: Vec<usize> =
        copy.windows(MARK.len()).enumerate().filter(|(_, at)| *at == MARK).map(|(i, _)| i).collect();
    places.into_iter().for_each(|at| copy[at..at + MARK.len()].copy_from_slice(name.as_bytes()));
    copy
}

/// Starts programs that find these plugins beside the backends of the environment, and prints the medians.
fn measure(program: &Path, plugins: &Path, count: usize) -> Result<(), Failure> {
    const VARIABLE: &str = "KEYWAY_BACKEND_PATH";
    let mut paths: Vec<PathBuf> =
        std::env::var_os(VARIABLE).map(|paths| std::env::split_paths(&paths).collect()).unwrap_or_default();
    paths.push(plugins.to_path_buf());
    let paths = std::env::join_paths(paths)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let output = Command::new(program).env(CHILD, "1").env(VARIABLE, &paths).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let line: Numbers = serde_json::from_slice(&output.stdout)?;
        rounds.push(line);
    }
    let present = rounds[0][4];
    if present != count as f64 {
        return Err(format!("{count} plugins were made, but {present} were loaded").into());
    }
    let median = |of: usize| {
        let mut all: Vec<f64> = rounds.iter().map(|round| round[of]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    println!(
        r#"{{"case": "growth.start_{count}", "start_ms": {:.2}, "anonymous_mb": {:.2}, "ops": {}, "add_1_ns": {:.1}, "rounds": {ROUNDS}}}"#,
        median(0),
        median(1),
        median(2),
        median(3),
    );
    Ok(())
}

/// Milliseconds of the start, megabytes of anonymous memory that no library's file is mapped to, number of ops, nanoseconds of
/// a call, number of plugins of the counted kind.
type Numbers = [f64; 5];

fn child() -> Result<(), Failure> {
    let begin = Instant::now();
    keyway::runtime::start()?;
    let start = begin.elapsed().as_secs_f64() * 1e3;
    let memory = anonymous()? / 1024.0;
    let present = registry::plugins().iter().filter(|p| p.name.starts_with("keyway.test/growth")).count();
    let numbers: Numbers =
        [start, memory, registry::table::current().ops().count() as f64, call()?, present as f64];
    println!("{}", serde_json::to_string(&numbers)?);
    Ok(())
}

/// The minimum time of a small call, in nanoseconds.
fn call() -> Result<f64, Failure> {
    const CALLS: u32 = 20_000;
    let (a, b) = (Tensor::from_vec(vec![1.0f32], [1])?, Tensor::from_vec(vec![2.0f32], [1])?);
    let mut least = Duration::MAX;
    for _ in 0..20 {
        let begin = Instant::now();
        for _ in 0..CALLS {
            black_box(a.add(&b)?);
        }
        least = least.min(begin.elapsed());
    }
    Ok(least.as_secs_f64() * 1e9 / f64::from(CALLS))
}

/// KiB of this process's anonymous memory, without written pages of files: each library's relocations are its own.
fn anonymous() -> Result<f64, Failure> {
    let maps = std::fs::read_to_string("/proc/self/smaps")?;
    let (mut total, mut of_file) = (0.0, false);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Anonymous:") if !of_file => {
                total += words.next().ok_or("a line of smaps without a number")?.parse::<f64>()?;
            }
            Some(range) if !range.ends_with(':') => of_file = line.contains(" /"),
            _ => {}
        }
    }
    Ok(total)
}
