//! `local_response_norm`
//!
//! Arguments:
//! - `alpha`: the factor of the mean of squares.
//! - `beta`: the exponent.
//! - `size`: the number of channels of the window.
//! - `k`: the constant in the divisor.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, one, tensor, whole, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{kept, wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Local response normalization: `x / (1 + 1e-4 * mean)^0.75` for an input `[batch, channels, ..]`, with the mean of
    /// squares over a window of `size` channels, padded with zeros (A. Krizhevsky and others, "ImageNet classification with
    /// deep convolutional neural networks", 2012).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32, 100.0], (1, 2, 1))?;
    /// let y = x.local_response_norm(1)?.to_vec::<f32>()?;
    /// assert!(y[0] == 0.0 && (y[1] - 100.0 / 2f32.powf(0.75)).abs() < 1e-3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input of fewer than 3 dimensions or not of a float dtype; a size of 0.
    pub fn local_response_norm(&self, size: usize) -> Result<Tensor> {
        self.local_response_norm_with(size, 1e-4, 0.75, 1.0)
    }

    /// [`Tensor::local_response_norm`] with other constants: `x / (k + alpha * mean)^beta`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 2, 1))?;
    /// assert_eq!(x.local_response_norm_with(2, 2.0, 1.0, 1.0)?.to_vec::<f32>()?, [0.5, 3.0 / 11.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn local_response_norm_with(&self, size: usize, alpha: f64, beta: f64, k: f64) -> Result<Tensor> {
        DEF.run(&[self.into(), whole(size), Arg::Float(alpha), Arg::Float(beta), Arg::Float(k)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = float_tensor(args, 0)?;
    if x.ndim() < 3 {
        let expected = "of 3 or more dimensions, [batch, channels, ..]".to_string();
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    }
    if args.int(1)? < 1 {
        return Err(wrong_value(args, 1, "1 or more channels".into()));
    }
    (2..=4).try_for_each(|i| args.float(i).map(|_| ()))?;
    Ok(Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), kept(x, x.sizes())))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, size) = (tensor(args, 0)?, args.int(1)?);
    let x = widened(&own)?;
    let (squares, channels) = (x.square()?, x.shape()[1]);
    // Channels at a distance of the channel count or more are all padding.
    let most = channels as i64;
    let (before, after) = ((size / 2).min(most), ((size - 1) / 2).min(most));
    let mut widths = vec![0; 2 * (x.rank() - 1)];
    let at = widths.len() - 2;
    (widths[at], widths[at + 1]) = (before, after);
    let padded = squares.constant_pad(&widths, 0)?;
    let mut sum = padded.narrow(1, 0, channels)?;
    for i in 1..=before + after {
        sum = sum.add(&padded.narrow(1, i, channels)?)?;
    }
    let scale = sum.mul(args.float(2)? / size as f64)?.add(args.float(4)?)?.pow(args.float(3)?)?;
    cast(x.div(&scale)?, own.dtype())
}

fn call(sizes: &[usize], size: i64, [alpha, beta, k]: [f64; 3]) -> Vec<SampleArg> {
    let numbers = [alpha, beta, k].map(SampleArg::Float);
    [plain(sizes), SampleArg::Int(size)].into_iter().chain(numbers).collect()
}

/// `local_response_norm`
pub static DEF: OpDef = OpDef::new(
    "local_response_norm(Tensor self, int size, float alpha=0.0001, float beta=0.75, \
     float k=1.0) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let usual = [0.5, 0.75, 1.0];
        let sample = |args| sample(args).tolerance_factor(4.0, "a negative `k` cancels most of the mean");
        vec![
            sample(call(&[2, 4, 3], 3, usual)),
            sample(call(&[2, 5, 2, 3], 2, [0.1, 0.5, 2.0])),
            sample(call(&[2, 3, 2, 2], 1, usual)),
            sample(call(&[1, 3, 2, 3], 9, usual)),
            sample(call(&[1, 4, 2, 1, 2], 4, usual)),
            sample(call(&[0, 3, 2, 2], 2, usual)),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    vec![
        error(call(&[2, 4], 3, [1.0; 3]), "of 3 or more dimensions"),
        error(call(&[2, 4, 2], 0, [1.0; 3]), "1 or more channels"),
    ]
})
.decomposed(|args| one(compose(args)));
