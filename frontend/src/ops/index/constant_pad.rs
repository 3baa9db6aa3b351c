//! `constant_pad`
//!
//! Arguments:
//! - `value`: the value of the padding.

use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{kept, wrong_value};
use crate::ops::rules::holds;
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, contiguous_strides};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Pads with `value`. The widths are two numbers for each dimension, before and after, starting with the last dimension; a
    /// negative width crops.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1, 2])?.constant_pad(&[1, -1], 0)?.to_vec::<i32>()?, [0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An odd number of widths, more than two per dimension, or widths that crop more than the size.
    pub fn constant_pad<'a>(&'a self, widths: &[i64], value: impl Into<Arg<'a>>) -> Result<Tensor> {
        let value = value.into();
        DEF.run(&[self.into(), Arg::Ints(widths), value])
    }
}

/// The sizes after padding, also for `pad`.
pub(super) fn padded_sizes(args: &Args<'_>) -> RuleResult<Dims> {
    let t = args.tensor(0)?;
    let widths = args.ints(1)?;
    let mut sizes = Dims::from_slice(t.sizes());
    if widths.len() % 2 != 0 || widths.len() > 2 * t.ndim() {
        return Err(wrong_value(args, 1, format!("two widths for each of at most {} dimensions", t.ndim())));
    }
    for (k, pair) in widths.chunks_exact(2).enumerate() {
        let d = sizes.len() - 1 - k;
        let (before, after, whole) = (i128::from(pair[0]), i128::from(pair[1]), sizes[d] as i128);
        // Cropping is limited by the original size, regardless of padding on the other side.
        if before.min(0) + after.min(0) < -whole {
            return Err(wrong_value(args, 1, format!("widths that take at most {whole} off dimension {d}")));
        }
        sizes[d] = usize::try_from(whole + before + after)
            .map_err(|_| wrong_value(args, 1, format!("a size of dimension {d} that can be counted")))?;
    }
    Ok(sizes)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let sizes = padded_sizes(args)?;
    holds(args, 2, t.dtype())?;
    let strides = kept(t, &sizes);
    Ok(Plan::one(t.dtype(), sizes, t.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (mut from, plan) = (tensor(args, 0)?, rule(args)?);
    let spec = &plan.outputs[0];
    let strides = match &spec.strides {
        Strides::Exact(strides) => Dims::clone(strides),
        _ => contiguous_strides(&spec.sizes),
    };
    let made = Tensor::uninit_strided(&spec.sizes, &strides, (spec.dtype, from.device()))?;
    made.fill_(args.get(2))?;
    let mut inside = made.clone();
    for (k, pair) in args.ints(1)?.chunks_exact(2).enumerate() {
        let d = spec.sizes.len() - 1 - k;
        let [before, after] = [pair[0], pair[1]].map(|width| width.saturating_neg().max(0));
        let kept = from.shape()[d] as i64 - before.saturating_add(after);
        if kept <= 0 {
            return Ok(made);
        }
        from = from.narrow(d, before, kept as usize)?;
        inside = inside.narrow(d, pair[0].max(0), kept as usize)?;
    }
    inside.copy_(&from)?;
    Ok(made)
}

/// `constant_pad`
pub static DEF: OpDef = OpDef::new(
    "constant_pad(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        let back: Vec<i64> = b.ints(1)?.iter().map(|w| -w).collect();
        g.set(0, || b.grad(0)?.constant_pad(&back, 0))
    }),
    || {
        let call = |sizes: &[usize], widths: &[i64], value| {
            sample([plain(sizes), SampleArg::Ints(widths.to_vec()), SampleArg::Int(value)])
        };
        vec![
            call(&[], &[], 0),
            call(&[3], &[1, 2], 1),
            call(&[5], &[-1, -2], 1),
            call(&[2, 3], &[1, -1], 0),
            call(&[2, 3], &[0, 1, 2, 0], 3),
            call(&[2, 3, 4], &[1, 1, -1, 0], 0),
            call(&[1, 2, 2, 3], &[1, 0, 2, 1], 1),
            call(&[1, 2, 2, 1, 2], &[1, 1, 0, 2, -1, 1], 2),
            call(&[0, 3], &[0, 0, 1, 1], 1),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    let call = |widths: &[i64], message| {
        error([plain(&[3]), SampleArg::Ints(widths.to_vec()), SampleArg::Int(0)], message)
    };
    let bytes = [fixed(&[3], DType::I8, Fill::Index(3)), SampleArg::Ints(vec![1, 1]), SampleArg::Int(300)];
    let beyond = error(bytes, "a number that i8 holds");
    vec![
        beyond,
        call(&[1], "two widths"),
        call(&[1, 1, 1, 1], "two widths"),
        call(&[-2, -2], "off dimension 0"),
        call(&[-4, 4], "off dimension 0"),
        call(&[i64::MAX, i64::MIN], "off dimension 0"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
