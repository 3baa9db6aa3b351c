//! `cargo xtask doc`: builds the documentation without a warning, and checks that public items of `keyway` have an example.
//!
//! The task reads the pages that rustdoc writes, not the sources: rustdoc resolves the items reachable from the crate's root,
//! re-exports from the dispatcher and declarations by macros. The tests run the examples; this task only reports missing ones.

use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::path::Path;

/// The crate whose pages are read: the one that programs use. Items of other crates count if it re-exports them.
const CRATE: &str = "keyway";
/// Kinds of pages that need an example: on the item, or on one of its methods.
const KINDS: &[&str] = &["attr", "derive", "enum", "fn", "macro", "struct", "trait", "type", "union"];
/// Types whose every method needs its own example: users look ops up one by one.
const EACH_METHOD: &[&str] = &["tensor/struct.Tensor.html"];
/// Prefixes of pages that need no example, each with the reason.
const EXEMPT: &[(&str, &str)] =
    &[("rng/philox/", "formulas for writers of kernels; `rng::Philox` has the example")];
/// The class that marks an example in a page.
const EXAMPLE: &str = "rust-example-rendered";
/// The mark of a redirect page.
const REDIRECT: &str = "http-equiv=\"refresh\"";
/// The start of an inherent method's markup, up to its name.
const METHOD: &str = "<section id=\"method.";
/// The rest of that markup; methods of traits have another class.
const OWN_METHOD: &str = "\" class=\"method\"";

/// Builds the documentation of the workspace and checks for examples.
pub fn run(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("doc").join(CRATE);
    // Pages of removed items would stay.
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Failure::file("remove", &folder))?;
    }
    let mut command = workspace.cargo();
    command.args(["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", flags(std::env::var("RUSTDOCFLAGS").ok()));
    workspace::run(&mut command, "mend what rustdoc warns of")?;

    let mut pages = Vec::new();
    read(&folder, "", &mut pages)?;
    let missing = check(&pages);
    for line in &missing {
        println!("{line}");
    }
    if missing.is_empty() {
        println!("doc: {} pages, none without an example", pages.len());
        Ok(())
    } else {
        Err(Failure::Untidy { count: missing.len() })
    }
}

/// The caller's flags, and warnings as errors.
fn flags(own: Option<String>) -> String {
    format!("{} -Dwarnings", own.unwrap_or_default()).trim_start().to_owned()
}

/// A page of an item: its path below the crate's folder, and its text.
type Page = (String, String);

fn read(folder: &Path, prefix: &str, pages: &mut Vec<Page>) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(Failure::file("list", folder))? {
        let path = entry.map_err(Failure::file("list", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, &format!("{prefix}{name}/"), pages)?;
        } else if name.split_once('.').is_some_and(|(kind, _)| KINDS.contains(&kind)) {
            let text = std::fs::read_to_string(&path).map_err(Failure::file("read", &path))?;
            pages.push((format!("{prefix}{name}"), text));
        }
    }
    Ok(())
}

/// A line for each item without an example, and for each exemption without effect.
fn check(pages: &[Page]) -> Vec<String> {
    let mut missing = Vec::new();
    for (path, text) in pages {
        if text.contains(REDIRECT) || EXEMPT.iter().any(|(begin, _)| path.starts_with(begin)) {
            continue;
        }
        if !text.contains(EXAMPLE) {
            missing
                .push(format!("{path}: no example; write one above the item, or above what re-exports it"));
        } else if EACH_METHOD.contains(&path.as_str()) {
            missing.extend(
                methods(text)
                    .filter(|(_, doc)| !doc.contains(EXAMPLE))
                    .map(|(name, _)| format!("{path}: `{name}` has no example; write one above the method")),
            );
        }
    }
    for (begin, why) in EXEMPT {
        if !pages.iter().any(|(path, _)| path.starts_with(begin)) {
            missing.push(format!("{begin}: exempt ({why}), but there is no such page; take it off the list"));
        }
    }
    for path in EACH_METHOD {
        let page = pages.iter().find(|(own, _)| own == path);
        if page.is_none_or(|(_, text)| methods(text).next().is_none()) {
            missing.push(format!("{path}: no page with methods; mend the names in xtask/src/doc.rs"));
        }
    }
    missing.sort();
    missing
}

/// The inherent methods, each with its page up to the next section.
fn methods(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split(METHOD).skip(1).filter_map(|part| {
        let (name, rest) = part.split_once(OWN_METHOD)?;
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let doc = rest.split_once("<section id=").map_or(rest, |(doc, _)| doc);
        is_name.then_some((name, doc))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "<pre class=\"rust rust-example-rendered\">";

    fn method(name: &str, class: &str, doc: &str) -> String {
        format!("<section id=\"method.{name}\" class=\"{class}\"></section><div>{doc}</div>")
    }

    fn faults(own: &[(&str, String)]) -> Vec<String> {
        let there = ["rng/philox/fn.block.html", "tensor/struct.Tensor.html"];
        let pages = there.map(|path| (path.to_owned(), format!("{SHOWN}{}", method("sum", "method", SHOWN))));
        let own = own.iter().map(|(path, text)| ((*path).to_owned(), text.clone()));
        check(&own.chain(pages).collect::<Vec<_>>())
    }

    #[test]
    fn an_item_has_an_example_or_one_of_its_methods() {
        let redirect = format!("<meta {REDIRECT}>");
        assert_eq!(faults(&[("fn.a.html", SHOWN.to_owned()), ("fn.b.html", redirect)]), [""; 0]);
        assert_eq!(faults(&[("nn/struct.A.html", method("new", "method", SHOWN))]), [""; 0]);
        let faults = faults(&[("fn.a.html", String::new()), ("rng/philox/fn.b.html", String::new())]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("fn.a.html: no example"), "{faults:?}");
    }

    #[test]
    fn each_method_of_a_tensor_has_one() {
        let page = |doc: &str| {
            [method("a", "method", doc), method("b", "method", SHOWN), method("c", "method trait-impl", "")]
        };
        let own = |doc: &str| check(&[(EACH_METHOD[0].to_owned(), page(doc).concat())]);
        assert!(own(SHOWN).iter().all(|line| line.contains("exempt")), "{:?}", own(SHOWN));
        assert!(own("").iter().any(|line| line.contains("`a` has no example")), "{:?}", own(""));
        assert!(!own("").iter().any(|line| line.contains("`c`") || line.contains("`b`")), "{:?}", own(""));
    }

    #[test]
    fn a_list_that_names_nothing_is_a_fault() {
        let faults = check(&[]);
        assert_eq!(faults.len(), EXEMPT.len() + EACH_METHOD.len(), "{faults:?}");
    }

    #[test]
    fn the_callers_flags_stay() {
        assert_eq!(flags(None), "-Dwarnings");
        assert_eq!(flags(Some("--cfg a".to_owned())), "--cfg a -Dwarnings");
    }
}
