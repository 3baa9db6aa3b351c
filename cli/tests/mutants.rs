//! The conformance suite finds faults: a few of the mutants that `cargo xtask mutants` runs in full.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use support::{Ran, known_failures_of, library, library_of, program, run};

/// Judges the CPU backend's kernels with one fault, or without, and returns the report.
fn judge(fault: &str, ops: &[&str]) -> (Ran, Value) {
    judge_library("keyway_test_mutant", fault, ops)
}

/// As above, for another plugin.
fn judge_library(library_name: &str, fault: &str, ops: &[&str]) -> (Ran, Value) {
    judge_with(library_name, fault, ops, &[])
}

/// As above, with these options.
fn judge_with(library_name: &str, fault: &str, ops: &[&str], options: &[&str]) -> (Ran, Value) {
    let (mutant, folder) = (library_of(library_name), tempfile::tempdir().unwrap());
    let report = folder.path().join("report.json");
    let mut command = program(&library());
    command.args(["conformance", "--quick", "--timeout", "3", "--seed", "0"]);
    command.arg("--library").arg(&mutant).arg("--json").arg(&report).args(known_failures_of(library_name));
    ops.iter().for_each(|op| {
        command.args(["--op", op]);
    });
    command.args(options);
    command.env("KEYWAY_FAULT", fault).env("KEYWAY_MUTANT_OF", library());
    let ran = run(command);
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    let report = serde_json::from_str(&text).unwrap_or(Value::Null);
    (ran, report)
}

/// The families of the cases with unexpected results, with their status.
fn bad(report: &Value) -> BTreeSet<(String, String)> {
    let cases = report["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let bad = cases.iter().filter(|case| case["status"] == "failed" || case["status"] == "died");
    bad.map(|case| (text(&case["family"]), text(&case["status"]))).collect()
}

#[test]
fn without_a_fault_the_wrapped_kernels_pass() {
    let (ran, report) = judge("", &["add", "relu", "mm", "sort"]);
    assert_eq!(bad(&report), BTreeSet::new());
    ran.expect(0);
}

#[test]
fn faults_are_found_by_the_family_that_is_about_them() {
    let failed = [
        ("stride_ignored", "add", "strided"),
        ("nan_swallowed", "relu", "extremes"),
        ("write_past_end", "add", "guards"),
        ("gap_overwritten", "add", "out"),
        ("unclaimed_answer", "mm", "claims"),
        ("wrong_promotion", "add", "promotion"),
        ("in_place_gradient", "relu", "gradients"),
        ("shared_scratch", "add", "threads"),
        ("device_leak", "add", "leaks"),
        ("index_unchecked", "gather", "errors"),
        ("expm1_cancels", "expm1", "accuracy"),
        ("var_one_pass", "var", "corners"),
        ("relu_gradient_at_zero", "relu", "corner_grads"),
        ("images_constant", "tanh", "kernels"),
        ("never_serves", "square", "claims"),
        ("late_refusal", "square", "out"),
        ("late_refusal_without_out", "linear", "out"),
        ("linear_short_sums", "linear", "large"),
        ("linear_of_three", "linear", "large"),
        ("mean_of_eight", "rms_norm", "large"),
        ("four_rows", "rms_norm", "large"),
        ("sum_of_256", "sum", "large"),
        ("product_short_sums", "mm", "large"),
        ("one_argument_dense", "linear", "strided"),
        ("late_refusal_in_place", "leaky_relu", "out"),
        ("columns_of_128", "softmax", "sizes"),
        ("rows_of_512", "adam_rows", "sizes"),
        ("seed_of_32_bits", "uniform", "random"),
        ("argmax_of_nan_in_columns", "argmax", "extremes"),
    ];
    let died = [
        ("crash", "relu", "values"),
        ("exit", "relu", "values"),
        ("hang", "relu", "claims"),
        ("wakes_up", "relu", "claims"),
    ];
    let all = failed.map(|fault| (fault, "failed")).into_iter().chain(died.map(|fault| (fault, "died")));
    for ((fault, op, family), status) in all {
        let (ran, report) = judge_with("keyway_test_mutant", fault, &[op], &["--family", family]);
        let found = bad(&report);
        assert!(found.contains(&(family.to_string(), status.to_string())), "{fault}: {found:?}");
        ran.expect(1);
    }
}

/// Each fault is detected by the only family that covers it: kernels that are correct on small tensors, in few calls, on
/// one thread, or if memory was not changed in between.
#[test]
fn faults_of_caches_counters_and_thresholds_are_found() {
    for (fault, op, family) in [
        ("wrong_after_100000", "add", "soak"),
        ("once_wrong", "mul", "soak"),
        ("scratch_of_30000", "exp", "threads"),
        ("channels_broadcast", "mul", "scaled"),
        ("product_of_512", "mm", "scaled"),
        ("terms_of_8192", "mm", "scaled"),
        ("elements_of_2_21", "exp", "scaled"),
        ("elements_of_3000000", "tanh", "lengths"),
        ("sum_of_exactly_4099", "sum", "lengths"),
        ("in_place_of_200000", "sigmoid", "scaled"),
        ("strided_out_of_300000", "sub", "scaled"),
        ("stride_of_1024", "add", "pitched"),
        ("high_precision", "mm", "settings"),
    ] {
        let (ran, report) = judge_with("keyway_test_mutant", fault, &[op], &["--family", family]);
        let found = bad(&report);
        assert_eq!(found, BTreeSet::from([(family.to_string(), "failed".to_string())]), "{fault}");
        ran.expect(1);
    }
}

/// Faults of a device's queue, of its second device alone, and of an interposer on ops without a kernel.
#[test]
fn faults_of_devices_and_interposers_are_found() {
    for (library, fault, ops, family) in [
        ("keyway_test_device", "device_queue_drops", &[][..], "queues"),
        ("keyway_test_device", "second_device_wrong", &["mul"], "large"),
        ("keyway_test_interposer", "results_halved", &["exp"], "interposers"),
        ("keyway_test_interposer", "gradients_halved", &["sin"], "interposers"),
        ("keyway_test_interposer", "large_results_halved", &["mm"], "interposers"),
    ] {
        judge_with(library, "", ops, &["--family", family]).0.expect(0);
        let (ran, report) = judge_with(library, fault, ops, &["--family", family]);
        let found = bad(&report);
        assert!(found.contains(&(family.to_string(), "failed".to_string())), "{fault}: {found:?}");
        ran.expect(1);
    }
    let (_, report) =
        judge_with("keyway_test_device", "second_device_wrong", &["mul"], &["--family", "large"]);
    let failed = report["cases"].as_array().unwrap().iter().filter(|case| case["status"] == "failed");
    let on_second = |case: &Value| case["id"].as_str().unwrap().ends_with("@test.keyway/remote:1");
    assert!(failed.clone().count() > 0 && failed.clone().all(on_second));
}

/// Ops of plugins are judged by their own samples, kernels of layouts on tensors that the suite creates.
#[test]
fn faults_of_ops_and_layouts_that_plugins_bring_are_found() {
    for (library, fault, op, family) in [
        ("keyway_test_ops", "plugin_op_wrong", "plug_softsign", "plugin_ops"),
        ("keyway_test_ops", "plugin_op_strides", "plug_sum_diff", "plugin_ops"),
        ("keyway_test_ops", "plugin_op_gradient", "plug_softsign", "plugin_ops"),
        ("keyway_test_ops", "plugin_op_late_refusal", "plug_scale_add", "plugin_ops"),
        ("keyway_test_ops", "plugin_op_never_called", "plug_scale_add", "kernels"),
        ("keyway_test_coo", "coo_duplicate_dropped", "coalesce", "kernels"),
        ("keyway_test_coo", "coo_entries_squared", "square", "kernels"),
        ("keyway_test_coo", "coo_order_assumed", "mm", "kernels"),
        ("keyway_test_coo", "coo_index_off", "mm", "kernels"),
        ("keyway_test_coo", "coo_stale_flag", "neg", "kernels"),
        ("keyway_test_coo", "coo_zeros_ignored", "amax", "kernels"),
        ("keyway_test_csr", "csr_rows_skipped", "mm", "kernels"),
        ("keyway_test_csr", "csr_zero_ends_row", "mm", "kernels"),
        ("keyway_test_csr", "csr_gaps_ignored", "mm", "kernels"),
        ("keyway_test_csr", "csr_add_alpha", "add", "kernels"),
        ("keyway_test_csr", "csr_spmv_gradient", "csr_spmv_backward", "kernels"),
        ("keyway_test_csr", "csr_transpose_dead", "transpose", "kernels"),
        ("keyway_test_int8", "int8_mm_scale", "mm", "kernels"),
    ] {
        judge_library(library, "", &[op]).0.expect(0);
        let (ran, report) = judge_library(library, fault, &[op]);
        let found = bad(&report);
        assert!(found.contains(&(family.to_string(), "failed".to_string())), "{fault}: {found:?}");
        ran.expect(1);
    }
}

/// The loss of a lossy layout is bounded by its tolerance, options reach its attributes, and projected gradients are right.
#[test]
fn faults_of_a_lossy_layout_are_found() {
    let layout = ["--family", "layout"];
    let (ran, report) = judge_with("keyway_test_int8", "", &[], &layout);
    assert_eq!(bad(&report), BTreeSet::new());
    ran.expect(0);
    for fault in [
        "int8_last_scale",
        "int8_truncates",
        "int8_saturates",
        "int8_tail_lost",
        "int8_block_ignored",
        "int8_scale_lost",
        "pruned_gradient",
        "pruned_gradient_lost",
    ] {
        let (ran, report) = judge_with("keyway_test_int8", fault, &[], &layout);
        assert!(bad(&report).contains(&("layout".to_string(), "failed".to_string())), "{fault}");
        ran.expect(1);
    }
}

/// Kernels of composite layouts that are wrong only for many entries, wide rows, strided components, several threads or some
/// values.
#[test]
fn faults_of_layouts_are_found_at_other_sizes_strides_and_values() {
    for (library, fault, op, family) in [
        ("keyway_test_coo", "coo_many_lost", "mm", "large"),
        ("keyway_test_coo", "coo_indices_packed", "mm", "strided"),
        ("keyway_test_coo", "coo_scratch_shared", "mm", "threads"),
        ("keyway_test_coo", "coo_cancelled_kept", "square", "values"),
        ("keyway_test_csr", "csr_columns_16_bits", "mm", "sizes"),
        ("keyway_test_csr", "csr_cancel_ends_row", "add", "values"),
        // The conversions of the layout, which are about no op.
        ("keyway_test_int8", "int8_far_scale", "", "large"),
    ] {
        let only = ["--family", family];
        let ops: Vec<&str> = Some(op).into_iter().filter(|op| !op.is_empty()).collect();
        let (ran, report) = judge_with(library, "", &ops, &only);
        assert_eq!(bad(&report), BTreeSet::new(), "{library} {op} {family}");
        ran.expect(0);
        let (ran, report) = judge_with(library, fault, &ops, &only);
        assert!(bad(&report).contains(&(family.to_string(), "failed".to_string())), "{fault}");
        ran.expect(1);
    }
}

/// A format is declared for an op only if the plugin has a kernel that serves it.
#[test]
fn a_format_declared_without_a_kernel_is_found() {
    let claims = ["--family", "claims"];
    let (_, report) = judge_with("keyway_test_int8", "", &[], &claims);
    assert_eq!(bad(&report), BTreeSet::new());
    let (ran, report) = judge_with("keyway_test_int8", "int8_preference", &[], &claims);
    let cases = report["cases"].as_array().unwrap().iter();
    let failed: Vec<_> = cases.filter(|case| case["status"] == "failed").collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(
        failed[0]["failure"]["got"],
        "format `test.keyway/int8` declared for `bmm` on `cpu`: the plugin has no kernel of it there"
    );
    ran.expect(1);
}

/// The plugin answers no call after a panic, so each case after it needs another process.
#[test]
fn a_panic_fails_only_the_cases_in_which_it_happens() {
    let (ran, report) = judge("panic", &["sigmoid", "relu"]);
    ran.expect(1);
    let cases = report["cases"].as_array().unwrap();
    let (bad, good): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case["status"] == "failed");
    assert!(bad.len() > 10 && good.len() > 10 * bad.len(), "{} of {}", bad.len(), cases.len());
    for case in bad {
        assert!(
            case["op"] == "sigmoid" && case["failure"]["got"].as_str().unwrap().contains("panic"),
            "{case}"
        );
    }
}

/// Each case of the kernel would take the time limit; the cases of the other dtype are judged.
#[test]
fn a_kernel_that_hangs_costs_a_few_time_limits() {
    /// Seconds without progress after which a case that waits is ended, for a limit of one second of processor time.
    const ASLEEP: f64 = 3.0;
    let (mutant, folder) = (library_of("keyway_test_mutant"), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name);
    let mut command = program(&library());
    command.args(["conformance", "--op", "relu", "--dtype", "i16", "--dtype", "i32", "--family", "strided"]);
    command.args(["--family", "out", "--timeout", "1", "--jobs", "2", "--library"]).arg(&mutant);
    command.arg("--json").arg(path("json")).arg("--junit").arg(path("junit")).arg("--html").arg(path("html"));
    command.env("KEYWAY_FAULT", "hang").env("KEYWAY_MUTANT_OF", library());
    let ran = run(command).expect(1);
    let text = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let report: Value = serde_json::from_str(&text("json")).unwrap();
    let cases = report["cases"].as_array().unwrap();
    let count = |dtype: &str, status: &str| {
        cases.iter().filter(|case| case["dtype"] == dtype && case["status"] == status).count()
    };
    let (died, not_run) = (count("i16", "died"), count("i16", "not_run"));
    // The other worker may be in a case of the kernel at its third time-out.
    assert!((3..=4).contains(&died), "{died} died");
    assert!(not_run > 50 && report["counts"]["not_run"] == not_run, "{not_run} not run");
    assert!(count("i32", "passed") > 50 && count("i32", "not_run") == 0);
    assert_eq!((&report["interrupted"], &report["wanted"]), (&Value::Bool(false), &cases.len().into()));
    // Without the limit two workers would take half of this for each.
    let (seconds, each) = (report["seconds"].as_f64().unwrap(), ASLEEP / 2.0 * not_run as f64);
    assert!(seconds < each / 2.0, "{seconds} s, of {each} s for every case");
    let why = "3 cases of kernel relu/i16 on cpu:strided timed out";
    assert!(ran.out.contains(&format!("  {not_run} cases: {why}")), "{}", ran.out);
    let bad = died + not_run;
    assert!(ran.out.contains(&format!("  relu: {bad} of {}", cases.len())), "{}", ran.out);
    assert!(ran.err.contains(&format!("{bad} of {} cases", cases.len())), "{}", ran.err);
    assert!(text("junit").contains(&format!("not run: {why}")) && text("html").contains(why));
}

#[test]
fn a_run_may_end_at_the_first_case_that_fails() {
    let fast = |fault| judge_with("keyway_test_mutant", fault, &["relu"], &["--jobs", "1", "--fail-fast"]);
    let (ran, report) = fast("nan_swallowed");
    let cases = report["cases"].as_array().unwrap();
    assert!(cases.len() < report["wanted"].as_u64().unwrap() as usize, "{} cases", cases.len());
    let failed = |case: &Value| case["status"] == "failed";
    assert!(failed(cases.last().unwrap()) && !cases[..cases.len() - 1].iter().any(failed));
    assert_eq!(report["interrupted"], true);
    assert!(ran.expect(1).err.contains("1 of "), "not as an interrupt");

    let (ran, report) = fast("");
    assert_eq!((bad(&report), &report["interrupted"]), (BTreeSet::new(), &Value::Bool(false)));
    ran.expect(0);
}

/// Also where the suite first asks for a refusal, to check the state that the kernel left.
#[test]
fn a_kernel_that_refuses_every_call_has_served_none() {
    let (ran, report) = judge("never_serves_halves", &["leaky_relu"]);
    ran.expect(1);
    let cases = report["cases"].as_array().unwrap();
    for family in ["strided", "guards", "out"] {
        let of = cases.iter().filter(|case| case["family"] == family && case["dtype"] == "bf16");
        let statuses: BTreeSet<&str> = of.map(|case| case["status"].as_str().unwrap()).collect();
        assert_eq!(statuses, BTreeSet::from(["by_others"]), "{family}");
    }
}

/// Judges the calls that a seed draws for an op.
fn drawn(fault: &str, op: &str, seed: &str) -> (Ran, Value) {
    let (mutant, folder) = (library_of("keyway_test_mutant"), tempfile::tempdir().unwrap());
    let report = folder.path().join("report.json");
    let mut command = program(&library());
    command.args(["conformance", "--family", "drawn", "--op", op, "--dtype", "f32", "--seed", seed]);
    // Independent of the speed of the machine.
    command.args(["--drawing", "100000", "--fail-fast"]);
    command.arg("--library").arg(&mutant).arg("--json").arg(&report);
    command.env("KEYWAY_FAULT", fault).env("KEYWAY_MUTANT_OF", library());
    let ran = run(command);
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    (ran, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// Faults at sizes and values that no fixed list of cases has.
#[test]
fn faults_of_few_sizes_and_values_are_found_by_drawn_calls() {
    for (fault, op, seed) in DRAWN {
        let (ran, report) = drawn(fault, op, seed);
        let found = bad(&report);
        assert!(found.contains(&("drawn".to_string(), "failed".to_string())), "{fault}: {found:?}");
        ran.expect(1);
    }
}

/// The faults that `drawn` alone finds, each with a seed that finds it.
const DRAWN: [(&str, &str, &str); 5] = [
    ("multiple_of_224", "relu", "0"),
    ("prime_number_of_terms", "mm", "0"),
    ("pair_of_magnitudes", "div", "0"),
    ("strided_out_of_300000", "sub", "0"),
    ("factors_of_channels", "mul", "0"),
];

/// The report has the simplest failing call, and the command that repeats it.
#[test]
fn what_was_drawn_and_fails_shrinks_to_a_call_that_can_be_repeated() {
    let (fault, op, seed) = DRAWN[1];
    let (_, report) = drawn(fault, op, seed);
    let failed = report["cases"].as_array().unwrap().iter().find(|case| case["status"] == "failed").unwrap();
    let call = failed["call"].as_str().unwrap();
    assert!(
        call.starts_with("mm(f32 [1, ") && call.contains(", 1] strides ") && !call.contains("out="),
        "{call}"
    );
    assert!(failed["failure"]["what"].as_str().unwrap().contains("as was drawn: mm("), "{failed}");
    assert_eq!((&report["draws"]["seed"], &report["selection"]["draws"]), (&0.into(), &0.into()));
    let again = failed["rerun"].as_str().unwrap();
    assert!(again.contains("--seed 0 ") && report["draws"]["again"].as_str().unwrap().contains("--seed 0 "));
    let mut command = program(&library());
    command.args(again.split(' ').skip(1));
    command.env("KEYWAY_FAULT", fault).env("KEYWAY_MUTANT_OF", library());
    let ran = run(command).expect(1);
    assert!(ran.out.contains(call), "{call}\n{}", ran.out);
}

/// Neither the command line nor the environment of a worker shows that a library is judged.
#[test]
fn a_library_that_behaves_well_where_it_is_judged_does_not_find_out() {
    let (ran, report) = judge("good_while_watched", &["relu"]);
    let found = bad(&report);
    assert!(found.contains(&("values".to_string(), "failed".to_string())), "{found:?}");
    ran.expect(1);
}

#[test]
fn a_fault_that_does_not_exist_proves_nothing() {
    let (ran, report) = judge("no_such_fault", &["add"]);
    assert_eq!(report, Value::Null);
    assert!(ran.expect(1).err.contains("there is no fault `no_such_fault`"));
}
