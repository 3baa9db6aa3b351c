//! Takes the hash of the suite's sources, so that a certificate of other cases, tolerances or oracles is known for one.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=src");
    match hash() {
        Ok(hash) => println!("cargo::rustc-env=KEYWAY_SUITE_SOURCES={hash:016x}"),
        Err(reason) => println!("cargo::error={reason}"),
    }
}

fn hash() -> Result<u64, String> {
    let root =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets no CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files)?;
    files.sort();
    // FNV-1a: a user who may write one certificate can write any, so a collision is of no use.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut take = |bytes: &[u8]| {
        for byte in bytes.iter().chain(&[0]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for file in files {
        let name = file.strip_prefix(&root).map_err(|error| error.to_string())?;
        take(name.to_string_lossy().as_bytes());
        take(&std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    Ok(hash)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
