//! Lines of `cargo xtask bench` and of the scripts beside it, merged into a file of results.

use super::data::{Results, Row, is_date};
use serde_json::Value;

/// The name of this project in the lines.
const OURS: &str = "keyway";

/// The conditions of a run.
pub struct Run<'a> {
    /// The file's name, and the topic and title of a new file.
    pub name: &'a str,
    /// Processor or GPU.
    pub machine: &'a str,
    /// The day, `YYYY-MM-DD`.
    pub date: &'a str,
    /// The measured state.
    pub commit: Option<String>,
    /// Names and versions of the peers.
    pub peers: Vec<(String, String)>,
}

/// The file after the run: an old file of the same run with the values of these lines, or a new one.
///
/// # Errors
/// A line that is not a measurement, or a file of another run.
pub fn merged(old: Option<Results>, run: &Run<'_>, lines: &str) -> Result<Results, String> {
    if !is_date(run.date) {
        return Err(format!("the date {:?} is not of the form YYYY-MM-DD", run.date));
    }
    let mut results = match old {
        Some(old) if old.machine != run.machine || old.date.as_deref() != Some(run.date) => {
            let of = old.date.as_deref().unwrap_or("an unknown day");
            return Err(format!(
                "it has a run of {of} on {}; a file has one run, so remove it first or choose another name",
                old.machine
            ));
        }
        Some(old) => old,
        None => Results {
            topic: run.name.into(),
            title: run.name.into(),
            machine: run.machine.into(),
            date: Some(run.date.into()),
            commit: run.commit.clone(),
            load: None,
            method: "`cargo xtask bench`, medians.".into(),
            peers: Default::default(),
            limit: Some(1.25),
            show: None,
            worst: None,
            rows: Vec::new(),
            notes: Vec::new(),
            details: Vec::new(),
        },
    };
    results.peers.extend(run.peers.iter().cloned());
    for (at, text) in (1..).zip(lines.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let line: Value = serde_json::from_str(text).map_err(|error| format!("line {at}: {error}"))?;
        add(&mut results, &line).map_err(|lack| format!("line {at} has no {lack}"))?;
    }
    match results.rows.iter().flat_map(|row| row.peers.keys()).find(|peer| !results.peers.contains_key(*peer))
    {
        Some(peer) => Err(format!("the lines name the peer `{peer}`: pass `--peer {peer}=VERSION`")),
        None => Ok(results),
    }
}

/// Adds one line; the error is the missing field.
fn add(results: &mut Results, line: &Value) -> Result<(), &'static str> {
    let case = line["case"].as_str().ok_or("`case`")?;
    let threads = Some(line["threads"].as_u64().unwrap_or(1));
    let same = |row: &Row| row.case == case && row.variant.is_none() && row.threads == threads;
    let at = results.rows.iter().position(same).unwrap_or_else(|| {
        results.rows.push(Row { case: case.into(), threads, ..Row::default() });
        results.rows.len() - 1
    });
    let row = &mut results.rows[at];
    // The lines of the sweep have the times of both sides.
    if let (Some(ours), Some(torch)) = (line["keyway_ns"].as_f64(), line["torch_ns"].as_f64()) {
        row.ours = Some(time(ours));
        row.peers.insert("torch".into(), time(torch));
        return Ok(());
    }
    let peer = line["peer"].as_str().ok_or("`peer`")?;
    let median = time(line["median_ns"].as_f64().ok_or("`median_ns`")?);
    let fastest = line["min_ns"].as_f64().map(time);
    if peer == OURS {
        (row.ours, row.fastest) = (Some(median), fastest);
    } else {
        row.peers.insert(peer.into(), median);
        row.peers_fastest.extend(fastest.map(|fastest| (peer.to_owned(), fastest)));
    }
    Ok(())
}

/// A time with three digits, or all digits before the point.
fn time(ns: f64) -> String {
    let (amount, unit) = match ns {
        ns if ns < 1e4 => (ns, "ns"),
        ns if ns < 1e7 => (ns / 1e3, "us"),
        ns if ns < 1e10 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let decimals = if amount >= 100.0 { 0 } else { 1 + usize::from(amount < 10.0) };
    format!("{amount:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"
{"peer": "keyway", "case": "mm", "threads": 2, "median_ns": 1234.5, "min_ns": 1200.0, "unit": "flop"}
{"peer": "torch", "case": "mm", "threads": 2, "median_ns": 45678901.0}
{"case": "add", "keyway_ns": 5.25, "torch_ns": 99000000000.0, "ratio": 0.1}
"#;

    fn run() -> Run<'static> {
        let peers = vec![("torch".into(), "2.15".into())];
        Run { name: "products-xeon", machine: "Xeon", date: "2026-11-28", commit: None, peers }
    }

    #[test]
    fn lines_become_rows_and_replace_those_of_the_same_case() {
        let results = merged(None, &run(), LINES).expect("results");
        assert_eq!((results.topic.as_str(), results.rows.len()), ("products-xeon", 2));
        let [mm, add] = &results.rows[..] else { panic!("{:?}", results.rows) };
        assert_eq!((mm.ours.as_deref(), mm.fastest.as_deref()), (Some("1234 ns"), Some("1200 ns")));
        assert_eq!((mm.threads, mm.peers["torch"].as_str()), (Some(2), "45.7 ms"));
        assert_eq!((add.ours.as_deref(), add.peers["torch"].as_str()), (Some("5.25 ns"), "99.0 s"));
        let again = LINES.replace("1234.5", "999.5");
        let results = merged(Some(results), &run(), &again).expect("results");
        assert_eq!((results.rows.len(), results.rows[0].ours.as_deref()), (2, Some("1000 ns")));
    }

    #[test]
    fn faults_name_the_line_or_the_file() {
        let fault = |old, run: &Run<'_>, lines: &str| merged(old, run, lines).expect_err("a fault");
        assert!(fault(None, &run(), "{").starts_with("line 1: "));
        assert_eq!(fault(None, &run(), "\n{\"peer\": \"a\"}"), "line 2 has no `case`");
        assert_eq!(
            fault(None, &run(), "{\"case\": \"a\", \"peer\": \"keyway\"}"),
            "line 1 has no `median_ns`"
        );
        let unknown = Run { peers: Vec::new(), ..run() };
        assert!(fault(None, &unknown, LINES).contains("--peer torch=VERSION"));
        assert!(fault(None, &Run { date: "today", ..run() }, LINES).contains("YYYY-MM-DD"));
        let old = merged(None, &run(), LINES).expect("results");
        assert!(fault(Some(old), &Run { date: "2026-11-29", ..run() }, LINES).contains("2026-11-28 on Xeon"));
    }
}
