//! `any`

use super::forms::reduction;
use super::{sum, truth};
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::OpDef;
use crate::{DType, Tensor};
use keyway_dispatcher::op::Args;

reduction! {
    /// Whether any element over `dims`, or of the tensor with `..`, is nonzero; false if there are none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[0, 3], [0, 0]])?;
    /// assert_eq!(x.any(1)?.to_vec::<bool>()?, [true, false]);
    /// assert_eq!(x.any(..)?.item::<bool>()?, true);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn any(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: any_keepdim
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let truths = cast(tensor(args, 0)?, DType::BOOL)?;
    sum::DEF.run(&[(&truths).into(), args.get(1), args.get(2)])?.ne(0)
}

/// `any`
pub static DEF: OpDef = truth::def("any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .decomposed(|args| one(compose(args)));
