//! Named parts of a program in a trace.

use super::record::{LOCAL, Local, Open, PROFILES};
use super::stack::{Frame, place};
use super::state::Slot;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

/// Ends a named part of the program when dropped.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32])?;
/// let profile = profiler::trace();
/// let part = profiler::scope("head");
/// x.relu()?;
/// drop(part);
/// let names: Vec<_> = profile.trace().events.iter().map(|e| e.name.to_string()).collect();
/// assert_eq!(names, ["head", "relu"]);
/// # Ok(()) }
/// ```
#[must_use = "the part ends when this is dropped"]
pub struct Scope {
    entered: Option<Box<Entered>>,
    // The stack belongs to the thread.
    _not_send: PhantomData<*const ()>,
}

/// A part that is recorded.
struct Entered {
    start: Instant,
    name: Arc<str>,
    slot: Option<Slot>,
    open: Open,
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(entered) = self.entered.take() {
            leave(*entered);
        }
    }
}

#[cold]
fn leave(Entered { start, name, slot, open }: Entered) {
    let total = start.elapsed();
    drop(open);
    // When a thread ends, its state no longer exists.
    let _ = LOCAL.try_with(|local| {
        let mut states = local.states.borrow_mut();
        // A profile may have begun since, or the one with the scope's event may have ended.
        if let Some(state) = slot.and_then(|slot| states.iter_mut().find(|state| state.keeps(slot))) {
            state.end_scope(name, start, total, slot);
        }
    });
}

/// Runs `name` only while this thread is profiled: a name for the trace, and a frame for the stack.
#[inline]
fn enter(name: impl FnOnce() -> (Arc<str>, Frame)) -> Scope {
    let entered = if PROFILES.get() > 0 { record(name()) } else { None };
    Scope { entered, _not_send: PhantomData }
}

#[cold]
fn record((name, frame): (Arc<str>, Frame)) -> Option<Box<Entered>> {
    let enter = |local: &Local| {
        let slot = local.reserve();
        let open = Open::push(local, frame);
        Box::new(Entered { start: Instant::now(), name, slot, open })
    };
    LOCAL.try_with(enter).ok()
}

/// Groups the calls of this thread under a name in the trace while the result lives, as PyTorch's `record_function` does. Its
/// cost is negligible while the thread is not profiled. It is thread-local: a thread's calls appear in its own scopes and its own
/// profile.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// let profile = profiler::trace();
/// {
///     let _scope = profiler::scope("squares");
///     x.mul(&x)?;
/// }
/// let names: Vec<_> = profile.trace().events.iter().map(|event| event.name.to_string()).collect();
/// assert_eq!(names, ["squares", "mul"]);
/// # Ok(()) }
/// ```
#[doc(alias = "record_function")]
pub fn scope(name: &str) -> Scope {
    enter(|| (name.into(), Frame::Region))
}

/// The scope of a module's forward: its name in the parent module is part of the path of calls, by which the trace names it.
pub(crate) fn module_scope(name: &str, kind: &str) -> Scope {
    enter(|| {
        let around = LOCAL.try_with(|local| place(&local.stack.borrow()).1).unwrap_or_default();
        let dot = if around.is_empty() { "" } else { "." };
        (format!("{around}{dot}{name} ({kind})").into(), Frame::Module(name.into()))
    })
}

/// Records the stack of modules of this thread for [`module_path`] while it lives, also without a profile.
pub(crate) struct ModulePaths(PhantomData<*const ()>);

impl ModulePaths {
    pub(crate) fn begin() -> ModulePaths {
        PROFILES.set(PROFILES.get() + 1);
        ModulePaths(PhantomData)
    }
}

impl Drop for ModulePaths {
    fn drop(&mut self) {
        PROFILES.set(PROFILES.get().saturating_sub(1));
    }
}

/// The names of the modules that this thread is in, with dots between them; empty where no profile or [`ModulePaths`] lives.
pub(crate) fn module_path() -> String {
    LOCAL.try_with(|local| place(&local.stack.borrow()).1).unwrap_or_default()
}

/// The derivative of an op.
pub(crate) fn backward_scope(op: &'static str) -> Scope {
    enter(|| (format!("backward of {op}").into(), Frame::Backward(op)))
}
