//! A lossy composite layout for tests: `test.keyway/int8`, tensors as blocks of 8-bit integers along the last dimension, each
//! with a scale (absmax quantisation, as in LLM.int8() and GGUF's `Q8_0`).
//!
//! The conversion takes options (`block`, `scale`) and the attributes have every type, so that it demonstrates other
//! quantised formats. Gradients pass straight through; those of `test.keyway/pruned`, the plugin's second layout, are
//! projected. `KEYWAY_FAULT` selects bugs in some of both, see `FAULTS`.

mod blocks;
mod kernels;
mod layout;
mod pruned;

use keyway_test_faults::{self as faults, Fault};

/// The faults of the layout and its kernels that the suite must detect.
const FAULTS: [Fault; 13] = [
    Fault::of_families("int8_last_scale", &["layout"], "the last block has the scale of the first"),
    Fault::of_families("int8_truncates", &["layout"], "values are rounded toward zero"),
    Fault::of_families("int8_saturates", &["layout"], "codes are clamped to 120 of 127"),
    Fault::of_families("int8_tail_lost", &["layout"], "elements beyond the last whole block are dropped"),
    Fault::of_families("int8_block_ignored", &["layout"], "the option `block` is ignored"),
    Fault::of_families("int8_scale_lost", &["layout"], "the attribute `scale` of a tensor is 0"),
    Fault::of_families(
        "pruned_gradient",
        &["layout"],
        "a projected gradient is that of the first of each pair",
    ),
    Fault::of_families("pruned_gradient_lost", &["layout"], "a projected gradient is 0 for the last pair"),
    Fault::of_families(
        "int8_preference",
        &["claims"],
        "the layout is declared for `bmm`, for which there is no kernel",
    ),
    Fault::of_families(
        "int8_far_scale",
        &["large"],
        "blocks beyond the 4th of a row have the scale of the 4th",
    ),
    Fault::of_families(
        "int8_codes_packed",
        &["strided"],
        "codes are read as if they had no gaps between them",
    ),
    Fault::of_families(
        "int8_scratch_shared",
        &["threads"],
        "conversions of all threads write codes to one buffer",
    ),
    Fault::of_ops("int8_mm_scale", &["mm"], "a product takes each row's first scale for all of its blocks"),
];

keyway_sdk::plugin! {
    name: "keyway.test/int8",
    version: env!("CARGO_PKG_VERSION"),
    description: "Tensors as blocks of 8-bit integers with scales",
    devices: ["cpu"],
    layouts: ["test.keyway/int8", "test.keyway/pruned"],
    setup: |contents| {
        faults::announce(FAULTS).map_err(|detail| keyway_sdk::Error::Failed { detail })?;
        layout::learn_number()?;
        pruned::learn_number()?;
        contents.layout(&layout::API).layout_ops(&layout::OPS);
        contents.layout(&pruned::API).layout_ops(&pruned::OPS);
        if faults::is("int8_preference") {
            contents.preference("bmm", "cpu", "test.keyway/int8", 0.5);
        }
        Ok(())
    },
}
