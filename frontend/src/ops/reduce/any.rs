//! `any`

use super::{sum, truth};
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::OpDef;
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Args, Decomposition, Part};

impl Tensor {
    /// Whether any element is not 0; false where there is none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0i32, 3])?.any()?.item::<bool>()?, true);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn any(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }

    /// Whether any element is not 0 over `dims`, which stay as size 1 if `keepdim`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn any_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let truths = cast(tensor(args, 0)?, DType::BOOL)?;
    sum::DEF.run(&[(&truths).into(), args.get(1), args.get(2)])?.ne(0)
}

/// `any`
pub static DEF: OpDef = truth::def("any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .decomposed(Decomposition {
        run: |args| one(compose(args)),
        parts: &[
            Part::fixed("to_dtype", DType::BOOL),
            Part::fixed("sum", DType::BOOL),
            Part::fixed("ne", DType::I64),
        ],
    });
