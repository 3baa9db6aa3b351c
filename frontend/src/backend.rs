//! Choice of the backend for calls that several could run, and the fallback for calls that none can run.
//!
//! Decisions:
//! - a choice for one thread is a dispatch key: without such a choice, calls have no overhead;
//! - a call never moves to another device silently: the default policy is `error`, and the profiler and [`fallbacks`] report
//!   moved calls;
//! - an op that falls back to another device does so as a whole: its tensors are moved there once and its results back once; the
//!   same applies to the formula of its derivative. A decomposition on the op's own device, each part of which falls back by
//!   itself, is used only if the other device cannot run the op.

use crate::error::Result;
/// Prefers a backend for the calls of this thread while it lives; returned by [`choose_backend`].
///
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
/// The calls of one op that ran on another device; listed by [`fallbacks`].
///
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

/// Runs `run`; within it, calls of this thread prefer the kernels of the backend `name`, otherwise the usual candidates.
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
/// A backend that is not loaded; the message lists the loaded ones.
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

/// Orders these backends before all others for the whole program, regardless of their priorities. If several backends provide a
/// device, the preferred one provides it under its name: call this before tensors are created there.
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

/// Sets the fallback policy of devices, for calls that no backend on them can run: `error`, or a device such as `cpu` that
/// runs them, with a warning (`cpu`, `cpu:warn`) or without (`cpu:allow`). Tensors are copied to it and back. A device with
/// its own policy ([`set_device_fallback`]) keeps that.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// keyway::set_fallback("cpu:allow")?;
/// # keyway::set_fallback("error")?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// A policy that cannot be parsed, or that would be circular.
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

/// Warns of a policy that names a device which no loaded backend provides.
fn warn_of(policy: &str, parsed: FallbackPolicy) {
    if crate::runtime::backends().is_some()
        && let Some(trouble) = parsed.trouble()
    {
        keyway_dispatcher::log::warn(&format!("set_fallback: {policy}: {trouble}"));
    }
}
