//! The listings of README and of the book, compiled and run by the tests of the documentation.
//!
//! A page with Rust listings has a line here; `cargo xtask tidy` finds one that lacks it.

macro_rules! pages {
    ($($page:ident: $path:literal,)*) => {
        $(
            #[doc = include_str!(concat!("../../", $path))]
            mod $page {}
        )*
    };
}

pages! {
    complex: "book/src/complex.md",
    gpu: "book/src/cuda.md",
    install: "book/src/install.md",
    interposer: "book/src/plugins/interposer.md",
    kernel: "book/src/plugins/kernel.md",
    linear_algebra: "book/src/linear-algebra.md",
    memory_formats: "book/src/memory-formats.md",
    profiling: "book/src/profiling.md",
    readme: "README.md",
    sparse: "book/src/sparse.md",
    tensors: "book/src/tensors.md",
    training: "book/src/training.md",
}
