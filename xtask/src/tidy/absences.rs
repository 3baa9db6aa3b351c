//! Forbidden names: the dispatcher names no op, the frontend names no concrete device outside the one module of names that
//! users type, and neither has an identifier that contains the name of a device or of a maker's library.

use super::Violation;
use super::source::File;
use super::tokens::{Token, Tokens};
use std::collections::BTreeSet;

/// Where ops are defined, one file each: `frontend/src/ops/<family>/<op>.rs`.
const OPS: &str = "frontend/src/ops/";
/// Op names that the dispatcher may use, with another meaning.
const NOT_AN_OP: &[&str] = &["index", "max", "min", "options", "view"];
/// Names of devices that plugins provide.
const DEVICES: &[&str] = &[
    "cuda", "hip", "metal", "mps", "npu", "opencl", "rocm", "sycl", "tpu", "vulkan", "webgpu", "wgpu", "xpu",
];
/// Names of makers and of their libraries, which identifiers must not contain either.
const MAKERS: &[&str] = &[
    "amdgpu", "cublas", "cublaslt", "cudart", "cudnn", "cufft", "curand", "cusparse", "hipblas", "miopen",
    "nccl", "nvidia", "nvrtc", "nvtx", "ptx", "rocblas",
];
/// Identifiers that may contain such a name, each with its file: none needs one.
const KNOWN_NAMES: &[(&str, &str)] = &[];
/// The name of host memory, which exists with no plugin at all.
const HOST: &str = "cpu";
/// The only modules of the frontend that may name host memory.
const HOST_MEMORY: &[&str] = &["frontend/src/ops/memory/to_device.rs"];
/// The only module of the frontend that may name devices that plugins provide: `Device::cuda(0)`, for users with that habit.
const NAMED_DEVICES: &str = "frontend/src/device/names.rs";
/// Prefixes of the names of backends' packages and libraries.
const BACKEND_PREFIXES: &[&str] = &["keyway-backend-", "keyway_backend_"];

/// Checks for these names.
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
            found.extend(identifiers(file));
        } else if file.path.starts_with("frontend/src/") {
            found.extend(literals(file).filter_map(|(line, text)| device(file, line, text)));
            found.extend(identifiers(file));
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
    let brought = DEVICES.contains(&name) && file.path != NAMED_DEVICES;
    let backend = BACKEND_PREFIXES.iter().any(|prefix| text.contains(prefix));
    (backend || (indexed && (host || brought))).then(|| {
        let what = format!("the frontend names a concrete device or backend in {text:?}");
        Violation::new(
            &file.path,
            line,
            what,
            "take the device from an argument; host memory has its own module",
        )
    })
}

/// The identifiers outside tests that contain the name of a device or of a maker.
fn identifiers(file: &File) -> Vec<Violation> {
    let Some(tokens) = file.tokens() else { return Vec::new() };
    let mut found = Vec::new();
    tokens.each(|token| {
        let Token::Word(line, word) = token else { return };
        let devices = file.path != NAMED_DEVICES;
        let named = words(word)
            .into_iter()
            .find(|part| devices && DEVICES.contains(&part.as_str()) || MAKERS.contains(&part.as_str()));
        let known = KNOWN_NAMES.contains(&(file.path.as_str(), word.as_str()));
        if let (Some(part), false, false) = (named, known, tokens.is_test(*line)) {
            let what = format!("the identifier `{word}` names `{part}`, which a plugin brings");
            let mend = "name what it is for any device; what is one maker's belongs into that backend";
            found.push(Violation::new(&file.path, *line, what, mend));
        }
    });
    found
}

/// The words of an identifier in lower case: `CudaGraph`, `CUDAGraph` and `CUDA_GRAPH` are `cuda` and `graph`.
fn words(identifier: &str) -> Vec<String> {
    let all: Vec<char> = identifier.chars().collect();
    let mut words = vec![String::new()];
    for (at, &c) in all.iter().enumerate() {
        let before = at.checked_sub(1).map_or('_', |before| all[before]);
        let begins = !before.is_uppercase() || all.get(at + 1).is_some_and(|after| after.is_lowercase());
        if c == '_' || (c.is_uppercase() && begins) {
            words.push(String::new());
        }
        if let (true, Some(last)) = (c != '_', words.last_mut()) {
            last.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
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
    fn no_identifier_names_a_device_or_a_maker() {
        let text = "// cuda_graph\nfn cuda_graph() {}\nstruct CudaGraph;\nconst CUBLAS_HANDLE: u8 = 1;\nlet x = a.metal();\n\
                    fn ship_metallic_cpu() {}\nlet CUDAGraph = 1;\n#[cfg(test)]\nmod t { fn cuda() {} }";
        for path in ["frontend/src/graph.rs", "dispatcher/src/device/capture.rs"] {
            assert_eq!(faults(path, text), [2, 3, 4, 5, 7], "{path}");
        }
        assert_eq!(faults("backend-cuda/src/device.rs", text), [0; 0]);
        assert_eq!(faults(NAMED_DEVICES, text), [4], "devices, but no maker's library");
        assert_eq!(words("CudaGraph2D_x"), ["cuda", "graph2", "d", "x"]);
    }

    #[test]
    fn the_frontend_names_no_device() {
        let text = "/// `\"cuda:0\"`\nf(\"cuda\");\nf(\"cuda:1\");\nf(\"cpu\");\nf(\"a cpu\");\n\
                    f(\"install keyway-backend-cpu\");\nf(\"cuda: not there\");\n#[cfg(test)]\nmod t { f(\"cpu\"); }";
        assert_eq!(faults("frontend/src/nn/linear.rs", text), [2, 3, 4, 6]);
        assert_eq!(faults(HOST_MEMORY[0], "f(\"cpu\");\nf(\"cuda\");"), [2]);
        assert_eq!(
            faults(NAMED_DEVICES, text),
            [4, 6],
            "devices that plugins bring, but no host memory and no backend"
        );
        assert_eq!(faults("cli/src/main.rs", text), [0; 0]);
    }
}
