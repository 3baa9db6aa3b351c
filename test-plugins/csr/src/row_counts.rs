//! `csr_row_counts`: the number of elements that each row stores, cached with the row pointers.

use crate::matrix::{give, is_csr, matrix_sizes, unsupported, vector};
use keyway_cpu_loops::ViewExt;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{CacheKey, Call, Error, Op, RuleCall, op};
use keyway_sdk::register_kernel;

/// `csr_row_counts`
pub static ROW_COUNTS: RawOp = op::<RowCounts>();

/// See [`ROW_COUNTS`].
pub struct RowCounts;

impl Op for RowCounts {
    const SCHEMA: &'static str = "csr_row_counts(Tensor a) -> Tensor";
    const SAMPLES: &'static str = r#"[{"args": [{"sizes": [4, 3]}]}, {"args": [{"sizes": [1, 5]}]}]"#;
    const REFERENCE: Option<fn(&Call<'_>) -> Result<(), Error>> = Some(dense_counts);

    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let [rows, _] = matrix_sizes(&call.tensor(0)?)?;
        call.state(0, dtype::I64, &[rows as i64])
    }
}

/// The number of non-zero elements of each row of a strided matrix.
fn dense_counts(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let [_, columns] = matrix_sizes(&tensor)?;
    let values = tensor.view::<f64>()?.contiguous()?;
    let counts = values.chunks(columns.max(1)).map(|row| row.iter().filter(|v| **v != 0.0).count() as i64);
    call.out::<i64>(0)?.assign(counts);
    Ok(())
}

fn row_counts(call: &Call) -> Result<(), Error> {
    static COUNTS: CacheKey = CacheKey::new();
    let tensor = call.tensor(0)?;
    if !is_csr(&tensor) {
        return Err(unsupported("a tensor of another layout than test.keyway/csr here"));
    }
    let crow = tensor.component(0)?;
    let counts = call.cached(&crow, &COUNTS, || {
        let ends = crow.view::<i64>()?.contiguous()?;
        vector(&ends.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>())
    })?;
    give(call, counts)
}

register_kernel! {
    op: "csr_row_counts", signature: "T>T", device: "cpu", layout: "test.keyway/csr",
    flags: allocates,
    f32 => row_counts, f64 => row_counts,
}
