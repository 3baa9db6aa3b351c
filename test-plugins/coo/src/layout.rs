//! The layout: its components, its conversions, and what makes one valid.

use crate::entries::{build, read, summed, unsupported};
use keyway_cpu_loops::{CallExt, ViewExt};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Call, Error, Layout, LayoutOps, NameKind, Real, intern, layout_api, layout_ops_api,
};
use keyway_test_faults as faults;
use std::sync::OnceLock;

/// What the layout is.
pub static API: LayoutApi = layout_api::<Coo>();
/// What can be done with it on the CPU.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Asks the host for the layout's number.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, Coo::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout's number.
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

fn validate<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let entries = read::<T>(&tensor)?;
    let wrong =
        |argument, expected: String, got: String| Err(Error::InvalidArgument { argument, expected, got });
    let outside = |at: &[i64]| at.iter().zip(tensor.sizes()).any(|(at, size)| !(0..*size).contains(at));
    if let Some((at, _)) = entries.iter().find(|(at, _)| outside(at)).filter(|_| !faults::is("coo_unchecked"))
    {
        return wrong("indices", format!("within {:?}", tensor.sizes()), format!("{at:?}"));
    }
    let in_order = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
    match tensor.attrs() {
        [1] if !in_order => {
            wrong("coalesced", "1 of entries in order, each place once".into(), "others".into())
        }
        _ => Ok(()),
    }
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
    let index = |place: usize| {
        let mut at = vec![0; tensor.ndim()];
        let mut left = place as i64;
        for (at, size) in at.iter_mut().zip(tensor.sizes()).rev() {
            (*at, left) = (left % size, left / size);
        }
        at
    };
    let stored = dense.iter().enumerate().filter(|(_, value)| **value != T::ZERO);
    let entries: Vec<_> = stored.map(|(place, value)| (index(place), *value)).collect();
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
