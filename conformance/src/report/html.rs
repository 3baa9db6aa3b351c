//! A self-contained HTML page: no other file, no network. Cases with the expected outcome are counted by op, family and dtype;
//! the others, and known failures, are listed in full, except those that were not run after time-outs.

use super::{Report, Row, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The page; `REPORT` in it is replaced by the data.
const PAGE: &str = include_str!("page.html");

impl Report {
    /// The report as a self-contained HTML page.
    pub fn html(&self) -> String {
        write(self)
    }
}

fn write(report: &Report) -> String {
    let mut names = Names::default();
    let cases = cases(report, &mut names);
    let data = json!({
        "suite": report.suite,
        "keyway": report.keyway,
        "plugin": report.plugin,
        "plugin_version": report.plugin_version,
        "library": report.library,
        "sha256": report.sha256,
        "device": report.device,
        "machine": report.machine,
        "interrupted": report.interrupted,
        "seconds": report.seconds,
        "green": report.is_green(),
        "verdict": report.verdict(),
        "whole": report.coverage.is_whole(),
        "draws": report.draws,
        "says_nothing": report.says_nothing(),
        "narrowed": report.narrowed(),
        "unused_known": report.unused_known,
        "names": names.list,
        "cases": cases,
    });
    // `<` occurs only in strings; in a script element it could end or comment out the text after it.
    let text = data.to_string().replace('<', "\\u003c");
    PAGE.replacen("\"REPORT\"", &text, 1)
}

/// Interned strings that occur in many rows.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    known: BTreeMap<String, usize>,
}

impl Names {
    /// The index of a string.
    fn of(&mut self, text: &str) -> usize {
        if let Some(&nth) = self.known.get(text) {
            return nth;
        }
        let nth = self.list.len();
        self.list.push(text.to_string());
        self.known.insert(text.to_string(), nth);
        nth
    }
}

/// The page's entry of each case, or of all with the same family, op, dtype, status, reason and reference together: indices
/// of names, the status, the number of cases, and the details of a case that is listed in full.
fn cases(report: &Report, names: &mut Names) -> Vec<Value> {
    let mut together: BTreeMap<[usize; 5], (&'static str, usize)> = BTreeMap::new();
    let mut all = Vec::new();
    for row in &report.cases {
        let key = [&row.family, &row.op, &row.dtype].map(|name| names.of(name));
        let status = letter(row.status);
        if row.failure.is_some() || row.status.is_bad() && row.status != Status::NotRun {
            let details = json!({
                "id": row.id, "failure": row.failure, "reason": row.reason, "judged_by": row.judged_by,
                "call": row.call, "rerun": row.rerun,
            });
            all.push(json!([key[0], key[1], key[2], status, 1, details]));
            continue;
        }
        let reason = names.of(&shared(row));
        let judged_by = names.of(row.judged_by.as_deref().unwrap_or_default());
        let [family, op, dtype] = key;
        // The reason begins with the status, so that rows differ by it.
        together.entry([family, op, dtype, reason, judged_by]).or_insert((status, 0)).1 += 1;
    }
    let rows = together.into_iter().map(|([family, op, dtype, reason, judged_by], (status, count))| {
        match names.list[judged_by].is_empty() {
            true => json!([family, op, dtype, status, count, reason]),
            false => json!([family, op, dtype, status, count, reason, judged_by]),
        }
    });
    all.extend(rows);
    all
}

/// The reason of a row that is counted together with others, after its status. Digits in it, such as sizes, are removed, so
/// that cases refused for the same reason are one row.
fn shared(row: &Row) -> String {
    let reason = row.reason.as_deref().unwrap_or_default();
    let mut text = String::from(letter(row.status));
    if row.status == Status::NotRun {
        return text + reason;
    }
    let mut in_number = false;
    for c in reason.chars() {
        if !(in_number && c.is_ascii_digit()) {
            text.push(if c.is_ascii_digit() { '#' } else { c });
        }
        in_number = c.is_ascii_digit();
    }
    text
}

/// The page's code of a status.
fn letter(status: Status) -> &'static str {
    match status {
        Status::Passed => "p",
        Status::ByOthers => "o",
        Status::Failed => "f",
        Status::Died => "d",
        Status::KnownFailure => "k",
        Status::UnexpectedPass => "u",
        Status::Unsupported => "n",
        Status::Skipped => "s",
        Status::NotRun => "t",
    }
}
