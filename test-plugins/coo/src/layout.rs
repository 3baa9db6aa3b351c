//! The layout: its components, its conversions, and its validity.

use crate::entries::{build, is_coo, read, summed, unsupported, with_values};
use keyway_cpu_loops::{CallExt, ViewExt};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Call, CallFn, Error, Layout, LayoutOps, NameKind, Real, intern, layout_api, layout_ops_api,
};
use keyway_test_faults as faults;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The description of the layout.
pub static API: LayoutApi = layout_api::<Coo>();
/// The layout's operations on the CPU.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Requests the layout's code from the host.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, Coo::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout's code.
pub fn number() -> Option<u16> {
    NUMBER.get().copied()
}

/// Coordinates.
struct Coo;

impl Layout for Coo {
    const NAME: &'static str = "test.keyway/coo";
    const COMPONENTS: &'static [RawStr] = &[RawStr::new("indices"), RawStr::new("values")];
    const ATTRS: &'static [RawStr] = &[RawStr::new("coalesced")];
}

fn wrong(argument: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Error {
    Error::InvalidArgument { argument, expected: expected.into(), got: got.into() }
}

fn validate<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let (indices, values) = (tensor.component(0)?, tensor.component(1)?);
    if indices.dtype() != dtype::I64 || values.dtype() != tensor.dtype() {
        return match faults::is("coo_dtype_unchecked") {
            true => Ok(()),
            false => Err(wrong("indices", "whole numbers, and values of the tensor's dtype", "others")),
        };
    }
    let dense = indices.sizes().first().and_then(|&sparse| tensor.sizes().get(sparse as usize..));
    let dense = dense.filter(|dense| indices.ndim() == 2 && values.ndim() == dense.len() + 1);
    let Some(dense) = dense else {
        return match faults::is("coo_rank_unchecked") {
            true => Ok(()),
            false => Err(wrong("indices", "a row for each dimension that the values lack", "others")),
        };
    };
    if values.sizes()[0] != indices.sizes()[1] || values.sizes()[1..] != *dense {
        return match faults::is("coo_count_unchecked") {
            true => Ok(()),
            false => Err(wrong("values", "one for each column of the indices", "others")),
        };
    }
    let entries = read::<T>(&tensor)?;
    let outside = |at: &[i64]| at.iter().zip(tensor.sizes()).any(|(at, size)| !(0..*size).contains(at));
    if let Some((at, _)) = entries.iter().find(|(at, _)| outside(at)).filter(|_| !faults::is("coo_unchecked"))
    {
        return Err(wrong("indices", format!("within {:?}", tensor.sizes()), format!("{at:?}")));
    }
    let in_order = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
    match tensor.attrs() {
        [1] if !in_order && !faults::is("coo_flag_unchecked") => {
            Err(wrong("coalesced", "1 of entries in order without duplicates", "others"))
        }
        _ => Ok(()),
    }
}

/// The gradient at each entry's coordinates, in the order of the entries. The indices are shared, which shows that the
/// pattern is the same.
fn project<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let (gradient, pattern) = (call.tensor(0)?, call.tensor(1)?);
    let mut dense = BTreeMap::new();
    if is_coo(&gradient) {
        dense.extend(summed(&read::<T>(&gradient)?));
    } else {
        let values = gradient.view::<T>()?.contiguous()?;
        dense.extend(values.iter().enumerate().map(|(place, v)| (index(gradient.sizes(), place), *v)));
    }
    let mut made = read::<T>(&pattern)?;
    for (at, value) in &mut made {
        *value = match faults::is("coo_gradient_lost") {
            true => dense.remove(at),
            false => dense.get(at).copied(),
        }
        .unwrap_or(T::ZERO);
    }
    call.set_output(0, with_values(&pattern, made.into_iter().map(|(_, value)| value))?)
}

/// The index of an element of a tensor of these sizes.
fn index(sizes: &[i64], place: usize) -> Vec<i64> {
    let mut at = vec![0; sizes.len()];
    let mut left = place as i64;
    for (at, size) in at.iter_mut().zip(sizes).rev() {
        (*at, left) = (left % size, left / size);
    }
    at
}

fn to_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::ZERO);
    for (at, value) in summed(&read::<T>(&tensor)?) {
        let place = at.iter().zip(tensor.sizes()).fold(0, |place, (at, size)| place * size + at);
        out[place as usize] = value;
    }
    Ok(())
}

fn from_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let dense = tensor.view::<T>()?.contiguous()?;
    let stored = dense.iter().enumerate().filter(|(_, value)| **value != T::ZERO);
    let entries: Vec<_> = stored.map(|(place, value)| (index(tensor.sizes(), place), *value)).collect();
    call.set_output(0, build(tensor.sizes(), &entries, true)?)
}

/// Runs the function for the dtype of argument 0.
macro_rules! by_dtype {
    ($call:ident, $run:ident) => {
        match $call.tensor(0)?.dtype() {
            dtype::F32 => $run::<f32>($call),
            dtype::F64 => $run::<f64>($call),
            other => Err(unsupported(format!("the layout test.keyway/coo of dtype {other}"))),
        }
    };
}

struct OnCpu;

impl LayoutOps for OnCpu {
    type Layout = Coo;
    const DEVICE: &'static str = "cpu";
    const PROJECT: Option<CallFn> = Some(|call| by_dtype!(call, project));

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
