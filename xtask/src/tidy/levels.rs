//! The modules of a crate have an order: a module imports only from those below it.
//!
//! The rule reads paths that begin with `crate`, `$crate`, `self` or `super`, in `use` as well as in code. Names that
//! `lib.rs` re-exports count as the module that they come from.

use super::Violation;
use super::source::File;
use super::tokens::{Delimiter, Token, Tokens};
use std::collections::BTreeMap;

/// The order of one crate's modules.
struct Levels {
    /// The folder of the crate's modules.
    folder: &'static str,
    /// The modules below `lib.rs`, lowest first. A module may import itself and those before it.
    order: &'static [&'static str],
    /// Modules that are not in the order.
    beside: &'static [Beside],
}

/// A module outside the order.
struct Beside {
    module: &'static str,
    /// The modules that it may import.
    imports: &'static [&'static str],
    /// The modules that may import it.
    importers: &'static [&'static str],
}

/// The crates whose modules have an order.
const CRATES: &[Levels] = &[
    Levels {
        folder: "dispatcher/src/",
        order: &["base", "device", "memory", "tensor", "op", "registry", "call", "host"],
        beside: &[Beside { module: "loader", imports: &["base"], importers: &["host"] }],
    },
    Levels {
        folder: "frontend/src/",
        order: &[
            "error",
            "op",
            "runtime",
            // Settings and services of the dispatcher, without tensors.
            "backend",
            "graph",
            "interposer",
            "chosen",
            "precision",
            "storage",
            "tensor",
            "arguments",
            "rng",
            "layout_fallback",
            "profiler",
            "autocast_mode",
            "autograd",
            "interceptor",
            "ops",
            "fft",
            "autocast",
            "io",
            "nn",
            "device",
            "optim",
            "data",
            "plan",
            // Nothing imports these.
            "chained",
            "deprecated",
            "guide",
            "book",
            "prelude",
            "startup",
        ],
        beside: &[],
    },
];

/// Checks every crate with an order, except its `lib.rs` and tests.
pub fn check(files: &[File]) -> Vec<Violation> {
    CRATES.iter().flat_map(|levels| levels.check(files)).collect()
}

impl Levels {
    fn check(&self, files: &[File]) -> Vec<Violation> {
        let root = format!("{}lib.rs", self.folder);
        let facade = files.iter().find(|file| file.path == root).and_then(File::tokens);
        let facade = facade.map(reexports).unwrap_or_default();
        let own = |file: &&File| file.path.starts_with(self.folder) && file.path != root && !file.is_test();
        files.iter().filter(own).flat_map(|file| self.check_file(file, &facade)).collect()
    }

    fn check_file(&self, file: &File, facade: &BTreeMap<String, String>) -> Vec<Violation> {
        let path = module_path(file.path.strip_prefix(self.folder).unwrap_or_default());
        let (Some(own), Some(tokens)) = (path.first().cloned(), file.tokens()) else { return Vec::new() };
        if self.place(&own).is_none() {
            let what = format!("the module `{own}` has no level");
            return vec![Violation::new(&file.path, 1, what, "list it in xtask/src/tidy/levels.rs")];
        }
        let mut found = Vec::new();
        imports(&tokens.all, &path, &mut |line, name| {
            let other = origin(name, facade);
            if !tokens.is_test(line) {
                found.extend(
                    self.fault(&own, name, other)
                        .map(|(what, mend)| Violation::new(&file.path, line, what, mend)),
                );
            }
        });
        found.dedup();
        found
    }

    /// The violation of an import of `other`, reached as `crate::name`, in the module `own`.
    fn fault(&self, own: &str, name: &str, other: &str) -> Option<(String, &'static str)> {
        if own == other || self.allows(own, other) {
            return None;
        }
        let Some(place) = self.place(other) else {
            if name != other {
                // The facade re-exports another crate's name; each module of this crate has a level, or is itself reported.
                return None;
            }
            let what =
                format!("`crate::{name}` names no module of a level and nothing that lib.rs re-exports");
            return Some((what, "name it by its module, or list a new module in xtask/src/tidy/levels.rs"));
        };
        let own_place = self.place(own).unwrap_or_default();
        let what = format!("`{own}` ({own_place}) imports `crate::{name}` of `{other}` ({place})");
        Some((what, "move what both need into the lower module, or let the higher one pass it in"))
    }

    fn allows(&self, own: &str, other: &str) -> bool {
        let level = |module| self.order.iter().position(|one| *one == module);
        match (level(own), level(other)) {
            (Some(own), Some(other)) => other <= own,
            _ => self.beside.iter().any(|beside| {
                (beside.module == own && beside.imports.contains(&other))
                    || (beside.module == other && beside.importers.contains(&own))
            }),
        }
    }

    /// The position of a module, as text.
    fn place(&self, module: &str) -> Option<String> {
        if let Some(level) = self.order.iter().position(|one| *one == module) {
            return Some(format!("level {} of {}", level + 1, self.order.len()));
        }
        let beside = self.beside.iter().find(|beside| beside.module == module)?;
        let (imports, importers) = (beside.imports.join(", "), beside.importers.join(", "));
        Some(format!("beside the levels: it imports {imports}, and {importers} imports it"))
    }
}

/// The module from which a name of the crate's root is re-exported, possibly through other names of the root.
fn origin<'a>(name: &'a str, facade: &'a BTreeMap<String, String>) -> &'a str {
    let mut module = name;
    // No chain is longer than the number of names.
    for _ in 0..facade.len() {
        match facade.get(module) {
            Some(next) if next != module => module = next,
            _ => break,
        }
    }
    module
}

/// The module of a file, from its path below the crate's sources.
fn module_path(path: &str) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    stem.split('/').filter(|name| *name != "mod").map(str::to_owned).collect()
}

/// Calls `visit` with the line and the first name of each path that begins at the root of the crate, seen from a module.
fn imports(tokens: &[Token], module: &[String], visit: &mut impl FnMut(usize, &str)) {
    let mut rest = tokens;
    while let [token, after @ ..] = rest {
        rest = after;
        match token {
            Token::Word(_, word) if word == "mod" => {
                if let [Token::Word(_, name), Token::Group(_, Delimiter::Brace, inside, _), after @ ..] =
                    after
                {
                    imports(inside, &[module, std::slice::from_ref(name)].concat(), visit);
                    rest = after;
                }
            }
            Token::Word(_, word) if matches!(word.as_str(), "crate" | "self" | "super") => {
                if let Some(after) = after_colons(after) {
                    let from = if word == "crate" { &[] } else { module };
                    let from = if word == "super" { parent(from) } else { from };
                    rest = path(after, from, visit);
                }
            }
            Token::Group(_, _, inside, _) => imports(inside, module, visit),
            _ => {}
        }
    }
}

/// Parses the rest of a path after the module `at`; returns the tokens after the path.
fn path<'a>(mut tokens: &'a [Token], mut at: &[String], visit: &mut impl FnMut(usize, &str)) -> &'a [Token] {
    while let [Token::Word(_, word), after @ ..] = tokens
        && word == "super"
        && let Some(after) = after_colons(after)
    {
        (tokens, at) = (after, parent(at));
    }
    match tokens {
        [Token::Group(_, Delimiter::Brace, inside, _), after @ ..] => {
            for part in inside.split(|token| token.is_mark(',')) {
                path(part, at, visit);
            }
            after
        }
        [Token::Word(line, word), after @ ..] => {
            // `self` in braces is the module itself, and below a module every name is the module's own.
            if at.is_empty() && word != "self" {
                visit(*line, word);
            }
            after
        }
        [Token::Mark(line, '*'), after @ ..] => {
            if at.is_empty() {
                visit(*line, "*");
            }
            after
        }
        _ => tokens,
    }
}

fn parent(module: &[String]) -> &[String] {
    module.split_last().map_or(&[], |(_, parent)| parent)
}

fn after_colons(tokens: &[Token]) -> Option<&[Token]> {
    match tokens {
        [Token::Mark(_, ':'), Token::Mark(_, ':'), after @ ..] => Some(after),
        _ => None,
    }
}

/// The names that the `use` items of `lib.rs` import into the root, each with its module.
fn reexports(facade: &Tokens) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in facade.all.split(|token| token.is_mark(';')) {
        if let Some(start) = item.iter().position(|token| token.is_word("use")) {
            leaves(&item[start + 1..], &[], &mut found);
        }
    }
    found
}

/// Adds the names of one tree of `use` below a path.
fn leaves(tree: &[Token], below: &[&str], found: &mut BTreeMap<String, String>) {
    let words = tree.iter().filter_map(|token| match token {
        Token::Word(_, word) if !matches!(word.as_str(), "crate" | "self" | "as") => Some(word.as_str()),
        _ => None,
    });
    let path: Vec<&str> = below.iter().copied().chain(words).collect();
    if let Some(Token::Group(_, _, inside, _)) = tree.last() {
        inside.split(|token| token.is_mark(',')).for_each(|part| leaves(part, &path, found));
    } else if let (Some(module), Some(name)) = (path.first(), path.last()) {
        found.insert((*name).to_owned(), (*module).to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "pub mod base;\npub use base::error::{Error as Fault, Result};\npub use op::Rule;\n\
                       pub use base::dims::{self, Size};\npub use dims::Dims;\npub use other_crate::{Half, inner::Two};\nmacro_rules! own { () => {} }";

    fn faults(path: &str, text: &str) -> Vec<String> {
        let path = format!("dispatcher/src/{path}");
        let files = [File::new("dispatcher/src/lib.rs", LIB), File::new(&path, text)];
        check(&files).iter().map(|fault| format!("{}: {}", fault.line, fault.what)).collect()
    }

    /// The lines and the modules of the imports in violation.
    fn at_fault(path: &str, text: &str) -> Vec<(usize, String)> {
        let module = |fault: &String| {
            let (line, what) = fault.split_once(": ").expect("a line");
            (line.parse().expect("a number"), what.split('`').nth(5).unwrap_or("none").to_owned())
        };
        faults(path, text).iter().map(module).collect()
    }

    #[test]
    fn imports_lead_downward() {
        let text =
            "use crate::base::key::Key;\nuse crate::memory::Shared;\nuse super::device;\nuse std::fmt;";
        assert_eq!(faults("memory/blocks.rs", text), [""; 0]);
        assert_eq!(
            faults("memory/blocks.rs", "\nuse crate::registry::DeviceEntry;"),
            ["2: `memory` (level 3 of 8) imports `crate::registry` of `registry` (level 6 of 8)"]
        );
        let mend = check(&[File::new("dispatcher/src/base/a.rs", "use crate::op::b;")])[0].mend;
        assert!(mend.contains("move"), "{mend}");
    }

    #[test]
    fn every_way_to_write_a_path_counts() {
        for path in [
            "use crate::op::Rule;",
            "use crate::{base::Key, op};",
            "use crate::{\n};use crate::op as other;",
            "pub(crate) use crate::op::*;",
            "use super::super::op::Rule;",
            "use super::super::{base, op::{Rule, Plan}};",
            "use self::super::super::op;",
            "fn f() -> crate::op::Rule { g() }",
            "fn f() { if a { g(&[crate::op::RULE]) } }",
            "macro_rules! m { () => { $crate::op::rule() } }",
            "mod a { use super::super::super::op::Rule; }",
            "impl<T: crate::op::Rule> A for T {}",
        ] {
            let found = at_fault("tensor/make.rs", path);
            assert!(found.len() == 1 && found[0].1 == "op", "{path}: {found:?}");
        }
    }

    #[test]
    fn what_stays_in_the_module_is_free() {
        for path in [
            "use super::op;",
            "use super::op::Rule;",
            "use self::op::Rule;",
            "mod op { use super::super::op; }",
            "pub(super) fn f(&self) -> Self { self.op }",
            "pub(in crate::tensor) fn f() {}",
            "// crate::op::Rule\n/// [`crate::op::Rule`]\nfn f() { g(\"crate::op\") }",
            "use op::Rule;",
            "#[cfg(test)]\nmod tests { use crate::op::Rule; }",
        ] {
            assert_eq!(faults("tensor/make.rs", path), [""; 0], "{path}");
        }
        assert_eq!(faults("tensor/mod.rs", "use super::base;\nuse self::make;"), [""; 0]);
        assert_eq!(at_fault("tensor/mod.rs", "use super::op;"), [(1, "op".to_owned())]);
        assert_eq!(faults("tensor/make_tests.rs", "use crate::op;"), [""; 0]);
        assert_eq!(faults("lib.rs", "use crate::op;"), [""; 0]);
        let elsewhere = [File::new("conformance/src/tensor/mod.rs", "use crate::op;")];
        assert_eq!(check(&elsewhere), []);
    }

    #[test]
    fn names_of_the_facade_count_as_their_module() {
        let text = "use crate::{Fault, Result, Dims, Size};\nuse crate::dims::a;\nuse crate::Rule;";
        assert_eq!(faults("device/mod.rs", text).len(), 1);
        assert_eq!(at_fault("device/mod.rs", text), [(3, "op".to_owned())]);
        assert_eq!(faults("device/mod.rs", "use crate::{Half, Two};"), [""; 0], "names of another crate");
    }

    #[test]
    fn names_without_a_level_are_found() {
        for text in ["use crate::nowhere::a;", "use crate::*;", "use super::super::*;"] {
            let found = faults("call/kernel.rs", text);
            assert!(found.len() == 1 && found[0].contains("names no module"), "{text}: {found:?}");
        }
        assert_eq!(faults("stray.rs", "use crate::base;"), ["1: the module `stray` has no level"]);
        assert_eq!(faults("stray/mod.rs", "").len(), 1);
    }

    #[test]
    fn a_module_beside_the_order_has_its_own_imports() {
        assert_eq!(faults("loader/open.rs", "use crate::base::key;\nuse super::trust;"), [""; 0]);
        assert_eq!(at_fault("loader/open.rs", "use crate::op;"), [(1, "op".to_owned())]);
        assert_eq!(faults("host/install.rs", "use crate::loader::Loaded;\nuse crate::call;"), [""; 0]);
        let wrong = faults("call/kernel.rs", "use crate::loader::Loaded;");
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].contains("beside the levels: it imports base, and host imports it"), "{wrong:?}");
    }
}
