//! `binary_cross_entropy`

use super::{float, one, reduce, tensor};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::sample::{SampleArg, composed, error, plain, sample, uniform};
use keyway_dispatcher::op::{Arg, Args, Rule};

impl Tensor {
    /// `-(t log(x) + (1 - t) log(1 - x))` for probabilities x, each logarithm at least -100, times `weight`.
    /// `reduction` is `none`, `mean` or `sum`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_slice(&[0.5f32])?;
    /// let t = Tensor::from_slice(&[1.0f32])?;
    /// assert!((x.binary_cross_entropy(&t, None, "mean")?.item::<f32>()? - 2.0f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not fit; a reduction that is not `none`, `mean` or `sum`.
    pub fn binary_cross_entropy(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: &str,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), target.into(), weight.map_or(Arg::None, Arg::from), Arg::Str(reduction)])
    }
}

/// The logarithm, at least -100; constant where that bound holds.
fn log(x: &Tensor) -> Result<Tensor> {
    let tiny = x.le((-100f64).exp())?;
    tiny.select_where(-100.0, &tiny.select_where(1.0, x)?.log()?)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, target) = (float(args, 0)?, tensor(args, 1)?);
    let other = target.rsub(1.0)?.mul(&log(&x.rsub(1.0)?)?)?;
    let loss = target.mul(&log(&x)?)?.add(&other)?.neg()?;
    reduce(args, 3, if args.optional_tensor(2)?.is_some() { loss.mul(&tensor(args, 2)?)? } else { loss })
}

/// `binary_cross_entropy`
pub static DEF: OpDef = OpDef {
    schema: "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight, str reduction) -> Tensor",
    rule: Rule::Composed,
    decomposition: Some(|args| one(compose(args))),
    derivative: Derivative::Composed,
    forms: Forms::New,
    dtypes: Dtypes::FLOAT,
    samples: || {
        let call = |sizes: &[usize], how: &'static str| {
            sample([uniform(sizes, 0.1, 0.9), uniform(sizes, 0.1, 0.9), SampleArg::None, SampleArg::Str(how)])
        };
        let weighted =
            [uniform(&[4], 0.1, 0.9), uniform(&[4], 0.1, 0.9), plain(&[4]), SampleArg::Str("mean")];
        composed(vec![
            sample(weighted),
            call(&[], "mean"),
            call(&[5], "none"),
            call(&[3, 4], "sum"),
            call(&[2, 3, 4], "mean"),
            call(&[2, 3, 2, 2], "sum"),
            call(&[2, 1, 2, 3, 2], "mean"),
            call(&[0, 3], "sum"),
        ])
    },
    errors: || {
        let call = |to: &[usize], how| [plain(&[3]), plain(to), SampleArg::None, SampleArg::Str(how)];
        vec![error(call(&[3], "avg"), "none, mean or sum"), error(call(&[4], "mean"), "do not broadcast")]
    },
    entry: Entry::new(),
};
