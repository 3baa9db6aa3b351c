//! Coordinate grids.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::handles;
use keyway_dispatcher::error::Error;
use std::borrow::Borrow;

impl Tensor {
    /// The coordinates of all points of a grid: one tensor for each vector, expanded along the dimensions of the others, as
    /// views. Dimension `k` is that of vector `k`. A 0-d tensor is a vector of one element.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, y) = (Tensor::new([1, 2])?, Tensor::new([3, 4, 5])?);
    /// let grid = Tensor::meshgrid(&[&x, &y])?;
    /// assert_eq!(grid[0].to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    /// assert_eq!(grid[1].to_vec::<i32>()?, [3, 4, 5, 3, 4, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of two dimensions or more.
    pub fn meshgrid<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Vec<Tensor>> {
        Tensor::meshgrid_with(tensors, "ij")
    }

    /// [`Tensor::meshgrid`] with the `indexing` `"ij"`, or `"xy"`, which exchanges the first two dimensions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1, 2, 3])?, Tensor::new([4, 5])?);
    /// assert_eq!(Tensor::meshgrid_with(&[&a, &b], "ij")?[0].shape(), [3, 2]);
    /// assert_eq!(Tensor::meshgrid_with(&[&a, &b], "xy")?[0].to_vec2::<i32>()?, [[1, 2, 3], [1, 2, 3]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; an `indexing` that is neither `ij` nor `xy`.
    pub fn meshgrid_with<T: Borrow<Tensor>>(tensors: &[T], indexing: &str) -> Result<Vec<Tensor>> {
        called("meshgrid", &["tensors", "indexing"], || meshgrid(&handles(tensors), indexing))
    }
}

fn meshgrid(tensors: &[Tensor], indexing: &str) -> Result<Vec<Tensor>> {
    if !["ij", "xy"].contains(&indexing) {
        let (expected, got) = ("`ij` or `xy`".to_string(), format!("`{indexing}`"));
        return Err(Error::Value { op: "meshgrid", argument: "indexing", expected, got }.into());
    }
    if let Some(t) = tensors.iter().find(|t| t.rank() > 1) {
        let expected = "of at most one dimension".to_string();
        let got = t.shape().into();
        return Err(Error::Shape { op: "meshgrid", argument: "tensors", expected, got }.into());
    }
    let count = tensors.len();
    // The dimension of each vector.
    let dim = |k: usize| if indexing == "xy" && count > 1 && k < 2 { 1 - k } else { k };
    let mut sizes = vec![1; count];
    tensors.iter().enumerate().for_each(|(k, t)| sizes[dim(k)] = t.elem_count());
    let grid = tensors.iter().enumerate().map(|(k, t)| {
        let mut own = vec![1; count];
        own[dim(k)] = t.elem_count();
        t.reshape_as_sizes(&own)?.expand(&sizes)
    });
    grid.collect()
}
