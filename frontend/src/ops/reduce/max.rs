//! `max`

use super::{amax, argmax, extremum};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use crate::tensor::Int;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Outputs};

impl Tensor {
    /// The maximum along `dim` and its index: the first of equal elements; NaN counts as the largest. Only the element at that
    /// index gets the gradient. See [`Tensor::amax`] for only values and [`Tensor::max_all`] for that of all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let (value, place) = Tensor::new([1.0f32, 3.0])?.max(0)?;
    /// assert_eq!((value.item::<f32>()?, place.item::<i64>()?), (3.0, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn max(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(false)])
    }

    /// [`Tensor::max`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([[1, 5, 3]])?.max_keepdim(1)?;
    /// assert_eq!((values.to_vec2::<i32>()?, indices.to_vec2::<i64>()?), (vec![vec![5]], vec![vec![1]]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn max_keepdim(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(true)])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let values = amax::DEF.run(&[args.get(0), Arg::Ints(&[args.int(1)?]), args.get(2)])?;
    let places = argmax::DEF.run(&[args.get(0), args.get(1), args.get(2)])?;
    Ok(Outputs::from_iter([values.into_ref(), places.into_ref()]))
}

/// `max`
pub static DEF: OpDef =
    extremum::along("max(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)").decomposed(compose);
