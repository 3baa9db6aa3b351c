//! The results of a run, on the screen.

use crate::screen::{self, Screen};
use keyway_conformance::report::{Counts, Report, Row, Status};
use std::collections::BTreeMap;

/// The maximum number of candidate names shown.
const NAMED: usize = 4;
/// The maximum number of failures shown in full; the reports contain all.
const SHOWN: usize = 20;

/// Prints the totals by family, the ops with unexpected results, and the failures.
pub fn print(report: &Report, screen: &mut Screen) {
    let mut table = screen::table(
        &["FAMILY", "CASES", "PASSED", "BY OTHERS", "FAILED", "KNOWN", "REFUSED", "NOT JUDGED"],
        &[1, 2, 3, 4, 5, 6, 7],
    );
    for (family, counts) in &report.families {
        table.add_row(line(family, counts));
    }
    table.add_row(line("all", &report.counts));
    screen.table(&table);

    let mut by_op: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in &report.cases {
        let entry = by_op.entry(row.op.as_str()).or_default();
        entry.1 += 1;
        entry.0 += usize::from(row.status.is_bad());
    }
    let bad: Vec<_> = by_op.iter().filter(|(_, (bad, _))| *bad > 0).collect();
    if !bad.is_empty() {
        screen.line("\nOps that are not as expected:");
        for (op, (bad, of)) in bad {
            screen.line(format!("  {op}: {bad} of {of}"));
        }
    }
    let failures: Vec<&Row> = report.bad().filter(|row| row.status != Status::NotRun).collect();
    failures.iter().take(SHOWN).for_each(|row| failure(row, screen));
    if failures.len() > SHOWN {
        screen.line(format!("\n{} more; `--json` and `--html` write them all", failures.len() - SHOWN));
    }
    not_run(report, screen);
    if !report.judged_by.is_empty() {
        screen.line("\nJudged by something else than the oracle:");
        for (by, ops) in &report.judged_by {
            let mut names: Vec<&str> = ops.iter().map(String::as_str).collect();
            let more = names.len().saturating_sub(SHOWN);
            names.truncate(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            screen.line(format!("  {by}: {}{more}", names.join(", ")));
        }
    }
    let by_others = report.by_op.values().filter(|counts| counts.is_by_others()).count();
    if by_others > 0 {
        let plugin = &report.plugin;
        screen.line(format!(
            "\nOps whose cases were all served by other backends: {by_others}; they are no test of {plugin}"
        ));
    }
    for (nth, unserved) in report.unserved.iter().enumerate() {
        if nth == 0 {
            screen.line(String::new());
        }
        screen.line(format!(
            "{}: none of {} {} cases was served by {}",
            unserved.op, unserved.cases, unserved.family, report.plugin
        ));
    }
    if report.lacks_gradients() {
        let plugin = &report.plugin;
        screen.line(format!(
            "\nNo gradient was judged, since none ran on kernels of {plugin}: the run writes no certificate for training"
        ));
    }
    for case in &report.unused_known {
        screen.line(format!("\nThe known failure `{case}` matches no case: take it from the list"));
    }
    screen.line(format!(
        "\n{} {} ({}): {} op{}, {} cases in {:.1} s{}{}",
        report.plugin,
        report.plugin_version,
        report.library.display(),
        report.ops,
        if report.ops == 1 { "" } else { "s" },
        report.cases.len(),
        report.seconds,
        if report.is_green() { ", every one as expected" } else { "" },
        served(report),
    ));
    screen.line(report.coverage.text());
    if let Some(draws) = &report.draws {
        let left = match draws.left_out {
            0 => String::new(),
            left_out => format!(", {left_out} more were left out for time"),
        };
        screen.line(format!(
            "{} calls were drawn from seed {}{left}; to draw the same:",
            draws.cases, draws.seed
        ));
        screen.whole_line(format!("  {}", draws.again));
    }
    if let Some(name) = &report.device_name {
        screen.line(format!("judged on {}: {name}", report.device));
    }
    if report.says_nothing() {
        screen.line(report.nothing_served());
    }
    if let Some(narrowed) = report.narrowed() {
        screen.line(narrowed);
    }
}

/// Prints why cases were not run after time-outs, and how to run them.
fn not_run(report: &Report, screen: &mut Screen) {
    let reasons = report.not_run();
    if reasons.is_empty() {
        return;
    }
    screen.line("\nNot run after time-outs, and counted as failed:");
    for (reason, count) in reasons {
        screen.line(format!("  {count} case{}: {reason}", if count == 1 { "" } else { "s" }));
    }
    screen.line("  Fix the kernels that hang, or give a slow library more time with `--timeout`");
}

/// The candidates that served the cases, where the judged library was not the only one.
fn served(report: &Report) -> String {
    let (all, own, others) = (report.cases.len(), report.served(), report.counts.of(Status::ByOthers));
    if own == all {
        return String::new();
    }
    let mut text = format!("; {own} of {all} cases served by {}", report.plugin);
    if others > 0 {
        let mut names = report.others();
        let more = names.len() > NAMED;
        names.truncate(NAMED);
        if more {
            names.push("more");
        }
        let rest = if own + others == all { "the others".to_string() } else { others.to_string() };
        text.push_str(&format!(", {rest} by {}", names.join(", ")));
    }
    for (status, word) in
        [(Status::Unsupported, "refused"), (Status::Skipped, "not judged"), (Status::NotRun, "not run")]
    {
        match report.counts.of(status) {
            0 => {}
            count => text.push_str(&format!(", {count} {word}")),
        }
    }
    text
}

fn line(name: &str, counts: &Counts) -> [String; 8] {
    let bad = [Status::Failed, Status::Died, Status::NotRun, Status::UnexpectedPass];
    let failed = bad.into_iter().map(|status| counts.of(status)).sum();
    let number = |n: usize| if n == 0 { "-".to_string() } else { n.to_string() };
    [
        name.to_string(),
        number(counts.total()),
        number(counts.of(Status::Passed)),
        number(counts.of(Status::ByOthers)),
        number(failed),
        number(counts.of(Status::KnownFailure)),
        number(counts.of(Status::Unsupported)),
        number(counts.of(Status::Skipped)),
    ]
}

fn failure(row: &Row, screen: &mut Screen) {
    screen.line(format!("\n{}", row.id));
    if let Some(call) = &row.call {
        screen.line(format!("  call      {call}"));
    }
    match (&row.failure, &row.reason) {
        (Some(f), _) => {
            screen.line(format!("  what      {}", f.what));
            screen.line(format!("  expected  {}", f.expected));
            screen.line(format!("  got       {}", f.got));
            if let Some(m) = &f.mismatch {
                screen.line(format!(
                    "  element   output {}, index {:?}; tolerance: relative {:e}, absolute {:e}",
                    m.output, m.element, m.rtol, m.atol
                ));
            }
            if let Some(reason) = &row.reason {
                screen.line(format!("  but       {reason}"));
            }
        }
        (None, Some(reason)) if row.status == Status::UnexpectedPass => {
            screen.line(format!("  it passes, but is listed as a known failure: {reason}"));
        }
        (None, Some(reason)) => screen.line(format!("  the worker {reason}")),
        (None, None) => {}
    }
    if let Some(rerun) = &row.rerun {
        screen.whole_line(format!("  again     {rerun}"));
    }
}
