//! `slice`

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult, shown};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view of every `step`-th index of dimension `dim` in `start..end`. Negative bounds count from the end; bounds out of
    /// range are clamped, as in Python.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([0, 1, 2, 3, 4])?;
    /// assert_eq!(a.slice(0, Some(1), None, 2)?.to_vec::<i32>()?, [1, 3]);
    /// assert_eq!(a.slice(0, Some(-2), None, 1)?.to_vec::<i32>()?, [3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range; a step below 1, since strides are never negative (`flip` copies).
    pub fn slice(
        &self,
        dim: impl Int,
        start: Option<i64>,
        end: Option<i64>,
        step: impl Int,
    ) -> Result<Tensor> {
        let position = |p: Option<i64>| Arg::optional(p);
        DEF.run(&[
            self.into(),
            Arg::Int(dim.to_i64()),
            position(start),
            position(end),
            Arg::Int(step.to_i64()),
        ])
    }

    /// A view of `length` indices of dimension `dim` from `start` on; a negative `start` counts from the end.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([0, 1, 2, 3, 4])?;
    /// assert_eq!(a.narrow(0, 1, 3)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A range outside of the dimension, a dimension out of range.
    pub fn narrow(&self, dim: impl Int, start: impl Int, length: usize) -> Result<Tensor> {
        called("narrow", &["self", "dim", "start", "length"], || {
            let dim = dim.to_i64();
            let start = start.to_i64();
            let size = self.dim(dim)?;
            let from = if start < 0 { start.saturating_add(size as i64) } else { start };
            let end = usize::try_from(from)
                .ok()
                .and_then(|from| from.checked_add(length))
                .filter(|&end| end <= size);
            let Some(end) = end else {
                return Err(Error::Value {
                    op: "narrow",
                    argument: "start, length",
                    expected: format!("within dimension {dim} of size {size}"),
                    got: format!("{}, {length}", shown(start)),
                }
                .into());
            };
            self.slice(dim, Some(from), Some(end as i64), 1)
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    if t.ndim() == 0 {
        let expected = "of one dimension at least".to_string();
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: Box::default() });
    }
    let dim = args.dim(1, t.ndim())?;
    let step = args.int(4)?;
    if step < 1 {
        return Err(Error::Value {
            op: args.name(),
            argument: "step",
            expected: "1 or more; `flip` reverses".to_string(),
            got: step.to_string(),
        });
    }
    let size = t.sizes()[dim] as i64;
    let position = |given: Option<i64>, default: i64| match given {
        None => default,
        Some(p) if p < 0 => p.saturating_add(size).max(0),
        Some(p) => p.min(size),
    };
    let start = position(args.optional_int(2)?, 0);
    let length = (position(args.optional_int(3)?, size) - start).max(0) as usize;
    let (mut sizes, mut strides) = (Dims::from_slice(t.sizes()), Dims::from_slice(t.strides()));
    // The products of sizes and strides of a tensor without elements may overflow.
    let skipped = if t.sizes().contains(&0) || length == 0 { 0 } else { start as usize * strides[dim] };
    let offset = t.offset() + skipped;
    sizes[dim] = length.div_ceil(step as usize);
    if sizes[dim] > 1 {
        strides[dim] = strides[dim].saturating_mul(step as usize);
    }
    Ok(ViewSpec { offset, sizes, strides: Some(strides) })
}

fn samples() -> Vec<Sample> {
    let position = |p: Option<i64>| p.map_or(SampleArg::None, SampleArg::Int);
    let call = |sizes: &[usize], dim, start, end, step| {
        sample([plain(sizes), SampleArg::Int(dim), position(start), position(end), SampleArg::Int(step)])
    };
    vec![
        call(&[5], 0, Some(1), Some(4), 1),
        call(&[5], 0, None, None, 2),
        call(&[2, 5], -1, Some(-3), Some(-1), 1),
        call(&[2, 5], 1, Some(4), Some(2), 1),
        call(&[2, 5], 0, Some(-9), Some(9), 3),
        call(&[3, 2, 4], 2, Some(1), None, 2),
        call(&[2, 3, 2, 2], 1, Some(1), None, 1),
        call(&[2, 1, 2, 5, 2], -2, None, Some(-1), 2),
        call(&[0, 2], 0, None, Some(1), 1),
    ]
}

/// `slice`
pub static DEF: OpDef = OpDef::new(
    "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let position = |i: usize| if b.is_some(i) { b.int(i).map(Some) } else { Ok(None) };
            super::placed_back(b, |whole| whole.slice(b.int(1)?, position(2)?, position(3)?, b.int(4)?))
        })
    }),
    samples,
)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Int(0), SampleArg::None, SampleArg::None, SampleArg::Int(-1)], "flip"),
        error(
            [plain(&[3]), SampleArg::Int(1), SampleArg::None, SampleArg::None, SampleArg::Int(1)],
            "out of range",
        ),
        error(
            [plain(&[]), SampleArg::Int(0), SampleArg::None, SampleArg::None, SampleArg::Int(1)],
            "one dimension",
        ),
    ]
})
.with(OpFlags::COMPLEX);
