//! `random_int`

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{SampleArg, error, plain};
use crate::tensor::{Int, IntoOptions, IntoShape, filled::new, shape::sizes};
use crate::{DType, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::memory::host_vec;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};
use keyway_sdk::philox::Philox;

impl Tensor {
    /// Uniform random integers in `low..high`, as i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::randint(1, 7, 20)?;
    /// assert!(a.to_vec::<i64>()?.iter().all(|x| (1..7).contains(x)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `low` that is not below `high`; a bound that the dtype cannot hold; a bool dtype.
    pub fn randint(low: impl Int, high: impl Int, shape: impl IntoShape) -> Result<Tensor> {
        Tensor::randint_with(low, high, shape, ())
    }

    /// [`Tensor::randint`] with an optional dtype, device and memory format. The value at an index is the same in every memory
    /// format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::randint_with(3, 6, (2, 3), DType::I32)?;
    /// assert!(x.to_vec::<i32>()?.iter().all(|v| (3..6).contains(v)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::empty_with`] and [`Tensor::randint`].
    pub fn randint_with(
        low: impl Int,
        high: impl Int,
        shape: impl IntoShape,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("randint", &["low", "high", "shape", "options"], || {
            let low = low.to_i64();
            let high = high.to_i64();
            let mut options = options.into_options()?;
            options.dtype = options.dtype.or(Some(DType::I64));
            new("randint", &sizes("randint", shape)?, options)?.random_(low, high)
        })
    }

    /// [`Tensor::randint`] with this tensor's shape, dtype, device and memory format; strided even if this tensor is sparse.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0i32; 100])?.randint_like(3, 6)?;
    /// assert!(x.to_vec::<i32>()?.iter().all(|v| (3..6).contains(v)));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn randint_like(&self, low: impl Int, high: impl Int) -> Result<Tensor> {
        self.randint_like_with(low, high, ())
    }

    /// [`Tensor::randint_like`] with the given options replaced.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros(100)?.randint_like_with(3, 6, DType::I32)?;
    /// assert!(x.to_vec::<i32>()?.iter().all(|v| (3..6).contains(v)));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn randint_like_with(
        &self,
        low: impl Int,
        high: impl Int,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("randint_like", &["self", "low", "high", "options"], || {
            self.uninit_like(options)?.random_(low, high)
        })
    }

    /// A random permutation of `0..n`, as i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (sorted, _) = Tensor::randperm(3)?.sort(0)?;
    /// assert_eq!(sorted.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory.
    pub fn randperm(n: usize) -> Result<Tensor> {
        Tensor::randperm_with(n, ())
    }

    /// [`Tensor::randperm`] with an optional dtype and device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let mut order = Tensor::randperm_with(4, DType::I32)?.to_vec::<i32>()?;
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::randperm`]; an unavailable device.
    pub fn randperm_with(n: usize, options: impl IntoOptions) -> Result<Tensor> {
        called("randperm", &["n", "options"], || {
            let mut options = options.into_options()?;
            let device = options.device();
            options.device = Some(device);
            // Stream 0 of a seed is used for elements; each reserved block selects another stream.
            let place = crate::rng::generator::current(device).reserve(1);
            let mut order = host_vec(n)?;
            order.extend((0..n).map(|i| i as i64));
            Philox::with_stream(place.seed, place.offset.wrapping_add(1)).shuffle(&mut order);
            Tensor::from_vec(order, n)?.to(options)
        })
    }

    /// Overwrites this tensor with uniform random integers in `low..high`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(100)?;
    /// x.random_(3, 6)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|&v| v == 3.0 || v == 4.0 || v == 5.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::randint`].
    pub fn random_(&self, low: impl Int, high: impl Int) -> Result<Tensor> {
        called("random_", &["self", "low", "high"], || {
            let bounds = [Arg::Int(low.to_i64()), Arg::Int(high.to_i64())];
            super::draw_into(&DEF, self, &bounds, super::Words::Two)
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    let dtype = plan.compute;
    rules::require(args, 0, dtype, dtype != DType::BOOL, "numbers")?;
    let (low, high) = (args.int(1)?, args.int(2)?);
    let wrong = |argument, expected: String, got: i64| {
        Err(Error::Value { op: args.name(), argument, expected, got: got.to_string() })
    };
    if low >= high {
        return wrong("low", format!("below `high`, which is {high}"), low);
    }
    // Floats represent each integer as closely as they can, as long as they are finite.
    let finite = || dtype.limits().map(|limits| (limits.min as i128, limits.max as i128));
    if let Some((least, most)) = dtype.integer_range().or_else(finite) {
        if i128::from(low) < least {
            return wrong("low", format!("at least {least}, the least {dtype}"), low);
        }
        if i128::from(high) - 1 > most {
            return wrong("high", format!("at most {}, one above the largest {dtype}", most + 1), high);
        }
    }
    Ok(plan)
}

/// `random_int`: uniform random integers in `low..high`, from the Philox4x32-10 stream of `seed` at `offset`.
pub static DEF: OpDef = OpDef::new(
    "random_int(Tensor self, int low, int high, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::ZERO,
    || super::samples(&[SampleArg::Int(3), SampleArg::Int(90)]),
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    let call = [plain(&[2]), SampleArg::Int(1), SampleArg::Int(1), SampleArg::Int(0), SampleArg::Int(0)];
    vec![error(call, "below `high`")]
});
