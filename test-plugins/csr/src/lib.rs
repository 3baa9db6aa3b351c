//! A composite layout for tests: `test.keyway/csr`, matrices in compressed sparse rows, with a few kernels on the CPU and
//! an op of the plugin with a derivative. It demonstrates that any sparse layout can be implemented.
//!
//! The gradient of a strided formula with respect to a CSR argument is strided; that of `csr_spmv`, which the plugin
//! computes itself, is CSR with the argument's pattern. The host adds the two. `KEYWAY_FAULT` selects bugs in some of them
//! for the conformance suite, see `FAULTS`.

mod kernels;
mod layout;
mod matrix;
mod row_counts;
mod spmv;

use keyway_test_faults::{self as faults, Fault};

/// The faults of a layout and its kernels that the suite must detect.
const FAULTS: [Fault; 20] = [
    Fault::of_families("csr_row_lost", &["layout"], "the conversion to strided leaves out the last row"),
    Fault::of_families(
        "csr_entry_lost",
        &["layout"],
        "the conversion from strided leaves out the last column",
    ),
    Fault::of_families("csr_unchecked", &["layout"], "components that do not fit each other are taken"),
    Fault::of_families("csr_start_unchecked", &["layout"], "row pointers may begin behind the first entry"),
    Fault::of_families(
        "csr_end_unchecked",
        &["layout"],
        "row pointers may end elsewhere than at the last entry",
    ),
    Fault::of_families("csr_fall_unchecked", &["layout"], "row pointers may fall"),
    Fault::of_families("csr_refuses_zeros", &["layout"], "a matrix without entries is refused"),
    Fault::of_ops("csr_mm_wrong", &["mm"], "a product leaves out the last entry of each row"),
    Fault::of_ops("csr_rows_skipped", &["mm"], "a product takes each row to have an entry"),
    Fault::of_ops("csr_zero_ends_row", &["mm"], "a product leaves a row at a stored zero"),
    Fault::of_ops("csr_gaps_ignored", &["mm"], "a product reads values as if they had no gaps between them"),
    Fault::of_ops("csr_add_alpha", &["add"], "a sum ignores the factor of the second matrix"),
    Fault::of_ops("csr_add_unmerged", &["add"], "a sum of two matrices keeps the entries of the first alone"),
    Fault::of_ops("csr_mul_pattern", &["mul"], "a product takes each factor from the next column"),
    Fault::of_ops("csr_transpose_dead", &["transpose"], "a registered kernel refuses every call"),
    Fault::of_ops("csr_spmv_wrong", &["csr_spmv"], "an op of the plugin's on the layout is wrong"),
    Fault::of_ops(
        "csr_spmv_gradient",
        &["csr_spmv_backward"],
        "the gradient of the stored values is that of the first",
    ),
    Fault::of_families("csr_columns_16_bits", &["sizes"], "a product reads 16 bits of each column index"),
    Fault::of_families("csr_cancel_ends_row", &["values"], "a sum leaves a row after values whose sum is 0"),
    Fault::of_families(
        "csr_small_dropped",
        &["values"],
        "the conversion from strided takes magnitudes below 1e-12 for 0",
    ),
];

keyway_sdk::plugin! {
    name: "keyway.test/csr",
    version: env!("CARGO_PKG_VERSION"),
    description: "Matrices as compressed rows",
    devices: ["cpu"],
    layouts: ["test.keyway/csr"],
    setup: |contents| {
        faults::announce(FAULTS).map_err(|detail| keyway_sdk::Error::Failed { detail })?;
        layout::learn_number()?;
        contents.layout(&layout::API).layout_ops(&layout::OPS).op(&spmv::SPMV).op(&spmv::SPMV_BACKWARD);
        contents.op(&row_counts::ROW_COUNTS);
        Ok(())
    },
}
