//! Words that `CONTRIBUTING.md`'s glossary replaces: comments, doc comments and Markdown use the terms of PyTorch, NumPy and BLIS.
//!
//! Each phrase has a limit, the number of lines that contain it now. An additional line is a violation; a limit above the
//! count is one too, so that the limits only decrease. A phrase whose limit is 0 no longer occurs.

use super::Violation;
use super::source::File;

/// A phrase, its replacement, and the number of lines that may have it.
type Phrase = (&'static str, &'static str, usize);

/// The phrases that have no other sense. Case is ignored; a letter on either side makes another word.
const PHRASES: &[Phrase] = &[
    ("so many", "n, or the count's name", 0),
    ("nobody else's", "uniquely owned", 0),
    ("by places", "by positions", 0),
    ("parted", "de-interleaved", 0),
    ("turned", "transposed, packed", 29),
    ("what is summed", "reduction dimension", 0),
    ("lie apart", "are strided", 0),
    ("lie side by side", "are contiguous", 0),
    ("lies", "is stored, is", 1),
    ("first cache", "L1", 0),
    ("second cache", "L2", 0),
    ("place", "position, index, coordinate, offset, element", 31),
    ("places", "positions, indices, coordinates, offsets, elements", 22),
    ("somebody", "foreign", 1),
    ("hung on", "attached to", 0),
    ("put aside", "quarantined", 0),
    ("named in vain", "unresolved", 0),
    ("no number", "NaN", 1),
    ("whole numbers", "integers", 0),
    ("unspread", "reduced to the shape", 0),
    ("another history", "rebased history", 0),
    ("comes to", "equals", 0),
    ("goes by", "is computed from", 0),
    ("one after the other", "sequentially, consecutive", 0),
    ("for ever", "indefinitely, permanently", 0),
    ("under way", "in progress, pending, current", 0),
    ("at once", "immediately, concurrently, in one step", 4),
    ("anew", "again", 1),
    ("the ones that", "those that, with the noun", 0),
    ("whoever", "the caller, the code that", 0),
    ("what the backend reports", "errors of the backend", 0),
    ("what the device reports", "errors of the device", 0),
];

/// Correct uses of a phrase's words in another sense.
const SENSES: &[&str] = &["in place", "in-place", "in_place", "takes place", "take place"];
/// Files that quote the phrases: the glossary, and this list.
const QUOTES: &[&str] = &["CONTRIBUTING.md", "xtask/src/tidy/words.rs"];
const MEND: &str = "use the glossary's term, see CONTRIBUTING.md";
const LIST: &str = "xtask/src/tidy/words.rs";

/// Checks the limit of each phrase.
pub fn check(files: &[File]) -> Vec<Violation> {
    limits(files, PHRASES)
}

fn limits(files: &[File], phrases: &[Phrase]) -> Vec<Violation> {
    let prose = prose(files);
    phrases.iter().filter_map(|phrase| limit(&prose, *phrase)).collect()
}

/// A line of prose in lower case, with its file and number.
struct Line<'a> {
    path: &'a str,
    number: usize,
    text: String,
}

/// The comments of Rust sources and the lines of Markdown files.
fn prose(files: &[File]) -> Vec<Line<'_>> {
    let files = files.iter().filter(|file| !QUOTES.contains(&file.path.as_str()));
    let lines = files.flat_map(|file| {
        let of_file = move |(at, line): (usize, &str)| {
            let text = if file.is_rust() { line.split_once("//")?.1 } else { line };
            let text = SENSES.iter().fold(text.to_lowercase(), |text, sense| text.replace(sense, ""));
            Some(Line { path: &file.path, number: at + 1, text })
        };
        let is_prose = file.is_rust() || file.path.ends_with(".md");
        file.text.lines().enumerate().filter(move |_| is_prose).filter_map(of_file)
    });
    lines.collect()
}

fn limit(prose: &[Line<'_>], (phrase, instead, limit): Phrase) -> Option<Violation> {
    let mut with = prose.iter().filter(|line| has(&line.text, phrase));
    let count = with.clone().count();
    let last = with.next_back();
    match last {
        Some(line) if count > limit => {
            let what = format!("`{phrase}` is on {count} lines, {limit} are allowed; write `{instead}`");
            Some(Violation::new(line.path, line.number, what, MEND))
        }
        _ if count < limit => {
            let what = format!("`{phrase}` is on {count} lines, {limit} are allowed");
            Some(Violation::new(LIST, 1, what, "lower its limit"))
        }
        _ => None,
    }
}

/// Whether a text contains these words, as whole words.
fn has(text: &str, phrase: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_markdown_count_and_code_does_not() {
        let files = [
            File::new("a.rs", "/// So many rows.\nlet so_many = \"so many\"; // and so many columns\n"),
            File::new("b.md", "so many\n"),
            File::new("c.toml", "# so many\n"),
            File::new("CONTRIBUTING.md", "| so many | `n` |\n"),
        ];
        let of = |most: usize| limits(&files, &[("so many", "n", most)]);
        assert_eq!(of(3), []);
        let above = of(2);
        assert_eq!((above[0].path.as_str(), above[0].line), ("b.md", 1));
        assert_eq!(above[0].what, "`so many` is on 3 lines, 2 are allowed; write `n`");
        assert_eq!(of(4)[0].path, LIST);
    }

    #[test]
    fn a_right_sense_does_not_count() {
        let files =
            [File::new("a.rs", "// Adds in place, in the place of the first.\n// An in-place form.\n")];
        assert_eq!(limits(&files, &[("place", "position", 1)]), []);
    }

    #[test]
    fn words_are_whole() {
        assert!(has("it lies here", "lies") && has("(lies)", "lies"));
        assert!(!has("it underlies", "lies") && !has("applies", "lies"));
    }
}
