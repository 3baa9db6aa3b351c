//! A page that stands alone: no other file, no network.

use super::{Report, Row, Status};
use serde_json::json;

/// The page; `REPORT` in it becomes the data.
const PAGE: &str = include_str!("page.html");

/// The report as a page.
pub fn write(report: &Report) -> String {
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
        "wanted": report.wanted,
        "seconds": report.seconds,
        "counts": report.counts,
        "green": report.is_green(),
        "says_nothing": report.says_nothing(),
        "nothing_served": report.nothing_served(),
        "narrowed": report.narrowed(),
        "unused_known": report.unused_known,
        "selection": report.selection,
        "cases": report.cases.iter().map(case).collect::<Vec<_>>(),
    });
    // `<` stands inside strings alone; in a script element it could end or comment out what follows.
    let text = data.to_string().replace('<', "\\u003c");
    PAGE.replacen("\"REPORT\"", &text, 1)
}

/// A case with what the page shows of it: the details only where there are any.
fn case(row: &Row) -> serde_json::Value {
    let status = match row.status {
        Status::Passed => "p",
        Status::ByOthers => "o",
        Status::Failed => "f",
        Status::Died => "d",
        Status::KnownFailure => "k",
        Status::UnexpectedPass => "u",
        Status::Unsupported => "n",
        Status::Skipped => "s",
    };
    let short = json!([row.id, row.family, row.op, row.dtype, status]);
    if row.failure.is_none() && row.reason.is_none() && row.judged_by.is_none() {
        return short;
    }
    let details = json!({
        "failure": row.failure, "reason": row.reason, "judged_by": row.judged_by, "call": row.call, "rerun": row.rerun,
    });
    json!([row.id, row.family, row.op, row.dtype, status, details])
}
