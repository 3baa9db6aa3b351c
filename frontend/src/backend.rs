//! Which backend serves a call where several could, and what happens where none does.
//!
//! Decisions:
//! - a choice for one thread is a dispatch key: while no thread chooses, calls cost nothing for it;
//! - a call never moves to another device in silence: the default policy is `error`, and the profiler and [`fallbacks`]
//!   show what moved;
//! - an op that leaves its device leaves it whole: its tensors are moved there once and its results back once, and so it is
//!   with the formula of its derivative. Composing the op of parts on its own device, each of which falls back by itself, is
//!   left to what the other device does not serve.

use crate::error::Result;
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, backend};
/// let guard: backend::BackendGuard = backend::choose_backend("keyway-cpu")?;
/// Tensor::new([1.0f32])?.exp()?; // Served by keyway-cpu.
/// drop(guard);
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::call::BackendGuard;
use keyway_dispatcher::key::Device;
/// ```
/// for line in keyway::backend::fallbacks() {
///     println!("{}: {} calls of {} ran on {}, {} tensors moved", line.op, line.calls, line.from, line.to, line.moves);
/// }
/// ```
pub use keyway_dispatcher::ledger::Fallback;
pub use keyway_dispatcher::ledger::fallbacks;
use keyway_dispatcher::registry::{self, FallbackPolicy};

/// The environment variable with the policy of every device, in the form that [`set_fallback`] takes.
pub const FALLBACK_VARIABLE: &str = "KEYWAY_FALLBACK";

/// Runs `run`; the calls of this thread in it go to the kernels of the backend `name` where it has any that serve them,
/// else to the usual candidates.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let x = Tensor::new([1.0f32])?;
/// let y = keyway::with_backend("keyway-cpu", || x.add(1.0))??;
/// assert_eq!(y.item::<f32>()?, 2.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A backend that is not loaded; the names of those that are stand in the message.
pub fn with_backend<R>(name: &str, run: impl FnOnce() -> R) -> Result<R> {
    let _guard = choose_backend(name)?;
    Ok(run())
}

/// As [`with_backend`], while the guard lives.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, backend};
/// let _guard = backend::choose_backend("keyway-cpu")?;
/// assert_eq!(Tensor::new([1.0f32])?.add(1.0)?.item::<f32>()?, 2.0);
/// let error = backend::choose_backend("nobody").unwrap_err();
/// assert!(error.to_string().contains("keyway-cpu"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`with_backend`].
pub fn choose_backend(name: &str) -> Result<BackendGuard> {
    crate::runtime::start()?;
    Ok(keyway_dispatcher::call::choose_backend(name)?)
}

/// Puts these backends before all others for the whole program, the first of them first, whatever their priorities. Of a
/// device that several serve, the preferred one takes the name: to be called before tensors are made there.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, backend};
/// backend::prefer_backends(&["keyway-cpu"])?;
/// assert_eq!(Tensor::new([1.0f32])?.add(1.0)?.item::<f32>()?, 2.0);
/// assert!(backend::prefer_backends(&["nobody"]).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`with_backend`].
pub fn prefer_backends(names: &[&str]) -> Result<()> {
    crate::runtime::start()?;
    Ok(registry::prefer(names)?)
}

/// Sets the fallback policy of devices, for calls that no backend serves there: `error`, or a device such as `cpu` that
/// runs them, with a warning (`cpu`, `cpu:warn`) or without (`cpu:allow`). Tensors move there and back. A device that
/// [`set_device_fallback`] named keeps its own policy.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// keyway::set_fallback("cpu:allow")?;
/// # keyway::set_fallback("error")?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// A policy that cannot be read, or with which calls would go round in a circle.
pub fn set_fallback(policy: &str) -> Result<()> {
    let parsed = FallbackPolicy::parse(policy)?;
    registry::set_default_fallback(parsed)?;
    warn_of(policy, parsed);
    Ok(())
}

/// As [`set_fallback`], for one kind of device.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::backend;
/// backend::set_device_fallback("cuda", "cpu:allow")?;
/// assert!(backend::set_device_fallback("cpu", "cuda").is_err(), "round in a circle");
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`set_fallback`].
pub fn set_device_fallback(device: &str, policy: &str) -> Result<()> {
    let parsed = FallbackPolicy::parse(policy)?;
    registry::set_fallback(Device::parse(device)?.kind, parsed)?;
    warn_of(policy, parsed);
    Ok(())
}

/// Warns of a policy that names a device which no loaded backend brings.
fn warn_of(policy: &str, parsed: FallbackPolicy) {
    if crate::runtime::backends().is_some()
        && let Some(trouble) = parsed.trouble()
    {
        keyway_dispatcher::log::warn(&format!("set_fallback: {policy}: {trouble}"));
    }
}
