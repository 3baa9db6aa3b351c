//! Rules on single files: length, names, machine-specific paths, and the contents of README and ARCHITECTURE.

use super::Violation;
use super::source::File;
use super::tokens::is_word;

/// The length to aim at.
pub const AIM: usize = 300;
/// The maximum number of lines of a file.
const LIMIT: usize = 600;
/// The first line of a generated file.
const GENERATED: &str = "// generated";
/// Names that do not describe the content of a module.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helpers", "misc", "common"];
/// Top-level folders that only one machine has. They are written without their slash, so that this file passes.
const ONE_MACHINE: &[&str] = &["work", "root", "home"];
/// Generated files.
const NOT_READ: &[&str] = &["Cargo.lock"];
/// The commands that the README must list.
const COMMANDS: &[&str] = &["cargo xtask demo", "cargo xtask test"];

/// The maximum number of lines of the README.
const README_LINES: usize = 150;
/// The maximum number of words of ARCHITECTURE; reasons belong into the book, details of a kernel into its module.
const ARCHITECTURE_WORDS: usize = 3000;

/// Checks every file.
pub fn check(files: &[File]) -> Vec<Violation> {
    let mut found: Vec<Violation> = files.iter().filter_map(length).collect();
    found.extend(files.iter().filter_map(name));
    found.extend(files.iter().filter_map(language));
    found.extend(files.iter().flat_map(machine_paths));
    found.extend(readme(files));
    found.extend(files.iter().filter_map(page));
    found
}

/// The files above the length to aim at, longest first, for information.
pub fn long(files: &[File]) -> Vec<String> {
    let mut long: Vec<(usize, &str)> = files
        .iter()
        .filter(|file| file.is_rust() && !is_generated(file))
        .map(|file| (file.text.lines().count(), file.path.as_str()))
        .filter(|(lines, _)| *lines > AIM)
        .collect();
    long.sort_by(|a, b| b.cmp(a));
    long.into_iter().map(|(lines, path)| format!("{path} ({lines})")).collect()
}

fn is_generated(file: &File) -> bool {
    file.text.lines().next().is_some_and(|line| line.starts_with(GENERATED))
}

fn length(file: &File) -> Option<Violation> {
    let lines = file.text.lines().count();
    (file.is_rust() && lines > LIMIT && !is_generated(file)).then(|| {
        let what = format!("{lines} lines, the limit is {LIMIT}");
        Violation::new(&file.path, LIMIT + 1, what, "split it by reason to change")
    })
}

fn name(file: &File) -> Option<Violation> {
    let empty = file.names().find(|name| EMPTY_NAMES.contains(name))?;
    (file.is_rust() && !file.is_test()).then(|| {
        let what = format!("`{empty}` says nothing about what the module holds");
        Violation::new(&file.path, 1, what, "name it after its subject")
    })
}

/// Reports a Rust source that cannot be tokenised, since it would pass every rule on tokens.
fn language(file: &File) -> Option<Violation> {
    let what = "this is not Rust: a bracket or a quote is not closed here, or closes nothing";
    file.not_rust().map(|line| Violation::new(&file.path, line, what, "run `rustfmt` on it, which says more"))
}

fn machine_paths(file: &File) -> Vec<Violation> {
    if NOT_READ.iter().any(|name| file.path.ends_with(name)) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let folder = machine_path(line)?;
            let what = format!("`/{folder}` is a folder of one machine");
            Some(Violation::new(&file.path, index + 1, what, "write a path relative to the repository"))
        })
        .collect()
}

/// The first of the folders in a line that is part of an absolute path.
fn machine_path(line: &str) -> Option<&'static str> {
    line.match_indices('/').find_map(|(at, _)| {
        let before = line[..at].chars().next_back();
        let absolute = before.is_none_or(|c| !is_word(c) && !"./}>)$*~-".contains(c));
        let rest = &line[at + 1..];
        let folder = ONE_MACHINE.iter().find(|folder| rest.starts_with(**folder))?;
        let whole = rest[folder.len()..].chars().next().is_none_or(|c| !is_word(c) && c != '-');
        (absolute && whole).then_some(*folder)
    })
}

fn readme(files: &[File]) -> Vec<Violation> {
    let text = files.iter().find(|file| file.path == "README.md").map_or("", |file| file.text.as_str());
    let missing = COMMANDS.iter().filter(|command| !text.contains(**command));
    missing
        .map(|command| {
            let what = format!("`{command}` is not named");
            Violation::new("README.md", 1, what, "tell a newcomer both commands")
        })
        .collect()
}

/// A page above its limit.
fn page(file: &File) -> Option<Violation> {
    let (count, limit, unit) = match file.path.as_str() {
        "README.md" => (file.text.lines().count(), README_LINES, "lines"),
        "ARCHITECTURE.md" => (file.text.split_whitespace().count(), ARCHITECTURE_WORDS, "words"),
        _ => return None,
    };
    let what = format!("{count} {unit}, the limit is {limit}");
    (count > limit).then(|| Violation::new(&file.path, 1, what, "move details to a page of the book"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let readme = File::new("README.md", &COMMANDS.join("\n"));
        check(&[File::new(path, text), readme])
            .iter()
            .map(|fault| format!("{}: {}", fault.line, fault.what))
            .collect()
    }

    #[test]
    fn six_hundred_lines_are_the_limit() {
        assert_eq!(faults("a/src/b.rs", &"x\n".repeat(600)), [""; 0]);
        assert_eq!(faults("a/src/b.rs", &"x\n".repeat(601)), ["601: 601 lines, the limit is 600"]);
        assert_eq!(faults("a/src/b.rs", &format!("// generated by c\n{}", "x\n".repeat(600))), [""; 0]);
        assert_eq!(faults("a/data.csv", &"x\n".repeat(601)), [""; 0]);
        let files = [File::new("a.rs", &"x\n".repeat(301)), File::new("b.rs", &"x\n".repeat(300))];
        assert_eq!(long(&files), ["a.rs (301)"]);
    }

    #[test]
    fn a_source_that_is_not_rust_is_found() {
        let faults = faults("a/src/b.rs", "fn a() {}\nfn b() {\n");
        assert!(faults.len() == 1 && faults[0].contains("not Rust"), "{faults:?}");
    }

    #[test]
    fn a_module_has_a_subject() {
        assert_eq!(faults("a/src/utils.rs", "").len(), 1);
        assert_eq!(faults("a/src/utils/b.rs", "").len(), 1);
        assert_eq!(faults("a/src/shapes.rs", ""), [""; 0]);
        assert_eq!(faults("a/tests/common/mod.rs", ""), [""; 0], "cargo's name for what test programs share");
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for folder in ONE_MACHINE {
            for line in [format!("see /{folder}/a"), format!("\"/{folder}\""), format!("x\n/{folder}/b")] {
                assert_eq!(faults("a.md", &line).len(), 1, "{line}");
            }
            for line in [format!("a/{folder}/b"), format!("https://c.d/{folder}"), format!("/{folder}ing")] {
                assert_eq!(faults("a.md", &line), [""; 0], "{line}");
            }
        }
        assert_eq!(faults("Cargo.lock", &format!("/{}/a", ONE_MACHINE[0])), [""; 0]);
    }

    #[test]
    fn the_first_pages_stay_short() {
        assert_eq!(page(&File::new("README.md", &"x\n".repeat(150))), None);
        assert!(page(&File::new("README.md", &"x\n".repeat(151))).is_some());
        assert_eq!(page(&File::new("ARCHITECTURE.md", &"x ".repeat(3000))), None);
        assert!(page(&File::new("ARCHITECTURE.md", &"x ".repeat(3001))).is_some());
        assert_eq!(page(&File::new("a/README.md", &"x\n".repeat(151))), None);
    }

    #[test]
    fn the_readme_names_both_commands() {
        assert_eq!(readme(&[File::new("README.md", "cargo xtask demo and cargo xtask test")]), []);
        assert_eq!(readme(&[File::new("README.md", "cargo xtask demo")]).len(), 1);
        assert_eq!(readme(&[]).len(), 2, "no README at all");
    }
}
