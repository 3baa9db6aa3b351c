//! Fallback to strided: with the user's consent, calls on composite tensors without a kernel for their layout run on strided
//! copies.
//!
//! The policy of a thread is that of the most recent live [`LayoutFallbackGuard`], else that of [`set_layout_fallback`], which is
//! `error` by default:
//! - `error`: the call fails, and its error lists the options;
//! - `warn`: composite arguments are converted with [`Tensor::to_strided`], and the log has a line the first time for each op and
//!   layout;
//! - `allow`: the same without the line; the conversions still appear in profiles, as calls of `to_layout`.
//!
//! Results are strided: convert them back with [`Tensor::to_layout`] if later ops have kernels for the layout. The conversions
//! are recorded by autograd. An op is converted as a whole, not part by part. In-place and `out=` calls that write to a composite
//! tensor are not converted, since their target would have to be replaced; they fail as under `error`.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::Tensor;
//! use keyway::layout_fallback::{LayoutFallback, layout_fallback};
//! let _guard = layout_fallback(LayoutFallback::Warn)?;
//! // Strided tensors are not concerned.
//! assert_eq!(Tensor::new([1.0f32, 2.0])?.cumsum(0)?.to_vec::<f32>()?, [1.0, 3.0]);
//! # Ok(()) }
//! ```

use crate::Tensor;
use crate::arguments::replacing;
use crate::chosen::Chosen;
use crate::error::Result;
use keyway_dispatcher::call::redispatch;
use keyway_dispatcher::error::{Error, Result as DispatchResult};
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet, Layout};
use keyway_dispatcher::log;
use keyway_dispatcher::op::{Arg, Call, Out, Outputs};
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use keyway_dispatcher::tensor::TensorRef;
use once_cell::sync::OnceCell;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// The environment variable that sets the policy of the program, as [`set_layout_fallback`] does.
pub const LAYOUT_FALLBACK_VARIABLE: &str = "KEYWAY_LAYOUT_FALLBACK";

/// The policy for a call on a composite tensor that has no kernel for its layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutFallback {
    /// The call fails.
    Error,
    /// The call runs on strided copies; the log has a line the first time for each op and layout.
    Warn,
    /// The call runs on strided copies.
    Allow,
}

impl LayoutFallback {
    const ALL: [(&str, LayoutFallback); 3] =
        [("error", LayoutFallback::Error), ("warn", LayoutFallback::Warn), ("allow", LayoutFallback::Allow)];

    /// The policy of a name: `error`, `warn` or `allow`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::layout_fallback::LayoutFallback;
    /// assert_eq!(LayoutFallback::parse("warn")?, LayoutFallback::Warn);
    /// assert!(LayoutFallback::parse("cpu").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Any other name.
    pub fn parse(name: &str) -> Result<LayoutFallback> {
        let found = LayoutFallback::ALL.iter().find(|(own, _)| *own == name);
        found.map(|(_, policy)| *policy).ok_or_else(|| {
            let (expected, got) = ("`error`, `warn` or `allow`".to_string(), format!("`{name}`"));
            Error::Value { op: "layout_fallback", argument: "policy", expected, got }.into()
        })
    }
}

/// The policy of the program, as an index into [`LayoutFallback::ALL`].
static PROGRAM: AtomicU8 = AtomicU8::new(0);
/// Registers the dispatch key when a policy other than `error` is first requested.
static REGISTERED: OnceCell<()> = OnceCell::new();
/// The ops and layouts that were logged.
static WARNED: Mutex<Option<HashSet<(usize, Layout)>>> = Mutex::new(None);

thread_local! {
    /// The policies of the live guards.
    static CHOSEN: Chosen<LayoutFallback> = const { Chosen::new() };
}

/// Sets the policy of the program: `error`, `warn` or `allow`. See the [module](self).
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// keyway::set_layout_fallback("allow")?;
/// assert!(keyway::set_layout_fallback("cpu").is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Any other name.
pub fn set_layout_fallback(policy: &str) -> Result<()> {
    let policy = LayoutFallback::parse(policy)?;
    prepare(policy)?;
    PROGRAM.store(policy as u8, Ordering::Relaxed);
    Ok(())
}

/// A guard: restores the previous policy of [`layout_fallback`] when dropped; the most recent live guard is effective.
///
/// ```
/// use keyway::layout_fallback::{LayoutFallback, LayoutFallbackGuard, current_layout_fallback, layout_fallback};
/// let before = current_layout_fallback();
/// let guard: LayoutFallbackGuard = layout_fallback(LayoutFallback::Error)?;
/// assert_eq!(current_layout_fallback(), LayoutFallback::Error);
/// drop(guard);
/// assert_eq!(current_layout_fallback(), before);
/// # Ok::<(), keyway::Error>(())
/// ```
#[must_use = "the policy holds only while the guard lives"]
#[derive(Debug)]
pub struct LayoutFallbackGuard {
    number: u64,
    _thread: PhantomData<*const ()>,
}

impl Drop for LayoutFallbackGuard {
    fn drop(&mut self) {
        // A thread that ends may have dropped its list.
        let _ = CHOSEN.try_with(|all| all.remove(self.number));
    }
}

/// Sets the policy of this thread while the guard lives.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::layout_fallback::{LayoutFallback, current_layout_fallback, layout_fallback};
/// let guard = layout_fallback(LayoutFallback::Allow)?;
/// assert_eq!(current_layout_fallback(), LayoutFallback::Allow);
/// drop(guard);
/// assert_eq!(current_layout_fallback(), LayoutFallback::Error);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Errors of registering the dispatch key, which happens once.
pub fn layout_fallback(policy: LayoutFallback) -> Result<LayoutFallbackGuard> {
    prepare(policy)?;
    Ok(LayoutFallbackGuard { number: CHOSEN.with(|all| all.push(policy)), _thread: PhantomData })
}

/// The policy of calls on this thread.
///
/// ```
/// use keyway::layout_fallback::{LayoutFallback, current_layout_fallback};
/// assert_eq!(current_layout_fallback(), LayoutFallback::Error);
/// ```
pub fn current_layout_fallback() -> LayoutFallback {
    CHOSEN.try_with(Chosen::last).ok().flatten().unwrap_or_else(|| {
        let index = usize::from(PROGRAM.load(Ordering::Relaxed));
        LayoutFallback::ALL[index.min(LayoutFallback::ALL.len() - 1)].1
    })
}

fn prepare(policy: LayoutFallback) -> Result<()> {
    if policy != LayoutFallback::Error {
        REGISTERED.get_or_try_init(install)?;
    }
    Ok(())
}

fn install() -> DispatchResult<()> {
    register_key_handler(KeyHandler {
        key: DispatchKey::LAYOUT_FALLBACK,
        name: "layout_fallback".to_string(),
        applies: |_| true,
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    let policy = current_layout_fallback();
    if policy == LayoutFallback::Error {
        return redispatch(call, below);
    }
    // The parts of a composed op fail, so that the op is converted whole; and so do ops of the conversion itself.
    let _whole = KeyGuard::exclude(KeySet::of(DispatchKey::LAYOUT_FALLBACK));
    let missing = match redispatch(call, below) {
        Err(error @ Error::MissingKernel(_)) => error,
        result => return result,
    };
    let mut tensors = call.args.values.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t),
        Arg::Tensors(list) => list,
        _ => &[],
    });
    let written: &[&TensorRef] = match (call.out, call.args.values.first()) {
        (Out::Given(list), _) => list,
        (Out::InPlace, Some(Arg::Tensor(target))) => std::slice::from_ref(target),
        _ => &[],
    };
    let composite = tensors.find(|t| !t.is_strided());
    let Some(layout) = composite.map(|t| t.layout()).filter(|_| written.iter().all(|t| t.is_strided()))
    else {
        return Err(missing);
    };
    if policy == LayoutFallback::Warn {
        warn_once(call, layout);
    }
    replacing(
        &call.args,
        |t| if t.is_strided() { Ok(None) } else { Tensor::from_ref(t.clone()).to_strided().map(Some) },
        |args| redispatch(&Call { args, out: call.out }, below),
    )?
}

fn warn_once(call: &Call<'_>, layout: Layout) {
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.get_or_insert_default().insert((call.args.op.id, layout)) {
        let name = call.args.name();
        log::warn(&format!(
            "{name}: no kernel for layout {layout}, running on strided copies; `keyway explain {name} --layout {layout}` says why"
        ));
    }
}
