//! Kernels with one barrier skipped: for each barrier of a block or a warp, each wait for copies, and each synchronization
//! step of warpgroup products in the kernels' sources, some case of the suite fails without it.

mod support;

use keyway_conformance::runner::{self, Finished, Limits, Selection, Start, worker};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const WORKER: &str = "KEYWAY_CUDA_WORKER";
/// The argument for a worker whose cases are already known.
const UNLISTED: &str = "--unlisted";
/// The ops to test, separated by commas.
const OPS: &str = "KEYWAY_CUDA_OPS";
/// The variable that selects whether tensor cores are used.
const CORES: &str = "KEYWAY_CUDA_CORES";
/// The families to test, separated by commas.
const FAMILIES: &str = "KEYWAY_CUDA_FAMILIES";
/// Small calls and large ones, the fastest first, in groups that are tested one by one until a case fails.
const GROUPS: [&str; 3] = ["values", "sizes", "large"];
/// The groups for tensor cores, each case in one dtype.
const GROUPS_OF_CORES: [&str; 3] = ["values,strided", "corners", "large,sizes"];
const DTYPE_OF_CORES: &str = "f16";
/// Files whose kernels need head widths and sizes of convolutions that other cases do not have.
const OF_SIZES: [&str; 3] = ["attention_groups.cuh", "attention_plain.cuh", "conv.cu"];
const GROUPS_OF_SIZES: [&str; 1] = ["sizes"];
/// A file whose kernels are used with cuBLASLt.
const FOR_PRODUCTS: &str = "conv.cu";
/// A file whose kernels the chip with warpgroups does not launch, and a chip that does; the others run on the stand-in's
/// default chip.
const OF_CHIP: (&str, &str) = ("attention_plain.cuh", "80");
const CHIP: &str = "KEYWAY_STAND_IN_CHIP";
const USUAL_CHIP: &str = "90";
/// The stand-in's variable for the skipped barrier.
const SKIP: &str = "KEYWAY_STAND_IN_SKIP_BARRIER";
/// The stand-in's variable for the order of threads in all launches.
const ORDER: &str = "KEYWAY_STAND_IN_ORDER";
/// Threads in descending order.
const BACKWARDS: &str = "1";
/// Warp by warp.
const BY_WARPS: &str = "3";

/// Ops whose kernels execute the barriers of each file.
const SERVED: &[(&str, &[&str])] = &[
    ("attention.cu", &["flash_attention", "flash_attention_backward"]),
    ("attention_cores.cuh", &["flash_attention", "flash_attention_backward"]),
    ("attention_groups.cuh", &["flash_attention"]),
    ("attention_plain.cuh", &["flash_attention", "flash_attention_backward"]),
    ("cast.cu", &["clone"]),
    ("conv.cu", &["conv"]),
    ("moments.cu", &["norm"]),
    ("nets.cuh", &["softmax", "nll_loss"]),
    ("order.cu", &["sort", "topk"]),
    ("reduce.cu", &["sum"]),
    ("scan.cu", &["cumsum"]),
    ("tensor_tile.cuh", &["mm", "conv"]),
    ("tile.cuh", &["mm", "conv"]),
    ("unpool.cu", &["max_pool_backward"]),
];
/// Files whose kernels use tensor cores.
const BY_CORES: [&str; 4] =
    ["attention_cores.cuh", "attention_groups.cuh", "attention_plain.cuh", "tensor_tile.cuh"];

/// Barriers and synchronization steps of products, as the beginnings of source lines.
const HOLDS: [&str; 7] = [
    "__syncthreads()",
    "__syncwarp()",
    "copies_arrived<",
    "written_for_products();",
    "products_may_begin();",
    "products_begun();",
    "products_done();",
];
/// A wait that no result needs: no copy may be pending when a kernel ends, and nothing is read after it.
const AT_THE_END: &str = "copies_arrived<0>();  // Waits for all copies before the block ends.";

/// The source locations of all barriers, as the shim names them.
fn barriers() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../backend-cuda/kernels");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text
            .lines()
            .zip(1..)
            .filter(|(line, _)| HOLDS.iter().any(|hold| line.trim_start().starts_with(hold)));
        let before = found.len();
        found.extend(lines.map(|(_, number)| (file.clone(), format!("{file}:{number}"))));
        let all: usize = HOLDS.iter().map(|hold| text.matches(hold).count()).sum();
        assert_eq!(all, found.len() - before, "{file}: a line each");
        let ends = text.lines().zip(1..).filter(|(line, _)| line.trim_start() == AT_THE_END);
        let ends: Vec<_> = ends.map(|(_, number)| format!("{file}:{number}")).collect();
        found.retain(|(_, place)| !ends.contains(place));
    }
    found.sort();
    found
}

/// The worker of the suite, which runs each case in a worker process; not a test by itself.
#[test]
fn worker() {
    if std::env::var_os(WORKER).is_none() {
        return;
    }
    let list = |variable| std::env::var(variable).unwrap().split(',').map(str::to_string).collect();
    let cores = std::env::var_os(CORES).is_some();
    let job = worker::Job {
        name: None,
        would_serve: None,
        library: Some(support::built("keyway_backend_cuda")),
        backends: Vec::new(),
        selection: Selection {
            ops: list(OPS),
            families: list(FAMILIES),
            dtypes: cores.then(|| DTYPE_OF_CORES.to_string()).into_iter().collect(),
            quick: !cores,
            ..Selection::default()
        },
        listed: std::env::args().all(|word| word != UNLISTED),
    };
    worker::serve(&job, std::io::stdin().lock(), std::io::stdout().lock()).unwrap();
}

/// The numbers of failed and of all cases of these ops, on a chip, with a library for products or none; with a skipped
/// barrier only up to the first failure. Without an `order` each launch has a random one.
fn judged(
    (driver, library, chip): (&Path, Option<&Path>, &str),
    ops: &[&str],
    families: &str,
    cores: bool,
    order: Option<&str>,
    skipped: Option<&str>,
) -> (usize, usize) {
    let command = |listed: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["worker", "--exact", "--nocapture", "--"]);
        command.env(WORKER, "1").env(OPS, ops.join(",")).env(FAMILIES, families);
        command.env("KEYWAY_CUDA_DRIVER", driver).env(CHIP, chip).env_remove("KEYWAY_CUDA_BLAS");
        command.envs(library.map(|library| ("KEYWAY_CUDA_BLAS", library)));
        if cores {
            command.env(CORES, "1");
        }
        if let Some(order) = order {
            command.env(ORDER, order);
        }
        if let Some(place) = skipped {
            command.env(SKIP, place);
        }
        if !listed {
            command.arg(UNLISTED);
        }
        Start::from(command)
    };
    // No drawn calls: threads are fibres here, and a million of them take minutes.
    let (timeout, drawing) = (Duration::from_secs(60), Duration::ZERO);
    let limits = Limits { jobs: 2, turns: 2, timeout, drawing, memory: 4 << 30 };
    // With a skipped barrier one failed case suffices.
    let done = |_: &_, _, case: &Finished| match skipped {
        Some(_) if case.outcome.is_failure() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let ran = runner::run(&command, limits, &AtomicBool::new(false), &done, &|_, _| {}).unwrap();
    (ran.finished.iter().filter(|case| case.outcome.is_failure()).count(), ran.finished.len())
}

#[test]
fn each_barrier_that_is_left_out_fails_a_case() {
    let Some(driver) = support::stand_in() else { return };
    let library = keyway_test_cuda_driver::blas(&driver);
    let mut escaped = Vec::new();
    let all = barriers();
    for (file, place) in &all {
        let Some((_, ops)) = SERVED.iter().find(|(served, _)| served == file) else {
            panic!("{file} has a barrier: name the ops that come to it in SERVED");
        };
        let cores = BY_CORES.contains(&file.as_str());
        // The few launches of a kernel would otherwise get their orders by chance.
        let orders: &[Option<&str>] = if cores { &[Some(BY_WARPS)] } else { &[None, Some(BACKWARDS)] };
        let groups: &[&str] = match cores {
            _ if OF_SIZES.contains(&file.as_str()) => &GROUPS_OF_SIZES,
            true => &GROUPS_OF_CORES,
            false => &GROUPS,
        };
        let library = (file == FOR_PRODUCTS).then_some(library.as_path());
        let chip = if file == OF_CHIP.0 { OF_CHIP.1 } else { USUAL_CHIP };
        let mut runs = groups.iter().flat_map(|group| orders.iter().map(move |order| (group, order)));
        let is_missed = runs.any(|(group, order)| {
            let (failed, cases) = judged((&driver, library, chip), ops, group, cores, *order, Some(place));
            println!("{place}: {failed} of {cases} cases of {group} fail");
            failed > 0
        });
        if !is_missed {
            escaped.push(place);
        }
    }
    assert!(escaped.is_empty() && !all.is_empty(), "nobody misses the barriers at {escaped:?}");
    let ops: Vec<&str> = SERVED.iter().flat_map(|(_, ops)| *ops).copied().collect();
    for (cores, order) in [(false, None), (false, Some(BACKWARDS)), (true, Some(BY_WARPS))] {
        let families = if cores { GROUPS_OF_CORES } else { GROUPS }.join(",");
        assert_eq!(
            judged((&driver, None, USUAL_CHIP), &ops, &families, cores, order, None).0,
            0,
            "with all barriers, {order:?}"
        );
        let with_library = (driver.as_path(), Some(library.as_path()), USUAL_CHIP);
        let wrong = judged(with_library, &["conv"], GROUPS_OF_SIZES[0], cores, order, None).0;
        assert_eq!(wrong, 0, "with all barriers and the library, {order:?}");
    }
    let (file, chip) = OF_CHIP;
    let ops = SERVED.iter().find(|(served, _)| *served == file).unwrap().1;
    let wrong = judged((&driver, None, chip), ops, GROUPS_OF_SIZES[0], true, Some(BY_WARPS), None).0;
    assert_eq!(wrong, 0, "with all barriers, on {chip}");
}
