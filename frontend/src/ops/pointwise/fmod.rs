//! `fmod`

use super::modulus;
use crate::ops::def::{OpDef, OpFlags};
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// The remainder of `self / other`, with the sign of `self`, as Rust's `%`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-7i64, 7])?.fmod(3)?.to_vec::<i64>()?, [-1, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An integer divided by zero; two bool operands; shapes that do not broadcast, dtypes without a
    /// common one, tensors on different devices.
    pub fn fmod<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: fmod_;
}

/// `fmod`
pub static DEF: OpDef =
    modulus::def("fmod(Tensor self, Tensor other) -> Tensor", |b, g| modulus::derivative(b, g, "trunc"))
        .with(OpFlags::SIGNED_ZEROS);
