//! Required and forbidden entries of Cargo.toml files.

use super::Violation;
use super::source::File;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use serde_json::Value;
use std::path::Path;

/// Prefix of the names of backend packages.
const BACKEND: &str = "keyway-backend-";
/// The package of ours that a backend depends on.
const SDK: &str = "keyway-sdk";
/// Our packages that a backend may name.
const FOR_BACKENDS: &[&str] = &[SDK, "keyway-cpu-conv", "keyway-cpu-loops"];
/// Packages that must not depend on a backend, even indirectly.
const WITHOUT_BACKENDS: &[&str] = &["keyway", "keyway-dispatcher"];

/// Runs `cargo metadata` and `cargo tree`, and checks their output.
pub fn check(workspace: &Workspace, files: &[File]) -> Result<Vec<Violation>> {
    let advice = "cargo's message stands above";
    let mut command = workspace.cargo();
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let text = workspace::capture(&mut command, advice)?;
    let metadata: Value = serde_json::from_str(&text).map_err(|_| Failure::Output {
        command: workspace::line(&command),
        expected: "one JSON value",
        got: text.chars().take(200).collect(),
    })?;
    let packages = packages(&metadata, &workspace.root);
    let mut found = backends(&packages);
    found.extend(lints(&packages, files));
    for package in WITHOUT_BACKENDS {
        let mut command = workspace.cargo();
        command.args(["tree", "--package", package, "--edges", "normal", "--locked"]);
        command.args(["--prefix", "none", "--format", "{p}"]);
        let tree = workspace::capture(&mut command, advice)?;
        let path =
            packages.iter().find(|own| own.name == *package).map_or(*package, |own| own.manifest.as_str());
        found.extend(tree_names_backend(path, package, &tree));
    }
    Ok(found)
}

/// A package of the workspace.
#[derive(Debug)]
struct Package {
    name: String,
    /// The path of its Cargo.toml, relative to the repository.
    manifest: String,
    dependencies: Vec<String>,
}

fn packages(metadata: &Value, root: &Path) -> Vec<Package> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let package = |value: &Value| {
        let manifest = text(&value["manifest_path"]);
        let relative = Path::new(&manifest).strip_prefix(root).unwrap_or(Path::new(&manifest));
        let dependencies = value["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        Package {
            name: text(&value["name"]),
            manifest: relative.to_string_lossy().replace('\\', "/"),
            dependencies: dependencies.iter().map(|dependency| text(&dependency["name"])).collect(),
        }
    };
    list.iter().map(package).collect()
}

/// Checks that a backend depends on the SDK and on no other package of the workspace, not even for tests.
fn backends(packages: &[Package]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut backends = packages.iter().filter(|package| package.name.starts_with(BACKEND)).peekable();
    if backends.peek().is_none() {
        let what = format!("no package is named `{BACKEND}…`, so no backend can be checked");
        found.push(Violation::new("Cargo.toml", 1, what, "name backends so, and list them as members"));
    }
    for backend in backends {
        for name in &backend.dependencies {
            if !FOR_BACKENDS.contains(&name.as_str()) && packages.iter().any(|package| package.name == *name)
            {
                let what = format!("{} depends on `{name}`", backend.name);
                found.push(Violation::new(
                    &backend.manifest,
                    1,
                    what,
                    "a backend may name only `keyway-sdk`, `keyway-cpu-conv` and `keyway-cpu-loops` of ours",
                ));
            }
        }
        if !backend.dependencies.iter().any(|name| name == SDK) {
            let what = format!("{} does not depend on `{SDK}`", backend.name);
            found.push(Violation::new(&backend.manifest, 1, what, "a backend is written against the SDK"));
        }
    }
    found
}

/// Checks that each package inherits the workspace's lints.
fn lints(packages: &[Package], files: &[File]) -> Vec<Violation> {
    let missing = packages.iter().filter(|package| {
        let file = files.iter().find(|file| file.path == package.manifest);
        !file.is_some_and(|file| takes_lints(&file.text))
    });
    missing
        .map(|package| {
            let what = format!("{} does not take the workspace's lints", package.name);
            Violation::new(&package.manifest, 1, what, "add `[lints]` with `workspace = true`")
        })
        .collect()
}

fn takes_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let dense: String = line.split_whitespace().collect();
        (section == "[lints]" && dense == "workspace=true")
            || (section.is_empty() && dense == "lints.workspace=true")
    })
}

/// Checks that a package does not depend on a backend.
fn tree_names_backend(path: &str, package: &str, tree: &str) -> Vec<Violation> {
    let lines = tree.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines.clone().next().is_none_or(|first| !first.starts_with(package)) {
        let what = format!("`cargo tree` lists nothing for {package}");
        return vec![Violation::new(path, 1, what, "check the package's name")];
    }
    lines
        .filter(|line| line.starts_with(BACKEND))
        .map(|line| {
            let what =
                format!("the dependencies of {package} lead to {}", line.split(' ').next().unwrap_or(line));
            Violation::new(path, 1, what, "backends are found at run time; make it a dev-dependency of tests")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workspace(backend_dependencies: &[&str]) -> Vec<Package> {
        let dependency = |name: &&str| json!({"name": name, "kind": null});
        let dependencies: Vec<Value> = backend_dependencies.iter().map(dependency).collect();
        let metadata = json!({"packages": [
            {"name": "keyway-sdk", "manifest_path": "/r/plugin-sdk/Cargo.toml", "dependencies": []},
            {"name": "keyway", "manifest_path": "/r/frontend/Cargo.toml", "dependencies": []},
            {"name": "keyway-backend-x", "manifest_path": "/r/backend-x/Cargo.toml", "dependencies": dependencies},
        ]});
        packages(&metadata, Path::new("/r"))
    }

    #[test]
    fn a_backend_knows_only_the_sdk() {
        assert_eq!(backends(&workspace(&["keyway-sdk", "gemm"])), []);
        let two = backends(&workspace(&["keyway"]));
        assert_eq!(two.len(), 2, "another crate of ours, and no SDK");
        assert_eq!(two[0].path, "backend-x/Cargo.toml");
        assert_eq!(backends(&[]).len(), 1, "nothing to check is a fault");
    }

    #[test]
    fn each_package_takes_the_lints() {
        let files = |text: &str| -> Vec<File> {
            ["plugin-sdk", "frontend", "backend-x"]
                .iter()
                .map(|at| File::new(&format!("{at}/Cargo.toml"), text))
                .collect()
        };
        let packages = workspace(&["keyway-sdk"]);
        assert_eq!(lints(&packages, &files("[package]\n[lints]\nworkspace = true # all\n")), []);
        assert_eq!(lints(&packages, &files("lints.workspace = true\n[package]")), []);
        for text in
            ["", "[lints]\n", "[lints]\n[features]\nworkspace = true", "# [lints]\n# workspace = true"]
        {
            assert_eq!(lints(&packages, &files(text)).len(), 3, "{text}");
        }
    }

    #[test]
    fn no_tree_leads_to_a_backend() {
        let good = "keyway v0.1.0 (r/frontend)\nhalf v2.7.1\n";
        assert_eq!(tree_names_backend("frontend/Cargo.toml", "keyway", good), []);
        let bad = format!("{good}keyway-backend-cpu v0.1.0 (r/backend-cpu)\n");
        assert_eq!(tree_names_backend("frontend/Cargo.toml", "keyway", &bad).len(), 1);
        assert_eq!(
            tree_names_backend("frontend/Cargo.toml", "keyway", "").len(),
            1,
            "an empty answer is a fault"
        );
    }
}
