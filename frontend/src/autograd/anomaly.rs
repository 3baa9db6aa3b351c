//! Finding where NaN comes from: while on, each node remembers where its forward call was made, and the
//! engine looks at every gradient.

use super::error::AutogradError;
use super::node::Node;
use crate::Tensor;
use crate::error::Result;
use std::sync::atomic::{AtomicUsize, Ordering};

static ON: AtomicUsize = AtomicUsize::new(0);

/// Anomaly detection is on while any guard lives.
#[derive(Debug)]
pub struct AnomalyGuard(());

/// Turns anomaly detection on, for all threads, while the guard lives. Slow.
#[must_use = "anomaly detection is on only while the guard lives"]
pub fn detect_anomaly() -> AnomalyGuard {
    ON.fetch_add(1, Ordering::Relaxed);
    AnomalyGuard(())
}

impl Drop for AnomalyGuard {
    fn drop(&mut self) {
        ON.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where the call that is being recorded was made.
#[inline]
pub(super) fn trace() -> Option<Box<str>> {
    if ON.load(Ordering::Relaxed) == 0 {
        return None;
    }
    Some(std::backtrace::Backtrace::force_capture().to_string().into())
}

/// Fails if one of the gradients that a node made holds NaN.
pub(super) fn check(node: &Node, grads: &[Option<Tensor>]) -> Result<()> {
    if ON.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    for (index, grad) in grads.iter().enumerate() {
        let Some(grad) = grad else { continue };
        if grad.dtype().is_float() && grad.to_f64_vec()?.iter().any(|v| v.is_nan()) {
            let trace = node.trace.as_deref().unwrap_or("(recorded before anomaly detection was on)");
            return Err(
                AutogradError::Anomaly { op: node.name().into(), index, trace: trace.to_string() }.into()
            );
        }
    }
    Ok(())
}
