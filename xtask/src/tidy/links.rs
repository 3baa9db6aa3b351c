//! Rules on Markdown: links lead to files and headings that exist, `book/src/SUMMARY.md` lists the pages of the book, and the
//! documentation tests compile the Rust listings of README and the book.

use super::Violation;
use super::source::File;
use std::collections::BTreeSet;

/// Prefixes of URLs of this repository's files: the rest is a path in it.
const OWN: &[&str] =
    &["https://github.com/keyway-rs/keyway/blob/main/", "https://github.com/keyway-rs/keyway/tree/main/"];
/// Pages of the book.
const BOOK: &str = "book/src/";
/// The page that lists them.
const SUMMARY: &str = "book/src/SUMMARY.md";
/// The source file that includes listings for compilation: each page with its path as text.
const LISTINGS: &str = "frontend/src/book.rs";
/// mdBook's include directive.
const INCLUDE: &str = "{{#include ";

/// Checks every Markdown file.
pub fn check(files: &[File]) -> Vec<Violation> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let pages: Vec<&File> = files.iter().filter(|file| file.path.ends_with(".md")).collect();
    let mut found = Vec::new();
    for page in &pages {
        for (line, target) in links(&page.text) {
            if let Some(what) = broken(page, target, &paths, &pages) {
                found.push(Violation::new(&page.path, line, what, "correct the link"));
            }
        }
        for (line, target) in includes(&page.text) {
            let path = resolve(&page.path, target.split(':').next().unwrap_or_default());
            if !path.is_some_and(|path| paths.contains(path.as_str())) {
                let what = format!("the included file `{target}` does not exist");
                found.push(Violation::new(&page.path, line, what, "correct the path"));
            }
        }
    }
    found.extend(unlisted(&pages));
    found.extend(not_compiled(&pages, files));
    found
}

/// The targets of a page's links and images, outside of code, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // An odd number of backticks before a link means that the link is in code.
        for (at, _) in line.match_indices("](") {
            let code = line[..at].matches('`').count() % 2 == 1;
            let target = &line[at + 2..];
            if let (false, Some(end)) = (code, target.find(')')) {
                found.push((number, &target[..end]));
            }
        }
    }
    found
}

/// The lines outside of fenced code, each with its number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

fn includes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let (_, rest) = line.split_once(INCLUDE)?;
        Some((number, rest.split_once("}}")?.0))
    })
}

/// The reason why a link is broken.
fn broken(page: &File, target: &str, paths: &BTreeSet<&str>, pages: &[&File]) -> Option<String> {
    let own = OWN.iter().find_map(|prefix| target.strip_prefix(prefix));
    let elsewhere = target.contains("://") || target.starts_with("mailto:");
    // rustdoc's paths of items.
    let item = target.contains("::");
    if own.is_none() && (elsewhere || item) {
        return None;
    }
    let (path, heading) = own.unwrap_or(target).split_once('#').unwrap_or((own.unwrap_or(target), ""));
    let path = match (own, path) {
        (None, "") => Some(page.path.clone()),
        (Some(_), path) => resolve("", path),
        (None, path) => resolve(&page.path, path),
    };
    let Some(path) = path else { return Some(format!("`{target}` leads out of the repository")) };
    let folder = format!("{path}/");
    if !paths.contains(path.as_str())
        && !paths.range(folder.as_str()..).next().is_some_and(|own| own.starts_with(&folder))
    {
        return Some(format!("`{target}` does not exist"));
    }
    let headings = pages.iter().find(|page| page.path == path).map(|page| &page.text);
    let there = |text: &String| {
        prose(text).any(|(_, line)| line.strip_prefix('#').is_some_and(|line| anchor(line) == heading))
    };
    (!heading.is_empty() && !headings.is_some_and(there)).then(|| format!("`{target}` names no heading"))
}

/// A path relative to a page's folder, resolved; `None` outside of the repository.
fn resolve(page: &str, target: &str) -> Option<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchor of a heading, as generated by GitHub and mdBook.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let letters = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    letters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Pages of the book that are missing in its summary.
fn unlisted(pages: &[&File]) -> Vec<Violation> {
    let summary = pages.iter().find(|page| page.path == SUMMARY).map_or("", |page| page.text.as_str());
    let listed: BTreeSet<String> =
        links(summary).into_iter().filter_map(|(_, target)| resolve(SUMMARY, target)).collect();
    let lacking =
        |page: &&&File| page.path.starts_with(BOOK) && page.path != SUMMARY && !listed.contains(&page.path);
    let violation = |page: &&File| {
        Violation::new(&page.path, 1, "the book's summary lacks this page", "list it in book/src/SUMMARY.md")
    };
    pages.iter().filter(lacking).map(violation).collect()
}

/// Pages with Rust listings that no test compiles.
fn not_compiled(pages: &[&File], files: &[File]) -> Vec<Violation> {
    let compiled = files.iter().find(|file| file.path == LISTINGS).map_or("", |file| file.text.as_str());
    let read = |page: &&&File| page.path == "README.md" || page.path.starts_with(BOOK);
    let mut found = Vec::new();
    for page in pages.iter().filter(read) {
        let listing = (1..)
            .zip(page.text.lines())
            .find(|(_, line)| line.strip_prefix("```rust").is_some_and(|rest| !rest.contains("ignore")));
        if let (Some((line, _)), false) = (listing, compiled.contains(&format!("\"{}\"", page.path))) {
            let what = "no test compiles this listing";
            found.push(Violation::new(
                &page.path,
                line,
                what,
                "give the page a line in frontend/src/book.rs",
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(page: &str, text: &str) -> Vec<String> {
        let files = [
            File::new(page, text),
            File::new("a/src/b.rs", ""),
            File::new("a/c.md", "# One `x`, two\n\n```\n# three\n```\n"),
            File::new(LISTINGS, "\"book/src/listed.md\""),
            File::new(SUMMARY, "[Listed](listed.md) [Other](sub/other.md)"),
            File::new("book/src/listed.md", "```rust\n```\n"),
            File::new("book/src/sub/other.md", ""),
        ];
        check(&files)
            .into_iter()
            .map(|fault| format!("{}:{}: {}", fault.path, fault.line, fault.what))
            .collect()
    }

    #[test]
    fn links_to_what_is_there_pass() {
        for text in [
            "[b](src/b.rs) ![b](./src/b.rs) [folder](src) [up](../a/c.md)",
            "[heading](c.md#one-x-two) [own](#here)\n\n## Here\n",
            "[page](https://github.com/keyway-rs/keyway/blob/main/a/c.md#one-x-two)",
            "[folder](https://github.com/keyway-rs/keyway/tree/main/a/src)",
            "[elsewhere](https://example.org/x) [item](crate::a::B) `[code](nowhere)`",
            "```\n[code](nowhere)\n```",
        ] {
            assert_eq!(faults("a/d.md", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn links_to_what_is_not_there_are_found() {
        for (text, what) in [
            ("x\n[b](src/c.rs)", "a/d.md:2: `src/c.rs` does not exist"),
            ("[b](sr)", "a/d.md:1: `sr` does not exist"),
            ("[up](../../x)", "a/d.md:1: `../../x` leads out of the repository"),
            ("[h](c.md#three)", "a/d.md:1: `c.md#three` names no heading"),
            ("[own](#there)", "a/d.md:1: `#there` names no heading"),
            ("`x` [b](c.rs)", "a/d.md:1: `c.rs` does not exist"),
            ("{{#include x.rs:3:}}", "a/d.md:1: the included file `x.rs:3:` does not exist"),
        ] {
            assert_eq!(faults("a/d.md", text), [what], "{text}");
        }
        let own = "[x](https://github.com/keyway-rs/keyway/tree/main/none)";
        assert_eq!(faults("a/d.md", own).len(), 1);
        assert_eq!(faults("a/d.md", "{{#include src/b.rs:1:}}"), [""; 0]);
    }

    #[test]
    fn pages_are_listed_and_their_listings_compiled() {
        assert_eq!(faults("book/src/new.md", ""), ["book/src/new.md:1: the book's summary lacks this page"]);
        let listing = "x\n```rust,no_run\n```\n";
        assert_eq!(faults("README.md", listing), ["README.md:2: no test compiles this listing"]);
        assert_eq!(faults("README.md", "```rust,ignore\n```\n```sh\n```\n"), [""; 0]);
        assert_eq!(faults("a/d.md", listing), [""; 0], "only the README's and the book's");
    }
}
