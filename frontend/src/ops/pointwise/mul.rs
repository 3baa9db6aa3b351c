//! `mul`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{PAIRS, Sample, SampleArg, plain, sample};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// `self * other`, element by element, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.mul(&a)?.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// A sparse tensor times a number or a strided tensor retains its indices, two sparse ones give the coordinates that both
    /// store: elements that are not stored give 0, whatever the other factor. A stored 0 is an element like others, so 0 times
    /// infinity is NaN there.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "affine")]
    #[doc(alias = "broadcast_mul")]
    #[doc(alias = "multiply")]
    pub fn mul<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: mul_, out: mul_out;
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b)]));
    pairs.chain([sample([plain(&[3, 4]), SampleArg::Int(2)])]).collect()
}

/// `mul`
pub static DEF: OpDef = OpDef::binary(
    "mul(Tensor self, Tensor other) -> Tensor",
    rules::binary,
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || b.grad(0)?.mul(b.saved(1)?.arg()))?;
        g.set(1, || b.grad(0)?.mul(b.saved(0)?.arg()))
    }),
)
.samples(samples)
.with(OpFlags::SIGNED_ZEROS)
.with(OpFlags::HOLOMORPHIC);
