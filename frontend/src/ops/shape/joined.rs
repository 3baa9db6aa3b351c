//! Stacking, flipping, rotation and diagonals, implemented with `cat`, `flip` and views.

use super::placed;
use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::Int;
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;
use std::borrow::Borrow;

/// Each tensor with at least `count` dimensions: dimensions of size 1 are prepended, except the third, which is appended.
fn at_least(tensors: &[impl Borrow<Tensor>], count: usize) -> Result<Vec<Tensor>> {
    tensors.iter().map(|t| grown(t.borrow().clone(), count)).collect()
}

/// [`at_least`] of one tensor.
pub(super) fn grown(mut made: Tensor, count: usize) -> Result<Tensor> {
    while made.rank() < count.min(2) {
        made = made.unsqueeze(0)?;
    }
    if made.rank() < count { made.unsqueeze(-1) } else { Ok(made) }
}

impl Tensor {
    /// Concatenates tensors along dimension 1, or along dimension 0 if they are one-dimensional.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1, 2])?, Tensor::new([3])?);
    /// assert_eq!(Tensor::hstack(&[&a, &b])?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::cat`].
    pub fn hstack<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Tensor> {
        called("hstack", &["tensors"], || {
            let tensors = at_least(tensors, 1)?;
            Tensor::cat(&tensors, i64::from(tensors.first().is_some_and(|t| t.rank() > 1)))
        })
    }

    /// Concatenates tensors along dimension 0; one-dimensional tensors are rows.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1, 2])?, Tensor::new([[3, 4], [5, 6]])?);
    /// assert_eq!(Tensor::vstack(&[&a, &b])?.shape(), [3, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::cat`].
    pub fn vstack<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Tensor> {
        called("vstack", &["tensors"], || Tensor::cat(&at_least(tensors, 2)?, 0))
    }

    /// Concatenates tensors along dimension 2; one-dimensional tensors are rows, and matrices have depth 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1, 2])?, Tensor::new([3, 4])?);
    /// let made = Tensor::dstack(&[&a, &b])?;
    /// assert_eq!((made.shape(), made.to_vec::<i32>()?), (&[1, 2, 2][..], vec![1, 3, 2, 4]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::cat`].
    pub fn dstack<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Tensor> {
        called("dstack", &["tensors"], || Tensor::cat(&at_least(tensors, 3)?, 2))
    }

    /// Reverses the columns: [`Tensor::flip`] of dimension 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[1, 2], [3, 4]])?.fliplr()?.to_vec::<i32>()?, [2, 1, 4, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than 2 dimensions.
    pub fn fliplr(&self) -> Result<Tensor> {
        called("fliplr", &["self"], || self.flip(1))
    }

    /// Reverses the rows: [`Tensor::flip`] of dimension 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[1, 2], [3, 4]])?.flipud()?.to_vec::<i32>()?, [3, 4, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn flipud(&self) -> Result<Tensor> {
        called("flipud", &["self"], || self.flip(0))
    }

    /// Rotates by 90 degrees in the plane of the first two dimensions, from the first towards the second.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[1, 2], [3, 4]])?.rot90()?.to_vec::<i32>()?, [2, 4, 1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than 2 dimensions.
    pub fn rot90(&self) -> Result<Tensor> {
        self.rot90_with(1, (0, 1))
    }

    /// [`Tensor::rot90`] `k` times, in the plane of these dimensions, from the first towards the second.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[1, 2], [3, 4]])?.rot90_with(-1, (0, 1))?.to_vec::<i32>()?, [3, 1, 4, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dimensions out of range, or equal.
    pub fn rot90_with(&self, k: impl Int, (first, second): (i64, i64)) -> Result<Tensor> {
        called("rot90", &["self", "k", "dims"], || {
            let k = k.to_i64();
            let [from, to] = [first, second].map(|dim| wrap_dim("rot90", dim, self.rank()));
            if from? == to? {
                let (op, argument) = ("rot90", "dims");
                let (expected, got) =
                    ("two different dimensions".to_string(), format!("({first}, {second})"));
                return Err(Error::Value { op, argument, expected, got }.into());
            }
            match k.rem_euclid(4) {
                0 => self.copy(),
                1 => self.flip(second)?.transpose(first, second),
                2 => self.flip((first, second)),
                _ => self.flip(first)?.transpose(first, second),
            }
        })
    }

    /// For a vector, the matrix with its elements on the diagonal and 0 off it. For a matrix, its diagonal, as a view.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let made = Tensor::new([1, 2])?.diag()?;
    /// assert_eq!(made.to_vec::<i32>()?, [1, 0, 0, 2]);
    /// assert_eq!(made.diag()?.to_vec::<i32>()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another rank.
    pub fn diag(&self) -> Result<Tensor> {
        self.diag_with(0)
    }

    /// [`Tensor::diag`] for another diagonal: 1 is the one above the main one, -1 the one below.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let made = Tensor::new([7])?.diag_with(1)?;
    /// assert_eq!(made.to_vec::<i32>()?, [0, 7, 0, 0]);
    /// assert_eq!(made.diag_with(1)?.to_vec::<i32>()?, [7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor whose rank is neither 1 nor 2.
    pub fn diag_with(&self, diagonal: impl Int) -> Result<Tensor> {
        called("diag", &["self", "diagonal"], || match self.rank() {
            1 => self.diag_embed_with(diagonal),
            2 => self.diagonal_with(diagonal, 0, 1),
            _ => {
                let expected =
                    "of one dimension or two; `diag_embed` and `diagonal` take batches".to_string();
                let (op, argument, got) = ("diag", "self", self.shape().into());
                Err(Error::Shape { op, argument, expected, got }.into())
            }
        })
    }

    /// Matrices in the last two dimensions with the elements of the last dimension on their diagonals and 0 elsewhere.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[1, 2], [3, 4]])?.diag_embed()?.to_vec::<i32>()?, [1, 0, 0, 2, 3, 0, 0, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor without dimensions.
    pub fn diag_embed(&self) -> Result<Tensor> {
        self.diag_embed_with(0)
    }

    /// [`Tensor::diag_embed`] for another diagonal: 1 is the one above the main one, -1 the one below.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[7], [8]])?.diag_embed_with(-1)?.to_vec::<i32>()?, [0, 0, 7, 0, 0, 0, 8, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor without dimensions; an offset for which the sizes overflow.
    pub fn diag_embed_with(&self, diagonal: impl Int) -> Result<Tensor> {
        called("diag_embed", &["self", "diagonal"], || {
            let diagonal = diagonal.to_i64();
            let side = usize::try_from(diagonal.unsigned_abs()).ok().zip(self.shape().last());
            let Some(side) = side.and_then(|(off, &size)| size.checked_add(off)) else {
                let expected = "of one dimension or more, on a diagonal that fits a matrix".to_string();
                let (op, argument, got) = ("diag_embed", "self", self.shape().into());
                return Err(Error::Shape { op, argument, expected, got }.into());
            };
            let mut sizes = self.shape().to_vec();
            sizes.pop();
            sizes.extend([side; 2]);
            placed(self, &sizes, |whole| whole.diagonal_with(diagonal, -2, -1))
        })
    }

    /// A copy with the slice `index` of dimension `dim` replaced by `src`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(a.select_scatter(&Tensor::new([8, 9])?, 1, 0)?.to_vec::<i32>()?, [8, 2, 9, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::select`]; a shape that does not broadcast to the slice.
    pub fn select_scatter(&self, src: &Tensor, dim: impl Int, index: impl Int) -> Result<Tensor> {
        called("select_scatter", &["self", "src", "dim", "index"], || {
            let made = self.copy()?;
            made.select(dim, index)?.copy_(src)?;
            Ok(made)
        })
    }

    /// A copy with `length` slices of dimension `dim`, from `start` on, replaced by `src`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3, 4])?;
    /// assert_eq!(a.narrow_scatter(&Tensor::new([8, 9])?, 0, 1, 2)?.to_vec::<i32>()?, [1, 8, 9, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::narrow`]; a shape that does not broadcast to the slices.
    pub fn narrow_scatter(
        &self,
        src: &Tensor,
        dim: impl Int,
        start: impl Int,
        length: usize,
    ) -> Result<Tensor> {
        called("narrow_scatter", &["self", "src", "dim", "start", "length"], || {
            let made = self.copy()?;
            made.narrow(dim, start, length)?.copy_(src)?;
            Ok(made)
        })
    }
}
