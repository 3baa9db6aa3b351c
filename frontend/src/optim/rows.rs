//! The elements of a gradient, or the rows of a sparse one, for an optimiser.

use crate::{Result, Tensor};

/// A gradient as optimisers take it.
pub(super) enum Gradient {
    /// An element for each of the parameter's.
    Whole(Tensor),
    /// Some rows.
    Rows(Rows),
}

/// The coalesced rows of a sparse gradient: blocks at coordinates of the sparse dimensions, usually one dimension.
pub(super) struct Rows {
    /// The coordinates of the blocks: the indices along each sparse dimension. Without sparse dimensions there is one
    /// block, the whole tensor.
    at: Vec<Tensor>,
    /// The gradient's values, `[rows, dense sizes...]`.
    pub(super) values: Tensor,
}

impl Gradient {
    /// A gradient, the rows of a sparse one coalesced.
    ///
    /// # Errors
    /// A layout that is neither strided nor COO; errors of the backend.
    pub(super) fn of(grad: Tensor) -> Result<Gradient> {
        match grad.as_ref().is_strided() {
            true => Ok(Gradient::Whole(grad)),
            false => Ok(Gradient::Rows(Rows::of(&grad)?)),
        }
    }

    /// The gradient with `factor` times the parameter added: an element for each of the parameter's.
    pub(super) fn plus(&self, p: &Tensor, factor: f64) -> Result<Tensor> {
        match self {
            Gradient::Whole(grad) if factor == 0.0 => Ok(grad.clone()),
            Gradient::Whole(grad) => grad.add_with(p, factor),
            Gradient::Rows(rows) => {
                let whole = p.detach().mul(factor)?;
                rows.add(&whole, &rows.values, 1.0)?;
                Ok(whole)
            }
        }
    }
}

impl Rows {
    /// The rows of a sparse gradient, coalesced since updates are not linear in them.
    ///
    /// # Errors
    /// As [`Gradient::of`].
    pub(super) fn of(grad: &Tensor) -> Result<Rows> {
        let dims = grad.sparse_dim()?;
        if dims == 0 {
            return Ok(Rows { at: Vec::new(), values: grad.to_dense()?.unsqueeze(0)? });
        }
        let grad = grad.as_coordinates()?.coalesce()?;
        let indices = grad.indices()?;
        let at = (0..dims as i64).map(|dim| indices.select(0, dim)).collect::<Result<Vec<_>>>()?;
        Ok(Rows { at, values: grad.values()? })
    }

    fn places(&self) -> Vec<Option<&Tensor>> {
        self.at.iter().map(Some).collect()
    }

    /// A copy of these rows of a table.
    pub(super) fn read(&self, table: &Tensor) -> Result<Tensor> {
        match self.at.as_slice() {
            [] => table.unsqueeze(0)?.copy(),
            [at] => table.index_select(0, at),
            _ => table.index(&self.places()),
        }
    }

    /// Replaces these rows of a table.
    pub(super) fn write(&self, table: &Tensor, values: &Tensor) -> Result<()> {
        match self.at.as_slice() {
            [] => table.unsqueeze(0)?.copy_(values)?,
            [at] => table.index_copy_(0, at, values)?,
            _ => table.index_put_(&self.places(), values)?,
        };
        Ok(())
    }

    /// Adds `factor` times these values to these rows of a table.
    pub(super) fn add(&self, table: &Tensor, values: &Tensor, factor: f64) -> Result<()> {
        match self.at.as_slice() {
            [] => table.unsqueeze(0)?.add_with_(values, factor)?,
            [at] => table.index_add_with_(0, at, values, factor)?,
            _ => table.index_put_with_(&self.places(), &values.mul(factor)?, true)?,
        };
        Ok(())
    }
}
