//! Calls of ops by name: the way to those that plugins bring.

use crate::Tensor;
use crate::error::Result;
use keyway_dispatcher::op::{Arg, Args, Out};
use keyway_dispatcher::{Error, registry};

/// Calls the op of this name, with one argument for each parameter of its schema. Gradients flow as for any
/// other op.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let a = Tensor::from_slice(&[1.0f32, 2.0])?;
/// let sums = keyway::ops::by_name::call("mul", &[(&a).into(), (&a).into()])?;
/// assert_eq!(sums[0].to_vec::<f32>()?, [1.0, 4.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A name that no backend has brought; otherwise as the op.
pub fn call(name: &str, args: &[Arg<'_>]) -> Result<Vec<Tensor>> {
    crate::runtime::start()?;
    let op = registry::find_op(name).ok_or_else(|| Error::UnknownOp { name: name.to_string() })?;
    let made = keyway_dispatcher::call::call(Args { op, values: args }, Out::New)?;
    Ok(made.into_iter().map(Tensor::from_ref).collect())
}
