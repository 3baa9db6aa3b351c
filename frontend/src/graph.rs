//! Graphs: work that is captured once and replayed many times, with one call of the host instead of one per op.
//!
//! [`capture()`] runs a function whose work on a device is captured instead of executed. Each [`Graph::replay`]
//! executes it, on the same memory: copy new values into the inputs with `copy_`, replay, read the function's results.
//! The graph owns all memory that the work uses, at the same addresses, exclusively.
//!
//! Backends report which devices support capture; the CPU does not. The function runs once, so its effects on the host are not
//! repeated:
//! - do the same work once or twice before the capture: kernels are loaded and optimisers create their state then, which a replay
//!   would create again;
//! - synchronisation inside is an error: `item`, `to_vec`, copies of host memory that is not pinned, results whose sizes depend
//!   on data, such as that of `nonzero`. The capture ends, none of the work was done, and the error is the function's;
//! - invalid indices and classes are not an error of the replay, which does not synchronise: nothing out of bounds is read or
//!   written, and the next synchronisation with the device (`item`, `to_vec`, `synchronize`) or the next replay returns the
//!   error, which names the op, the argument and the value. The replay's results are invalid then. `keyway doctor` reports how to
//!   make a backend synchronise;
//! - ops on another device, the CPU among them, and an `out=` there are errors: a replay would not repeat them. A 0-d tensor on
//!   the CPU counts as a scalar, and its value is recorded;
//! - random ops are errors: their offset in the random stream is host state, so each replay would return the same values;
//! - scalars are recorded by value. A learning rate that changes needs another capture; [`Adam`](crate::optim::Adam) counts its
//!   steps on the device once [`capturable`](crate::optim::Adam::capturable) was called;
//! - gradients are the tensors that the captured `backward` created, if the function calls `zero_grad` first;
//! - a replay is not an op: it does not increment the version of the tensors that it writes, so do not call `backward` of results
//!   that were computed from them earlier;
//! - while one thread captures, other threads' `capture` and `synchronize` of that device are errors.
//!
//! ```no_run
//! # fn main() -> keyway::Result<()> {
//! use keyway::optim::{Optimizer, Sgd, SgdOptions};
//! use keyway::{Device, Tensor, graph};
//! let device = Device::new("cuda", 0)?;
//! let (x, y) = (Tensor::ones_with((64, 8), device)?, Tensor::ones_with((64, 1), device)?);
//! let w = Tensor::zeros_with((8, 1), device)?.requires_grad_(true)?;
//! let options = SgdOptions { lr: 0.01, momentum: 0.9, ..SgdOptions::default() };
//! let mut optimizer = Sgd::new(vec![w.clone()], options)?;
//! let mut step = || -> keyway::Result<Tensor> {
//!     optimizer.zero_grad();
//!     let difference = x.mm(&w)?.sub(&y)?;
//!     let loss = difference.mul(&difference)?.mean_all()?;
//!     loss.backward()?;
//!     optimizer.step()?;
//!     Ok(loss.detach())
//! };
//! step()?;
//! let (loss, captured) = graph::capture(device, step)?;
//! for _ in 0..100 {
//!     x.copy_(&Tensor::ones_with((64, 8), device)?)?; // the next batch
//!     captured.replay()?;
//! }
//! println!("{}", loss.item::<f32>()?);
//! # Ok(()) }
//! ```

use crate::{Device, Error, Result};
use keyway_dispatcher::call::redispatch;
use keyway_dispatcher::device::capture::{self, is_captured};
use keyway_dispatcher::device::{Stream, synchronize};
use keyway_dispatcher::error::Result as DispatchResult;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::op::{Arg, Call, OpEntry, Out, Outputs, Rule};
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use keyway_dispatcher::tensor::TensorRef;
use once_cell::sync::OnceCell;

/// Captured work. Dropping it waits for its last replay.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Device, Tensor, graph};
/// let device = Device::new("cuda", 0)?;
/// let x = Tensor::ones_with(3, device)?;
/// let (sum, captured) = graph::capture(device, || x.sum_all())?;
/// captured.replay()?;
/// assert_eq!(sum.item::<f32>()?, 3.0);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Graph {
    recorded: capture::Graph,
    device: Device,
    /// The stream of the capture, owned by the graph.
    _stream: Stream,
}

/// Captures the work that `work` submits to a device on this thread, without executing it; returns the result of `work` and the
/// graph.
///
/// # Errors
/// A device that does not support capture; another thread that captures on the device now; errors of `work`, and of the device
/// about the capture.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Device, graph};
/// let error = graph::capture(Device::CPU, || Ok(())).unwrap_err();
/// assert!(error.to_string().contains("cpu"));
/// # Ok(()) }
/// ```
pub fn capture<T>(device: Device, work: impl FnOnce() -> Result<T>) -> Result<(T, Graph)> {
    crate::runtime::start()?;
    if is_captured(device) {
        let reason = "this thread's work is being captured already";
        return Err(Error::Captured { op: "graph::capture", reason, instead: "let one capture hold both" });
    }
    KEY_REGISTERED.get_or_try_init(install)?;
    let stream = Stream::new(device)?;
    // Memory that other streams have released is free now.
    synchronize(device)?;
    let (made, recorded) = capture::Graph::capture(&stream, || {
        let _key = KeyGuard::include(KeySet::of(DispatchKey::CAPTURE));
        work()
    })?;
    Ok((made, Graph { recorded, device, _stream: stream }))
}

/// Once a program captures.
static KEY_REGISTERED: OnceCell<()> = OnceCell::new();

fn install() -> DispatchResult<()> {
    register_key_handler(KeyHandler {
        key: DispatchKey::CAPTURE,
        name: "capture".to_string(),
        applies: computes,
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

/// Whether an op submits work to a device: views have none, and host ops call others.
fn computes(op: &OpEntry) -> bool {
    !(op.spec.rule.is_view() || matches!(op.spec.rule, Rule::Host(_)))
}

/// Refuses a call on a device whose work is not captured.
fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    // A 0-d tensor in host memory is accepted on any device, as a scalar.
    let elsewhere = |t: &TensorRef| !(is_captured(t.device()) || t.ndim() == 0 && t.device() == Device::CPU);
    let refused = call.args.values.iter().any(|arg| match arg {
        Arg::Tensor(t) => elsewhere(t),
        Arg::Tensors(list) => list.iter().any(|t| elsewhere(t)),
        _ => false,
    });
    let refused =
        refused || matches!(call.out, Out::Given(list) if list.iter().any(|t| !is_captured(t.device())));
    match refused {
        true => Err(Error::Captured {
            op: call.args.op.name,
            reason: "a tensor of it is on a device whose work is not being captured, so a replay would not do it again",
            instead: "do it before the capture, or move the tensor to the captured device before",
        }
        .into()),
        false => redispatch(call, below),
    }
}

impl Graph {
    /// Submits the work once more to this thread's current stream of the device, after the stream's earlier work: on the same
    /// memory, in the captured order. Returns when the work is submitted, as an op does.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor, graph};
    /// let device = Device::new("cuda", 0)?;
    /// let x = Tensor::ones_with(3, device)?;
    /// let (doubled, captured) = graph::capture(device, || x.mul(2.0))?;
    /// x.copy_(&Tensor::full_with(3, 4.0, device)?)?;
    /// captured.replay()?;
    /// assert_eq!(doubled.to_vec::<f32>()?, [8.0, 8.0, 8.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device, including those of the previous replay.
    pub fn replay(&self) -> Result<()> {
        Ok(self.recorded.launch(&Stream::current(self.device)?)?)
    }

    /// The device.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor, graph};
    /// let device = Device::new("cuda", 0)?;
    /// let x = Tensor::ones_with(3, device)?;
    /// let (_, captured) = graph::capture(device, || x.mul(2.0))?;
    /// assert_eq!(captured.device(), device);
    /// # Ok(()) }
    /// ```
    pub fn device(&self) -> Device {
        self.device
    }
}

/// Refuses an op that a replay would not repeat correctly.
pub(crate) fn refuse(
    op: &'static str,
    device: Device,
    reason: &'static str,
    instead: &'static str,
) -> Result<()> {
    if is_captured(device) { Err(Error::Captured { op, reason, instead }) } else { Ok(()) }
}
