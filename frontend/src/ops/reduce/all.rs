//! `all`

use super::forms::reduction;
use super::{any, truth};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::OpDef;
use keyway_dispatcher::op::Args;

reduction! {
    /// Whether all elements over `dims`, or of the tensor with `..`, are nonzero; true if there are none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[0, 3], [1, 1]])?;
    /// assert_eq!(x.all(1)?.to_vec::<bool>()?, [false, true]);
    /// assert_eq!(x.all(..)?.item::<bool>()?, false);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn all(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: all_keepdim
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let untrue = tensor(args, 0)?.logical_not()?;
    any::DEF.run(&[(&untrue).into(), args.get(1), args.get(2)])?.logical_not()
}

/// `all`
pub static DEF: OpDef = truth::def("all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .decomposed(|args| one(compose(args)));
