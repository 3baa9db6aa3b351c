//! Writes three tables for the ops: the documentation of each, collected from its source file, for `OpDef::documentation`; the
//! meanings of its arguments, from the list in the head of the file, for `OpDef::argument`; and the parts of the decompositions, from `src/ops/parts.txt`, for `OpDef::parts`.
//!
//! An op is defined once: the text that rustdoc shows above its method is the text that a program shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let ops = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src/ops");
    println!("cargo::rerun-if-changed={}", ops.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("op_parts.rs"), parts(&fs::read_to_string(ops.join("parts.txt"))?))?;
    let (mut table, mut arguments) = (BTreeMap::new(), BTreeMap::new());
    for family in sorted(&ops)?.iter().filter(|path| path.is_dir()) {
        let mut files = Vec::new();
        for path in sorted(family)? {
            files.push(fs::read_to_string(path)?);
        }
        for file in &files {
            for name in defined(file) {
                // Some methods are declared beside other ones of the family; internal ops have no method.
                let method = format!("pub fn {name}");
                let mut texts = std::iter::once(file).chain(&files).filter_map(|text| above(text, &method));
                let text = texts.next().or_else(|| above(file, "pub static DEF")).unwrap_or_default();
                table.insert(name.to_string(), text);
                arguments.insert(name.to_string(), described(file));
            }
        }
    }
    let rows: Vec<String> = arguments
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("({name:?}, &{list:?}),\n"))
        .collect();
    fs::write(out.join("op_arguments.rs"), format!("&[\n{}]", rows.concat()))?;
    let rows: Vec<String> = table.iter().map(|(name, text)| format!("({name:?}, {text:?}),\n")).collect();
    fs::write(out.join("op_documentation.rs"), format!("&[\n{}]", rows.concat()))
}

/// The table of the recorded parts: an array of `(op, parts)`.
fn parts(recorded: &str) -> String {
    let part = |part: &str| match part.split_once(':') {
        None => format!("Part::new({part:?}), "),
        Some((op, "widened")) => format!("Part::widened({op:?}), "),
        Some((op, dtype)) => {
            format!("Part::fixed({op:?}, keyway_dispatcher::DType::{}), ", dtype.to_uppercase())
        }
    };
    let row = |line: &str| {
        let (op, parts) = line.split_once(' ').unwrap_or((line, ""));
        format!("({op:?}, &[{}]),\n", parts.split_whitespace().map(part).collect::<String>())
    };
    format!("&[\n{}]", recorded.lines().map(row).collect::<String>())
}

/// The entries of a folder, by name.
fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The names of the ops whose schema is a string literal of the file: `"name(parameters) -> results"`. A default of text ends
/// the piece at its escaped quotation mark.
fn defined(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for literal in text.split('"').skip(1).step_by(2) {
        if let Some((name, rest)) = literal.split_once('(')
            && (rest.contains(") -> ") || rest.ends_with('\\'))
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        {
            names.push(name);
        }
    }
    names
}

/// The list of arguments in the head of a file: names and meanings, without the full stop.
fn described(text: &str) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    for line in head.skip_while(|line| *line != " Arguments:").skip(1) {
        if let Some((name, meaning)) = line.strip_prefix(" - `").and_then(|rest| rest.split_once("`: ")) {
            list.push((name.to_string(), meaning.to_string()));
        } else if let (Some(more), Some((_, meaning))) = (line.strip_prefix("   "), list.last_mut()) {
            *meaning += &format!(" {more}");
        } else {
            break;
        }
    }
    list.iter_mut().for_each(|(_, meaning)| *meaning = meaning.trim_end_matches('.').to_string());
    list
}

/// The documentation above an item, `None` without one.
fn above(text: &str, item: &str) -> Option<String> {
    let start = text.match_indices(item).map(|(start, _)| start).find(|start| {
        !text[start + item.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    })?;
    let lines = text[..start].trim_end_matches(' ').lines().rev().map(str::trim_start);
    let mut lines: Vec<&str> = lines
        .take_while(|line| line.starts_with("///") || line.starts_with("#["))
        .filter_map(|line| line.strip_prefix("///"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
