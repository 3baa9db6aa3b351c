//! `keyway.h` compared with the Rust definitions by C and C++ compilers.

mod c_compiler;

use c_compiler::{Language, compile};
use keyway_sdk::abi::STRUCTURES;
use std::fmt::Write as _;
use std::path::Path;

/// One use of each macro of the header.
const MACROS: &str = r#"
static int32_t run(const KeywayCall *call) { return call->n_args == 0 ? KEYWAY_STATUS_FAILED : KEYWAY_STATUS_OK; }
KEYWAY_MANIFEST("example.org/sizes", "1.0.0", "Sizes only", "\"cpu\"", "\"strided\"");
KEYWAY_KERNEL(exp_f32, "exp", "T>T", "cpu", "strided", "f32", run);
static const KeywayKernel *const kernels[] = { &exp_f32 };
static int32_t initialize(const KeywayHostApi *host, KeywayPluginContents *out) {
    KeywayPluginContents contents;
    memset(&contents, 0, sizeof contents);
    contents.kernels.items = kernels;
    contents.kernels.len = 1;
    keyway_fill(out, &contents, sizeof contents);
    return KEYWAY_HAS(host, tensor_retain) ? KEYWAY_STATUS_OK : KEYWAY_STATUS_UNSUPPORTED;
}
KEYWAY_PLUGIN(initialize);
"#;

fn sizes() -> String {
    let mut out = "#include \"keyway.h\"\n#include <assert.h>\n".to_string();
    for structure in STRUCTURES {
        let name = format!("Keyway{}", structure.name.trim_start_matches("Raw"));
        let _ = writeln!(out, "static_assert(sizeof({name}) == {}, \"the size of {name}\");", structure.size);
        for field in structure.fields {
            let (field, offset, size) = (field.name, field.offset, field.size);
            let _ = writeln!(
                out,
                "static_assert(offsetof({name}, {field}) == {offset}, \"where {name} has {field}\");\n\
                 static_assert(sizeof((({name} *)0)->{field}) == {size}, \"the size of {field} in {name}\");"
            );
        }
    }
    out
}

#[test]
fn every_size_and_place_is_the_same_in_c_and_in_cxx() {
    assert!(STRUCTURES.len() > 10 && STRUCTURES.iter().all(|s| !s.fields.is_empty()));
    for (language, extension) in [(Language::C, "c"), (Language::Cxx, "cpp")] {
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sizes.{extension}"));
        std::fs::write(&source, sizes() + MACROS).unwrap();
        let mut arguments = language.strict().to_vec();
        arguments.extend(["-fsyntax-only", source.to_str().unwrap()]);
        compile(language, &arguments);
    }
}
