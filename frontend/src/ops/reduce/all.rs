//! `all`

use super::{any, truth};
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::OpDef;
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Args, Decomposition, Part};

impl Tensor {
    /// Whether no element is 0; true where there is none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0i32, 3])?.all()?.item::<bool>()?, false);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn all(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }

    /// Whether no element is 0 over `dims`, which stay as size 1 if `keepdim`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn all_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let untrue = tensor(args, 0)?.logical_not()?;
    any::DEF.run(&[(&untrue).into(), args.get(1), args.get(2)])?.logical_not()
}

/// `all`
pub static DEF: OpDef = truth::def("all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .decomposed(Decomposition {
        run: |args| one(compose(args)),
        parts: &[
            Part::new("logical_not"),
            Part::fixed("logical_not", DType::BOOL),
            Part::fixed("any", DType::BOOL),
        ],
    });
