//! The harness of the measured cases.
//!
//! Criterion measures; [`case`] writes each measurement as one JSON line, with the fields that other libraries' benchmarks
//! print too, so that both can be compared. The lines are appended to the file that `KEYWAY_BENCH_LINES` names
//! (`cargo xtask bench` sets it and prints them at the end); without it only criterion's report appears.
//!
//! Criterion was preferred to a timing loop of our own for its warm-up and its sampling; its `Throughput` was not used
//! for the unit of work, because it knows bytes and elements but not floating-point operations or steps.
#![forbid(unsafe_code)]

use criterion::Criterion;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of this project in the lines.
const PEER: &str = "keyway";

/// Criterion with the settings of all cases and the caller's command line.
#[must_use]
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(40)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
        .configure_from_args()
}

/// Number of threads of the cases: `KEYWAY_BENCH_THREADS`, else 1. The program that runs the cases sizes the host's pool by it
/// before the first tensor.
#[must_use]
pub fn threads() -> usize {
    std::env::var("KEYWAY_BENCH_THREADS")
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|&n| n > 0)
        .unwrap_or(1)
}

/// Whether the filter on the command line may match cases of `group` (the part of the name before the dot) and, if the filter
/// names sizes such as `1e6`, of `size`. Saves the tensors of cases that are not run; criterion itself selects the cases.
#[must_use]
pub fn wanted(group: &str, size: &str) -> bool {
    let filters: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    filters.is_empty()
        || filters.iter().any(|f| {
            (f.contains(group) || !f.contains('.'))
                && (size.is_empty() || !f.contains("1e") || f.contains(size))
        })
}

/// Whether the filter on the command line may match this case. As [`wanted`] it saves the case's tensors; criterion, which
/// reads the filter as a regular expression, selects the cases.
#[must_use]
pub fn named(name: &str) -> bool {
    std::env::args().skip(1).filter(|a| !a.starts_with('-')).all(|filter| may_match(&filter, name))
}

/// Whether `name` contains one of the filter's alternatives, or one of them is not plain text.
fn may_match(filter: &str, name: &str) -> bool {
    filter.split('|').any(|part| {
        let part = part.trim_start_matches('^').trim_end_matches('$').replace("\\.", ".");
        name.contains(&part) || part.contains(['*', '+', '?', '[', '(', ')', '\\'])
    })
}

/// Measures one case and writes its line.
///
/// `unit_work` is the work of one call of `f`, counted in `unit` (`flop`, `byte`, `elem`, `step` or `op`); bytes are the
/// least traffic of the fused operation, each input read once and each output written once. The line's `rate` is
/// `unit_work` over the median time in nanoseconds, so bytes give GB/s and operations GFLOP/s.
///
/// # Panics
/// If criterion's files or the file of lines cannot be read or written: a bench without its result is useless.
pub fn case<R>(criterion: &mut Criterion, name: &str, unit: &str, unit_work: f64, mut f: impl FnMut() -> R) {
    if let Some(calls) = counted_calls() {
        if std::env::args().nth(1).is_some_and(|wanted| wanted == name) {
            (0..calls).for_each(|_| drop(std::hint::black_box(f())));
        }
        return;
    }
    let mut ran = false;
    criterion.bench_function(name, |bencher| {
        ran = true;
        bencher.iter(&mut f);
    });
    let (Some(results), Some(lines)) =
        (std::env::var_os("CRITERION_HOME"), std::env::var_os("KEYWAY_BENCH_LINES"))
    else {
        return;
    };
    // A case that the filter leaves out has no result, or an old one.
    if !ran {
        return;
    }
    let sample = sample_path(Path::new(&results), name);
    let text =
        std::fs::read_to_string(&sample).unwrap_or_else(|error| panic!("{}: {error}", sample.display()));
    let sample: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", sample.display()));
    let times =
        times_per_call(&sample).unwrap_or_else(|| panic!("{name}: criterion's sample holds no times"));
    let line = line(name, threads(), times, unit, unit_work);
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&lines)
        .and_then(|mut file| writeln!(file, "{line}"))
        .unwrap_or_else(|error| panic!("{}: {error}", Path::new(&lines).display()));
}

/// Number of untimed calls of the one case that the command line names: `KEYWAY_BENCH_CALLS`. For a tool that counts
/// instructions, in two runs: the difference of the counts divided by that of the calls is the cost of one call.
fn counted_calls() -> Option<u64> {
    std::env::var("KEYWAY_BENCH_CALLS").ok()?.parse().ok()
}

/// The folder of criterion's newest sample of a case. Case names are short and consist of letters, digits, dots and
/// underscores, which criterion leaves unchanged.
fn sample_path(results: &Path, name: &str) -> PathBuf {
    results.join(name).join("new").join("sample.json")
}

/// Nanoseconds of one call, for each sample.
fn times_per_call(sample: &Value) -> Option<Vec<f64>> {
    let numbers =
        |key: &str| -> Option<Vec<f64>> { sample[key].as_array()?.iter().map(Value::as_f64).collect() };
    let (calls, times) = (numbers("iters")?, numbers("times")?);
    let each: Vec<f64> = times.iter().zip(&calls).map(|(time, calls)| time / calls).collect();
    (!each.is_empty() && times.len() == calls.len() && each.iter().all(|time| time.is_finite()))
        .then_some(each)
}

/// The fields in the order in which other libraries' benchmarks print them.
fn line(name: &str, threads: usize, mut times: Vec<f64>, unit: &str, unit_work: f64) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    let (median, least, high, samples) = (at(0.5), times[0], at(0.9), times.len());
    let (name, unit) = (Value::from(name), Value::from(unit));
    format!(
        r#"{{"peer": "{PEER}", "case": {name}, "threads": {threads}, "median_ns": {median:.1}, "min_ns": {least:.1}, "p90_ns": {high:.1}, "samples": {samples}, "unit": {unit}, "unit_work": {unit_work}, "rate": {rate:.4}}}"#,
        rate = unit_work / median,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_holds_the_order_statistics() {
        let times: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        let line: Value =
            serde_json::from_str(&line("mm.f32_64", 2, times, "flop", 12.0)).expect("one JSON value");
        assert_eq!(
            (&line["peer"], &line["case"], &line["unit"]),
            (&json!("keyway"), &json!("mm.f32_64"), &json!("flop"))
        );
        assert_eq!(line["min_ns"], 1.0);
        assert_eq!(line["median_ns"], 6.0);
        assert_eq!(line["p90_ns"], 10.0);
        assert_eq!(line["rate"], 2.0);
        assert_eq!(line["samples"], 10);
        assert_eq!(line["threads"], 2);
    }

    #[test]
    fn filters_are_alternatives_of_parts() {
        let name = "conv.3x3_nhwc_f32_fwd";
        for filter in ["conv", "pool|3x3", "^conv.3x3", "conv\\.3x3", "_fwd$", "bn|conv.(1x1|3x3)"] {
            assert!(may_match(filter, name), "{filter}");
        }
        for filter in ["pool", "conv.1x1", "bn|train"] {
            assert!(!may_match(filter, name), "{filter}");
        }
    }

    #[test]
    fn times_are_per_call_and_damage_is_seen() {
        let sample = json!({"iters": [1.0, 2.0], "times": [10.0, 30.0]});
        assert_eq!(times_per_call(&sample), Some(vec![10.0, 15.0]));
        for damaged in [
            json!({"iters": [1.0], "times": [10.0, 30.0]}),
            json!({"iters": [0.0], "times": [10.0]}),
            json!({"iters": [], "times": []}),
            json!({"times": [10.0]}),
        ] {
            assert_eq!(times_per_call(&damaged), None, "{damaged}");
        }
    }
}
