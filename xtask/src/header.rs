//! `cargo xtask header`: generates `plugin-sdk/include/keyway.h` from the Rust definitions of the contract.
//!
//! Each structure, function type, constant and comment is that of `plugin-sdk/src/abi`; the parts for C alone, the macros for
//! the manifest and the kernels' records, are in `header/before.h` and `header/after.h`. A test of this file compares the
//! committed header with the sources, and a test of the SDK compares it with the compiler's sizes.

mod declare;

use crate::failure::{Failure, Result};
use crate::workspace::Workspace;
use declare::Names;
use std::fmt::Write as _;
use std::path::Path;
use syn::{Attribute, Expr, Fields, GenericArgument, Item, ItemStruct, Lit, Meta, PathArguments, Type};

/// The path of the header.
pub const HEADER: &str = "plugin-sdk/include/keyway.h";

/// The sources, ordered so that each follows those whose structures it contains by value.
const SOURCES: [&str; 12] = [
    "mod.rs",
    "codes.rs",
    "tensor.rs",
    "host.rs",
    "device.rs",
    "extension.rs",
    "layout.rs",
    "dtype.rs",
    "op.rs",
    "interposer.rs",
    "preference.rs",
    "plugin.rs",
];

const BEFORE: &str = include_str!("header/before.h");
const AFTER: &str = include_str!("header/after.h");

/// Generates the header.
pub fn run(workspace: &Workspace) -> Result<()> {
    let path = workspace.path(HEADER);
    let text = text(workspace)?;
    if std::fs::read_to_string(&path).is_ok_and(|present| present == text) {
        println!("{HEADER} is up to date");
        return Ok(());
    }
    std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(Failure::file("make", &path))?;
    std::fs::write(&path, text).map_err(Failure::file("write", &path))?;
    println!("{HEADER} is written");
    Ok(())
}

/// The header generated from the sources.
fn text(workspace: &Workspace) -> Result<String> {
    let folder = workspace.path("plugin-sdk/src/abi");
    let mut files = Vec::new();
    for name in SOURCES {
        let path = folder.join(name);
        let source = std::fs::read_to_string(&path).map_err(Failure::file("read", &path))?;
        let parsed = syn::parse_file(&source)
            .map_err(|error| Failure::NoC { file: path.clone(), what: error.to_string() })?;
        files.push((path, parsed));
    }
    let names = Names::of(files.iter().flat_map(|(_, file)| &file.items));
    let mut out = BEFORE.to_string();
    for name in names.structures() {
        let _ = writeln!(out, "typedef struct {name} {name};");
    }
    for (path, file) in &files {
        let mut part = String::new();
        for item in &file.items {
            of_item(item, "", &names, path, &mut part)?;
        }
        let title = path.file_stem().unwrap_or_default().to_string_lossy();
        // The page of the first file is about the Rust modules.
        if title != "mod" {
            comment(&docs(&file.attrs), None, "", &names, &mut out);
        }
        out.push_str(&part);
    }
    out.push_str(AFTER);
    Ok(out)
}

/// The C declaration of one item; empty for items that only Rust has.
fn of_item(item: &Item, module: &str, names: &Names, path: &Path, out: &mut String) -> Result<()> {
    let declared = |declared: std::result::Result<String, String>| {
        declared.map_err(|what| Failure::NoC { file: path.to_path_buf(), what })
    };
    match item {
        Item::Mod(inner) => {
            let Some((_, items)) = &inner.content else { return Ok(()) };
            comment(&docs(&inner.attrs), None, "", names, out);
            let module = format!("{}_", inner.ident.to_string().to_uppercase());
            items.iter().try_for_each(|item| of_item(item, &module, names, path, out))
        }
        Item::Const(constant) => {
            let Expr::Lit(value) = &*constant.expr else { return Ok(()) };
            let Lit::Int(value) = &value.lit else { return Ok(()) };
            let text = docs(&constant.attrs);
            if module.is_empty() {
                comment(&text, None, "", names, out);
                let _ = writeln!(out, "#define KEYWAY_{} {value}", constant.ident);
            } else {
                for line in &text {
                    let _ = writeln!(out, "/* {} */", names.translated(line));
                }
                let _ = writeln!(out, "#define KEYWAY_{module}{} {value}", constant.ident);
            }
            Ok(())
        }
        Item::Type(alias) => {
            comment(&docs(&alias.attrs), None, "", names, out);
            let name = names.of_type(&alias.ident.to_string());
            let _ = writeln!(out, "typedef {};", declared(names.declaration(&alias.ty, &name))?);
            Ok(())
        }
        Item::Struct(structure) if structure.generics.params.is_empty() => {
            of_structure(structure, names, path, out)
        }
        _ => Ok(()),
    }
}

fn of_structure(structure: &ItemStruct, names: &Names, path: &Path, out: &mut String) -> Result<()> {
    let Fields::Named(fields) = &structure.fields else { return Ok(()) };
    for field in &fields.named {
        if let Some(element) = list_of(&field.ty) {
            let list = names.of_list(&element);
            let element = names.of_type(&element);
            let text = [format!("Pointers that the plugin keeps for the life of the process: to {element}.")];
            comment(&text, None, "", names, out);
            let _ = writeln!(
                out,
                "typedef struct {list} {{\n    const {element} *const *items;\n    size_t len;\n}} {list};"
            );
        }
    }
    comment(&docs(&structure.attrs), None, "", names, out);
    let _ = writeln!(out, "struct {} {{", names.of_type(&structure.ident.to_string()));
    for field in &fields.named {
        let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        let optional = declare::optional(&field.ty).map(|_| "May be NULL.");
        comment(&docs(&field.attrs), optional, "    ", names, out);
        let line = names
            .declaration(&field.ty, &name)
            .map_err(|what| Failure::NoC { file: path.to_path_buf(), what })?;
        write_wrapped(&format!("{line};"), out);
    }
    out.push_str("};\n");
    Ok(())
}

/// Limit on the columns of a line of the header.
const WIDTH: usize = 116;

/// Writes a declaration inside a structure, wrapped between its arguments if it is long.
fn write_wrapped(declaration: &str, out: &mut String) {
    let mut line = "    ".to_string();
    for (index, part) in declaration.split(", ").enumerate() {
        if index > 0 {
            line.push(',');
            if line.len() + 1 + part.len() + 1 > WIDTH {
                let _ = writeln!(out, "{line}");
                line = " ".repeat(8);
            } else {
                line.push(' ');
            }
        }
        line.push_str(part);
    }
    let _ = writeln!(out, "{line}");
}

/// The `T` of a `RawList<T>`.
fn list_of(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "RawList")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(Type::Path(element))) => {
            element.path.segments.last().map(|segment| segment.ident.to_string())
        }
        _ => None,
    }
}

/// The lines of a doc comment.
fn docs(attributes: &[Attribute]) -> Vec<String> {
    let text = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(value) => match &value.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    text.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_string()).collect()
}

/// Appends a declaration's comment, translated to C names.
fn comment(lines: &[String], more: Option<&str>, indent: &str, names: &Names, out: &mut String) {
    let mut text = names.translated(&lines.join("\n"));
    if let Some(more) = more {
        let last = text.lines().last().unwrap_or_default().len();
        text.push(if last + more.len() < WIDTH - 10 { ' ' } else { '\n' });
        text.push_str(more);
    }
    let lines: Vec<&str> = text.lines().collect();
    match lines[..] {
        [] => {}
        [line] => {
            let gap = if indent.is_empty() { "\n" } else { "" };
            let _ = writeln!(out, "{gap}{indent}/* {line} */");
        }
        _ => {
            if indent.is_empty() {
                out.push('\n');
            }
            for (index, line) in lines.iter().enumerate() {
                let begin = if index == 0 { "/*" } else { " *" };
                let end = if index + 1 == lines.len() { " */" } else { "" };
                let space = if line.is_empty() { "" } else { " " };
                let _ = writeln!(out, "{indent}{begin}{space}{line}{end}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_header_is_that_of_the_sources() {
        let workspace = Workspace::find().expect("the repository");
        let present = std::fs::read_to_string(workspace.path(HEADER)).expect("the header");
        let current = text(&workspace).expect("a header");
        let differs = present.lines().zip(current.lines()).enumerate().find(|(_, (a, b))| a != b);
        assert!(differs.is_none(), "run `cargo xtask header`: {differs:?}");
        assert_eq!(present, current, "run `cargo xtask header`");
    }

    #[test]
    fn every_structure_of_the_contract_is_there() {
        let workspace = Workspace::find().expect("the repository");
        let text = text(&workspace).expect("a header");
        for part in [
            "struct KeywayTensor {",
            "struct KeywayDeviceApi {",
            "typedef int32_t (*KeywayKernelFn)(const KeywayCall *call);",
            "    const KeywayTensor *const *components;",
            "    int32_t (*stream_create)(uint32_t index, KeywayQueue *out);",
            "    uint32_t (*num_threads)(void);",
            "    KeywayKernelList kernels;",
            "#define KEYWAY_STATUS_UNSUPPORTED 2",
            "#define KEYWAY_ABI_MAX 1",
        ] {
            assert!(text.contains(part), "`{part}` is missing");
        }
        for rust in ["Raw", "u16::MAX", "super::", "Option", "](", "`None`"] {
            assert!(
                !text.contains(rust),
                "Rust's `{rust}` is left in {:?}",
                text.lines().find(|l| l.contains(rust))
            );
        }
    }
}
