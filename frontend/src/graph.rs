//! Work that is captured once and replayed many times, with one call of the host instead of one for each op.
//!
//! [`capture()`] runs a function whose work on a device is captured instead of executed. Each [`Graph::replay`]
//! executes it, on the same memory: copy new values into the inputs with `copy_`, replay, read the function's results.
//! The graph keeps all memory that the work uses, at the same addresses; nothing else uses it meanwhile.
//!
//! Which devices capture work, their backends say; the CPU does not. The function runs once, so what it does on the host is not
//! done again:
//! - do the same work once or twice before the capture: kernels are loaded and optimisers make their state then, which a
//!   replay would make anew;
//! - what waits for the device is an error inside: `item`, `to_vec`, copies of host memory that is not pinned, results whose
//!   sizes the device knows, such as that of `nonzero`. The capture ends, nothing of it was done, and the error is the function's;
//! - indices and classes that are wrong are no error of the replay, which does not wait: nothing outside is read or written, and
//!   the next wait for the device (`item`, `to_vec`, `synchronize`) or the next replay is the error, which names the op, the
//!   argument and the number. The replay's results are of no use then. `keyway doctor` says how a backend is made to wait;
//! - ops on another device, the CPU among them, and an `out=` there are errors: a replay would not do them again. A 0-d tensor on
//!   the CPU counts as a number, and is recorded as it is;
//! - random ops are errors: their offset in the random stream is host state, so each replay would draw the same;
//! - numbers are recorded as they are. A learning rate that changes needs another capture; [`Adam`](crate::optim::Adam) counts
//!   its steps on the device once [`capturable`](crate::optim::Adam::capturable) was called;
//! - gradients are those tensors that the captured `backward` made, if `zero_grad` comes first in the function;
//! - a replay is no op: it is not counted as a change of the tensors that it writes, so do not call `backward` of what was
//!   computed from them before it;
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
use keyway_dispatcher::registry::{FunctionalEntry, register_functional};
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
    /// What the work was captured on: a stream of the graph's own.
    _stream: Stream,
}

/// Captures what `work` gives to a device on this thread, without doing it; what `work` returned, and the graph.
///
/// # Errors
/// A device that does not capture work; another thread that captures on the device now; what `work` reports, and what the device says of the capture.
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
    // Memory that was given back in the order of other streams is free now.
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
    register_functional(FunctionalEntry {
        key: DispatchKey::CAPTURE,
        name: "capture".to_string(),
        applies: computes,
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

/// Whether an op has work for a device: views have none, and what the host composes calls others.
fn computes(op: &OpEntry) -> bool {
    !matches!(op.spec.rule, Rule::Host(_) | Rule::View(_) | Rule::Views(_))
}

/// Refuses a call on a device whose work is not captured.
fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    // A 0-d tensor in host memory goes with any device, as a number.
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
    /// Does the work once more on this thread's current stream of the device, after what was given to that stream before: on the
    /// same memory, in the order in which it was captured. Returns when the work is given to the device, as an op does.
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
    /// What the device reports, also of the replay before.
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

/// Refuses what a replay would not do as a caller expects.
pub(crate) fn refuse(
    op: &'static str,
    device: Device,
    reason: &'static str,
    instead: &'static str,
) -> Result<()> {
    if is_captured(device) { Err(Error::Captured { op, reason, instead }) } else { Ok(()) }
}
