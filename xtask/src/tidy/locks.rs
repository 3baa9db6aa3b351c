//! Checks that the Cargo.lock files of the workspaces under `examples/` agree with the repository's.

use super::Violation;
use super::source::File;
use std::collections::BTreeMap;

/// The repository's own lock file.
const OURS: &str = "Cargo.lock";

/// Checks that a package that the repository locks too has one of its versions: shared dependencies of the examples are then
/// built once, and tested together with everything else.
pub fn check(files: &[File]) -> Vec<Violation> {
    let Some(ours) = files.iter().find(|file| file.path == OURS) else {
        return vec![Violation::new(
            OURS,
            1,
            "there is no lock",
            "run `cargo generate-lockfile`, and commit it",
        )];
    };
    let ours = versions(&ours.text);
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path != OURS && file.path.ends_with("/Cargo.lock")) {
        for (name, versions) in versions(&file.text) {
            let Some(known) = ours.get(name) else { continue };
            for (version, line) in versions.iter().filter(|(version, _)| !known.contains_key(*version)) {
                let known: Vec<&str> = known.keys().copied().collect();
                let what = format!("{name} {version} is locked, and the repository has {}", known.join(", "));
                let mend = "run `cargo update --precise` there with the repository's version";
                found.push(Violation::new(&file.path, *line, what, mend));
            }
        }
    }
    found
}

/// The versions of each package, with their lines.
fn versions(lock: &str) -> BTreeMap<&str, BTreeMap<&str, usize>> {
    let mut all: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut name = "";
    for (line, number) in lock.lines().zip(1..) {
        if let Some(found) = quoted(line, "name") {
            name = found;
        } else if let Some(version) = quoted(line, "version") {
            all.entry(name).or_default().insert(version, number);
        }
    }
    all
}

/// The value of `key = "value"`.
fn quoted<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(packages: &[(&str, &str)]) -> String {
        let package = |(name, version): &(&str, &str)| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n\n")
        };
        format!("version = 4\n\n{}", packages.iter().map(package).collect::<String>())
    }

    #[test]
    fn an_example_locks_what_the_repository_locks() {
        let ours = File::new(OURS, &lock(&[("half", "2.7.1"), ("syn", "1.0.9"), ("syn", "2.0.1")]));
        let example = |packages| File::new("examples/a/Cargo.lock", &lock(packages));
        let good = example(&[("half", "2.7.1"), ("syn", "2.0.1"), ("of-its-own", "0.1.0")]);
        assert_eq!(check(&[ours.clone(), good]), []);
        let bad = check(&[ours, example(&[("half", "2.7.1"), ("syn", "2.0.2")])]);
        assert_eq!(bad.len(), 1);
        assert_eq!((bad[0].path.as_str(), bad[0].line), ("examples/a/Cargo.lock", 9));
        assert_eq!(bad[0].what, "syn 2.0.2 is locked, and the repository has 1.0.9, 2.0.1");
        assert_eq!(check(&[]).len(), 1, "nothing to compare with is a fault");
    }
}
