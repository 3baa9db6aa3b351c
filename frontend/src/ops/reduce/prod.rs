//! `prod`

use super::cases;
use super::forms::reduction;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::plain;
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Rule};

reduction! {
    /// The products over `dims`, or over all with `..`. Integers and bool give i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.prod(1)?.to_vec::<f32>()?, [2.0, 12.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn prod(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: prod_keepdim, all: prod_all
}

/// For each element the product of the others that it is reduced with, without a division: the table of
/// all pairs with ones on its diagonal is multiplied along the second place.
fn others(x: &Tensor, dims: Arg<'_>) -> Result<Tensor> {
    let ndim = x.rank();
    let mut order: Vec<usize> = (0..ndim).collect();
    if let Arg::Ints(list) = dims
        && !list.is_empty()
    {
        let reduced = list.iter().map(|&d| wrap_dim("prod", d, ndim)).collect::<RuleResult<Vec<_>>>()?;
        order.sort_by_key(|d| reduced.contains(d));
        let kept = ndim - reduced.len().min(ndim);
        let moved = reorder(x, &order)?;
        let (outer, n): (usize, usize) =
            (moved.shape()[..kept].iter().product(), moved.shape()[kept..].iter().product());
        let sizes = moved.shape().to_vec();
        let table = pairs(&moved.reshape_as_sizes(&[outer, n])?)?.reshape_as_sizes(&sizes)?;
        let mut back = vec![0; ndim];
        order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        return reorder(&table, &back);
    }
    pairs(&x.reshape_as_sizes(&[1, x.elem_count()])?)?.reshape_as_sizes(x.shape())
}

/// The dimensions in another order.
fn reorder(x: &Tensor, order: &[usize]) -> Result<Tensor> {
    let (mut x, mut now) = (x.clone(), (0..order.len()).collect::<Vec<_>>());
    for (to, wanted) in order.iter().enumerate() {
        if let Some(from) = now.iter().position(|d| d == wanted).filter(|from| *from != to) {
            x = x.transpose(to, from)?;
            now.swap(to, from);
        }
    }
    Ok(x)
}

fn pairs(x: &Tensor) -> Result<Tensor> {
    let (outer, n) = (x.shape()[0], x.shape()[1]);
    let diagonal = (0..n * n).map(|i| i / n.max(1) == i % n.max(1)).collect();
    let diagonal = Tensor::from_vec(diagonal, [1, n, n])?.to_device(x.device())?;
    diagonal.where_cond(1.0, &x.reshape_as_sizes(&[outer, 1, n])?)?.prod(2)
}

/// `prod`
pub static DEF: OpDef = OpDef {
    schema: "prod(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    rule: Rule::Structured(super::sum::rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let x = b.input(0)?;
                let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
                if !x.eq(0.0)?.any(..)?.item::<bool>()? {
                    let product = b.unreduce(&b.output(0)?, 0, b.arg(1), b.bool(2)?)?;
                    return grad.mul(&product.div(&x)?);
                }
                grad.mul(&others(&x, b.arg(1))?)
            })
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples: || cases::over_dims(plain, &[]),
    errors: || cases::dim_errors(&[]),
    entry: Entry::new(),
}
.with(Facts::MAY_OVERFLOW)
.with(Facts::AUTOCAST_F32);
