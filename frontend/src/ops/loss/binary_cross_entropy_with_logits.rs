//! `binary_cross_entropy_with_logits`

use super::{float, one, reduce, tensor};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::sample::{Fill, SampleArg, composed, error, plain, sample, tensor as filled, uniform};
use keyway_dispatcher::op::{Arg, Args, Rule};

impl Tensor {
    /// [`Tensor::binary_cross_entropy`] of the sigmoid, without overflow; `pos_weight` weighs the part of the
    /// targets. `reduction` is `none`, `mean` or `sum`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32])?;
    /// let t = Tensor::from_slice(&[1.0f32])?;
    /// let loss = x.binary_cross_entropy_with_logits(&t, None, None, "mean")?;
    /// assert!((loss.item::<f32>()? - 2.0f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not fit; a reduction that is not `none`, `mean` or `sum`.
    pub fn binary_cross_entropy_with_logits(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: &str,
    ) -> Result<Tensor> {
        DEF.run(&[
            self.into(),
            target.into(),
            weight.map_or(Arg::None, Arg::from),
            pos_weight.map_or(Arg::None, Arg::from),
            Arg::Str(reduction),
        ])
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, target) = (float(args, 0)?, tensor(args, 1)?);
    // log(1 + exp(-x)), whose parts do not overflow.
    let wrong = x.abs()?.neg()?.exp()?.log1p()?.add(&x.neg()?.relu()?)?;
    let wrong = match args.optional_tensor(3)? {
        Some(_) => tensor(args, 3)?.sub(1.0)?.mul(&target)?.add(1.0)?.mul(&wrong)?,
        None => wrong,
    };
    let loss = target.rsub(1.0)?.mul(&x)?.add(&wrong)?;
    reduce(args, 4, if args.optional_tensor(2)?.is_some() { loss.mul(&tensor(args, 2)?)? } else { loss })
}

/// `binary_cross_entropy_with_logits`
pub static DEF: OpDef = OpDef {
    schema: "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight, Tensor? pos_weight, str reduction) -> Tensor",
    rule: Rule::Composed,
    decomposition: Some(|args| one(compose(args))),
    derivative: Derivative::Composed,
    forms: Forms::New,
    dtypes: Dtypes::FLOAT,
    samples: || {
        let call = |sizes: &[usize], how: &'static str| {
            sample([
                filled(sizes, Fill::Distinct(0.1, 3.0)),
                uniform(sizes, 0.1, 0.9),
                SampleArg::None,
                SampleArg::None,
                SampleArg::Str(how),
            ])
        };
        let full = [
            filled(&[4], Fill::Distinct(-3.0, -0.1)),
            uniform(&[4], 0.1, 0.9),
            plain(&[4]),
            plain(&[4]),
            SampleArg::Str("mean"),
        ];
        composed(vec![
            sample(full),
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
        let call = |to: &[usize], how| {
            [plain(&[3]), plain(to), SampleArg::None, SampleArg::None, SampleArg::Str(how)]
        };
        vec![error(call(&[3], "avg"), "none, mean or sum"), error(call(&[4], "mean"), "do not broadcast")]
    },
    entry: Entry::new(),
};
