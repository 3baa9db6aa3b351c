//! The layout `sparse_coo`: its components, conversions, and validation.

use crate::coalesce::{by_flag, coalesced};
use crate::coo::{Coo, is_sparse, one, one_pattern, wrong};
use crate::dense;
use crate::sort::{Order, order};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Arg, Call, CallFn, Error, Layout, LayoutOps, NameKind, Tensor, intern, layout_api, layout_ops_api, name,
};
use std::sync::OnceLock;

/// The declaration of the layout.
pub static API: LayoutApi = layout_api::<SparseCoo>();
/// The layout's operations on the CPU.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Queries the host for the layout's code.
///
/// # Errors
/// Errors of the host.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, SparseCoo::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout's code.
pub fn number() -> Option<u16> {
    NUMBER.get().copied()
}

/// COO: entry `n` has the coordinate `indices[.., n]`.
struct SparseCoo;

impl Layout for SparseCoo {
    const NAME: &'static str = "sparse_coo";
    const COMPONENTS: &'static [RawStr] = &[RawStr::new("indices"), RawStr::new("values")];
    const ATTRS: &'static [RawStr] = &[RawStr::new("coalesced")];
}

struct OnCpu;

impl LayoutOps for OnCpu {
    type Layout = SparseCoo;
    const DEVICE: &'static str = "cpu";
    const PROJECT: Option<CallFn> = Some(project);

    fn validate(call: &Call<'_>) -> Result<(), Error> {
        let tensor = call.tensor(0)?;
        check_parts(&tensor, &["indices"])?;
        let (indices, values) = (tensor.component(0)?, tensor.component(1)?);
        let coo = Coo::read(tensor)?;
        if indices.ndim() == 2 && coo.sparse_dim + values.ndim() != tensor.ndim() + 1 {
            let expected = format!("1 dimension and {} dense ones", tensor.ndim() - coo.sparse_dim);
            return Err(wrong("values", expected, format!("{} dimensions", values.ndim())));
        }
        let flag = tensor.attrs().first().copied().unwrap_or(0);
        if flag != 0 && flag != 1 {
            return Err(wrong("coalesced", "0 or 1", flag.to_string()));
        }
        let keys = coo.keys()?;
        if flag == 1 && order(&keys) != Order::Rising {
            return Err(wrong(
                "coalesced",
                "1 only of entries in row-major order without duplicates",
                "others; give 0, and call `coalesce()`",
            ));
        }
        Ok(())
    }

    fn to_strided(call: &Call<'_>) -> Result<(), Error> {
        dense::write(&by_flag(Coo::argument(call, 0)?)?, call)
    }

    fn from_strided(call: &Call<'_>) -> Result<(), Error> {
        let tensor = call.tensor(0)?;
        call.set_output(0, dense::entries_of(tensor, tensor.ndim())?.build()?)
    }
}

/// The gradient at each entry's coordinate, including duplicates.
fn project(call: &Call<'_>) -> Result<(), Error> {
    let (gradient, pattern) = (call.tensor(0)?, Coo::argument(call, 1)?);
    let values = match is_sparse(&gradient) {
        false => dense::at_entries(gradient, &pattern)?,
        true => {
            let gradient = coalesced(Coo::read(gradient)?)?;
            // Sorted entries without duplicates, at the pattern's own coordinates.
            if gradient.sizes == pattern.sizes && one_pattern(&gradient.indices, &pattern.indices) {
                one("clone", &[gradient.values.arg(), Arg::Str("contiguous")])?
            } else {
                dense::sparse_at_entries(&gradient, &pattern)?
            }
        }
    };
    call.set_output(0, pattern.with_values(values).build()?)
}

/// Checks the types of components, not their contents: strided, the first ones i64 with these names, the last one the
/// values.
///
/// # Errors
/// The first invalid component.
pub fn check_parts(tensor: &Tensor<'_>, indices: &[&'static str]) -> Result<(), Error> {
    let named = |code: u16| name(NameKind::Dtype, code).unwrap_or("another dtype").to_string();
    for (nth, argument) in indices.iter().copied().chain(["values"]).enumerate() {
        let part = tensor.component(nth)?;
        if part.n_components() != 0 {
            return Err(wrong(argument, "a strided tensor", "one of a composite layout"));
        }
        let expected = if nth < indices.len() { dtype::I64 } else { tensor.dtype() };
        if part.dtype() != expected {
            return Err(wrong(argument, named(expected), named(part.dtype())));
        }
    }
    match tensor.dtype() {
        dtype::BOOL => Err(wrong("values", "numbers (`to_dtype` casts)", named(dtype::BOOL))),
        _ => Ok(()),
    }
}
