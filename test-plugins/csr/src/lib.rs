//! A composite layout for tests: `test.keyway/csr`, matrices as compressed rows, with a few kernels on the
//! CPU and an op of its own with a derivative. What works here has a chance to work for any sparse layout.
//!
//! The gradient of a strided formula with respect to a CSR argument is strided; that of `csr_spmv`, which
//! the plugin computes itself, is CSR with the argument's pattern. The host adds the two.

mod kernels;
mod layout;
mod matrix;
mod row_counts;
mod spmv;

keyway_sdk::plugin! {
    name: "keyway.test/csr",
    version: env!("CARGO_PKG_VERSION"),
    description: "Matrices as compressed rows",
    devices: ["cpu"],
    layouts: ["test.keyway/csr"],
    setup: |contents| {
        layout::learn_number()?;
        contents.layout(&layout::API).layout_ops(&layout::OPS).op(&spmv::SPMV).op(&spmv::SPMV_BACKWARD);
        contents.op(&row_counts::ROW_COUNTS);
        Ok(())
    },
}
