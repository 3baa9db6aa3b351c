//! An error about what a caller did wrong begins with the name of the function that was called, not with that of an op which the
//! function is composed of; and a function that is new here has a wrong call in these tables.

use keyway::ops::build::build;
use keyway::{DType, Result, Tensor};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

type Call = Box<dyn Fn() -> Result<()>>;
type Table = Vec<(&'static str, Vec<Call>)>;

/// `name: wrong call, wrong call; ..`
macro_rules! table {
    ($($name:ident: $($call:expr),+;)*) => {
        vec![$((stringify!($name), vec![$(Box::new(|| ($call).map(drop)) as Call),+])),*]
    };
}

mod computed;
mod factored;
mod images;
mod layers;
mod made;
mod placed;

fn of(sizes: &[usize], dtype: DType) -> Tensor {
    Tensor::ones_with(sizes, dtype).unwrap()
}

/// Floats.
fn f(sizes: &[usize]) -> Tensor {
    of(sizes, DType::F32)
}

/// Integers.
fn l(sizes: &[usize]) -> Tensor {
    of(sizes, DType::I64)
}

/// Bools.
fn b(sizes: &[usize]) -> Tensor {
    of(sizes, DType::BOOL)
}

/// A leaf, which must not be changed in place.
fn leaf(sizes: &[usize]) -> Tensor {
    f(sizes).requires_grad_(true).unwrap()
}

/// More elements than an address can count, in a view of one.
fn wide() -> Tensor {
    f(&[1]).expand(1usize << 50).unwrap()
}

/// Options that contradict each other.
fn two() -> (DType, DType) {
    (DType::F32, DType::F64)
}

/// Indices that are out of range.
fn far() -> Tensor {
    l(&[2]).mul(9).unwrap()
}

const FAR: usize = usize::MAX;

/// Errors about insufficient memory or a missing device belong to no function.
const WITHOUT_NAME: [&str; 3] = ["out of memory on ", "no backend for device ", "device "];

/// The function without the suffix of a form, which the op's messages do not have.
fn without_form(name: &str) -> &str {
    let forms = ["_with_", "_with", "_keepdim", "_all", "_out", "_"];
    forms.iter().find_map(|form| name.strip_suffix(form)).unwrap_or(name)
}

/// The error in the message of a call, if any.
fn fault(name: &str, call: &Call) -> Option<String> {
    let text = match catch_unwind(AssertUnwindSafe(call)) {
        Err(_) => return Some(format!("{name}: a panic")),
        Ok(Ok(())) => return Some(format!("{name}: no error")),
        Ok(Err(error)) => error.to_string(),
    };
    let begins = |name: &str| text.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', ' ']));
    println!("{name} | {text}");
    let named = begins(name)
        || begins(without_form(name))
        || WITHOUT_NAME.iter().any(|begin| text.starts_with(begin));
    // A caller of an in-place function passed no `out`.
    let given = name.ends_with("_out") || !text.contains("`out`");
    if named && given { None } else { Some(format!("{name} | {text}")) }
}

fn check(tables: &[(&'static str, Vec<Call>)]) {
    let all = tables.iter().flat_map(|(name, calls)| calls.iter().map(move |call| fault(name, call)));
    let faults: Vec<String> = all.flatten().collect();
    let calls: usize = tables.iter().map(|(_, calls)| calls.len()).sum();
    println!("{} functions, {calls} calls", tables.len());
    assert!(faults.is_empty(), "{} calls:\n{}", faults.len(), faults.join("\n"));
}

/// Functions whose errors name the file.
const FILES: &[&str] = &["load", "save"];

/// Functions that refuse no strided tensor of a built-in dtype, and no scalar.
const NEVER: &[&str] = &[
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "clone",
    "components",
    "contiguous",
    "copy",
    "deg2rad",
    "equal",
    "exp2",
    "flipud",
    "from_dlpack",
    "from_ndarray",
    "hardshrink",
    "hardsigmoid",
    "isneginf",
    "isposinf",
    "logsigmoid",
    "long",
    "output_size",
    "rad2deg",
    "real",
    "relu6",
    "signbit",
    "sinc",
    "softsign",
    "sqr",
    "storage",
    "tanhshrink",
    "to_dense",
    "to_strided",
    "unique_consecutive",
    "unique_consecutive_all",
];

fn tables() -> Table {
    let parts = [
        made::created(),
        made::read(),
        placed::shaped(),
        placed::indexed(),
        computed::reduced(),
        computed::multiplied(),
        factored::factored(),
        computed::element_wise(),
        images::images(),
        layers::functions(),
        layers::layers(),
    ];
    parts.into_iter().flatten().collect()
}

#[test]
fn an_error_begins_with_the_name_that_was_called() {
    check(&tables());
}

/// The entries of the op table, as calls that must fail.
#[test]
fn an_error_of_an_op_begins_with_its_name() {
    let mut faults = Vec::new();
    for def in keyway::ops::all() {
        for sample in (def.errors)() {
            let Ok(built) = build(&sample.args, DType::F32, 0) else { continue };
            let Err(error) = built.call(def, &built.tensors) else { continue };
            let (text, name) = (error.to_string(), def.name());
            if !text.starts_with(&format!("{name}:"))
                && !WITHOUT_NAME.iter().any(|begin| text.starts_with(begin))
            {
                faults.push(format!("{name} | {text}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The functions of these folders that return a `Result`, found in the text of their files.
fn written(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("\n    pub fn ") {
            let rest = &text[at + "\n    pub fn ".len()..];
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let signature = &rest[..rest.find(['{', ';']).unwrap_or(rest.len())];
            // The methods of an op's declaration state no result.
            let nothing = signature.trim_end().ends_with(')') && rest[signature.len()..].starts_with('{');
            let result = signature.contains("Result<") || !signature.contains("->") && !nothing;
            if result && !name.is_empty() {
                names.insert(name);
            }
        }
    }
}

#[test]
fn each_function_has_a_wrong_call() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../frontend/src");
    let mut names = BTreeSet::new();
    for family in std::fs::read_dir(source.join("ops")).unwrap() {
        let family = family.unwrap().path();
        if family.is_dir() {
            written(&family, &mut names);
        }
    }
    written(&source.join("tensor"), &mut names);
    let called = tables();
    let known = |name: &str| {
        called.iter().any(|(has, _)| *has == name || without_form(has) == name)
            || NEVER.contains(&name)
            || FILES.contains(&name)
    };
    let is_op = |name: &str| keyway::ops::all().any(|def| def.name() == name);
    let missing = |name: &&String| {
        !known(name) && !known(without_form(name)) && !is_op(without_form(name)) && !is_op(name)
    };
    let missing: Vec<&str> = names.iter().filter(missing).map(String::as_str).collect();
    println!("{} functions", names.len());
    assert!(missing.is_empty(), "no wrong call in the tables of this file for {}", missing.join(", "));
}
