//! The JUnit report that cargo-nextest writes.

use super::Tally;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Sums the cases of a report. A case contains an element with its status; one that passed contains none.
///
/// # Errors
/// The error of a text that is not a complete report.
pub(super) fn read(text: &str) -> Result<Tally, String> {
    let mut reader = Reader::from_str(text);
    let mut tally = Tally::default();
    // The status of the case that is being read, as far as is known.
    let mut case = Ended::Passed;
    let (mut depth, mut whole) = (0usize, false);
    loop {
        let event =
            reader.read_event().map_err(|error| format!("byte {}: {error}", reader.error_position()))?;
        let empty = matches!(event, Event::Empty(_));
        match event {
            Event::Start(element) | Event::Empty(element) => {
                match element.name().as_ref() {
                    b"testcase" => case = Ended::Passed,
                    b"failure" => case = Ended::Failed,
                    b"error" => case = Ended::Broken,
                    b"skipped" => case = Ended::Ignored,
                    _ => {}
                }
                if !empty {
                    depth += 1;
                } else if element.name().as_ref() == b"testcase" {
                    tally.passed += 1;
                } else {
                    whole |= depth == 0 && element.name().as_ref() == b"testsuites";
                }
            }
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                whole |= depth == 0 && element.name().as_ref() == b"testsuites";
                if element.name().as_ref() == b"testcase" {
                    match case {
                        Ended::Passed => tally.passed += 1,
                        Ended::Failed => tally.failed += 1,
                        Ended::Broken => tally.broken += 1,
                        Ended::Ignored => tally.ignored += 1,
                    }
                }
            }
            Event::Eof if whole => return Ok(tally),
            Event::Eof => return Err("expected a whole <testsuites>, got less".to_owned()),
            _ => {}
        }
    }
}

/// The status of a case.
enum Ended {
    Passed,
    Failed,
    /// The test could not be started.
    Broken,
    Ignored,
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="6" failures="2" errors="1" skipped="1">
    <testsuite name="a::b" tests="6" disabled="0" errors="1" failures="2" skipped="1">
        <testcase name="one" classname="a::b" time="0.003"/>
        <testcase name="two" classname="a::b" time="0.003"></testcase>
        <testcase name="three" classname="a::b" time="0.003">
            <failure message="thread 'three' panicked" type="test failure with exit code 101">left &lt; right</failure>
            <system-out>&lt;skipped/&gt; test result: ok. 9 passed</system-out>
        </testcase>
        <testcase name="four" classname="a::b" time="180"><failure type="test timeout"/></testcase>
        <testcase name="five" classname="a::b" time="0"><error type="execution failure"/></testcase>
        <testcase name="six" classname="a::b" time="0"><skipped/></testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn cases_are_counted_by_how_they_ended() {
        assert_eq!(read(REPORT), Ok(Tally { passed: 2, failed: 2, ignored: 1, broken: 1 }));
        assert_eq!(read("<testsuites name=\"a\"></testsuites>"), Ok(Tally::default()));
        assert_eq!(read("<testsuites/>"), Ok(Tally::default()));
    }

    #[test]
    fn half_a_report_is_an_error() {
        for text in ["", "<testsuites>", "<testsuites><testcase/>", "text", "<other></other>"] {
            assert!(read(text).is_err(), "{text}");
        }
        for end in [40, 200, REPORT.len() - 4] {
            assert!(read(&REPORT[..end]).is_err(), "cut at {end}");
        }
        assert!(read("<testsuites><a></b></testsuites>").is_err(), "mismatched");
    }
}
