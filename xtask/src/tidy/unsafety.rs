//! `unsafe` is allowed only in the listed modules.
//!
//! Clippy checks that each block has a `SAFETY` comment (`undocumented_unsafe_blocks`).

use super::Violation;
use super::source::File;

/// Crates without `unsafe`, by folder.
const FORBIDDEN: &[&str] = &["frontend", "frontend-tests", "conformance", "cli", "xtask", "benches"];
/// Modules and folders of the other crates that may contain `unsafe`.
const HOMES: &[&str] = &[
    "abi",
    "abi-root",
    "author",
    "blas",
    "dnn",
    "capture",
    "cpu-conv",
    "cpu-loops",
    "device",
    "devices",
    "driver",
    "dtype",
    "holder",
    "host",
    "invoke",
    "kernels",
    "libraries",
    "loader",
    "loader_support",
    "marshal",
    "math",
    "memory",
    "raw",
    "services",
];
/// Folders that the rule skips: bindings to another language, and plugins that simulate devices, are `unsafe` throughout;
/// the examples are third-party code for this purpose.
const EXEMPT: &[&str] = &["examples", "python", "test-plugins"];
/// Tests that call an unsafe function as the owner would, such as for a stream, foreign memory, or a fork.
const VOUCHING: &[&str] = &[
    "frontend-tests/tests/fork.rs",
    "frontend-tests/tests/rehearsal_transfers.rs",
    "frontend-tests/tests/storage_device.rs",
    "frontend-tests/tests/storage_foreign.rs",
];

/// Checks every Rust source.
pub fn check(files: &[File]) -> Vec<Violation> {
    files
        .iter()
        .filter(|file| {
            file.is_rust() && !EXEMPT.contains(&file.top()) && !VOUCHING.contains(&file.path.as_str())
        })
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let forbidden = FORBIDDEN.contains(&file.top());
    if !forbidden && file.names().any(|name| HOMES.contains(&name)) {
        return Vec::new();
    }
    let (what, mend) = if forbidden {
        ("`unsafe` in a crate that forbids it", "call a safe function of the dispatcher or the SDK")
    } else {
        ("`unsafe` outside its modules", "move it into one of those that xtask/src/tidy/unsafety.rs lists")
    };
    let lines = file.tokens().map(|tokens| tokens.lines_of("unsafe")).unwrap_or_default();
    lines.into_iter().map(|line| Violation::new(&file.path, line, what, mend)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&[File::new(path, text)]).iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn unsafe_is_found_outside_its_modules() {
        let text = "fn a() {}\nfn b() { unsafe { c() } }\nunsafe impl Send for D {}\n#[unsafe(no_mangle)]";
        assert_eq!(lines("dispatcher/src/call.rs", text), [2, 3, 4]);
        assert_eq!(lines("dispatcher/src/loader.rs", text), [0; 0]);
        assert_eq!(lines("backend-cpu/src/kernels/add.rs", text), [0; 0]);
        assert_eq!(lines("plugin-sdk/src/abi/op.rs", text), [0; 0]);
        assert_eq!(lines("python/src/lib.rs", text), [0; 0]);
    }

    #[test]
    fn some_crates_have_none_anywhere() {
        assert_eq!(lines("frontend/src/memory.rs", "unsafe {}"), [1]);
        assert_eq!(lines("cli/src/main.rs", "fn a() {}\nunsafe {}"), [2]);
    }

    #[test]
    fn words_in_comments_strings_and_lints_do_not_count() {
        let text =
            "#![forbid(unsafe_code)]\n// unsafe\n/* unsafe */\nlet a = \"unsafe\";\nlet b = r#\"unsafe\"#;";
        assert_eq!(lines("frontend/src/lib.rs", text), [0; 0]);
    }
}
