//! The layout `sparse_csr`: its components, conversions, and validation.

use crate::coo::{Coo, is_sparse, wrong};
use crate::csr::{Csr, is_csr};
use crate::layout::check_parts;
use crate::{coalesce, dense};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Call, CallFn, Error, Layout, LayoutOps, NameKind, intern, layout_api, layout_ops_api,
};
use std::sync::OnceLock;

/// The declaration of the layout.
pub static API: LayoutApi = layout_api::<SparseCsr>();
/// The layout's operations on the CPU.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Queries the host for the layout's code.
///
/// # Errors
/// Errors of the host.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, SparseCsr::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout's code.
pub fn number() -> Option<u16> {
    NUMBER.get().copied()
}

/// Compressed sparse rows.
struct SparseCsr;

impl Layout for SparseCsr {
    const NAME: &'static str = "sparse_csr";
    const COMPONENTS: &'static [RawStr] =
        &[RawStr::new("crow_indices"), RawStr::new("col_indices"), RawStr::new("values")];
}

struct OnCpu;

impl LayoutOps for OnCpu {
    type Layout = SparseCsr;
    const DEVICE: &'static str = "cpu";
    const SHAPES: &'static str = "a matrix (a stack of matrices is held by `sparse_coo`)";
    const PROJECT: Option<CallFn> = Some(project);

    fn accepts(sizes: &[i64]) -> bool {
        sizes.len() == 2
    }

    fn validate(call: &Call<'_>) -> Result<(), Error> {
        let tensor = call.tensor(0)?;
        check_parts(&tensor, &["crow_indices", "col_indices"])?;
        Csr::read(tensor)?.check_order()
    }

    fn to_strided(call: &Call<'_>) -> Result<(), Error> {
        dense::write(&Coo::argument(call, 0)?, call)
    }

    fn from_strided(call: &Call<'_>) -> Result<(), Error> {
        call.set_output(0, Csr::of(&dense::entries_of(call.tensor(0)?, 2)?)?)
    }
}

/// The gradient at each entry's coordinate.
fn project(call: &Call<'_>) -> Result<(), Error> {
    let (gradient, like) = (call.tensor(0)?, call.tensor(1)?);
    if !is_csr(&like) {
        return Err(wrong("like", "a tensor of layout sparse_csr", "one of another"));
    }
    let pattern = Coo::read(like)?;
    let values = match is_sparse(&gradient) {
        false => dense::at_entries(gradient, &pattern)?,
        true => dense::sparse_at_entries(&coalesce::coalesced(Coo::read(gradient)?)?, &pattern)?,
    };
    Csr::read(like)?.with_values(values).give(call)
}
