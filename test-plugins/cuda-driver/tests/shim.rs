//! Threads of a block, as the processor runs them: barriers, exchanges within warps, shared memory.

mod support;

use keyway_test_cuda_driver::{Reason, build_program};
use std::path::Path;
use std::process::Command;

#[test]
fn barriers_and_exchanges_are_right_in_every_order_and_a_missing_barrier_is_seen() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shim_test");
    match build_program(own, &own.join("tests/shim_test.cpp"), &program) {
        Err(reason @ Reason::NoCompiler { .. }) => return eprintln!("skipped: {reason}"),
        other => other.unwrap(),
    }
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, support::texts(&output));
}
