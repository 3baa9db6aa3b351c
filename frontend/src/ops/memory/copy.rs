//! `copy`

use super::component::holds_values;
use crate::Tensor;
use crate::autograd::{AutogradError, is_grad_enabled, no_grad};
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules::conversion_key;
use crate::ops::sample::{error, plain, sample};
use keyway_dispatcher::dims::broadcast;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// Overwrites this tensor with the values of `source`, broadcast, cast and moved as needed. A composite tensor such as a
    /// sparse one takes only the values of a tensor of its layout and shape with the same indices; a strided tensor takes the
    /// elements of any layout.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([0.0f32, 0.0])?;
    /// a.copy_(&Tensor::new(3i64)?)?;
    /// assert_eq!(a.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A source that does not broadcast to this shape; memory that overlaps itself; for a composite tensor a source of another
    /// layout or shape or with other indices, and a call that autograd records.
    #[doc(alias = "slice_assign")]
    pub fn copy_(&self, source: &Tensor) -> Result<Tensor> {
        called("copy", &["self", "source"], || {
            if !self.as_ref().is_strided() {
                return copy_numbers(self, source);
            }
            // A composite source is converted to strided on its own device, since its backend may not support this one.
            let source = if source.as_ref().is_strided() { source.clone() } else { source.to_strided()? };
            let source =
                if source.device() == self.device() { source } else { source.to_device(self.device())? };
            DEF.run_in_place(&[self.into(), (&source).into()])
        })
    }
}

/// Copies the values of a composite tensor into those of another one, whose other components are unchanged.
fn copy_numbers(target: &Tensor, source: &Tensor) -> Result<Tensor> {
    let op = DEF.name();
    if is_grad_enabled() && (target.requires_grad() || source.requires_grad()) {
        return Err(AutogradError::CompositeInPlace { op }.into());
    }
    check_places(target, source)?;
    let _off = no_grad();
    target.stored()?.copy_(&source.stored()?)?;
    Ok(target.clone())
}

/// Checks that a composite tensor can take the values of `source`: equal layout and shape, and equal index components. A
/// strided tensor can take any.
pub(crate) fn check_places(target: &Tensor, source: &Tensor) -> Result<()> {
    if target.as_ref().is_strided() {
        return Ok(());
    }
    let wrong = |expected: String, got: String| {
        Err(Error::Value { op: DEF.name(), argument: "src", expected, got }.into())
    };
    if source.layout() != target.layout() {
        let expected = format!("of layout {}, as the tensor that is written to", target.layout());
        return wrong(expected, format!("one of layout {}; convert it first", source.layout()));
    }
    if source.shape() != target.shape() {
        let expected = format!("of shape {:?}, as the tensor that is written to", target.shape());
        return wrong(expected, format!("shape {:?}", source.shape()));
    }
    let _off = no_grad();
    let (own, other) = (target.components()?, source.components()?);
    for (nth, (own, other)) in own.iter().zip(&other).enumerate() {
        let same = match holds_values(target, nth) {
            true => own.shape() == other.shape(),
            false => is_equal(own, other)?,
        };
        if !same {
            let expected =
                "to store the coordinates of the tensor that is written to, in the same order".to_string();
            let got = "other coordinates; replace the tensor instead, or `coalesce()` both first".to_string();
            return wrong(expected, got);
        }
    }
    Ok(())
}

/// The elements of a tensor as bytes.
fn content(t: &Tensor) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    t.for_each_chunk(|bytes| {
        all.extend_from_slice(bytes);
        Ok(())
    })?;
    Ok(all)
}

/// Whether two components are equal bit by bit.
fn is_equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    if a.shape() != b.shape() || a.dtype() != b.dtype() {
        return Ok(false);
    }
    let place = |t: &Tensor| (t.as_ref().offset(), t.strides().to_vec());
    if a.shares_storage(b) && place(a) == place(b) {
        return Ok(true);
    }
    Ok(content(a)? == content(b)?)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (target, source) = (args.tensor(0)?, args.tensor(1)?);
    let sizes = broadcast(args.name(), target.sizes(), source.sizes())?;
    if sizes.as_slice() != target.sizes() {
        let expected = format!("of a shape that broadcasts to {:?}", target.sizes());
        let got = source.sizes().into();
        return Err(Error::Shape { op: args.name(), argument: "src", expected, got });
    }
    super::to_dtype::keeps_imaginary_part(args, 1, source.dtype(), target.dtype())?;
    let key = conversion_key(source.dtype(), target.dtype());
    let mut plan = Plan::one(key, sizes, target.dtype(), Strides::Like(0));
    // The kernel casts; it does not read argument 0.
    plan.broadcast = 0b11;
    plan.alias = true;
    Ok(plan)
}

/// `copy`
pub static DEF: OpDef = OpDef::new(
    "copy(Tensor self, Tensor src) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || b.grad(0)?.zeros_like())?;
        g.set(1, || Ok(b.grad(0)?.clone()))
    }),
    || {
        vec![
            sample([plain(&[2, 3]), plain(&[2, 3])]),
            sample([plain(&[2, 3]), plain(&[3])]),
            sample([plain(&[2, 3]), plain(&[])]),
            sample([plain(&[]), plain(&[])]),
            sample([plain(&[2, 3, 4]), plain(&[3, 1])]),
            sample([plain(&[2, 3, 2, 2]), plain(&[2, 3, 2, 2])]),
            sample([plain(&[2, 1, 2, 3, 2]), plain(&[2, 1, 2])]),
            sample([plain(&[0]), plain(&[1])]),
        ]
    },
)
.forms(Forms::InPlace)
.errors(|| vec![error([plain(&[3]), plain(&[2, 3])], "broadcasts to")])
.with(OpFlags::EXACT.and(OpFlags::CASTS).and(OpFlags::SETS_FORMAT))
.with(OpFlags::COMPLEX);
