//! The other libraries' names lead to ours in rustdoc's search: where a row's right side is one call of another name, the item
//! carries the left side's name as an alias.

use std::collections::BTreeSet;
use std::path::Path;

/// The folders whose public items stand in the tables.
const SOURCES: [&str; 2] = ["../frontend/src", "../dispatcher/src"];

/// Aliases that are also names of other items, for what the other library means by them is this one.
const MEANT: [(&str, &str, &str); 11] = [
    ("D", "IntoDims", "candle's type is here and says so"),
    ("batch_norm", "BatchNorm2d", "candle's function makes the module"),
    ("data_ptr", "as_slice_mut", "libtorch's `data_ptr<float>()` gives elements to write to"),
    ("dim", "rank", "PyTorch's `x.dim()` counts dimensions"),
    ("from_blob", "from_raw_parts", "libtorch's function takes an address and a deleter"),
    ("get", "select", "candle's name is here and says so"),
    ("long", "to_dtype", "PyTorch's name is here and says so"),
    ("max", "amax", "candle's `max(1)` gives values alone"),
    ("min", "amin", "candle's `min(1)` gives values alone"),
    ("sqr", "square", "candle's name is here and says so"),
    ("unfold", "im2col", "PyTorch's `F.unfold`; `Tensor::unfold` is its method"),
];

/// Names of devices, which no item of the frontend carries but those of `device/names.rs`.
const DEVICES: [&str; 1] = ["cuda"];

/// The name or call of an expression, and the last part of the path before it: `nn` and `Linear` of `nn.Linear(4, 3)`.
/// `None` for more than one call, operators and other expressions.
fn last_name(expression: &str) -> Option<(&str, &str)> {
    let expression = expression.trim().trim_end_matches(['?', ':', ';']);
    let expression = expression.strip_prefix("with ").unwrap_or(expression);
    let assigned = expression.split_once(" = ").filter(|(left, _)| left.starts_with("let _"));
    let expression = assigned.map_or(expression, |(_, right)| right);
    let literal = expression.strip_suffix('}').and_then(|code| code.split_once(" {"));
    let expression = match (literal, expression.strip_suffix(')')) {
        (Some((path, _)), _) => path,
        (None, Some(call)) => &call[..opening(call)?],
        (None, None) => expression,
    };
    // Type arguments: `item::<f32>`, `accessor<float, 2>`.
    let expression = expression.split_once('<').map_or(expression, |(name, _)| name).trim_end_matches("::");
    let (owner, name) = expression.rsplit_once(['.', ':'])?;
    let owner = owner.trim_end_matches(':');
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let owner_is_path = owner.split(['.', ':', '&']).all(|part| part.is_empty() || is_name(part));
    let owner = owner.rsplit(['.', ':', '&']).next()?;
    (is_name(name) && owner_is_path).then_some((owner, name))
}

/// The position of the bracket that the end of a call closes.
fn opening(call: &str) -> Option<usize> {
    let mut depth = 1;
    call.char_indices().rev().find_map(|(at, c)| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        (depth == 0).then_some(at)
    })
}

/// The names that a search may lead to: of the function, or of the type that it makes.
fn names<'a>((owner, name): (&'a str, &'a str)) -> Vec<&'a str> {
    match (owner, name) {
        (owner, name @ ("new" | "default" | "from_iter")) if is_type(owner) => vec![owner, name],
        (owner, name) if is_type(owner) => vec![name, owner],
        (_, name) => vec![name],
    }
}

/// Whether this is a type with constructors of its own; tensors are made by functions of names that say what is in them.
fn is_type(owner: &str) -> bool {
    owner.starts_with(char::is_uppercase) && owner != "Tensor"
}

/// Pairs of an alias and the item that carries it.
fn aliases() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for folder in SOURCES {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    }
    found
}

fn read(path: &Path, found: &mut BTreeSet<(String, String)>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        return entries.for_each(|entry| read(&entry.unwrap().path(), found));
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines().map(str::trim) {
        if let Some(alias) = line.strip_prefix("#[doc(alias = \"") {
            names.extend(alias.split_once('"').map(|(alias, _)| alias.to_string()));
        } else if !line.starts_with("#[") && !line.starts_with("//") && !names.is_empty() {
            let item = named(line).unwrap_or_else(|| panic!("{}: an alias of `{line}`", path.display()));
            found.extend(names.drain(..).map(|alias| (alias, item.to_string())));
        }
    }
}

/// The name of the item that a line begins to declare, also in a list of a macro: `Relu => |input| ..`.
fn named(line: &str) -> Option<&str> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    const BEFORE: [&str; 9] = ["pub", "crate", "unsafe", "const", "fn", "struct", "enum", "trait", "type"];
    words.into_iter().find(|word| !BEFORE.contains(word))
}

/// Whether the search finds ours under the other name anyway: it is the same, or begins with it. A function's name is found in
/// any case and without its underscores: `candle_nn::layer_norm` is `LayerNorm`.
fn is_found(theirs: &str, ours: &str) -> bool {
    let is_function = !theirs.contains(char::is_uppercase);
    theirs == ours
        || ours.strip_prefix(theirs).is_some_and(|rest| rest.starts_with('_'))
        || is_function && theirs.replace('_', "").eq_ignore_ascii_case(&ours.replace('_', ""))
}

/// The first form of what has a second one.
fn base(name: &str) -> &str {
    name.strip_suffix("_with").or_else(|| name.strip_suffix("_keepdim")).unwrap_or(name)
}

#[test]
fn the_search_finds_the_other_names() {
    let aliases = aliases();
    let mut missing = BTreeSet::new();
    let mut checked = 0;
    for page in crate::pages() {
        for row in page.sections.iter().flat_map(|section| &section.rows) {
            let (Some(left), Some(right)) = (last_name(row.left), last_name(row.right)) else { continue };
            checked += 1;
            let theirs = names(left)[0];
            let carried = |ours: &str| {
                let pair =
                    |theirs: &str, ours: &str| aliases.contains(&(theirs.to_string(), ours.to_string()));
                is_found(theirs, ours) || pair(theirs, ours) || pair(base(theirs), base(ours))
            };
            let ours = names(right);
            if !DEVICES.contains(&theirs) && !ours.iter().copied().any(carried) {
                missing.insert(format!("#[doc(alias = \"{theirs}\")] on `{}`, for `{}`", ours[0], row.left));
            }
        }
    }
    assert!(missing.is_empty(), "{} missing:\n{}", missing.len(), Vec::from_iter(missing).join("\n"));
    assert!(checked > 400, "{checked} rows with one call on each side");
}

/// The tensors' methods, and the types; what options have is left out.
fn items() -> BTreeSet<String> {
    fn read(path: &Path, found: &mut BTreeSet<String>) {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            return entries.for_each(|entry| read(&entry.unwrap().path(), found));
        }
        let of_tensors = ["ops", "tensor", "tensor.rs", "deprecated.rs"]
            .iter()
            .any(|of| path.components().any(|part| part.as_os_str() == *of));
        let methods = of_tensors && path.file_stem().is_some_and(|stem| stem != "options");
        for line in std::fs::read_to_string(path).unwrap().lines().map(str::trim) {
            let of_type =
                ["pub struct ", "pub enum ", "pub trait "].iter().any(|word| line.starts_with(word));
            let of_options = line.contains("(self") || line.contains("(mut self");
            if of_type || methods && line.starts_with("pub fn ") && !of_options {
                found.extend(named(line).map(str::to_string));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../frontend/src");
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(root.join("ops")).unwrap().map(|entry| entry.unwrap().path()) {
        // Files next to the families define no op.
        if entry.is_dir() {
            read(&entry, &mut found);
        }
    }
    for part in ["autograd", "data", "deprecated.rs", "io", "nn", "optim", "profiler", "rng", "tensor"] {
        read(&root.join(part), &mut found);
    }
    found
}

#[test]
fn no_alias_leads_away_from_the_item_of_its_name() {
    let (items, aliases) = (items(), aliases());
    for name in ["hstack", "exp2", "masked_scatter", "Linear", "Module", "to_vec"] {
        assert!(items.contains(name), "{name}");
    }
    let meant = |alias: &str, item: &str| MEANT.iter().any(|(a, i, _)| (*a, *i) == (alias, item));
    let second_form =
        |alias: &str, item: &str| item.strip_prefix(alias).is_some_and(|rest| rest.starts_with('_'));
    let wrong: Vec<_> = aliases
        .iter()
        .filter(|(alias, item)| items.contains(alias) && !second_form(alias, item) && !meant(alias, item))
        .collect();
    assert!(wrong.is_empty(), "these have items of their own: {wrong:?}");
    for (alias, item, why) in MEANT {
        let there = aliases.contains(&(alias.to_string(), item.to_string())) && items.contains(alias);
        assert!(there, "`{alias}` for `{item}` ({why}) is no exception any more");
    }
}

#[test]
fn names_of_what_is_composed_here_are_found() {
    let aliases = aliases();
    for (theirs, ours) in [
        ("tolist", "to_vec"),
        ("numpy", "to_vec"),
        ("to_vec0", "item"),
        ("byte", "to_dtype"),
        ("char", "to_dtype"),
        ("short", "to_dtype"),
        ("ndimension", "rank"),
        ("swapdims", "transpose"),
        ("split_with_sizes", "split_sizes"),
        ("to_sparse_coo", "to_sparse"),
        ("nbytes", "bytes"),
        ("get_device", "device"),
        ("is_cpu", "device"),
        ("same_device", "device"),
        ("is_signed", "integer_range"),
        ("new_tensor", "new"),
        ("affine", "mul"),
        ("slice_assign", "copy_"),
        ("get_rng_state", "state"),
        ("set_rng_state", "set_state"),
        ("VarMap", "StateDict"),
        ("VarBuilder", "load_state_dict"),
        ("ModuleT", "Module"),
        ("IndexOp", "IntoIndices"),
        ("D", "IntoDims"),
        ("GradStore", "grad"),
    ] {
        assert!(aliases.contains(&(theirs.to_string(), ours.to_string())), "`{theirs}` for `{ours}`");
    }
}

#[test]
fn names_are_read_from_code() {
    for (code, name) in [
        ("torch.sum(x, dim=(0, 2))", Some("sum")),
        ("x[0].t()", None),
        ("a + b", None),
        ("with torch.no_grad():", Some("no_grad")),
        ("Tensor::zeros((2, 3))?", Some("zeros")),
        ("x.get(0)?.get(0)?", None),
        ("x.accessor<float, 2>()", Some("accessor")),
    ] {
        assert_eq!(last_name(code).map(|(_, name)| name), name, "{code}");
    }
    for (code, found) in [
        ("nn::Relu", vec!["Relu"]),
        ("nn::MseLoss::default()", vec!["MseLoss", "default"]),
        ("nn::Linear::without_bias(4, 3)?", vec!["without_bias", "Linear"]),
        ("nn::LeakyRelu { slope: 0.2 }", vec!["LeakyRelu"]),
        ("Tensor::new([1.0f32])?", vec!["new"]),
        ("let _off = keyway::no_grad();", vec!["no_grad"]),
        ("x.i(0)?.fill_(5.0)?", vec![]),
        ("(&a + &b)?", vec![]),
    ] {
        assert_eq!(last_name(code).map(names).unwrap_or_default(), found, "{code}");
    }
    assert_eq!(named("pub fn sum<'a>(&'a self)"), Some("sum"));
    assert_eq!(named("Relu => |input| input.relu();"), Some("Relu"));
}
