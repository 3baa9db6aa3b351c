//! What the sources must not know: the dispatcher names no op, the frontend names no concrete device.

use super::Violation;
use super::source::File;
use super::tokens::Tokens;
use std::collections::BTreeSet;

/// Where ops are defined, one file each: `frontend/src/ops/<family>/<op>.rs`.
const OPS: &str = "frontend/src/ops/";
/// Op names that the dispatcher may write, because it means something else by them.
const NOT_AN_OP: &[&str] = &["index", "max", "min", "view"];
/// Names of devices that plugins bring.
const DEVICES: &[&str] = &[
    "cuda", "hip", "metal", "mps", "npu", "opencl", "rocm", "sycl", "tpu", "vulkan", "webgpu", "wgpu", "xpu",
];
/// The name of host memory, which exists with no plugin at all.
const HOST: &str = "cpu";
/// The only modules of the frontend that may name host memory.
const HOST_MEMORY: &[&str] = &["frontend/src/ops/memory/to_device.rs"];
/// How the names of backends' packages and libraries begin.
const BACKEND_PREFIXES: &[&str] = &["keyway-backend-", "keyway_backend_"];

/// Checks both absences.
pub fn check(files: &[File]) -> Vec<Violation> {
    let ops = op_names(files);
    let mut found = Vec::new();
    if ops.is_empty() {
        let what = "no op files were found, so nothing can be compared with the dispatcher's names";
        found.push(Violation::new(OPS, 1, what, "define ops in `frontend/src/ops/<family>/<op>.rs`"));
    }
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        if file.path.starts_with("dispatcher/src/") {
            found.extend(literals(file).filter_map(|(line, text)| op(file, line, text, &ops)));
        } else if file.path.starts_with("frontend/src/") {
            found.extend(literals(file).filter_map(|(line, text)| device(file, line, text)));
        }
    }
    found
}

/// The stems of the op files.
fn op_names(files: &[File]) -> BTreeSet<&str> {
    let stems = files.iter().filter_map(|file| {
        let (_, name) = file.path.strip_prefix(OPS)?.split_once('/')?;
        name.strip_suffix(".rs").filter(|stem| *stem != "mod" && *stem != "tests" && !stem.contains('/'))
    });
    stems.collect()
}

/// The string literals outside tests.
fn literals(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.tokens().map(Tokens::literals).unwrap_or_default().into_iter()
}

fn op(file: &File, line: usize, text: &str, ops: &BTreeSet<&str>) -> Option<Violation> {
    (ops.contains(text) && !NOT_AN_OP.contains(&text)).then(|| {
        let what = format!("the dispatcher names the op `{text}`");
        let mend =
            "pass the op's schema in, or list the word in xtask/src/tidy/absences.rs if it is not the op";
        Violation::new(&file.path, line, what, mend)
    })
}

fn device(file: &File, line: usize, text: &str) -> Option<Violation> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let indexed =
        text.len() == name.len() || text[name.len() + 1..].chars().all(|c| c.is_ascii_digit() || c == '{');
    let host = name == HOST && !HOST_MEMORY.contains(&file.path.as_str());
    let backend = BACKEND_PREFIXES.iter().any(|prefix| text.contains(prefix));
    (backend || (indexed && (host || DEVICES.contains(&name)))).then(|| {
        let what = format!("the frontend names a concrete device or backend in {text:?}");
        Violation::new(
            &file.path,
            line,
            what,
            "take the device from an argument; host memory has its own module",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<usize> {
        let add = File::new("frontend/src/ops/binary/add.rs", "");
        let list = File::new("frontend/src/ops/binary/mod.rs", "");
        check(&[add, list, File::new(path, text)]).iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn the_dispatcher_names_no_op() {
        let text = "// \"add\"\nlet a = \"add\";\nlet b = \"added\";\nlet c = \"mod\";\n#[cfg(test)]\nmod t { f(\"add\"); }";
        assert_eq!(faults("dispatcher/src/table.rs", text), [2]);
        assert_eq!(faults("dispatcher/tests/table.rs", text), [0; 0]);
        assert_eq!(faults("backend-cpu/src/lib.rs", text), [0; 0]);
    }

    #[test]
    fn without_op_files_the_rule_says_so() {
        assert_eq!(check(&[File::new("dispatcher/src/table.rs", "\"add\"")]).len(), 1);
    }

    #[test]
    fn the_frontend_names_no_device() {
        let text = "/// `\"cuda:0\"`\nf(\"cuda\");\nf(\"cuda:1\");\nf(\"cpu\");\nf(\"a cpu\");\n\
                    f(\"install keyway-backend-cpu\");\nf(\"cuda: not there\");\n#[cfg(test)]\nmod t { f(\"cpu\"); }";
        assert_eq!(faults("frontend/src/nn/linear.rs", text), [2, 3, 4, 6]);
        assert_eq!(faults(HOST_MEMORY[0], "f(\"cpu\");\nf(\"cuda\");"), [2]);
        assert_eq!(faults("cli/src/main.rs", text), [0; 0]);
    }
}
