//! The profiler: who served what, how often, with times that add up.

use keyway::profiler::{Report, profile};
use keyway::{DType, Tensor};

fn calls(report: &Report, op: &str) -> u64 {
    report.rows.iter().filter(|row| row.op == op).map(|row| row.calls).sum()
}

#[test]
fn calls_are_counted_by_op_and_library() {
    let x = Tensor::from_vec(vec![1.0f32; 6], [2, 3]).unwrap();
    x.mul(2.0).unwrap();
    let profile = profile();
    // Held until the report: the peak of small tensors is seen when the statistics are read.
    let _held = [(); 4].map(|()| x.mul(2.0).unwrap());
    x.view([6]).unwrap();
    let report = profile.report();
    drop(profile);
    x.mul(2.0).unwrap();
    let row = |op: &str| report.rows.iter().find(|row| row.op == op).unwrap();
    assert_eq!((row("mul").calls, row("mul").served_by.as_str()), (4, "keyway-cpu"));
    assert_eq!((row("view").calls, row("view").served_by.as_str()), (1, "(view)"));
    assert!(report.rows.iter().all(|row| row.self_ns <= row.total_ns));
    assert!(report.rows.is_sorted_by(|a, b| a.self_ns >= b.self_ns));
    assert!(report.memory.iter().any(|m| m.device == "cpu" && m.peak_in_use > 0));
    assert!(report.fallbacks.is_empty());
}

#[test]
fn nested_ops_have_rows_of_their_own_and_times_add_up() {
    let x = Tensor::from_vec(vec![1i32, 2, 3], [3]).unwrap();
    let profile = profile();
    // The kernel wants floats, so the call needs a cast.
    x.exp().unwrap();
    let report = profile.report();
    assert_eq!((calls(&report, "exp"), calls(&report, "to_dtype")), (1, 1));
    let exp = report.rows.iter().find(|row| row.op == "exp").unwrap();
    let cast = report.rows.iter().find(|row| row.op == "to_dtype").unwrap();
    assert_eq!(exp.total_ns, exp.self_ns + cast.total_ns);
    assert_eq!(report.op_ns(), exp.total_ns);
}

#[test]
fn a_backward_pass_is_counted() {
    let x = Tensor::from_vec(vec![1.0f32, 2.0], [2]).unwrap().requires_grad_(true).unwrap();
    let profile = profile();
    let loss = x.mul(&x).unwrap().sum_all().unwrap();
    let forward = profile.report();
    loss.backward().unwrap();
    let whole = profile.report();
    assert_eq!(calls(&forward, "mul"), 1);
    assert!(calls(&whole, "mul") >= 3, "{whole}");
}

#[test]
fn a_profile_within_another_is_added_to_it() {
    let x = Tensor::from_vec(vec![1.0f32, 2.0], [2]).unwrap();
    let outer = profile();
    x.mul(2.0).unwrap();
    let inner = profile();
    x.mul(2.0).unwrap();
    assert_eq!(calls(&inner.report(), "mul"), 1);
    drop(inner);
    x.mul(2.0).unwrap();
    assert_eq!(calls(&outer.report(), "mul"), 3);
}

#[test]
fn other_threads_are_not_seen_and_failures_are_told() {
    let x = Tensor::from_vec(vec![1.0f32, 2.0], [2]).unwrap();
    let profile = profile();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| x.mul(2.0).map(|_| ()));
        other.join().unwrap().unwrap();
    });
    assert_eq!(calls(&profile.report(), "mul"), 0);
    let wrong = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], [3]).unwrap();
    assert!(x.mul(&wrong).is_err());
    let report = profile.report();
    assert_eq!(report.rows[0].served_by, "(failed)");
    assert_eq!(x.dtype(), DType::F32);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rows"][0]["calls"], 1);
    assert!(format!("{report:.0}").contains("and 1 more"), "{report:.0}");
}
