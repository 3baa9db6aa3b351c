//! Anomaly detection: while it is on, each node records the source location of its forward call, and the engine checks every
//! gradient for NaN.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static ON: AtomicUsize = AtomicUsize::new(0);

/// Anomaly detection is on while any guard lives.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd};
/// let x = Tensor::new(0.0f32)?.requires_grad_(true)?;
/// let y = (&x / &x)?;
/// let guard = autograd::detect_anomaly();
/// assert!(y.backward().is_err());
/// drop(guard);
/// (&x / &x)?.backward()?;
/// assert!(x.grad().unwrap().item::<f32>()?.is_nan());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct AnomalyGuard(());

/// Enables anomaly detection on all threads while the guard lives. Slow.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd};
/// let _guard = autograd::detect_anomaly();
/// let x = Tensor::new(0.0f32)?.requires_grad_(true)?;
/// let error = (&x / &x)?.backward().unwrap_err();
/// assert!(error.to_string().contains("div"));
/// # Ok(()) }
/// ```
#[doc(alias = "set_detect_anomaly")]
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

static SOURCE: OnceLock<fn() -> Option<String>> = OnceLock::new();

/// Sets the function that describes the caller of a recorded call, for programs in another language; `None` means this one's trace.
/// The first call decides.
#[doc(hidden)]
pub fn set_trace_source(source: fn() -> Option<String>) {
    let _ = SOURCE.set(source);
}

/// Source location of the call that is being recorded.
#[inline]
pub(super) fn trace() -> Option<Box<str>> {
    if ON.load(Ordering::Relaxed) == 0 {
        return None;
    }
    foreign_or_own()
}

#[cold]
fn foreign_or_own() -> Option<Box<str>> {
    if let Some(trace) = SOURCE.get().and_then(|source| source()) {
        return Some(trace.into());
    }
    let all = std::backtrace::Backtrace::force_capture().to_string();
    Some(from_the_caller(&all).into())
}

/// The crates whose functions lead from a call to here.
const OWN: [&str; 7] = ["keyway", "keyway_dispatcher", "keyway_sdk", "std", "core", "alloc", "backtrace"];

/// One frame of a trace: where its text begins, the symbol, and the file if it is known.
struct Frame<'a> {
    at: usize,
    symbol: &'a str,
    file: &'a str,
}

impl Frame<'_> {
    /// Whether the function is of this framework or of the standard library. Inlined functions have no path in their symbol, so
    /// the source file counts too: those in `sources`, the folders of this framework's crates.
    fn is_own(&self, sources: &[&str]) -> bool {
        // `<&keyway::tensor::Tensor as core::ops::arith::Add>::add` begins with the crate that it is of.
        let path = self.symbol.trim_start_matches(['<', '&', '(', '[']);
        let path = path.strip_prefix("dyn ").or(path.strip_prefix("mut ")).unwrap_or(path);
        let of_crate = |name: &&str| path.strip_prefix(*name).is_some_and(|rest| rest.starts_with("::"));
        let library = self.file.starts_with("/rustc/") || self.file.contains("/lib/rustlib/src/rust/");
        OWN.iter().any(of_crate) || library || sources.iter().any(|s| self.file.contains(s))
    }
}

fn frames(trace: &str) -> Vec<Frame<'_>> {
    let (mut frames, mut at): (Vec<Frame<'_>>, usize) = (Vec::new(), 0);
    for line in trace.split_inclusive('\n') {
        let text = line.trim();
        match (text.split_once(": "), text.strip_prefix("at ")) {
            (Some((number, symbol)), _) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                frames.push(Frame { at, symbol, file: "" });
            }
            (_, Some(file)) => frames.last_mut().into_iter().for_each(|frame| frame.file = file),
            _ => {}
        }
        at += line.len();
    }
    frames
}

/// The frames of a trace from the first outside this framework up to the start of the thread or program; all frames if they
/// cannot be distinguished, as in a program without symbols.
fn from_the_caller(trace: &str) -> &str {
    let frames = frames(trace);
    // The path of this file shows how crate sources are named; it may be relative to the working directory.
    let here = frames
        .iter()
        .find_map(|frame| frame.file.split_once("autograd/anomaly.rs"))
        .map(|(folder, _)| folder);
    let below = keyway_dispatcher::SOURCES;
    let sources: Vec<&str> = here.into_iter().chain([below]).filter(|folder| !folder.is_empty()).collect();
    let Some(first) = frames.iter().position(|frame| !frame.is_own(&sources)) else { return trace };
    let begun =
        frames[first..].iter().position(|frame| frame.symbol.contains("__rust_begin_short_backtrace"));
    let end = begun.map_or(trace.len(), |k| frames[first + k].at);
    &trace[frames[first].at..end]
}

/// Whether a guard lives in any thread.
#[inline]
pub(super) fn is_on() -> bool {
    ON.load(Ordering::Relaxed) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_begins_at_the_line_that_called() {
        let trace = "   0: std::backtrace::Backtrace::create\n   1: keyway::autograd::anomaly::trace\n             at ./src/a.rs:1:2\n   \
                     2: <&keyway::tensor::Tensor as core::ops::arith::Add>::add\n   3: example::loss\n             at ./loss.rs:7:1\n   \
                     4: keyway::nn::sequential::run\n   5: example::main\n   6: std::sys::backtrace::__rust_begin_short_backtrace\n   7: main\n";
        let inlined = "   0: trace\n             at ./src/autograd/anomaly.rs:30:1\n   1: record\n             at ./src/autograd/handler.rs:1:1\n   \
                       2: call_once\n             at /rustc/59807/library/core/src/ops/function.rs:2:3\n   3: loss\n             at ./loss.rs:7:1\n";
        assert_eq!(from_the_caller(inlined), "   3: loss\n             at ./loss.rs:7:1\n");
        let expected = "   3: example::loss\n             at ./loss.rs:7:1\n   4: keyway::nn::sequential::run\n   5: example::main\n";
        assert_eq!(from_the_caller(trace), expected);
        let own = "   0: keyway::a\n   1: core::b\n";
        assert_eq!(from_the_caller(own), own);
        let unnamed = "   0: <unknown>\n   1: <unknown>\n";
        assert_eq!(from_the_caller(unnamed), unnamed);
        assert_eq!(from_the_caller(""), "");
    }
}
