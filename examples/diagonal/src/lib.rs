//! A plugin with a layout: `example.org/diagonal`, square matrices that store their diagonal alone.
//!
//! A matrix of n x n stores n elements instead of n^2, and its product with a dense one takes n times fewer multiplications.
//! The host prints, moves and differentiates it with the functions in `layout.rs`; `kernels.rs` has the few ops that are faster
//! on it. For any other op call `to_strided()` first.

mod kernels;
mod layout;

keyway_sdk::plugin! {
    name: "example.org/diagonal",
    version: env!("CARGO_PKG_VERSION"),
    description: "Diagonal matrices",
    devices: ["cpu"],
    layouts: ["example.org/diagonal"],
    setup: |contents| {
        layout::learn_number()?;
        contents.layout(&layout::LAYOUT).layout_ops(&layout::ON_CPU);
        Ok(())
    },
}
