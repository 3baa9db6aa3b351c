//! The layout: its components, its conversions, and its validity.

use crate::matrix::{Builder, Matrix, matrix_sizes, unsupported};
use keyway_cpu_loops::{CallExt, ViewExt};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Call, Error, Layout, LayoutOps, NameKind, Real, intern, layout_api, layout_ops_api,
};
use keyway_test_faults as faults;
use std::sync::OnceLock;

/// The description of the layout.
pub static API: LayoutApi = layout_api::<Csr>();
/// The layout's operations on the CPU.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Requests the layout's code from the host.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, Csr::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout's code.
pub fn number() -> Option<u16> {
    NUMBER.get().copied()
}

/// Compressed sparse rows.
pub struct Csr;

fn wrong(argument: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Error {
    Error::InvalidArgument { argument, expected: expected.into(), got: got.into() }
}

fn validate<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    if faults::is("csr_unchecked") {
        return Ok(());
    }
    let tensor = call.tensor(0)?;
    for (nth, argument) in [(0, "crow_indices"), (1, "col_indices"), (2, "values")] {
        let dims = tensor.component(nth)?.ndim();
        if dims != 1 {
            return Err(wrong(argument, "1 dimension", dims.to_string()));
        }
    }
    let m = Matrix::<T>::read(&tensor)?;
    if m.crow.len() != m.rows + 1 {
        return Err(wrong(
            "crow_indices",
            format!("{} elements, one more than rows", m.rows + 1),
            m.crow.len().to_string(),
        ));
    }
    let begins = m.crow[0] == 0 || faults::is("csr_start_unchecked");
    let ends = m.crow[m.rows] as usize == m.col.len() || faults::is("csr_end_unchecked");
    if m.col.len() != m.values.len() || !begins || !ends {
        let expected = format!("as many values and columns as crow_indices end at, {}", m.crow[m.rows]);
        return Err(wrong("values", expected, format!("{} and {}", m.values.len(), m.col.len())));
    }
    if m.crow.windows(2).any(|w| w[0] > w[1]) && !faults::is("csr_fall_unchecked") {
        return Err(wrong("crow_indices", "numbers that do not fall", "ones that do"));
    }
    match m.col.iter().find(|c| **c < 0 || **c as usize >= m.columns) {
        Some(column) => Err(wrong("col_indices", format!("columns below {}", m.columns), column.to_string())),
        None => Ok(()),
    }
}

fn to_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let m = Matrix::<T>::read(&call.tensor(0)?)?;
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::ZERO);
    let rows = if faults::is("csr_row_lost") { m.rows.saturating_sub(1) } else { m.rows };
    m.each(|row, column, value| {
        if row < rows {
            out[row * m.columns + column] += value;
        }
    });
    Ok(())
}

fn from_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let [rows, columns] = matrix_sizes(&tensor)?;
    let dense = tensor.view::<T>()?.contiguous()?;
    let mut made = Builder::new([rows, columns]);
    if faults::is("csr_refuses_zeros") && dense.iter().all(|v| *v == T::ZERO) {
        return Err(unsupported("the layout test.keyway/csr for a matrix without entries"));
    }
    let last = if faults::is("csr_entry_lost") { columns.saturating_sub(1) } else { columns };
    for row in 0..rows {
        for column in 0..last {
            let value = dense[row * columns + column];
            let small = faults::is("csr_small_dropped") && value.to_f64().abs() < 1e-12;
            if value != T::ZERO && !small {
                made.entry(column, value);
            }
        }
        made.end_row();
    }
    call.set_output(0, made.build()?)
}

/// Runs the function for the dtype of argument 0.
macro_rules! by_dtype {
    ($call:ident, $run:ident) => {{
        let first = $call.tensor(0)?;
        match first.dtype() {
            dtype::F32 => $run::<f32>($call),
            dtype::F64 => $run::<f64>($call),
            other => Err(unsupported(format!("the layout test.keyway/csr of dtype {other}"))),
        }
    }};
}

impl Layout for Csr {
    const NAME: &'static str = "test.keyway/csr";
    const COMPONENTS: &'static [RawStr] =
        &[RawStr::new("crow_indices"), RawStr::new("col_indices"), RawStr::new("values")];
}

/// CSR in the host's memory.
pub struct OnCpu;

impl LayoutOps for OnCpu {
    type Layout = Csr;
    const DEVICE: &'static str = "cpu";
    const SHAPES: &'static str = "a matrix";

    fn accepts(sizes: &[i64]) -> bool {
        sizes.len() == 2
    }
    fn validate(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, validate)
    }
    fn to_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, to_strided)
    }
    fn from_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, from_strided)
    }
}
