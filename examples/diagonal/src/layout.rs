//! The layout: one component, its conversions, and the projection of gradients.

use keyway_cpu_loops::{CallExt, ViewExt};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Arg, Call, Error, Layout, LayoutOps, NameKind, OwnedTensor, Real, Tensor, intern, layout_api,
    layout_ops_api, new_composite,
};
use std::sync::OnceLock;

/// The layout's description.
pub static LAYOUT: LayoutApi = layout_api::<Diagonal>();
/// The layout's functions on the CPU.
pub static ON_CPU: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Asks the host for the number of the layout.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, Diagonal::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// Whether the tensor has this layout.
pub fn is_diagonal(tensor: &Tensor<'_>) -> bool {
    NUMBER.get() == Some(&tensor.layout())
}

/// A diagonal matrix of n x n over a vector of n values, which it shares.
pub fn diagonal<T: Real>(n: usize, values: Arg<'_>) -> Result<OwnedTensor, Error> {
    let number = NUMBER.get().ok_or_else(|| Error::Failed { detail: "the layout has no number".into() })?;
    new_composite(*number, T::dtype(), &[n as i64; 2], &[values], &[])
}

/// A diagonal matrix with these values.
pub fn diagonal_of<T: Real>(
    call: &Call<'_>,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<OwnedTensor, Error> {
    let n = values.len();
    let mut made = call.new_tensor::<T>(&[n as i64])?;
    made.view_mut::<T>()?.assign(values);
    diagonal::<T>(n, Arg::Owned(&made))
}

/// See the crate.
pub struct Diagonal;

impl Layout for Diagonal {
    const NAME: &'static str = "example.org/diagonal";
    const COMPONENTS: &'static [RawStr] = &[RawStr::new("values")];
}

/// Diagonal matrices in the host's memory.
pub struct OnCpu;

fn to_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let values = call.tensor(0)?.component(0)?.view::<T>()?.contiguous()?;
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::ZERO);
    out.iter_mut().step_by(values.len() + 1).zip(values.iter()).for_each(|(place, value)| *place = *value);
    Ok(())
}

fn from_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let n = call.tensor(0)?.sizes()[0] as usize;
    let dense = call.contiguous::<T>(0)?;
    // NaN off the diagonal is an error too: no value is dropped.
    let other = dense.iter().enumerate().find(|(at, value)| at % (n + 1) != 0 && **value != T::ZERO);
    if let Some((at, value)) = other {
        return Err(Error::InvalidArgument {
            argument: "self",
            expected: "zeros outside the diagonal".into(),
            got: format!("{:?} in row {}, column {}", value.to_f64(), at / n, at % n),
        });
    }
    call.set_output(0, diagonal_of(call, (0..n).map(|i| dense[i * (n + 1)]))?)
}

/// The gradient with respect to the diagonal: the diagonal of the matrix's gradient.
fn project<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let grad = call.tensor(0)?;
    if is_diagonal(&grad) {
        return call.set_output(0, grad.retain()?);
    }
    let n = grad.sizes()[0] as usize;
    let dense = call.contiguous::<T>(0)?;
    call.set_output(0, diagonal_of(call, (0..n).map(|i| dense[i * (n + 1)]))?)
}

/// Runs the function for the dtype of argument 0.
macro_rules! by_dtype {
    ($call:ident, $run:ident) => {
        match $call.tensor(0)?.dtype() {
            dtype::F32 => $run::<f32>($call),
            dtype::F64 => $run::<f64>($call),
            other => Err(Error::Unsupported { what: format!("a diagonal matrix of dtype {other}") }),
        }
    };
}

impl LayoutOps for OnCpu {
    type Layout = Diagonal;
    const DEVICE: &'static str = "cpu";
    const SHAPES: &'static str = "a square matrix";
    const PROJECT: Option<fn(&Call<'_>) -> Result<(), Error>> = Some(|call| by_dtype!(call, project));

    fn accepts(sizes: &[i64]) -> bool {
        matches!(sizes, [rows, columns] if rows == columns)
    }

    fn validate(call: &Call<'_>) -> Result<(), Error> {
        let matrix = call.tensor(0)?;
        let values = matrix.component(0)?;
        let wrong =
            |expected: String, got: String| Err(Error::InvalidArgument { argument: "values", expected, got });
        if values.dtype() != matrix.dtype() {
            return wrong(format!("of the matrix's dtype {}", matrix.dtype()), values.dtype().to_string());
        }
        if values.n_components() > 0 || values.sizes() != &matrix.sizes()[..1] {
            return wrong(
                format!("a strided vector of {}", matrix.sizes()[0]),
                format!("{:?}", values.sizes()),
            );
        }
        Ok(())
    }
    fn to_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, to_strided)
    }
    fn from_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, from_strided)
    }
}
