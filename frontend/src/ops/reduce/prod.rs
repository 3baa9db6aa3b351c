//! `prod`

use super::cases;
use super::forms::reduction;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, widened};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::sample::plain;
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Rule};

reduction! {
    /// The product over `dims`, or of all elements with `..`. Integers and bool give i64.
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

/// For each element the product of the others that it is reduced with, without a division: the total product divided by the
/// element is NaN at a zero, and wrong where the product overflows or underflows but the quotient does not.
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
        let table = by_halves(&moved.reshape_as_sizes(&[outer, n])?)?.reshape_as_sizes(&sizes)?;
        let mut back = vec![0; ndim];
        order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        return reorder(&table, &back);
    }
    by_halves(&x.reshape_as_sizes(&[1, x.elem_count()])?)?.reshape_as_sizes(x.shape())
}

/// Permutes the dimensions to this order.
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

/// The products of the others in each row, by a tree: products of pairs upwards, then back down, where each element is
/// multiplied by its sibling's product and that of its parent. Memory is proportional to the rows, also for each derivative.
fn by_halves(x: &Tensor) -> Result<Tensor> {
    let (outer, n) = (x.shape()[0], x.shape()[1]);
    let whole = n.next_power_of_two();
    let in_pairs = |level: &Tensor| level.reshape_as_sizes(&[outer, level.shape()[1] / 2, 2]);
    let mut level = x.constant_pad(&[0, (whole - n) as i64], Arg::Int(1))?;
    let mut pairs = Vec::new();
    while level.shape()[1] > 1 {
        let pair = in_pairs(&level)?;
        level = pair.select(2, 0)?.mul(&pair.select(2, 1)?)?;
        pairs.push(pair);
    }
    let mut others = level.ones_like()?;
    for pair in pairs.iter().rev() {
        let count = 2 * others.shape()[1];
        others = pair.flip(2)?.mul(&others.unsqueeze(2)?)?.reshape_as_sizes(&[outer, count])?;
    }
    // A zero times a product of others that overflows is 0, unless an element itself is infinite or NaN.
    let finite_with_zero = x.isfinite()?.all_keepdim(1)?.logical_and(&x.eq(0)?.any_keepdim(1)?)?;
    let others = others.narrow(1, 0, n)?;
    others.isnan()?.logical_and(&finite_with_zero)?.where_cond(0, &others)
}

/// `prod`
pub static DEF: OpDef = OpDef::new(
    "prod(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    Rule::Structured(super::sum::rule),
    Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let x = b.input(0)?;
                let grad = b.unsqueeze_reduced(&widened(b.grad(0)?)?, 0, b.arg(1), b.bool(2)?)?;
                cast(grad.mul(&others(&widened(&x)?, b.arg(1))?)?, x.dtype())
            })
        },
    },
    || cases::over_dims(plain, &[]),
)
.forms(Forms::Out)
.errors(|| cases::dim_errors(&[]))
.with(OpFlags::MAY_OVERFLOW)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
