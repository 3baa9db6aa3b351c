//! The suite tests the CUDA backend on the stand-in: an op of each kind, the quick cases. All cases of all ops are a
//! separate step: `keyway conformance cuda` with `KEYWAY_CUDA_DRIVER`.

mod support;

use keyway_conformance::runner::{self, Limits, Selection, Start, worker};
use keyway_test_cuda_driver::blas;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const WORKER: &str = "KEYWAY_CUDA_WORKER";
/// The argument for a worker whose cases are already known.
const UNLISTED: &str = "--unlisted";

/// An op of each host function, in groups: a test of all of them would exceed the time limit of a test on a slow machine.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "element_wise",
        &[
            "add",
            "div",
            "remainder",
            "pow",
            "lt",
            "exp",
            "gelu",
            "clamp",
            "where",
            "lerp",
            "addcmul",
            "to_dtype",
            "copy",
            "fill",
            "arange",
            "linspace",
        ],
    ),
    (
        "reductions_and_indices",
        &[
            "sum",
            "mean",
            "amax",
            "any",
            "argmax",
            "max",
            "bitwise_not",
            "index_select",
            "scatter_add",
            "scatter_reduce",
            "cat",
            "constant_pad",
        ],
    ),
    ("scans_and_sorts", &["cumsum", "cummax", "logcumsumexp", "cross", "topk", "nonzero", "masked_scatter"]),
    (
        "products_and_softmax",
        &["uniform", "embedding_bag", "addmm", "conv_input_grad", "softmax", "softmax_backward", "logsumexp"],
    ),
    ("norms_and_pools", &["norm", "channel_norm_backward", "nll_loss", "max_pool_backward", "interpolate"]),
    ("sampled_grids", &["grid_sample", "grid_sample_input_grad", "grid_sample_grid_grad"]),
    ("attention", &["scaled_dot_product_attention", "flash_attention", "flash_attention_backward"]),
    ("sparse_gradients", &["to_sparse", "embedding_sparse"]),
];

/// Everything about coordinates: the layout, and a case for each kernel of it.
const COORDINATES: &[&str] = &["layout/sparse_coo*", "kernels/*sparse_coo*"];

/// The ops that cuBLASLt serves.
const PRODUCTS: &[&str] = &["mm", "addmm", "bmm", "baddbmm", "mv"];

/// The task of a worker: all cases of [`PRODUCTS`], [`COORDINATES`], or the quick cases of the group of this name.
const ALL: &str = "products";
const SPARSE: &str = "sparse";

/// The worker of the suite, which runs each case in a worker process; not a test by itself.
#[test]
fn worker() {
    let named = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let Ok(which) = std::env::var(WORKER) else { return };
    let selection = match which.as_str() {
        ALL => Selection { ops: named(PRODUCTS), ..Selection::default() },
        SPARSE => Selection { cases: named(COORDINATES), ..Selection::default() },
        group => {
            let (_, ops) = GROUPS.iter().find(|(name, _)| *name == group).unwrap();
            Selection { ops: named(ops), quick: true, ..Selection::default() }
        }
    };
    let job = worker::Job {
        name: None,
        would_serve: None,
        library: Some(support::built("keyway_backend_cuda")),
        // A sparse gradient that was copied to the host is read by the backend that serves coordinates on it.
        backends: vec![support::built("keyway_backend_sparse")],
        selection,
        listed: std::env::args().all(|word| word != UNLISTED),
    };
    worker::serve(&job, std::io::stdin().lock(), std::io::stdout().lock()).unwrap();
}

/// Tests what `which` selects with this library for products, or with none; returns the number of cases.
#[track_caller]
fn judge(which: &str, driver: &Path, library: &str) -> usize {
    let command = |listed: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // The arguments that the runner appends are not options of the test harness.
        command.args(["worker", "--exact", "--nocapture", "--"]);
        command.env(WORKER, which).env("KEYWAY_CUDA_DRIVER", driver).env("KEYWAY_CUDA_BLAS", library);
        if !listed {
            command.arg(UNLISTED);
        }
        Start::from(command)
    };
    // No drawn calls: threads are fibres here, and a million of them take minutes.
    let (timeout, drawing) = (Duration::from_secs(60), Duration::ZERO);
    let limits = Limits { jobs: 2, turns: 2, timeout, drawing, memory: 4 << 30 };
    let ran = runner::run(
        &command,
        limits,
        &AtomicBool::new(false),
        &|_, _, _| ControlFlow::Continue(()),
        &|_, _| {},
    )
    .unwrap();
    assert_eq!((ran.judged.plugin.as_str(), ran.interrupted), ("keyway-cuda", false));
    let failed: Vec<String> = ran
        .finished
        .iter()
        .filter(|case| case.outcome.is_failure())
        .map(|case| format!("{}: {:?}", case.case.id, case.outcome))
        .collect();
    let (count, all) = (failed.len(), ran.finished.len());
    assert!(failed.is_empty(), "{count} of {all} cases:\n{}", failed[..count.min(20)].join("\n"));
    println!("{all} cases");
    all
}

/// Judges the quick cases of a group, of which there are more than `least`.
#[track_caller]
fn judge_group(name: &str, least: usize) {
    let Some(driver) = support::stand_in() else { return };
    let all = judge(name, &driver, "off");
    assert!(all > least, "{all}");
}

#[test]
fn every_case_of_element_wise_is_as_expected() {
    judge_group("element_wise", 9000);
}

#[test]
fn every_case_of_reductions_and_indices_is_as_expected() {
    judge_group("reductions_and_indices", 6500);
}

#[test]
fn every_case_of_scans_and_sorts_is_as_expected() {
    judge_group("scans_and_sorts", 3000);
}

#[test]
fn every_case_of_products_and_softmax_is_as_expected() {
    judge_group("products_and_softmax", 3000);
}

#[test]
fn every_case_of_norms_and_pools_is_as_expected() {
    judge_group("norms_and_pools", 2000);
}

#[test]
fn every_case_of_sampled_grids_is_as_expected() {
    judge_group("sampled_grids", 1200);
}

#[test]
fn every_case_of_attention_is_as_expected() {
    judge_group("attention", 1000);
}

#[test]
fn every_case_of_sparse_gradients_is_as_expected() {
    judge_group("sparse_gradients", 600);
}

#[test]
fn every_case_of_a_product_is_as_expected_with_cublaslt() {
    let Some(driver) = support::stand_in() else { return };
    let all = judge(ALL, &driver, blas(&driver).to_str().unwrap());
    assert!(all > 1000, "{all}");
}

#[test]
fn every_case_of_coordinates_is_as_expected() {
    let Some(driver) = support::stand_in() else { return };
    let all = judge(SPARSE, &driver, "off");
    assert!(all > 400, "{all}");
}
