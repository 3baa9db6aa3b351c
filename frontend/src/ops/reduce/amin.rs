//! `amin`

use super::extremum;
use super::forms::reduction;
use crate::Tensor;
use crate::ops::def::OpDef;

reduction! {
    /// The minimum over `dims`, or of all elements with `..`; NaN propagates. The gradient is divided evenly among ties.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.amin(1)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// assert_eq!(x.min_all()?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// For a sparse tensor, elements that are not stored count as 0, which may be the minimum; duplicates are added first, and
    /// the gradient is shared with unstored zeros that tie.
    ///
    /// # Errors
    /// A dimension out of range, given twice or of size 0.
    #[doc(alias = "min")]
    pub fn amin(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: amin_keepdim, all: min_all called "min"
}

/// `amin`
pub static DEF: OpDef =
    extremum::over_dims("amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor");
