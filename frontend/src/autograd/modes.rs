//! Switching the graph on and off, for this thread and for as long as a guard lives.

use super::watch;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet, local_keys};

/// Disables recording while the guard lives.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let guard = autograd::no_grad();
/// assert!(!w.mul(2.0)?.requires_grad());
/// drop(guard);
/// assert!(w.mul(2.0)?.requires_grad());
/// # Ok(()) }
/// ```
#[must_use = "the graph is off only while the guard lives"]
pub fn no_grad() -> KeyGuard {
    KeyGuard::exclude(KeySet::of(DispatchKey::AUTOGRAD))
}

/// While the guard lives, the graph is recorded, also inside `no_grad`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let _off = autograd::no_grad();
/// let _on = autograd::enable_grad();
/// assert!(w.mul(2.0)?.requires_grad());
/// # Ok(()) }
/// ```
#[must_use = "the graph is on only while the guard lives"]
pub fn enable_grad() -> KeyGuard {
    KeyGuard::clear(KeySet::of(DispatchKey::AUTOGRAD))
}

/// [`enable_grad`] or [`no_grad`], depending on `on`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// for training in [true, false] {
///     let _guard = autograd::set_grad_enabled(training);
///     assert_eq!(w.mul(2.0)?.requires_grad(), training);
/// }
/// # Ok(()) }
/// ```
#[must_use = "the graph is on or off only while the guard lives"]
pub fn set_grad_enabled(on: bool) -> KeyGuard {
    if on { enable_grad() } else { no_grad() }
}

/// The guards of inference mode.
///
/// ```
/// use keyway::autograd;
/// let guard = autograd::inference_mode();
/// assert!(autograd::is_inference_mode());
/// drop(guard);
/// assert!(!autograd::is_inference_mode());
/// ```
#[derive(Debug)]
pub struct InferenceGuard {
    // Dropped in this order: the later guard first.
    _mark: KeyGuard,
    _off: KeyGuard,
}

/// As `no_grad`; additionally, tensors created while the guard lives can never enter a graph.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd};
/// let made = {
///     let _guard = autograd::inference_mode();
///     Tensor::new([1.0f32])?.mul(2.0)?
/// };
/// assert_eq!(made.to_vec::<f32>()?, [2.0]);
/// assert!(made.requires_grad_(true).is_err());
/// # Ok(()) }
/// ```
#[must_use = "inference mode lasts only while the guard lives"]
pub fn inference_mode() -> InferenceGuard {
    let off = no_grad();
    InferenceGuard { _mark: KeyGuard::include(KeySet::of(DispatchKey::INFERENCE)), _off: off }
}

/// Whether the graph is recorded on this thread.
///
/// ```
/// use keyway::autograd;
/// assert!(autograd::is_grad_enabled());
/// let _off = autograd::no_grad();
/// assert!(!autograd::is_grad_enabled());
/// ```
pub fn is_grad_enabled() -> bool {
    !local_keys().1.has(DispatchKey::AUTOGRAD) && !watch::is_on()
}

/// Whether this thread is in inference mode.
///
/// ```
/// use keyway::autograd;
/// let _off = autograd::no_grad();
/// assert!(!autograd::is_inference_mode());
/// let _guard = autograd::inference_mode();
/// assert!(autograd::is_inference_mode());
/// ```
pub fn is_inference_mode() -> bool {
    local_keys().0.has(DispatchKey::INFERENCE)
}
