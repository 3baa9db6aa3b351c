//! `multinomial`
//!
//! Arguments:
//! - `num_samples`: the number of samples of each row.
//! - `replacement`: whether an index may be drawn more than once.

use crate::error::Result;
use crate::ops::composite::{one, tensor, whole};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{unary_real, wrong_shape, wrong_value};
use crate::ops::sample::{
    ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, sample, tensor as filled,
};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Draws `num_samples` indices from each row without replacement, with probabilities proportional to the elements. The
    /// result is i64, of `[num_samples]` or `[rows, num_samples]`.
    ///
    /// Each draw takes one f64 `u` of the stream per element, as [`Tensor::rand`] does, and selects the indices of the smallest
    /// `-log(1 - u) / p`, in order, which is equivalent to sequential draws (P. S. Efraimidis, P. G. Spirakis, "Weighted random
    /// sampling with a reservoir", 2006). The computation is in f64, so a seed gives the same samples on every device, unless
    /// two keys differ only by rounding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let p = Tensor::new([0.0f32, 3.0, 0.0])?;
    /// assert_eq!(p.multinomial(1)?.to_vec::<i64>()?, [1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A rank other than 1 or 2; a dtype that is not a float; no samples; an element that is negative, infinite or NaN; a row
    /// with fewer positive elements than samples.
    pub fn multinomial(&self, num_samples: usize) -> Result<Tensor> {
        self.multinomial_with(num_samples, false)
    }

    /// [`Tensor::multinomial`], or with `replacement` independent draws: each takes one value and selects the first index whose
    /// cumulative probability exceeds it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let p = Tensor::new([0.0f32, 3.0, 0.0])?;
    /// assert_eq!(p.multinomial_with(4, true)?.to_vec::<i64>()?, [1; 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same, but with replacement only a row of zeros is refused, not one with few positive elements.
    pub fn multinomial_with(&self, num_samples: usize, replacement: bool) -> Result<Tensor> {
        let rows = if self.rank() == 2 { self.shape()[0] } else { 1 };
        let draws = if replacement { rows.saturating_mul(num_samples) } else { self.elem_count() };
        let [seed, offset] = super::place_of(self.device(), draws, super::Words::Two)?;
        DEF.run(&[self.into(), whole(num_samples), Arg::Bool(replacement), seed, offset])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, dtype) = (args.tensor(0)?, unary_real(args)?.compute);
    if !(1..=2).contains(&t.ndim()) {
        return Err(wrong_shape(args, 0, "of 1 or 2 dimensions, a row or several".into(), t.sizes()));
    }
    let (rows, categories) = t.sizes().split_at(t.ndim() - 1);
    let drawn = args.int(1)?;
    if drawn < 1 {
        return Err(wrong_value(args, 1, "1 or more".into()));
    }
    if categories == [0] {
        return Err(wrong_shape(args, 0, "of one element in a row at least".into(), t.sizes()));
    }
    if !args.bool(2)? && drawn > categories[0] as i64 {
        let expected = format!("at most the {} elements of a row without replacement", categories[0]);
        return Err(wrong_value(args, 1, expected));
    }
    let mut sizes = Dims::from_slice(rows);
    sizes.push(drawn as usize);
    Ok(Plan::one(dtype, sizes, DType::I64, Strides::Contiguous))
}

/// Refuses invalid distributions, which reads the elements. `most` holds the maximum of each row.
fn check(args: &Args<'_>, p: &Tensor, most: &Tensor, least: i64) -> Result<()> {
    let wrong = |expected: &str, got: String| {
        let (op, argument) = (args.name(), args.op.schema.param_name(0));
        Err(Error::Value { op, argument, expected: expected.to_string(), got }.into())
    };
    // The extrema of rows with a NaN are NaN, which no range contains.
    let range = 0.0..f64::INFINITY;
    if !range.contains(&p.min_all()?.item()?) || !range.contains(&most.max_all()?.item()?) {
        return wrong("numbers of 0 or more", "one that is negative, infinite or NaN".to_string());
    }
    let fewest = match least {
        1 => i64::from(most.min_all()?.item::<f64>()? > 0.0),
        _ => p.gt(0)?.to_dtype(DType::I64)?.sum(-1)?.min_all()?.item::<i64>()?,
    };
    if fewest < least {
        let expected = match least {
            1 => "a number above 0 in each row",
            _ => "as many numbers above 0 in each row as samples, or `replacement`",
        };
        return wrong(expected, format!("a row with {fewest}"));
    }
    Ok(())
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, drawn, replacement) = (tensor(args, 0)?, args.int(1)? as usize, args.bool(2)?);
    let [rows, n] = [t.elem_count() / t.dim(-1)?, t.dim(-1)?];
    let sizes = [&t.shape()[..t.rank() - 1], &[drawn]].concat();
    if rows == 0 {
        return Tensor::zeros_with(&sizes, (DType::I64, t.device()));
    }
    let p = t.to_dtype(DType::F64)?.contiguous()?.reshape_as_sizes(&[rows, n])?;
    let most = p.amax_keepdim(-1)?;
    check(args, &p, &most, if replacement { 1 } else { drawn as i64 })?;
    // Scaled so that no sum overflows; sums of narrower dtypes cannot overflow in f64.
    let p = if t.dtype() == DType::F64 { p.div(&most)? } else { p };
    let count = if replacement { drawn } else { n };
    let u = Tensor::uninit([rows, count], (DType::F64, t.device()))?;
    let (low, high) = (Arg::Float(0.0), Arg::Float(1.0));
    super::uniform::DEF.run_in_place(&[(&u).into(), low, high, args.get(3), args.get(4)])?;
    let places = if replacement {
        let sums = p.cumsum(-1)?;
        sums.searchsorted_with(&u.mul(&sums.narrow(-1, n - 1, 1)?)?, true)?
    } else {
        let keys = u.neg()?.log1p()?.neg()?.div(&p)?;
        // If `u` and the probability are 0, the quotient is NaN.
        let keys = p.gt(0)?.where_cond(&keys, f64::INFINITY)?;
        keys.topk_with(drawn, -1, false, true)?.1
    };
    places.reshape_as_sizes(&sizes)
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], count, replacement| {
        let p = filled(sizes, Fill::Values(vec![1.0, 0.0, 3.0, 0.5, 2.0, 0.25, 7.0]));
        let place = [SampleArg::Int(7), SampleArg::Int(3)];
        sample([p, SampleArg::Int(count), SampleArg::Bool(replacement)].into_iter().chain(place))
    };
    vec![
        call(&[1], 3, true),
        call(&[7], 20, true),
        call(&[7], 6, false),
        call(&[3, 5], 4, true),
        call(&[3, 5], 2, false),
        call(&[0, 5], 2, true),
        call(&[4, 100], 50, false),
        call(&[2, 300], 40, true),
        call(&[9, 30], 5, true),
    ]
}

fn errors() -> Vec<ErrorSample> {
    let call = |p: SampleArg, count, replacement, message| {
        let place = [SampleArg::Int(0), SampleArg::Int(0)];
        let args = [p, SampleArg::Int(count), SampleArg::Bool(replacement)];
        error(args.into_iter().chain(place), message)
    };
    let row = |values: &[f64]| filled(&[values.len()], Fill::Values(values.to_vec()));
    vec![
        call(row(&[1.0, -1.0]), 1, true, "negative"),
        call(row(&[1.0, f64::INFINITY]), 1, false, "infinite"),
        call(row(&[1.0, f64::NAN]), 1, true, "NaN"),
        call(filled(&[2, 2], Fill::Values(vec![1.0, 1.0, 0.0, 0.0])), 1, true, "a row with 0"),
        call(row(&[1.0, 0.0, 2.0]), 3, false, "or `replacement`"),
        call(row(&[1.0, 1.0]), 3, false, "at most the 2"),
        call(row(&[1.0]), 0, true, "1 or more"),
        call(plain(&[0]), 1, true, "one element in a row"),
        call(plain(&[2, 2, 2]), 1, true, "of 1 or 2 dimensions"),
        call(fixed(&[2], DType::I64, Fill::Values(vec![1.0])), 1, true, "a floating-point dtype"),
    ]
}

/// `multinomial`
pub static DEF: OpDef = OpDef::new(
    "multinomial(Tensor self, int num_samples, bool replacement, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::NotDifferentiable,
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)));
