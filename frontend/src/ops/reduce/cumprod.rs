//! `cumprod`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{Fill, SampleArg, error, plain, sample, tensor};
use crate::tensor::Int;
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// The products of all elements up to and with each one along `dim`. Integers and bool give i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// assert_eq!(x.cumprod(0)?.to_vec::<i64>()?, [1, 2, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn cumprod(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64())])
    }
}

/// The gradient where an element is 0, without a division: the products are taken over the table of all
/// pairs with ones on its diagonal.
fn through_zeros(x: &Tensor, grad: &Tensor, dim: i64) -> Result<Tensor> {
    let last = x.rank() as i64 - 1;
    let (x, grad) = (x.transpose(dim, last)?, grad.transpose(dim, last)?);
    let n = x.dim(-1)?;
    let (mut row, mut square) = (x.shape().to_vec(), vec![1; x.rank() - 1]);
    row.insert(x.rank() - 1, 1);
    square.extend([n, n]);
    let mask = |keep: fn(usize, usize) -> bool| -> Result<Tensor> {
        Tensor::from_vec((0..n * n).map(|i| keep(i / n, i % n)).collect(), &square)?.to_device(x.device())
    };
    let products = mask(|i, j| i == j)?.where_cond(1.0, &x.reshape_as_sizes(&row)?)?.cumprod(-1)?;
    let weighted = products.mul(&grad.reshape_as_sizes(&row)?)?;
    mask(|i, j| j >= i)?.where_cond(&weighted, 0.0)?.sum(-1)?.transpose(dim, last)
}

/// `cumprod`
pub static DEF: OpDef = OpDef {
    schema: "cumprod(Tensor self, int dim) -> Tensor",
    rule: Rule::Structured(super::cumsum::rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let (x, grad, dim) = (b.input(0)?, b.grad(0)?, b.int(1)?);
                if x.rank() == 0 {
                    return Ok(grad.clone());
                }
                if x.eq(0.0)?.any(..)?.item::<bool>()? {
                    return through_zeros(&x, grad, dim);
                }
                grad.mul(&b.output(0)?)?.cumsum_reversed(dim)?.div(&x)
            })
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples: || {
        let call = |sizes: &[usize], dim: i64| sample([plain(sizes), SampleArg::Int(dim)]);
        let zeros = tensor(&[2, 4], Fill::Values(vec![1.5, 0.0, -0.5, 2.0, 0.0, 1.0, 0.0, 3.0]));
        let mut all = vec![
            call(&[], 0),
            call(&[5], 0),
            call(&[3, 4], 0),
            call(&[3, 4], -1),
            call(&[2, 3, 4], 1),
            call(&[2, 3, 2, 2], -2),
            call(&[2, 1, 2, 3, 2], 3),
            call(&[2, 0, 4], 1),
        ];
        all.push(sample([zeros, SampleArg::Int(1)]));
        all
    },
    errors: || vec![error([plain(&[3]), SampleArg::Int(1)], "out of range")],
    entry: Entry::new(),
}
.with(Facts::MAY_OVERFLOW)
.with(Facts::AUTOCAST_F32);
