//! `masked_select`

use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::index::geometry::{mask as mask_of, zeros};
use crate::ops::rules::FIRST_TWO;
use crate::ops::sample::{Fill, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::broadcast;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The elements where `mask` is true, in row-major order, as a vector.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// assert_eq!(a.masked_select(&a.gt(1)?)?.to_vec::<i32>()?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast.
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), mask.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    mask_of(args, 1)?;
    Ok(Plan::one(t.dtype(), args.broadcast(FIRST_TWO)?, t.dtype(), Strides::Contiguous))
}

/// `masked_select`
pub static DEF: OpDef = OpDef::new(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    Rule::Allocates(rule),
    Derivative::of_inputs(0b10, |b, g| {
        g.set(0, || {
            let shape = broadcast("masked_select", b.sizes(0), b.sizes(1))?;
            let numel = shape.iter().product();
            let places = b.input(1)?.expand(&shape)?.reshape_as_sizes(&[numel])?.nonzero()?;
            let places = places.reshape_as_sizes(&[places.shape()[0]])?;
            zeros(b.grad(0)?, &[numel])?.index_copy(0, &places, b.grad(0)?)?.reshape_as_sizes(&shape)
        })
    }),
    || {
        let mask = |sizes: &[usize]| fixed(sizes, DType::BOOL, Fill::Values(vec![1.0, 0.0, 0.0, 1.0, 1.0]));
        let call = |sizes: &[usize], m: &[usize]| sample([plain(sizes), mask(m)]);
        vec![
            call(&[], &[]),
            call(&[7], &[7]),
            call(&[3, 4], &[3, 4]),
            call(&[3, 4], &[4]),
            call(&[4], &[3, 1]),
            call(&[2, 3, 4], &[3, 1]),
            call(&[2, 3, 2, 2], &[2, 3, 2, 2]),
            call(&[2, 1, 2, 3, 2], &[2, 1, 2]),
            call(&[0, 3], &[3]),
        ]
    },
)
.errors(|| {
    let mask = |sizes: &[usize], dtype| fixed(sizes, dtype, Fill::Values(vec![1.0]));
    vec![
        error([plain(&[3]), mask(&[3], DType::F32)], "a mask of bool"),
        error([plain(&[3]), mask(&[2], DType::BOOL)], "do not broadcast"),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
