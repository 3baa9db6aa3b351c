//! The layout `sparse_coo` on this device: validation, conversions, and projected gradients.

use super::convert::{at_entries, entries_of, sparse_at_entries, write};
use super::coo::{Coo, is_coo, one, wrong};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Arg, Call, CallFn, Error, Layout, LayoutOps, NameKind, dtype_name, intern, layout_api, layout_ops_api,
};
use std::sync::OnceLock;

/// The declaration of the layout, the same in every plugin that provides it.
pub static API: LayoutApi = layout_api::<SparseCoo>();
/// The layout's operations on this device.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCuda>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Queries the host for the layout's code.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, SparseCoo::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout's code.
pub fn number() -> Option<u16> {
    NUMBER.get().copied()
}

struct SparseCoo;

impl Layout for SparseCoo {
    const NAME: &'static str = "sparse_coo";
    const COMPONENTS: &'static [RawStr] = &[RawStr::new("indices"), RawStr::new("values")];
    const ATTRS: &'static [RawStr] = &[RawStr::new("coalesced")];
}

struct OnCuda;

impl LayoutOps for OnCuda {
    type Layout = SparseCoo;
    const DEVICE: &'static str = "cuda";
    const PROJECT: Option<CallFn> = Some(project);

    fn validate(call: &Call<'_>) -> Result<(), Error> {
        let tensor = call.tensor(0)?;
        for (nth, argument, expected) in [(0, "indices", dtype::I64), (1, "values", tensor.dtype())] {
            let part = tensor.component(nth)?;
            if part.n_components() != 0 {
                return Err(wrong(argument, "a strided tensor", "one of a composite layout"));
            }
            if part.dtype() != expected {
                return Err(wrong(argument, dtype_name(expected), dtype_name(part.dtype())));
            }
        }
        if tensor.dtype() == dtype::BOOL {
            return Err(wrong("values", "numbers", "bool"));
        }
        let flag = tensor.attrs().first().copied().unwrap_or(0);
        if flag != 0 && flag != 1 {
            return Err(wrong("coalesced", "0 or 1", flag.to_string()));
        }
        let coo = Coo::read(call, tensor)?;
        if !coo.places()?.rise && flag == 1 {
            return Err(wrong(
                "coalesced",
                "1 only of entries in row-major order without duplicates",
                "others; give 0, and call `coalesce()`",
            ));
        }
        Ok(())
    }

    fn to_strided(call: &Call<'_>) -> Result<(), Error> {
        write(call, Coo::argument(call, 0)?)
    }

    fn from_strided(call: &Call<'_>) -> Result<(), Error> {
        let tensor = call.tensor(0)?;
        entries_of(call, tensor, tensor.ndim())?.give(call)
    }
}

/// The gradient at each entry's coordinate, including duplicates.
fn project(call: &Call<'_>) -> Result<(), Error> {
    let (gradient, pattern) = (call.tensor(0)?, Coo::argument(call, 1)?);
    if !is_coo(&gradient) {
        let values = at_entries(gradient, &pattern)?;
        return pattern.with_values(values).give(call);
    }
    let (gradient, places) = Coo::read(call, gradient)?.in_order()?;
    let values = if gradient.sizes == pattern.sizes && gradient.shares_indices(&pattern) {
        one("clone", &[gradient.values.arg(), Arg::Str("contiguous")])?
    } else {
        sparse_at_entries((&gradient, &places), &pattern)?
    };
    pattern.with_values(values).give(call)
}
