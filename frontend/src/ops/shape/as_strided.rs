//! `as_strided`
//!
//! Arguments:
//! - `stride`: the strides in elements.
//! - `storage_offset`: the element of the storage at which the view begins; None leaves it unchanged.
//! - `size`: the sizes of the view.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::whole;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::dims::{Dims, may_self_overlap};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view of the same memory with any sizes and strides, starting at this tensor's first element. Its gradient needs this
    /// tensor's geometry: it is saved for backward, and modifying it in place before that is an error.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3, 4])?;
    /// assert_eq!(a.as_strided(&[3, 2], &[1, 1])?.to_vec::<i32>()?, [1, 2, 2, 3, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Elements outside of the memory, or `shape` and `strides` of different lengths.
    pub fn as_strided(&self, shape: impl IntoShape, strides: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&shape.into_ints()), Arg::Ints(&strides.into_ints()), Arg::None])
    }

    /// [`Tensor::as_strided`] starting at element `offset` of the memory.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3, 4])?;
    /// assert_eq!(a.as_strided_with(2, 2, 1)?.to_vec::<i32>()?, [2, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn as_strided_with(
        &self,
        shape: impl IntoShape,
        strides: impl IntoShape,
        offset: usize,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&shape.into_ints()), Arg::Ints(&strides.into_ints()), whole(offset)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let list = |i: usize| -> RuleResult<Dims> {
        let wrong = |_| Error::Value {
            op: "as_strided",
            argument: if i == 1 { "size" } else { "stride" },
            expected: "0 or more in each dimension".to_string(),
            got: args.get(i).describe(),
        };
        args.ints(i)?.iter().map(|&n| usize::try_from(n).map_err(wrong)).collect()
    };
    let (sizes, strides) = (list(1)?, list(2)?);
    if sizes.len() != strides.len() {
        return Err(Error::Value {
            op: args.name(),
            argument: "stride",
            expected: format!("{} strides, one for each size", sizes.len()),
            got: format!("{strides:?}"),
        });
    }
    let offset = match args.optional_int(3)? {
        None => t.offset(),
        Some(given) => usize::try_from(given).map_err(|_| Error::Value {
            op: args.name(),
            argument: "storage_offset",
            expected: "0 or more".to_string(),
            got: given.to_string(),
        })?,
    };
    // A view without elements has no offset; one beyond the memory could overflow.
    let offset = if sizes.contains(&0) { t.offset() } else { offset };
    Ok(ViewSpec { offset, sizes, strides: Some(strides) })
}

/// The gradient of `input` from that of a view of its memory.
fn backward(
    grad: &Tensor,
    input: &Tensor,
    sizes: &[i64],
    strides: &[i64],
    offset: Option<i64>,
) -> Result<Tensor> {
    // The gradient of every element of memory that the input covers, viewed first with the geometry of the view, then with that
    // of the input.
    let reach: usize =
        input.shape().iter().zip(input.strides()).map(|(&n, &s)| n.saturating_sub(1) * s).sum();
    let own = input.storage_offset();
    let view_reach: i64 = sizes.iter().zip(strides).map(|(&n, &s)| (n - 1).max(0) * s).sum();
    // As in the rule: a view without elements starts at the offset of the input.
    let start = offset.filter(|_| !sizes.contains(&0)).map_or(own, |o| o as usize);
    let (first, last) = (own.min(start), (own + reach).max(start + view_reach as usize));
    let list = |from: &[i64]| from.iter().map(|&n| n as usize).collect::<Dims>();
    let (sizes, strides) = (list(sizes), list(strides));
    // The input itself, up to the strides of dimensions of size 1.
    let same_places =
        || sizes.iter().zip(strides.iter().zip(input.strides())).all(|(&n, (a, b))| n == 1 || a == b);
    if own == start && sizes.as_slice() == input.shape() && same_places() {
        return Ok(grad.clone());
    }
    let memory = super::gathered(grad, &[last - first + 1], |zeros| {
        zeros.as_strided_with(&sizes, &strides, start - first)
    })?;
    let of_input = memory.as_strided_with(input.shape(), input.strides(), own - first)?;
    if may_self_overlap(input.shape(), input.strides()) {
        // An element that the input repeats divides its gradient among the repetitions.
        let ones = input.detach().zeros_like()?.add(1)?;
        let shown = super::gathered(&ones, &[last - first + 1], |zeros| {
            zeros.as_strided_with(input.shape(), input.strides(), own - first)
        })?;
        return of_input.div(&shown.as_strided_with(input.shape(), input.strides(), own - first)?);
    }
    Ok(of_input)
}

fn samples() -> Vec<Sample> {
    let call = |n: &[usize], sizes: &[i64], strides: &[i64], offset: Option<i64>| {
        let offset = offset.map_or(SampleArg::None, SampleArg::Int);
        sample([plain(n), SampleArg::Ints(sizes.to_vec()), SampleArg::Ints(strides.to_vec()), offset])
    };
    vec![
        call(&[6], &[2, 3], &[3, 1], None),
        call(&[6], &[2, 2], &[1, 1], Some(2)),
        call(&[2, 3], &[3, 2], &[1, 3], None),
        call(&[6], &[], &[], Some(5)),
        call(&[6], &[0], &[1], None),
        call(&[6], &[0], &[1], Some(i64::MAX)),
        call(&[2], &[3, 2], &[0, 1], None),
    ]
}

/// `as_strided`
pub static DEF: OpDef = OpDef::new(
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    Rule::View(rule),
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let offset = if b.is_some(3) { Some(b.int(3)?) } else { None };
            backward(b.grad(0)?, &b.input_geometry(0)?, b.ints(1)?, b.ints(2)?, offset)
        })
    }),
    samples,
)
.errors(|| {
    vec![
        error(
            [plain(&[3]), SampleArg::Ints(vec![4]), SampleArg::Ints(vec![1]), SampleArg::None],
            "within the storage",
        ),
        error(
            [plain(&[3]), SampleArg::Ints(vec![2]), SampleArg::Ints(vec![]), SampleArg::None],
            "one for each size",
        ),
        error(
            [plain(&[3]), SampleArg::Ints(vec![2]), SampleArg::Ints(vec![-1]), SampleArg::None],
            "0 or more",
        ),
    ]
})
.with(OpFlags::STRIDE_DEPENDENT)
.with(OpFlags::COMPLEX);
