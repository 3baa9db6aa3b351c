//! `cargo xtask tidy --commits`: subjects of commits are an area, a colon, and what the change does, in the imperative.

use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::path::Path;
use std::process::Stdio;

/// Limit on the characters of a subject.
const LENGTH: usize = 120;
/// The remote branch from which the commits are new.
const UPSTREAM: &str = "origin/main";
/// Verbs in the imperative with an ending that usually marks another form.
const VERBS: &[&str] = &[
    "alias", "bias", "bleed", "breed", "bring", "canvas", "embed", "exceed", "feed", "focus", "heed", "need",
    "ping", "proceed", "ring", "seed", "shed", "speed", "spring", "sting", "string", "succeed", "swing",
    "wed", "weed",
];
/// First words that are not verbs.
const NOT_VERBS: &[&str] = &[
    "a", "all", "also", "an", "and", "as", "at", "better", "by", "each", "every", "faster", "fewer", "for",
    "from", "in", "less", "more", "new", "no", "not", "now", "of", "on", "one", "only", "or", "some", "that",
    "the", "these", "this", "to", "two", "what", "when", "with",
];
/// Prefixes of commits that `git rebase --autosquash` merges into others.
const AUTOSQUASH: &[&str] = &["fixup! ", "squash! ", "amend! "];

/// Checks the commits of a range, otherwise those that the upstream branch lacks, or the last one.
pub fn run(workspace: &Workspace, range: Option<&str>) -> Result<()> {
    let git = |arguments: &[&str]| {
        let mut git = workspace.command("git");
        git.args(arguments).args(["--"]);
        workspace::capture(&mut git, "pass a range that `git log` takes, such as HEAD~3..")
    };
    let format = "--format=%h %s";
    let new = format!("{UPSTREAM}..HEAD");
    let log = match range {
        Some(range) => git(&["log", "--no-merges", format, range])?,
        None if is_revision(workspace, UPSTREAM)? => git(&["log", "--no-merges", format, &new])?,
        None => git(&["log", "--no-merges", format, "-1"])?,
    };
    let subjects = log.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    report(subjects.map(|(commit, subject)| (commit.to_owned(), subject)))
}

/// Checks the message that git passes to its hook `commit-msg`.
pub fn run_message(workspace: &Workspace, path: &Path) -> Result<()> {
    let text = std::fs::read_to_string(path).map_err(Failure::file("read", path))?;
    // A merge has a subject by git or its author; `--commits` does not check it either.
    let merges = is_revision(workspace, "MERGE_HEAD")?;
    report(subject(&text).filter(|_| !merges).map(|subject| ("message".to_owned(), subject)).into_iter())
}

fn is_revision(workspace: &Workspace, name: &str) -> Result<bool> {
    let mut git = workspace.command("git");
    git.args(["rev-parse", "--quiet", "--verify", name]).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(git.status().map_err(|source| workspace::not_started(&git, source))?.success())
}

/// The first line that git does not remove.
fn subject(message: &str) -> Option<&str> {
    message.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

fn report<'a>(subjects: impl Iterator<Item = (String, &'a str)>) -> Result<()> {
    let (mut read, mut count) = (0, 0);
    for (commit, subject) in subjects {
        read += 1;
        for fault in faults(subject) {
            count += 1;
            println!("{commit}: {subject:?}: {fault}");
        }
    }
    if count > 0 {
        return Err(Failure::Untidy { count });
    }
    println!("commits: {read} subjects, no violations");
    Ok(())
}

/// The faults of a subject, each with its fix.
fn faults(subject: &str) -> Vec<String> {
    if AUTOSQUASH.iter().any(|prefix| subject.starts_with(prefix)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let length = subject.chars().count();
    if length > LENGTH {
        found.push(format!("it has {length} characters, the limit is {LENGTH}; move the rest into the body"));
    }
    if subject.ends_with('.') {
        found.push("it ends with a dot; leave it out".to_owned());
    }
    match clauses(subject) {
        Some(clauses) => found.extend(clauses.iter().filter_map(|clause| not_imperative(clause))),
        None => {
            let form = "it has no area; write `area: change`, such as `dispatcher: try the next candidate`";
            found.push(form.to_owned());
        }
    }
    found
}

/// The changes of a subject, without their areas: `a: b; c, d: e` has two. `None` without an area at the start.
fn clauses(subject: &str) -> Option<Vec<&str>> {
    let (_, mut rest) = subject.split_once(": ").filter(|(area, _)| is_area(area))?;
    let mut clauses = Vec::new();
    // A semicolon without an area after it belongs to the change.
    let next = |text: &str| {
        text.match_indices("; ").find_map(|(at, mark)| {
            let after = &text[at + mark.len()..];
            let (area, _) = after.split_once(": ")?;
            // Words with spaces between them are prose.
            let is_next = is_area(area) && !area.replace(", ", "").contains(' ');
            is_next.then_some((at, at + mark.len() + area.len() + 2))
        })
    };
    while let Some((end, begin)) = next(rest) {
        clauses.push(&rest[..end]);
        rest = &rest[begin..];
    }
    clauses.push(rest);
    Some(clauses)
}

/// Whether a text is one or more words in lower case: crates, folders, families of ops.
fn is_area(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase() || c == '.')
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./".contains(c))
    };
    text.split(", ").flat_map(|area| area.split(' ')).all(is_word) && text.split(' ').count() <= 4
}

/// The violation of a change that does not begin with a verb in the imperative, by the ending of its first word.
fn not_imperative(clause: &str) -> Option<String> {
    let first = clause.split(' ').next().unwrap_or_default().trim_end_matches(',');
    let lower = !first.is_empty() && first.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let (has, is_listed) = (|ending| first.ends_with(ending), VERBS.contains(&first));
    let is_other_form = has("ed") || has("ing") || (has("s") && !has("ss"));
    let fault = if !lower {
        "is not a verb in lower case"
    } else if NOT_VERBS.contains(&first) {
        "is not a verb"
    } else if is_other_form && !is_listed {
        "is not in the imperative"
    } else {
        return None;
    };
    Some(format!("`{first}` {fault}; begin with one, such as `add`, or list it in xtask/src/tidy/commits.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_subjects_pass() {
        for subject in [
            "dispatcher: try the next candidate on UNSUPPORTED",
            "frontend, dispatcher: pass `Dims` by reference",
            "test-plugins/cuda-driver: count launches",
            "xtask: judge sizes by their quick cases; mutants: give gelu a kernel",
            "conv: choose F(4x4); it is faster: 0.4 of the time",
            "backend-cpu: process rows in blocks",
            "memory formats: embed the order in the plan",
            ".ci: bring the steps in order",
            "a: alias inputs",
            "fixup! whatever",
        ] {
            assert_eq!(faults(subject), [""; 0], "{subject}");
        }
    }

    #[test]
    fn bad_subjects_are_found() {
        for (subject, fault) in [
            ("Try the next candidate", "no area"),
            ("Dispatcher: try the next candidate", "no area"),
            ("dispatcher:try the next candidate", "no area"),
            ("a b c d e: try", "no area"),
            ("dispatcher: try the next candidate.", "a dot"),
            ("dispatcher: tried the next candidate", "`tried` is not in the imperative"),
            ("dispatcher: trying the next candidate", "`trying` is not in the imperative"),
            ("dispatcher: tries the next candidate", "`tries` is not in the imperative"),
            ("dispatcher: Try the next candidate", "`Try` is not a verb in lower case"),
            ("dispatcher: the next candidate is tried", "`the` is not a verb"),
            ("dispatcher: `call` tries", "not a verb in lower case"),
            ("xtask: judge sizes; mutants: gives gelu a kernel", "`gives` is not in the imperative"),
            ("dispatcher: ", "not a verb in lower case"),
        ] {
            let found = faults(subject);
            assert!(found.len() == 1 && found[0].contains(fault), "{subject}: {found:?}");
        }
        assert_eq!(faults(&format!("a: {}", "b".repeat(LENGTH - 3))), [""; 0]);
        assert!(faults(&format!("a: {}", "b".repeat(LENGTH - 2)))[0].contains("121 characters"));
    }

    #[test]
    fn a_message_has_its_subject_before_the_comments() {
        assert_eq!(subject("\n# a comment\na: add b\n\nbody\n"), Some("a: add b"));
        assert_eq!(subject("# only a comment\n"), None);
    }

    #[test]
    fn commits_and_messages_are_read_from_a_repository() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let workspace = Workspace { root: scratch.path().to_path_buf() };
        let git = |arguments: &[&str]| {
            let mut git = workspace.command("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.hooksPath=none"]);
            let status = git.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(status.expect("git").success(), "{arguments:?}");
        };
        git(&["init", "-b", "main"]);
        git(&["commit", "--allow-empty", "-m", "Started"]);
        assert!(matches!(run(&workspace, None), Err(Failure::Untidy { count: 1 })));
        git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        git(&["commit", "--allow-empty", "-m", "a: add b"]);
        assert!(run(&workspace, None).is_ok(), "only what the upstream branch lacks");
        assert!(matches!(run(&workspace, Some("HEAD")), Err(Failure::Untidy { count: 1 })));
        assert!(matches!(run(&workspace, Some("nothing..")), Err(Failure::Ended { .. })));

        let message = scratch.path().join("message");
        std::fs::write(&message, "Merge a into b\n").expect("a file");
        assert!(matches!(run_message(&workspace, &message), Err(Failure::Untidy { count: 1 })));
        let refs = scratch.path().join(".git");
        std::fs::copy(refs.join("refs/heads/main"), refs.join("MERGE_HEAD")).expect("a merge");
        assert!(run_message(&workspace, &message).is_ok(), "a merge");
    }
}
