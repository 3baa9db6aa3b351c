//! `amax`

use super::extremum;
use super::forms::reduction;
use crate::Tensor;
use crate::ops::def::OpDef;

reduction! {
    /// The maximum over `dims`, or of all elements with `..`; NaN propagates. The gradient is divided evenly among ties.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.amax(1)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// assert_eq!(x.max_all()?.item::<f32>()?, 4.0);
    /// # Ok(()) }
    /// ```
    ///
    /// For a sparse tensor, elements that are not stored count as 0, which may be the maximum; duplicates are added first, and
    /// the gradient is shared with unstored zeros that tie.
    ///
    /// # Errors
    /// A dimension out of range, given twice or of size 0.
    #[doc(alias = "max")]
    pub fn amax(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: amax_keepdim, all: max_all called "max"
}

/// `amax`
pub static DEF: OpDef =
    extremum::over_dims("amax(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor");
