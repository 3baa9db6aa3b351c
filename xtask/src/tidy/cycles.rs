//! Files of a crate that import one another in a cycle, whose number may only fall.
//!
//! The graph has a node for each file of `src` and an edge for each path to an item of another file, in `use` as well as in code.
//! A re-exported name leads to the file that defines it, so a facade that only re-exports is in no cycle. Tests are left out.

use super::Violation;
use super::source::File;
use super::tokens::{Delimiter, Token, Tokens};
use std::collections::{BTreeMap, BTreeSet};

/// The size of the largest cycle of a crate, and the number of its files in cycles. A crate without an entry has none.
struct Limit {
    /// The folder of the crate's sources.
    folder: &'static str,
    largest: usize,
    files: usize,
}

const fn limit(folder: &'static str, largest: usize, files: usize) -> Limit {
    Limit { folder, largest, files }
}

/// The current counts. They may only decrease.
const LIMITS: &[Limit] = &[
    limit("backend-cpu/src/", 5, 22),
    limit("backend-cuda/src/", 17, 29),
    limit("backend-sparse/src/", 8, 8),
    limit("cli/src/", 7, 16),
    limit("dispatcher/src/", 11, 41),
    limit("frontend/src/", 10, 75),
    limit("test-plugins/coo/src/", 2, 2),
    limit("test-plugins/csr/src/", 2, 2),
    limit("test-plugins/int8/src/", 2, 2),
    limit("test-plugins/mutant/src/", 3, 3),
    limit("xtask/src/", 11, 13),
];
const LIST: &str = "xtask/src/tidy/cycles.rs";
/// The maximum number of files that a violation names.
const NAMED: usize = 6;

/// Checks every crate of the repository.
pub fn check(files: &[File]) -> Vec<Violation> {
    limits(files, LIMITS)
}

fn limits(files: &[File], limits: &[Limit]) -> Vec<Violation> {
    let folders: BTreeSet<&str> = folders(files).chain(limits.iter().map(|limit| limit.folder)).collect();
    folders.into_iter().filter_map(|folder| of_crate(files, folder, limits)).collect()
}

fn of_crate(files: &[File], folder: &str, limits: &[Limit]) -> Option<Violation> {
    let graph = Graph::of(files, folder);
    let cycles = graph.cycles();
    let largest = cycles.first().map_or(0, Vec::len);
    let count: usize = cycles.iter().map(Vec::len).sum();
    let limit = limits.iter().find(|limit| limit.folder == folder);
    let (most, of) = limit.map_or((0, 0), |limit| (limit.largest, limit.files));
    if largest > most || count > of {
        let named: Vec<&str> = cycles.iter().flatten().copied().take(NAMED).collect();
        let what = format!(
            "{count} files import one another in cycles, the largest of {largest}; {of} and {most} are allowed; among them {}",
            named.join(", ")
        );
        let mend =
            "move what both need into a file of its own; `cargo xtask tidy --cycles` lists the imports";
        return Some(Violation::new(&format!("{folder}{}", named.first()?), 1, what, mend));
    }
    (largest < most || count < of).then(|| {
        let what = format!(
            "{folder} has {count} files in cycles, the largest of {largest}; {of} and {most} are allowed"
        );
        Violation::new(LIST, 1, what, "lower its limits")
    })
}

/// Prints the cycles of the crates whose folder contains a text, each with its imports.
pub fn print(files: &[File], part: &str) {
    for folder in folders(files).filter(|folder| folder.contains(part)) {
        let graph = Graph::of(files, folder);
        let cycles = graph.cycles();
        let count: usize = cycles.iter().map(Vec::len).sum();
        println!("{folder}: {count} files in cycles, the largest of {}", cycles.first().map_or(0, Vec::len));
        for cycle in &cycles {
            println!("  a cycle of {}", cycle.len());
            let inside =
                graph.edges.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
            for ((from, to), names) in inside {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                println!("    {from} -> {to}: {}", names.join(", "));
            }
        }
    }
}

/// The folders of the crates' sources.
fn folders(files: &[File]) -> impl Iterator<Item = &str> {
    files.iter().filter_map(|file| {
        let root = file.path.strip_suffix("lib.rs").or(file.path.strip_suffix("main.rs"))?;
        root.ends_with("src/").then_some(root)
    })
}

type Path = Vec<String>;

/// One `use` of a name.
struct Use {
    /// The module that it is in, from the root of the crate.
    module: Path,
    /// The path as it is written; of a glob the path before `*`.
    path: Path,
    /// The imported name, `*` for a glob.
    name: String,
    /// Whether it has a visibility, in which case the file itself need not use the name.
    exports: bool,
}

/// A file as a module.
#[derive(Default)]
struct Module {
    uses: Vec<Use>,
    /// Paths in code, each with its module.
    paths: Vec<(Path, Path)>,
    /// Names of items in the file, each with its module; macros also with `!`.
    items: BTreeSet<(Path, String)>,
    /// Modules inside the file.
    inner: BTreeSet<Path>,
    /// Every word outside of `use`.
    words: BTreeSet<String>,
}

impl Module {
    /// Whether an item of the module is in the file.
    fn has(&self, at: &[String], name: &str) -> bool {
        self.items.iter().any(|(of, item)| of == at && item == name)
    }
}

/// The files of a crate, and their imports.
struct Graph<'a> {
    names: Vec<&'a str>,
    /// The imported names of each pair of files.
    edges: BTreeMap<(&'a str, &'a str), BTreeSet<String>>,
}

impl<'a> Graph<'a> {
    fn of(files: &'a [File], folder: &str) -> Self {
        let own = files.iter().filter_map(|file| {
            let name = file.path.strip_prefix(folder)?;
            // Programs beside the library are crates of their own.
            let counts = file.is_rust() && !file.is_test() && !name.starts_with("bin/");
            Some((name, file.tokens()?)).filter(|_| counts)
        });
        let mut modules = BTreeMap::new();
        for (name, tokens) in own {
            let path = module_path(name);
            let mut module = Module::default();
            read(&tokens.all, tokens, &path, &mut module);
            modules.insert(path, (name, module));
        }
        let resolver = Resolver { modules: &modules };
        let mut edges: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (from, module) in modules.values() {
            let mut add = |to: Option<&'a str>, name: &str| {
                if let Some(to) = to.filter(|to| to != from) {
                    edges.entry((*from, to)).or_default().insert(name.to_owned());
                }
            };
            for one in module.uses.iter().filter(|one| !one.exports || module.words.contains(&one.name)) {
                add(resolver.file(&one.module, &one.path, 0), one.path.last().map_or("", String::as_str));
            }
            for (at, path) in &module.paths {
                add(resolver.file(at, path, 0), path.last().map_or("", String::as_str));
            }
        }
        Self { names: modules.values().map(|(name, _)| *name).collect(), edges }
    }

    /// The strongly connected components of two files or more, largest first (Kosaraju's algorithm).
    fn cycles(&self) -> Vec<Vec<&'a str>> {
        let mut next: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
        let mut previous: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
        for (from, to) in self.edges.keys() {
            next.entry(from).or_default().push(to);
            previous.entry(to).or_default().push(from);
        }
        let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
        for name in &self.names {
            visit(name, &next, &mut seen, &mut order);
        }
        let (mut seen, mut cycles) = (BTreeSet::new(), Vec::new());
        for name in order.into_iter().rev() {
            let mut component = Vec::new();
            visit(name, &previous, &mut seen, &mut component);
            if component.len() > 1 {
                component.sort_unstable();
                cycles.push(component);
            }
        }
        cycles.sort_by(|a: &Vec<_>, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        cycles
    }
}

/// Appends the unseen files that a file leads to, itself last.
fn visit<'a>(
    name: &'a str,
    edges: &BTreeMap<&str, Vec<&'a str>>,
    seen: &mut BTreeSet<&'a str>,
    found: &mut Vec<&'a str>,
) {
    if seen.insert(name) {
        for next in edges.get(name).into_iter().flatten() {
            visit(next, edges, seen, found);
        }
        found.push(name);
    }
}

/// Finds the files of names.
struct Resolver<'m, 'a> {
    modules: &'m BTreeMap<Path, (&'a str, Module)>,
}

/// The maximum number of re-exports of one name that are followed, for cycles of re-exports.
const DEPTH: usize = 16;

impl<'a> Resolver<'_, 'a> {
    /// The file of the item or module that a path in a module leads to; `None` outside of the crate.
    fn file(&self, module: &[String], path: &[String], depth: usize) -> Option<&'a str> {
        match self.walk(module, path)? {
            (at, Some(name)) => self.item(&at, name, depth),
            (at, None) => self.module(&at).map(|(file, _)| *file),
        }
    }

    /// The module that a path in a module leads to; `None` for an item.
    fn at(&self, module: &[String], path: &[String]) -> Option<Path> {
        self.walk(module, path).and_then(|(at, name)| name.is_none().then_some(at))
    }

    /// The last module of a path, and the first name in it that is not a module.
    fn walk<'p>(&self, module: &[String], path: &'p [String]) -> Option<(Path, Option<&'p str>)> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => parent(module).to_vec(),
            _ => {
                rest = path;
                let child = [module, std::slice::from_ref(first)].concat();
                self.is_module(&child).then(|| module.to_vec())?
            }
        };
        while let [name, after @ ..] = rest {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if name == "super" {
                at = parent(&at).to_vec();
            } else if self.is_module(&child) {
                at = child;
            } else if name != "self" {
                return Some((at, Some(name)));
            }
            rest = after;
        }
        Some((at, None))
    }

    fn is_module(&self, at: &Path) -> bool {
        self.modules.contains_key(at) || self.module(at).is_some_and(|(_, module)| module.inner.contains(at))
    }

    /// The file that defines a name of a module.
    fn item(&self, at: &[String], name: &str, depth: usize) -> Option<&'a str> {
        let (file, module) = self.module(at)?;
        if module.has(at, name) || depth > DEPTH {
            return Some(file);
        }
        if let Some(one) = module.uses.iter().find(|one| one.module == at && one.name == name) {
            return self.file(&one.module, &one.path, depth + 1);
        }
        let globs = module.uses.iter().filter(|one| one.module == at && one.name == "*");
        let of = |one: &Use| self.defines(&self.at(&one.module, &one.path)?, name, depth + 1);
        if let Some(found) = globs.into_iter().find_map(of) {
            return Some(found);
        }
        // Macros with `#[macro_export]` are at the root, wherever they are defined.
        let is_named = |(_, item): &(Path, String)| item.strip_suffix('!') == Some(name);
        let mut exported = self.modules.values().filter(|(_, module)| module.items.iter().any(is_named));
        let of_macro = if at.is_empty() { exported.next() } else { None };
        Some(of_macro.map_or(*file, |(file, _)| *file))
    }

    /// As [`Self::item`], but `None` if the module does not have the name.
    fn defines(&self, at: &[String], name: &str, depth: usize) -> Option<&'a str> {
        let (_, module) = self.module(at)?;
        let mut uses = module.uses.iter().filter(|one| one.module == at);
        let has = module.has(at, name) || uses.any(|one| one.name == name || one.name == "*");
        has.then(|| self.item(at, name, depth))?
    }

    /// The file of a module, which may be inside the file of another.
    fn module(&self, at: &[String]) -> Option<&(&'a str, Module)> {
        (0..=at.len()).rev().find_map(|length| self.modules.get(&at[..length]))
    }
}

/// The module of a file, from its path below the crate's sources.
fn module_path(path: &str) -> Path {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    stem.split('/').filter(|name| !matches!(*name, "mod" | "lib" | "main")).map(str::to_owned).collect()
}

fn parent(module: &[String]) -> &[String] {
    module.split_last().map_or(&[], |(_, parent)| parent)
}

/// Reads the uses, paths, items and words of a list of tokens.
fn read(tokens: &[Token], all: &Tokens, at: &[String], module: &mut Module) {
    let mut rest = tokens;
    let mut exports = false;
    while let [token, after @ ..] = rest {
        rest = after;
        let Token::Word(line, word) = token else {
            if let Token::Group(_, _, inside, _) = token {
                read(inside, all, at, module);
            }
            exports = false;
            continue;
        };
        if all.is_test(*line) {
            continue;
        }
        match word.as_str() {
            "pub" => {
                exports = true;
                if let [Token::Group(_, Delimiter::Parenthesis, ..), after @ ..] = after {
                    rest = after;
                }
                continue;
            }
            "use" => {
                let end = after.iter().position(|token| token.is_mark(';')).unwrap_or(after.len());
                tree(&after[..end], &[], &mut |path, name| {
                    module.uses.push(Use { module: at.to_vec(), path, name, exports });
                });
                rest = &after[end..];
            }
            "mod" => {
                if let [Token::Word(_, name), Token::Group(_, Delimiter::Brace, inside, _), after @ ..] =
                    after
                {
                    let inner = [at, std::slice::from_ref(name)].concat();
                    read(inside, all, &inner, module);
                    module.inner.insert(inner);
                    rest = after;
                }
            }
            "macro_rules" => {
                if let [_, Token::Word(_, name), ..] = after {
                    module.items.extend([(at.to_vec(), name.clone()), (at.to_vec(), format!("{name}!"))]);
                }
            }
            word => {
                if let (
                    "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static",
                    [Token::Word(_, name), ..],
                ) = (word, after)
                {
                    module.items.insert((at.to_vec(), name.clone()));
                }
                let (path, after) = path(rest, word);
                module.words.extend(path.iter().cloned());
                if path.len() > 1 {
                    module.paths.push((at.to_vec(), path));
                }
                rest = after;
            }
        }
        exports = false;
    }
}

/// The path that begins with a word, and the tokens after it.
fn path<'t>(mut tokens: &'t [Token], first: &str) -> (Path, &'t [Token]) {
    let mut path = vec![first.to_owned()];
    while let [Token::Mark(_, ':'), Token::Mark(_, ':'), Token::Word(_, word), after @ ..] = tokens {
        path.push(word.clone());
        tokens = after;
    }
    (path, tokens)
}

/// Calls `visit` with each path of a tree of `use`, and the name that it brings.
fn tree(tokens: &[Token], below: &[String], visit: &mut impl FnMut(Path, String)) {
    let mut at = below.to_vec();
    let mut rest = tokens;
    loop {
        match rest {
            [Token::Word(_, word), Token::Mark(_, ':'), Token::Mark(_, ':'), after @ ..] => {
                at.push(word.clone());
                rest = after;
            }
            [Token::Mark(_, ':'), Token::Mark(_, ':'), after @ ..] => rest = after,
            [Token::Group(_, Delimiter::Brace, inside, _), ..] => {
                for part in inside.split(|token| token.is_mark(',')) {
                    tree(part, &at, visit);
                }
                return;
            }
            [Token::Mark(_, '*'), ..] => return visit(at, "*".to_owned()),
            [Token::Word(_, name), Token::Word(_, _), Token::Word(_, alias), ..] => {
                at.push(name.clone());
                return visit(at, alias.clone());
            }
            [Token::Word(_, name), ..] => {
                if name != "self" || at.is_empty() {
                    at.push(name.clone());
                }
                let name = at.last().cloned().unwrap_or_default();
                return visit(at, name);
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<File> =
            sources.iter().map(|(path, text)| File::new(&format!("a/src/{path}"), text)).collect();
        let graph = Graph::of(&files, "a/src/");
        graph.cycles().iter().map(|cycle| cycle.iter().map(|name| (*name).to_owned()).collect()).collect()
    }

    #[test]
    fn files_that_import_one_another_are_a_cycle() {
        let c = ("c.rs", "pub struct C;");
        for (a, b) in [
            ("use crate::b::B; pub struct A;", "use crate::a::A; pub struct B;"),
            ("use super::b; pub struct A;", "use super::{c::C, a::{self, A}}; pub struct B;"),
            ("fn f() { crate::b::f() }", "fn f(a: &[crate::a::A]) {}"),
            ("macro_rules! m { () => { $crate::b::f() } }", "mod inner { use super::super::a::A; }"),
            ("use crate::b::*;", "fn f() { use crate::a as other; }"),
        ] {
            assert_eq!(
                cycles(&[("lib.rs", "mod a; mod b; mod c;"), ("a.rs", a), ("b.rs", b), c]),
                [["a.rs", "b.rs"]],
                "{a} {b}"
            );
        }
    }

    #[test]
    fn other_imports_are_none() {
        for (a, b) in [
            ("use crate::b::B;", "use crate::c::C; pub struct B;"),
            ("use crate::b::B;", "#[cfg(test)] mod tests { use crate::a::A; }"),
            ("use crate::b::B;", "pub(in crate::a) struct B; // crate::a::A"),
            ("use crate::b::B;", "use a::A; use std::fmt;"),
        ] {
            let c = ("c.rs", "pub struct C;");
            assert_eq!(
                cycles(&[("lib.rs", "mod a; mod b; mod c;"), ("a.rs", a), ("b.rs", b), c]),
                [[""; 0]; 0],
                "{a} {b}"
            );
        }
        assert_eq!(
            cycles(&[
                ("lib.rs", "use a::A; fn f(a: A) {}"),
                ("a.rs", "use crate::f;"),
                ("bin/a.rs", "use crate::a;")
            ]),
            [["a.rs", "lib.rs"]]
        );
    }

    #[test]
    fn a_re_export_leads_to_the_definition() {
        let lib = ("lib.rs", "mod a; mod b; pub use a::A; pub use b::{self as two, B}; pub use b::*;");
        let both = [lib, ("a.rs", "use crate::B; pub struct A;"), ("b.rs", "pub struct B; pub struct D;")];
        assert_eq!(cycles(&both), [[""; 0]; 0], "a facade is in no cycle");
        for b in ["use crate::A;", "use crate::two::A; use crate::a::A;"] {
            let b = format!("pub struct B; pub struct D; {b}");
            assert_eq!(cycles(&[both[0], both[1], ("b.rs", &b)]), [["a.rs", "b.rs"]], "{b}");
            assert_eq!(
                cycles(&[both[0], ("a.rs", "use crate::D; pub struct A;"), ("b.rs", &b)]),
                [["a.rs", "b.rs"]],
                "a glob, {b}"
            );
        }
        let uses = ("lib.rs", "mod a; pub use a::A; pub struct L; fn f(a: A) {}");
        assert_eq!(
            cycles(&[uses, ("a.rs", "use crate::L; pub struct A;")]),
            [["a.rs", "lib.rs"]],
            "a facade that uses the name"
        );
        let exported = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "#[macro_export] macro_rules! m { () => { $crate::b::B } }"),
            ("b.rs", "fn f() { crate::m!() }"),
        ];
        assert_eq!(cycles(&exported), [["a.rs", "b.rs"]]);
        let inner = [
            ("lib.rs", "mod a; pub mod p { pub use crate::a::A; pub use super::L; }"),
            ("a.rs", "use crate::p::A; pub struct A;"),
        ];
        assert_eq!(cycles(&inner), [[""; 0]; 0], "a module inside a file");
        assert_eq!(
            cycles(&[("lib.rs", "pub use a::A;"), ("a.rs", "pub use crate::A;")]),
            [[""; 0]; 0],
            "a circle of re-exports"
        );
    }

    #[test]
    fn the_counts_equal_their_limits() {
        let files = [
            File::new("a/src/lib.rs", "mod b; mod c;"),
            File::new("a/src/b.rs", "use crate::c::C;"),
            File::new("a/src/c.rs", "use crate::b::B;"),
        ];
        let faults =
            |limits_: &[Limit]| limits(&files, limits_).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(faults(&[limit("a/src/", 2, 2)]), [""; 0]);
        let above = faults(&[]);
        assert!(
            above.len() == 1 && above[0].starts_with("a/src/b.rs:1: 2 files import one another"),
            "{above:?}"
        );
        let below = faults(&[limit("a/src/", 2, 3)]);
        assert!(below.len() == 1 && below[0].ends_with("lower its limits"), "{below:?}");
        assert_eq!(faults(&[limit("a/src/", 2, 2), limit("b/src/", 2, 2)]).len(), 1, "a crate without files");
    }
}
