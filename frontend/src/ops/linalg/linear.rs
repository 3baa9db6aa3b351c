//! `linear`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};

impl Tensor {
    /// `self @ weight^T + bias`, for a weight of `[out, in]` and inputs of `[.., in]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0])?;
    /// let weight = Tensor::from_vec(vec![1.0f32, 10.0], &[1, 2])?;
    /// let bias = Tensor::from_slice(&[100.0f32])?;
    /// assert_eq!(x.linear(&weight, Some(&bias))?.to_vec::<f32>()?, [121.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A weight that is not a matrix, or sizes that do not fit.
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        DEF.run(&[self.into(), weight.into(), Arg::optional(bias)])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let (x, weight) = (Tensor::from_ref(args.tensor(0)?.clone()), Tensor::from_ref(args.tensor(1)?.clone()));
    let bias = args.optional_tensor(2)?.map(|b| Tensor::from_ref(b.clone()));
    let wrong = |argument, expected: String, got: &Tensor| {
        Err(Error::Shape { op: args.name(), argument, expected, got: got.sizes().into() })
    };
    let &[outputs, inputs] = weight.sizes() else {
        return wrong("weight", "a matrix, [out, in]".into(), &weight);
    };
    if x.sizes().last() != Some(&inputs) {
        return wrong(
            "input",
            format!("{inputs} elements in the last dimension, as `weight` has columns"),
            &x,
        );
    }
    if let Some(bias) = bias.as_ref().filter(|b| b.sizes() != [outputs]) {
        return wrong("bias", format!("a vector of {outputs} elements, as `weight` has rows"), bias);
    }
    Ok(Outputs::from_iter([apply(&x, &weight, bias.as_ref())?.into_ref()]))
}

fn apply(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let Some(bias) = bias else { return x.matmul(&weight.t()?) };
    if x.ndim() == 2 {
        return bias.addmm(x, &weight.t()?);
    }
    let lead = &x.sizes()[..x.ndim() - 1];
    let flat = x.reshape_as_sizes(&[lead.iter().product(), weight.sizes()[1]])?;
    let mut sizes = Dims::from_slice(lead);
    sizes.push(weight.sizes()[0]);
    bias.addmm(&flat, &weight.t()?)?.reshape_as_sizes(&sizes)
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 7] =
        [&[3], &[2, 3], &[2, 4, 3], &[2, 1, 2, 3], &[2, 1, 2, 1, 3], &[0, 3], &[1, 3]];
    let with = shapes.iter().map(|s| sample([plain(s), plain(&[2, 3]), plain(&[2])]));
    let without = shapes.iter().map(|s| sample([plain(s), plain(&[2, 3]), SampleArg::None]));
    with.chain(without).collect()
}

/// `linear`
pub static DEF: OpDef = OpDef {
    schema: "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    rule: Rule::Host(compose),
    decomposition: None,
    derivative: Derivative::Composite,
    forms: Forms::New,
    dtypes: Dtypes::NUMERIC,
    samples,
    errors: || {
        vec![
            error([plain(&[2, 4]), plain(&[2, 3]), SampleArg::None], "3 elements"),
            error([plain(&[2, 3]), plain(&[2, 3]), plain(&[3])], "2 elements"),
            error([plain(&[2, 3]), plain(&[3]), SampleArg::None], "a matrix"),
        ]
    },
    entry: Entry::new(),
};
