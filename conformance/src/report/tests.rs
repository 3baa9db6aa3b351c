//! Tests of the messages about runs.

use super::*;

fn row(id: &str, status: Status, by: &str) -> Row {
    let mut parts = id.split('/').map(str::to_string);
    let mut next = || parts.next().unwrap_or_default();
    let (family, op, dtype) = (next(), next(), next());
    let reason = (!by.is_empty()).then(|| by.to_string());
    Row {
        id: id.to_string(),
        family,
        op,
        dtype,
        status,
        failure: None,
        judged_by: None,
        reason,
        call: None,
        rerun: None,
        micros: 0,
    }
}

#[test]
fn families_are_listed_that_a_library_did_not_serve() {
    let registers = [("linear".to_string(), "f32".to_string())];
    let cases = [
        row("values/linear/f32/0", Status::Passed, ""),
        row("strided/linear/f32/0/transposed", Status::ByOthers, "a"),
        row("strided/linear/f32/0/stepped", Status::Unsupported, "strides"),
        // A dtype and an op without its kernels, and thus no verdict.
        row("strided/linear/f64/0/stepped", Status::ByOthers, "a"),
        row("strided/add/f32/0/stepped", Status::ByOthers, "a"),
        row("strided/linear/f32/1/stepped", Status::Skipped, "no oracle"),
        row("large/linear/f32/0/together", Status::Passed, ""),
    ];
    let none = Unserved { op: "linear".to_string(), family: "strided".to_string(), cases: 2 };
    assert_eq!(unserved(&registers, &cases), [none]);
    assert_eq!(unserved(&[], &cases), []);
}

#[test]
fn those_who_served_most_are_named_first() {
    let cases = vec![
        row("values/add/f32/0", Status::ByOthers, "b"),
        row("values/add/f32/1", Status::ByOthers, "a, b"),
        row("values/add/f32/2", Status::ByOthers, &format!("b{AND_WRONG}output 0, 1")),
        row("values/add/f32/3", Status::Failed, ""),
        row("values/add/f32/4", Status::Passed, ""),
        row("values/add/f32/5", Status::Skipped, "c"),
    ];
    let report = report(cases, None);
    assert_eq!((report.served(), report.others()), (2, vec!["b", "a"]));
    assert!(!report.lacks_gradients());
}

#[test]
fn a_run_that_the_library_had_no_part_in_is_not_green() {
    let others = || row("values/mm/f64/0", Status::ByOthers, "a");
    let refused = row("values/mm/f64/1", Status::Unsupported, "no f64");
    let nothing = report(vec![others(), refused], None);
    assert!(nothing.says_nothing() && !nothing.is_green());
    assert!(nothing.junit().contains("no case was served by p: this run does not test it"));
    assert!(nothing.html().contains("\"says_nothing\":true"));
    let some = report(vec![others(), row("values/mm/f32/0", Status::Passed, "")], None);
    assert!(!some.says_nothing() && some.is_green() && !some.junit().contains("does not test it"));
    assert!(!report(Vec::new(), None).says_nothing());
}

#[test]
fn a_narrowed_run_is_shown_with_its_selection() {
    let passed = || vec![row("values/mm/f64/0", Status::Passed, "")];
    let mut one = report(passed(), None);
    assert_eq!(one.narrowed(), None);
    one.selection.ops = vec!["mm".to_string(), "add*".to_string()];
    one.selection.dtypes = vec!["f64".to_string()];
    let text = "narrowed to op mm or add*, dtype f64: not the whole suite";
    assert_eq!(one.narrowed().as_deref(), Some(text));
    assert!(one.html().contains(&format!("\"narrowed\":\"{text}\"")));
    assert!(one.junit().contains(text) && one.junit().contains("failures=\"0\""), "{}", one.junit());
    let mut quick = report(passed(), Some("load"));
    quick.selection.quick = true;
    quick.selection.seed = 7;
    let text = "narrowed to profile load, the quick cases, on the values of seed 7: not the whole suite";
    assert_eq!(quick.narrowed().as_deref(), Some(text));
}

#[test]
fn a_run_that_is_not_green_is_not_so_for_a_build_server() {
    let mut run = report(vec![row("values/mm/f64/0", Status::Passed, "")], None);
    assert!(run.is_green() && run.junit().contains("failures=\"0\""));
    run.unused_known = vec!["nothing/like/this".to_string()];
    assert!(!run.is_green() && run.junit().contains("the known failure `nothing/like/this` matches no case"));
    (run.interrupted, run.wanted) = (true, 5);
    assert!(run.junit().contains("the run was ended after 1 of 5 cases"), "{}", run.junit());
    assert!(run.junit().contains("failures=\"2\""));
}

#[test]
fn only_the_usual_values_leave_a_certificate() {
    let mut run = report(vec![row("values/add/f32/0", Status::Passed, "")], None);
    assert!(crate::certificate::Certificate::of(&run).is_some());
    run.selection.seed = 7;
    assert!(crate::certificate::Certificate::of(&run).is_none());
    assert_eq!(run.narrowed().as_deref(), Some("on the values of seed 7"));
    // Nor are calls drawn from a chosen seed.
    (run.selection.seed, run.selection.draws, run.selection.chosen) = (0, 7, true);
    assert!(crate::certificate::Certificate::of(&run).is_none());
    assert_eq!(run.narrowed().as_deref(), Some("on the calls that seed 7 draws"));
}

fn finished(outcome: Outcome) -> Finished {
    Finished {
        case: crate::runner::CaseName {
            id: "values/add/f32/0".to_string(),
            family: "values".to_string(),
            op: "add".to_string(),
            dtype: "f32".to_string(),
            sample: 0,
            kernel: "kernel add/f32 on cpu:strided".to_string(),
        },
        outcome,
        call: None,
        judged_by: None,
        shrunk: None,
        passed_alone: false,
        panicked: false,
        duration: std::time::Duration::ZERO,
    }
}

#[test]
fn a_list_excuses_a_wrong_answer_and_no_crash() {
    let entry = crate::known::Known { case: "values/add/*".to_string(), reason: "rounds twice".to_string() };
    let known = KnownFailures { known: vec![entry] };
    let outcome_of = |outcome, panicked| {
        let finished = Finished { panicked, ..finished(outcome) };
        let row = super::row(finished, &known, &|_: Option<&str>| String::new());
        (row.status, row.reason.unwrap_or_default())
    };
    let failed = || Outcome::Failed(Failure::new("a call failed", "a result", "panicked"));
    assert_eq!(outcome_of(failed(), false), (Status::KnownFailure, "rounds twice".to_string()));
    let (status, reason) = outcome_of(failed(), true);
    assert_eq!((status, reason.as_str()), (Status::Failed, "a panic, which no list can excuse"));
    let (status, reason) = outcome_of(Outcome::Died { how: "signal 11".to_string() }, false);
    assert_eq!((status, reason.as_str()), (Status::Died, "signal 11, which no list can excuse"));
}

#[test]
fn a_drawn_case_may_pass_although_it_is_listed_and_is_repeated_by_its_simplest_call() {
    let entry = crate::known::Known { case: "*/add/*".to_string(), reason: "rounds twice".to_string() };
    let known = KnownFailures { known: vec![entry] };
    let outcome_of = |id: &str, outcome, shrunk: Option<&str>| {
        let mut finished = Finished { shrunk: shrunk.map(str::to_string), ..finished(outcome) };
        finished.case.id = id.to_string();
        let row = super::row(finished, &known, &|id: Option<&str>| id.unwrap_or_default().to_string());
        (row.status, row.rerun)
    };
    assert_eq!(outcome_of("values/add/f32/0", Outcome::Passed, None).0, Status::UnexpectedPass);
    assert_eq!(outcome_of("drawn/add/f32/0", Outcome::Passed, None).0, Status::Passed);
    let failed = || Outcome::Failed(Failure::new("a call failed", "1", "2"));
    let simplest = "drawn/add/f32/0/3.1";
    let (status, again) = outcome_of("drawn/add/f32/0", failed(), Some(simplest));
    assert_eq!((status, again.as_deref()), (Status::KnownFailure, Some(simplest)));
    assert_eq!(outcome_of("drawn/add/f32/0", failed(), None).1.as_deref(), Some("drawn/add/f32/0"));
}

#[test]
fn a_wrong_result_that_a_fresh_process_does_not_repeat_is_reported_as_such() {
    let finished = |passed_alone| Finished {
        passed_alone,
        ..finished(Outcome::Failed(Failure::new("output 0", "1", "2")))
    };
    let row = |passed_alone| {
        super::row(finished(passed_alone), &KnownFailures::default(), &|_: Option<&str>| String::new())
    };
    assert_eq!((row(false).status, row(false).reason), (Status::Failed, None));
    assert_eq!(row(true).reason.as_deref(), Some(PASSED_ALONE));
    let mut run = report(Vec::new(), None);
    run.families.insert("values".to_string(), Counts::default());
    run.cases = vec![row(true)];
    assert!(run.junit().contains("alone in a fresh process it passed"), "{}", run.junit());
    assert!(run.html().contains("alone in a fresh process it passed"));
}

#[test]
fn a_training_profile_without_derivatives_leaves_no_certificate() {
    let refused = row("gradcheck/add/f64/0", Status::Unsupported, "no kernel");
    let passed = row("values/add/f32/0", Status::Passed, "");
    let certified = |cases: Vec<Row>, profile| {
        crate::certificate::Certificate::of(&report(cases, Some(profile))).is_some()
    };
    assert!(!certified(vec![passed.clone(), refused.clone()], "train"));
    assert!(certified(vec![passed.clone(), refused], "infer"));
    assert!(certified(vec![passed, row("gradcheck/add/f32/0", Status::Passed, "")], "train"));
}

fn report(cases: Vec<Row>, profile: Option<&str>) -> Report {
    let selection = Selection { profile: profile.map(str::to_string), ..Selection::default() };
    let judged = crate::runner::Judged {
        plugin: "p".to_string(),
        version: "1".to_string(),
        library: PathBuf::from("libp.so"),
        stamp: None,
        device: "cpu:0".to_string(),
        device_name: None,
        asynchronous: false,
        registers: Vec::new(),
        kernels: Vec::new(),
        rejected: Vec::new(),
    };
    let ran = Ran {
        judged,
        finished: Vec::new(),
        wanted: cases.len(),
        left_out: 0,
        changed: false,
        interrupted: false,
        duration: std::time::Duration::ZERO,
    };
    let empty = Report::new(ran, &selection, String::new(), &KnownFailures::default(), |_| String::new());
    let mut counts = Counts::default();
    cases.iter().for_each(|row| counts.add(row.status));
    Report { cases, counts, ..empty }
}

#[test]
fn cases_that_were_not_run_after_time_outs_are_failures_in_every_report() {
    let reason = "3 cases of kernel add/f32 on cpu:strided timed out";
    let entry = crate::known::Known { case: "values/add/*".to_string(), reason: "rounds twice".to_string() };
    let not_run = |known: &KnownFailures| {
        let finished = finished(Outcome::NotRun { reason: reason.to_string() });
        super::row(finished, known, &|_: Option<&str>| "again".to_string())
    };
    let listed = not_run(&KnownFailures { known: vec![entry] });
    assert_eq!(
        (listed.status, listed.reason.as_deref()),
        (Status::NotRun, Some(reason)),
        "no list excuses it"
    );
    let row = not_run(&KnownFailures::default());
    assert_eq!(row.rerun, None, "it has no result to repeat");

    let cases = vec![self::row("values/add/f32/1", Status::Passed, ""), row.clone(), row];
    let mut run = report(cases, None);
    run.families.insert("values".to_string(), Counts::default());
    assert!(!run.is_green() && !run.interrupted && run.bad().count() == 2);
    assert_eq!((run.served(), run.not_run()), (1, BTreeMap::from([(reason, 2)])));
    assert!(run.verdict().contains("not every case is as expected, 2 cases were not run after time-outs"));
    assert!(run.json().contains("\"not_run\": 2") && run.json().contains(reason));
    assert!(run.junit().contains("errors=\"2\"") && run.junit().contains(&format!("not run: {reason}")));
    // On the page they are one row, with the number of cases.
    assert_eq!(run.html().matches(reason).count(), 1);
    assert!(run.html().contains("\"t\",2,"), "{}", run.html());
    let certificate = crate::certificate::Certificate::of(&run).expect("a certificate");
    assert_eq!((certificate.green, certificate.passed, certificate.judged), (false, 1, 3));
    assert_eq!(certificate.standing(&certificate.sha256).to_string(), "failed 2 of 3");
}

#[test]
fn a_page_of_many_cases_is_small_and_has_each_that_failed() {
    let mut cases = Vec::new();
    for op in 0..270 {
        for family in 0..30 {
            for nth in 0..40 {
                let id = format!("family_{family}/some_operation_{op}/f{}/{nth}/transposed-{nth}", nth % 13);
                let refused = format!("strides [{}, {nth}] are not taken", nth * 7);
                cases.push(match nth % 20 {
                    19 => row(&id, Status::Unsupported, &refused),
                    _ => row(&id, Status::Passed, ""),
                });
            }
        }
    }
    let mut failed = row("values/add/f32/7", Status::Failed, "");
    failed.failure = Some(Failure::new("output 0 of sevens", "7", "8"));
    cases.push(failed);
    let page = report(cases, None).html();
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
    assert!(page.contains("values/add/f32/7") && page.contains("output 0 of sevens"));
    assert!(page.contains("strides [#, #] are not taken"));
}

#[test]
fn a_verdict_has_its_coverage() {
    let mut run = report(vec![row("values/mm/f64/0", Status::Passed, "")], Some("infer"));
    let kernels = crate::runner::Kernels {
        device: "npu".to_string(),
        layout: "strided".to_string(),
        registered: 79,
        reached: 79,
    };
    run.coverage = Coverage { kernels: vec![kernels], judged: 40, refused: 60, known: 2 };
    let text = "every case is as expected of tier infer, with 2 known failures; npu, strided: 79 of 79 kernels reached, 60 cases \
                (60 %) refused";
    assert_eq!(run.verdict(), text);
    assert!(run.html().contains(text) && run.html().contains("\"whole\":false"));
}
