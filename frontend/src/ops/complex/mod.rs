//! Complex numbers: construction, parts, conjugates. Arithmetic and functions are those of the other families.

mod polar;
mod real_imag;

use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::Args;

crate::ops::family! {
    angle,
    complex,
    conj,
    sgn,
    view_as_complex,
    view_as_real,
}

/// The dtype of argument 0, which must be complex.
///
/// # Errors
/// `DType`.
pub(in crate::ops) fn require_complex(args: &Args<'_>) -> RuleResult<keyway_dispatcher::DType> {
    let dtype = args.tensor(0)?.dtype();
    super::rules::require(args, 0, dtype, dtype.is_complex(), "a complex dtype, c64 or c128")?;
    Ok(dtype)
}
