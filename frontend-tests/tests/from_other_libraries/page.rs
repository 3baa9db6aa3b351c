//! The pages generated from the tables.

use crate::table::{Row, Section};
use std::fmt::Write;
use std::path::Path;

/// The page about one library.
pub struct Page {
    /// The library's name.
    pub library: &'static str,
    /// The page is `frontend/src/guide/<file>.md`.
    pub file: &'static str,
    /// The text above the tables.
    pub opening: &'static str,
    pub sections: Vec<Section>,
    /// Missing features, with the advice for each.
    pub absent: &'static [(&'static str, &'static str)],
}

impl Page {
    pub fn rows(&self) -> usize {
        self.sections.iter().map(|section| section.rows.len()).sum()
    }

    fn text(&self) -> String {
        let mut text = format!("# From {}\n\n{}\n", self.library, self.opening.trim());
        for section in &self.sections {
            write!(text, "\n## {}\n\n", section.title).unwrap();
            if !section.given.is_empty() {
                writeln!(
                    text,
                    "With {} there and {} here:\n",
                    listed(section.given),
                    listed(section.given_here)
                )
                .unwrap();
            }
            writeln!(text, "| {} | Keyway | |\n|---|---|---|", self.library).unwrap();
            section.rows.iter().for_each(|row| writeln!(text, "{}", line(row)).unwrap());
        }
        text.push_str("\n## Not here\n\n| | instead |\n|---|---|\n");
        self.absent
            .iter()
            .for_each(|(name, instead)| writeln!(text, "| {} | {instead} |", code(name)).unwrap());
        text
    }
}

/// Code in a cell of a table.
fn code(text: &str) -> String {
    let on_one_line: Vec<&str> = text.split_whitespace().collect();
    format!("`{}`", on_one_line.join(" ").replace('|', "\\|"))
}

/// Statements, each as code of its own.
fn listed(statements: &str) -> String {
    let on_one_line: Vec<&str> = statements.trim().trim_matches(['{', '}']).split_whitespace().collect();
    let joined = on_one_line.join(" ");
    joined.trim_end_matches(';').split("; ").map(code).collect::<Vec<_>>().join(", ")
}

fn line(row: &Row) -> String {
    format!("| {} | {} | {} |", code(row.left), code(row.right), row.note)
}

#[test]
fn the_pages_are_what_the_tables_give() {
    for page in crate::pages() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../frontend/src/guide/{}.md", page.file));
        let made = page.text();
        if std::env::var_os("KEYWAY_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let stands = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = made.lines().zip(stands.lines()).find(|(made, stands)| made != stands);
        assert!(
            made == stands,
            "{} is not what its table gives, first at {differs:?}; write it anew with \
             `KEYWAY_BLESS=1 cargo test -p keyway-tests --test from_other_libraries`",
            path.display()
        );
    }
}
