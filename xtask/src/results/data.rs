//! The files in `benches/results`: one for each topic and machine.
//!
//! Measured values are text with their unit, as they were reported, so that a value has the digits that were measured.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One file: the cases of a topic on a machine.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The heading of the page.
    pub topic: String,
    /// The subject of this table.
    pub title: String,
    /// Processor or GPU.
    pub machine: String,
    /// The day, `YYYY-MM-DD`; empty if it was not recorded.
    pub date: Option<String>,
    /// The measured state, if it was recorded.
    pub commit: Option<String>,
    /// Other work on the machine, if it was recorded.
    #[serde(default)]
    pub load: Option<String>,
    /// Command, libraries and statistic; the page omits it.
    pub method: String,
    /// The compared programs, each with its version, which is empty if it was not recorded.
    #[serde(default)]
    pub peers: BTreeMap<String, String>,
    /// The ratio above which a row without its own goal misses it.
    pub limit: Option<f64>,
    /// The cases that the page shows, besides those that miss their goal; without a list it shows all.
    pub show: Option<Vec<String>>,
    /// The number of cases that miss their goal and are shown, worst first; without it all of them are.
    #[serde(default)]
    pub worst: Option<usize>,
    /// The measured values.
    pub rows: Vec<Row>,
    /// Paragraphs below the table.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Remarks that the page omits, such as variants that were tried and not faster.
    #[serde(default)]
    pub details: Vec<String>,
}

/// One case under one condition. A row without `ours` and without `ratio` was not measured.
#[derive(Deserialize, Serialize, Clone, PartialEq, Default, Debug)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name, as in the program that measures it.
    pub case: String,
    /// Dtype, memory format or metric: the column of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Threads of both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// The value, the median if it is a time: `1.2 ms`, `1.2 to 1.5 ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<String>,
    /// The minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastest: Option<String>,
    /// The value of an earlier state on the same machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value of each peer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, String>,
    /// The minimum of each peer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peers_fastest: BTreeMap<String, String>,
    /// The ratio to the best peer as it was measured, round by round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<String>,
    /// The goal: the largest ratio, or a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The reason of a missed goal, or a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Results {
    /// Parses a file.
    ///
    /// # Errors
    /// The line, and the fault with the expected fields.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let results: Self =
            serde_json::from_str(text).map_err(|error| (error.line().max(1), error.to_string()))?;
        if let Some(date) = results.date.as_ref().filter(|date| !is_date(date)) {
            return Err((1, format!("the date {date:?} is not of the form YYYY-MM-DD")));
        }
        if let Some(row) =
            results.rows.iter().find(|row| row.peers.keys().any(|name| !results.peers.contains_key(name)))
        {
            return Err((1, format!("a peer of the row `{}` has no version in `peers`", row.case)));
        }
        let mut shown = results.show.iter().flatten();
        match shown.find(|case| results.rows.iter().all(|row| row.case != **case)) {
            Some(case) => Err((1, format!("`show` names the case `{case}`, which no row has"))),
            None => Ok(results),
        }
    }

    /// The text of the file: one line for each row, so that a change of one value is a change of one line.
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("\"topic\": {}", json(&self.topic)),
            format!("\"title\": {}", json(&self.title)),
            format!("\"machine\": {}", json(&self.machine)),
            format!("\"date\": {}", json(&self.date)),
            format!("\"commit\": {}", json(&self.commit)),
            format!("\"load\": {}", json(&self.load)),
            format!("\"method\": {}", json(&self.method)),
            format!("\"peers\": {}", json(&self.peers)),
        ];
        lines.extend(self.limit.map(|limit| format!("\"limit\": {}", json(&limit))));
        lines.extend(self.show.as_ref().map(|show| format!("\"show\": {}", json(show))));
        lines.extend(self.worst.map(|worst| format!("\"worst\": {worst}")));
        lines.push(format!("\"rows\": {}", list(&self.rows)));
        lines.push(format!("\"notes\": {}", list(&self.notes)));
        lines.push(format!("\"details\": {}", list(&self.details)));
        format!("{{\n  {}\n}}\n", lines.join(",\n  "))
    }
}

/// Whether a text is a day, `YYYY-MM-DD`.
pub fn is_date(text: &str) -> bool {
    let form = |(at, c): (usize, char)| if matches!(at, 4 | 7) { c == '-' } else { c.is_ascii_digit() };
    text.len() == 10 && text.chars().enumerate().all(form)
}

/// Serialises strings, numbers and structures of these, which cannot fail.
fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn list<T: Serialize>(values: &[T]) -> String {
    let lines: Vec<String> = values.iter().map(json).collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[\n    {}\n  ]", lines.join(",\n    ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"topic": "A", "title": "B", "machine": "C", "date": "2026-11-28", "commit": null, "method": "D",
        "peers": {"P": "1"}, "limit": 1.25, "show": ["x"], "rows": [{"case": "x", "ours": "1 ms", "peers": {"P": "2 ms"}}],
        "notes": ["E"]}"#;

    #[test]
    fn the_text_of_results_parses_to_the_same_results() {
        let one = Results::parse(ONE).expect("a file");
        assert_eq!(Results::parse(&one.text()).as_ref(), Ok(&one));
        assert!(
            one.text().contains("\n    {\"case\":\"x\",\"ours\":\"1 ms\",\"peers\":{\"P\":\"2 ms\"}}\n"),
            "{}",
            one.text()
        );
    }

    #[test]
    fn faults_are_reported() {
        for (from, to, what) in [
            ("\"A\"", "1", "expected a string"),
            ("\"topic\"", "\"topics\"", "unknown field `topics`"),
            ("2026-11-28", "28 November", "YYYY-MM-DD"),
            ("[\"x\"]", "[\"y\"]", "`show` names the case `y`"),
            ("{\"P\": \"1\"}", "{}", "no version"),
        ] {
            let (_, fault) = Results::parse(&ONE.replacen(from, to, 1)).expect_err(what);
            assert!(fault.contains(what), "{fault}");
        }
    }
}
