//! Repetition of single elements or slices.

use crate::error::{Result, called};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;

impl Tensor {
    /// Repeats each slice of dimension `dim` `repeats` times consecutively: `[1, 2]` twice is `[1, 1, 2, 2]`.
    /// [`Tensor::repeat`] repeats the whole tensor; call [`Tensor::flatten_all`] first to repeat single elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1, 2])?.repeat_interleave(2, 0)?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range; sizes whose product overflows.
    pub fn repeat_interleave(&self, repeats: usize, dim: impl Int) -> Result<Tensor> {
        called("repeat_interleave", &["self", "repeats", "dim"], || {
            let (t, dim) = self.line(dim.to_i64())?;
            if !t.as_ref().is_in_channels_last_order() {
                return repeated(&t, repeats, dim);
            }
            // Channels are moved to the last dimension, in which order the contiguous copy is channels_last.
            let channels = t.rank() as i64 - 1;
            let dim = match dim {
                0 => 0,
                1 => channels as usize,
                dim => dim - 1,
            };
            repeated(&t.movedim(1, -1)?, repeats, dim)?.movedim(channels, 1)
        })
    }

    /// Repeats slice `i` of dimension `dim` `repeats[i]` times consecutively; one element applies to all. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let repeats = Tensor::new([0i64, 3])?;
    /// assert_eq!(Tensor::new([1, 2])?.repeat_interleave_each(&repeats, 0)?.to_vec::<i32>()?, [2, 2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range; repeats that are not integers, negative, or not one per slice.
    #[doc(alias = "repeat_interleave")]
    pub fn repeat_interleave_each(&self, repeats: &Tensor, dim: impl Int) -> Result<Tensor> {
        called("repeat_interleave_each", &["self", "repeats", "dim"], || {
            let (t, dim) = self.line(dim.to_i64())?;
            let count = t.shape()[dim];
            let wrong = |expected: String, got: String| -> crate::Error {
                Error::Value { op: "repeat_interleave_each", argument: "repeats", expected, got }.into()
            };
            if !repeats.dtype().is_integer()
                || repeats.rank() > 1
                || ![1, count].contains(&repeats.elem_count())
            {
                let got = format!("{} {:?}", repeats.dtype(), repeats.shape());
                return Err(wrong(format!("integers of one dimension, 1 or {count} of them"), got));
            }
            let repeats = repeats.detach().to_dtype(DType::I64)?.reshape([-1])?.expand([count])?;
            if count == 0 {
                return t.copy();
            }
            let (least, most) = repeats.aminmax(..)?;
            let (least, most) = (least.item::<i64>()?, most.item::<i64>()?);
            if least < 0 {
                return Err(wrong("numbers of 0 or more".to_string(), least.to_string()));
            }
            let most_each = i64::MAX / count as i64;
            if most > most_each {
                return Err(wrong(format!("at most {most_each} of each"), most.to_string()));
            }
            // Output position `k` belongs to the first slice whose cumulative count exceeds `k`.
            let ends = repeats.cumsum(0)?;
            let total = ends.select(0, -1)?.item::<i64>()?;
            let places = Tensor::arange_with(0, total, 1, (DType::I64, t.device()))?;
            t.index_select(dim, &ends.searchsorted_with(&places, true)?)
        })
    }

    /// The tensor with at least one dimension, and `dim` as a non-negative index.
    fn line(&self, dim: i64) -> Result<(Tensor, usize)> {
        let dim = wrap_dim("repeat_interleave", dim, self.rank())?;
        Ok((if self.rank() == 0 { self.reshape([1])? } else { self.clone() }, dim))
    }
}

/// Repeats each slice of dimension `dim` `repeats` times consecutively, in row-major order.
fn repeated(t: &Tensor, repeats: usize, dim: usize) -> Result<Tensor> {
    let mut sizes = t.shape().to_vec();
    sizes.insert(dim + 1, repeats);
    t.unsqueeze(dim + 1)?.expand(&sizes)?.copy()?.flatten(dim as i64, dim as i64 + 1)
}
