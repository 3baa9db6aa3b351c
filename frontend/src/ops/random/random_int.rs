//! `random_int`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{SampleArg, error, plain};
use crate::{DType, Device, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};
use keyway_sdk::philox::Philox;

impl Tensor {
    /// Random integers, each equally likely in `low..high`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, Tensor};
    /// let a = Tensor::randint(1, 7, &[20], DType::I64, Device::CPU)?;
    /// assert!(a.to_vec::<i64>()?.iter().all(|x| (1..7).contains(x)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `low` that is not below `high`; a bound that the dtype cannot hold; a bool dtype.
    pub fn randint(low: i64, high: i64, sizes: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::empty(sizes, dtype, device)?.random_int_(low, high)
    }

    /// [`Tensor::randint`] with this tensor's sizes, dtype, device and memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn randint_like(&self, low: i64, high: i64) -> Result<Tensor> {
        self.empty_like()?.random_int_(low, high)
    }

    /// The integers `0..n` in random order, as i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor};
    /// let (sorted, _) = Tensor::randperm(3, Device::CPU)?.sort(0, false, false)?;
    /// assert_eq!(sorted.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub fn randperm(n: usize, device: Device) -> Result<Tensor> {
        // Stream 0 of a seed is that of the elements; every block of it names another stream.
        let place = crate::rng::generator::current(device).reserve(1);
        let order = Philox::with_stream(place.seed, place.offset.wrapping_add(1)).permutation(n);
        let order: Vec<i64> = order.into_iter().map(|i| i as i64).collect();
        Tensor::from_vec(order, &[n])?.to_device(device)
    }

    /// Overwrites this tensor with random integers, each equally likely in `low..high`.
    ///
    /// # Errors
    /// As [`Tensor::randint`].
    pub fn random_int_(&self, low: i64, high: i64) -> Result<Tensor> {
        super::draw_into(&DEF, self, &[Arg::Int(low), Arg::Int(high)], super::Words::Two)
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
    if let Some((least, most)) = dtype.integer_range() {
        if i128::from(low) < least {
            return wrong("low", format!("at least {least}, the least {dtype}"), low);
        }
        if i128::from(high) - 1 > most {
            return wrong("high", format!("at most {}, one above the largest {dtype}", most + 1), high);
        }
    }
    Ok(plan)
}

/// `random_int`
pub static DEF: OpDef = OpDef {
    schema: "random_int(Tensor self, int low, int high, int seed, int offset) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: None,
    derivative: Derivative::ZERO,
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples: || super::samples(&[SampleArg::Int(3), SampleArg::Int(90)]),
    errors: || {
        let call = [plain(&[2]), SampleArg::Int(1), SampleArg::Int(1), SampleArg::Int(0), SampleArg::Int(0)];
        vec![error(call, "below `high`")]
    },
    entry: Entry::new(),
};
