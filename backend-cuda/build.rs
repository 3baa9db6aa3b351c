//! Generates the registrations from the lines in `kernels/*.cu`, and the list of the images.
//!
//! A line is `MACRO(kernel, "signature", host, DTYPES, ..)`, or `REGISTER(op, "signature", host, DTYPES)`, or
//! `REGISTER_ALLOCATING` if the host function allocates the outputs, or `REGISTER_COO` if it does so for COO tensors: the
//! arguments after the dtypes are C++. A line with an empty signature registers nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The lowest chip that images are for. A file that begins with `// targets: ` names those of its images; one with an `a` is for
/// that chip alone.
const TARGET: &str = "compute_75";

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=images");
    if let Err(reason) = make() {
        println!("cargo::error={reason}");
    }
}

fn make() -> Result<(), String> {
    let root =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets no CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    let header = text(&root.join("kernels/keyway.cuh"))?;
    let mut images = String::new();
    let mut count = 0;
    for (family, path) in families(&root.join("kernels"))? {
        let source = text(&path)?;
        // A family may have lists of its own.
        let lists = lists(&format!("{header}\n{source}"));
        write(&out.join(format!("{family}.rs")), &registrations(&family, &source, &lists)?)?;
        let named =
            source.lines().next().and_then(|line| line.strip_prefix("// targets: ")).unwrap_or(TARGET);
        for target in named.split_whitespace() {
            let image = root.join(format!("images/{family}.{target}.ptx.z"));
            if !image.is_file() {
                return Err(format!("{} is not there; run `cargo xtask cuda images`", image.display()));
            }
            let chip = target.trim_start_matches("compute_");
            let chips = match chip.strip_suffix('a') {
                Some(one) => format!("Chips::Only({one})"),
                None => format!("Chips::From({chip})"),
            };
            let path = image.display().to_string();
            let _ = writeln!(images, "    ({family:?}, {chips}, include_bytes!({path:?})),");
            count += 1;
        }
    }
    write(&out.join("images.rs"), &format!("const IMAGES: [Image; {count}] = [\n{images}];\n"))
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The kernel files, by the name of their family.
fn families(folder: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_string(), path)))
        .collect())
}

/// The dtypes of each list: `#define FLOATS(M, x) M(f16, ..) .. OTHERS(M, x)`.
fn lists(header: &str) -> BTreeMap<String, Vec<String>> {
    let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in header.lines() {
        let Some((name, rest)) = line.strip_prefix("#define ").and_then(|line| line.split_once("(M, x) "))
        else {
            continue;
        };
        let mut dtypes = Vec::new();
        for part in rest.split(')') {
            match part.trim().split_once('(') {
                Some(("M", arguments)) => {
                    dtypes.extend(arguments.split(',').next().map(|dtype| dtype.trim().to_string()));
                }
                Some((other, _)) => dtypes.extend(lists.get(other).cloned().unwrap_or_default()),
                None => {}
            }
        }
        lists.insert(name.to_string(), dtypes);
    }
    lists
}

fn registrations(
    family: &str,
    source: &str,
    lists: &BTreeMap<String, Vec<String>>,
) -> Result<String, String> {
    let mut made = String::new();
    for (number, line) in source.lines().enumerate() {
        let Some((name, rest)) = line.split_once('(') else { continue };
        let is_macro = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let mut parts = rest.splitn(5, ',').map(|part| part.trim().trim_end_matches(')'));
        let (Some(op), Some(signature), Some(host), Some(dtypes)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let Some(signature) = signature.strip_prefix('"').and_then(|s| s.strip_suffix('"')) else { continue };
        if !is_macro || signature.is_empty() {
            continue;
        }
        let dtypes = lists
            .get(dtypes)
            .ok_or_else(|| format!("kernels/{family}.cu:{}: `{dtypes}` is no list of dtypes", number + 1))?;
        let (layout, flags) = match name {
            "REGISTER_COO" => ("sparse_coo", ", allocates"),
            "REGISTER_ALLOCATING" => ("strided", ", allocates"),
            _ => ("strided", ""),
        };
        let _ = writeln!(
            made,
            "register!({op:?}, {signature:?}, {family:?}, {layout:?}, {host}, [{}]{flags});",
            dtypes.join(", ")
        );
    }
    Ok(made)
}
