//! Checks that the page of measurements is the output of `cargo xtask results`, and that it is short.

use super::Violation;
use super::source::File;
use crate::results::{self, FOLDER, PAGE};

/// The maximum number of lines of the page; the files contain the rest.
const LINES: usize = 300;
const MEND: &str = "run `cargo xtask results`";

/// Compares the page with the files.
pub fn check(files: &[File]) -> Vec<Violation> {
    let data = files.iter().filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".json"));
    let data: Vec<(&str, &str)> = data.map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |file| file.text.as_str());
    if data.is_empty() && page.is_empty() {
        return Vec::new();
    }
    let expected = match results::page(&data) {
        Ok(expected) => expected,
        Err(fault) => {
            let mend = "write the fields that xtask/src/results/data.rs lists";
            return vec![Violation::new(&fault.path, fault.line, fault.what, mend)];
        }
    };
    let mut found = Vec::new();
    if expected != page {
        let same = expected.lines().zip(page.lines()).take_while(|(a, b)| a == b).count();
        found.push(Violation::new(
            PAGE,
            same + 1,
            "the page differs from benches/results from here on",
            MEND,
        ));
    }
    let lines = expected.lines().count();
    if lines > LINES {
        let what = format!("the page has {lines} lines, the limit is {LINES}");
        found.push(Violation::new(
            PAGE,
            LINES,
            what,
            "shorten the list `show` or the notes of a file in benches/results",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = r#"{"topic": "A", "title": "B", "machine": "C", "date": null, "commit": null, "method": "D",
        "rows": [{"case": "x", "ours": "1 ms"}]}"#;

    fn faults(data: &str, page: &str) -> Vec<String> {
        let files = [File::new("benches/results/a.json", data), File::new(PAGE, page)];
        check(&files).iter().map(|fault| format!("{}:{}: {}", fault.path, fault.line, fault.what)).collect()
    }

    #[test]
    fn the_page_is_that_of_the_files() {
        let page = results::page(&[("benches/results/a.json", DATA)]).expect("a page");
        assert_eq!(faults(DATA, &page), [""; 0]);
        let changed = faults(&DATA.replace("1 ms", "2 ms"), &page);
        assert!(changed.len() == 1 && changed[0].contains("differs"), "{changed:?}");
        assert_eq!(faults("{\n", &page).len(), 1);
        assert_eq!(check(&[]), []);
    }

    #[test]
    fn the_page_is_short() {
        let notes = format!("\"notes\": [{}\"x\"],", "\"x\",".repeat(150));
        let data = DATA.replacen("\"date\"", &format!("{notes} \"date\""), 1);
        let page = results::page(&[("benches/results/a.json", &data)]).expect("a page");
        let found = faults(&data, &page);
        assert!(found.len() == 1 && found[0].contains("the limit is 300"), "{found:?}");
    }
}
