//! Derivatives of ops, and the data of a definition that autograd reads.

use super::context::{Backward, Grads};
use crate::error::Result;
use crate::op::flags::OpFlags;
use keyway_dispatcher::op::OpEntry;
use std::any::Any;

/// The formula of a gradient.
type Formula = fn(&Backward<'_>, &mut Grads<'_>) -> Result<()>;

/// The derivative of an op. Every op declares one variant.
///
/// ```
/// use keyway::ops::{def::Derivative, pointwise, reduce};
/// assert!(matches!(pointwise::exp::DEF.derivative, Derivative::Formula { saves: 0, saves_outputs: 1, .. }));
/// assert!(matches!(reduce::argmax::DEF.derivative, Derivative::NotDifferentiable));
/// ```
#[derive(Clone, Copy)]
pub enum Derivative {
    /// A formula of tensor ops, which runs on every backend and can be differentiated again.
    Formula {
        /// The arguments that the formula reads, saved for backward; bit `i` for argument `i`.
        saves: u32,
        /// The outputs that the formula reads, saved for backward; bit `i` for output `i`.
        saves_outputs: u32,
        /// The formula. It sets the gradient of each tensor argument for which [`Grads::set`] runs its closure; the gradient is
        /// reduced to the argument's shape and cast to its dtype afterwards.
        formula: fn(&Backward<'_>, &mut Grads) -> Result<()>,
    },
    /// Recorded by the ops of the decomposition.
    Composite,
    /// Not differentiable: the output is constant or piecewise constant in the inputs, or not a real number.
    NotDifferentiable,
    /// Not implemented; an error in the forward pass if an input requires grad.
    Missing(&'static str),
}

impl Derivative {
    /// A zero gradient for argument 0, that of a piecewise constant function.
    pub const ZERO: Derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.zeros_like()));

    /// A formula that reads only the output gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::ops::def::Derivative;
    /// let neg = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.neg()));
    /// assert!(matches!(neg, Derivative::Formula { saves: 0, saves_outputs: 0, .. }));
    /// # Ok(()) }
    /// ```
    pub const fn of_grad(formula: Formula) -> Derivative {
        Derivative::Formula { saves: 0, saves_outputs: 0, formula }
    }

    /// A formula that reads the arguments in this mask; bit `i` for argument `i`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::ops::def::Derivative;
    /// let log = Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.div(&b.input(0)?)));
    /// assert!(matches!(log, Derivative::Formula { saves: 0b1, saves_outputs: 0, .. }));
    /// # Ok(()) }
    /// ```
    pub const fn of_inputs(saves: u32, formula: Formula) -> Derivative {
        Derivative::Formula { saves, saves_outputs: 0, formula }
    }

    /// A formula that reads the op's single output.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::ops::def::Derivative;
    /// let exp = Derivative::of_output(|b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?)));
    /// assert!(matches!(exp, Derivative::Formula { saves: 0, saves_outputs: 0b1, .. }));
    /// # Ok(()) }
    /// ```
    pub const fn of_output(formula: Formula) -> Derivative {
        Derivative::Formula { saves: 0, saves_outputs: 0b1, formula }
    }
}

/// The data of an op's definition that the layers below definitions read.
pub(crate) struct OpInfo {
    pub(crate) derivative: Derivative,
    pub(crate) flags: OpFlags,
    /// The definition.
    pub(crate) definition: &'static (dyn Any + Send + Sync),
}

/// The data of a registered op's definition; `None` for an op of a plugin.
pub(crate) fn info(op: &OpEntry) -> Option<&'static OpInfo> {
    op.spec.extra?.downcast_ref()
}
