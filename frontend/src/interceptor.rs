//! Interceptors: handlers that a program registers under dispatch keys above autograd, and tensor extensions that pass through ops.
//!
//! An interceptor has a name and a handler, which receives every call with one of its tensors among the arguments, before
//! autograd and the backend. [`Interceptor::attach`] adds an extension of any type to a tensor: a unit, a name, a record of its
//! origin. It does what PyTorch's tensor subclasses with `__torch_dispatch__` do, without a new type of tensor.
//! [`Interceptor::enter`] enables the handler for every call of a thread, as PyTorch's dispatch modes do.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::interceptor::Interceptor;
//! use keyway::prelude::*;
//! // Results remember how many calls led to them.
//! let steps = Interceptor::register("steps", |call| {
//!     let most = call.extensions::<u32>().into_iter().flatten().map(|n| *n).max().unwrap_or(0);
//!     let made = call.run()?;
//!     made.iter().for_each(|t| call.interceptor().attach(t, most + 1));
//!     Ok(made)
//! })?;
//! let x = Tensor::new([1.0f32, 2.0])?;
//! steps.attach(&x, 0u32);
//! let y = ((&x * 2.0)? + &x)?.relu()?;
//! assert_eq!(y.to_vec::<f32>()?, [3.0, 6.0]);
//! assert_eq!(*steps.extension::<u32>(&y).unwrap(), 3);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - the highest key acts first: the profiler, then these (the one registered last first), interposers of plugins, mixed
//!   precision, layout fallback, autograd, the backend. [`Call::run`] redispatches below the handler;
//! - a handler does not receive its own calls, nor the parts of a composite op that [`Call::run`] runs; [`Call::run_parts`]
//!   passes those to it. So a handler for few ops covers all ops composed of them;
//! - a backward pass works on plain tensors: no handler acts in it, and gradients have no extensions. Only the recomputation of a
//!   checkpoint calls the handlers, as the first run did;
//! - extensions are copied by calls of ops alone, not by `detach` and clones of the handle. A clone is the same tensor, so it has
//!   the extension; a detached tensor is another one, and takes the extensions along.

use crate::arguments::replacing;
use crate::autograd::{extensions, meta};
use crate::error::{Error, Result};
use crate::{Arg, Tensor};
use keyway_dispatcher::call::{decompose, redispatch, unalias};
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet, local_keys};
use keyway_dispatcher::op::{self, Out, Outputs};
use keyway_dispatcher::registry::{find_key, register_interceptor};
use keyway_dispatcher::tensor::TensorRef;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// An interceptor of the program's own; a copy is the same one.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, interceptor::Interceptor};
/// // Counts the calls that have a marked tensor among their arguments.
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// static SEEN: AtomicUsize = AtomicUsize::new(0);
/// let marked = Interceptor::register("marked", |call| {
///     SEEN.fetch_add(1, Ordering::Relaxed);
///     call.run()
/// })?;
/// let x = Tensor::new([1.0f32])?;
/// x.relu()?;
/// marked.attach(&x, ());
/// x.relu()?;
/// assert_eq!(SEEN.load(Ordering::Relaxed), 1);
/// # Ok(()) }
/// ```
#[doc(alias = "__torch_dispatch__")]
#[doc(alias = "TorchDispatchMode")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interceptor {
    key: DispatchKey,
}

impl Interceptor {
    /// Registers an interceptor under a name, for the lifetime of the program. The handler returns the results of a call:
    /// usually those of [`Call::run`], or replacements. The results of in-place and `out=` calls are the tensors that were
    /// written, regardless of the handler's.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let doubled = Interceptor::register("doubled", |call| {
    ///     call.run()?.iter().map(|made| made.mul(2.0)).collect()
    /// })?;
    /// let x = Tensor::new([1.0f32])?;
    /// doubled.attach(&x, ());
    /// assert_eq!(x.add(1.0)?.item::<f32>()?, 4.0);
    /// assert!(Interceptor::register("doubled", |call| call.run()).is_err(), "the name is taken");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A name that is empty or taken; a ninth interceptor.
    pub fn register(
        name: &str,
        handler: impl Fn(&Call<'_>) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    ) -> Result<Interceptor> {
        crate::runtime::register_ops()?;
        // The key is passed to the handler, and known only after registration.
        let own = Arc::new(std::sync::OnceLock::new());
        let of_handler = own.clone();
        let key = register_interceptor(
            name,
            Box::new(move |call, below| match of_handler.get() {
                Some(&interceptor) => Ok(answer(call, below, interceptor, &handler)?),
                None => redispatch(call, below),
            }),
        )?;
        let interceptor = Interceptor { key };
        let _ = own.set(interceptor);
        extensions::note_registered();
        Ok(interceptor)
    }

    /// The interceptor that the program has registered under this name.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let tags = Interceptor::register("tags", |call| call.run())?;
    /// let x = Tensor::new([1.0f32])?;
    /// assert_eq!(Interceptor::find("tags"), Some(tags));
    /// assert_eq!(Interceptor::find("nobody"), None);
    /// # Ok(()) }
    /// ```
    pub fn find(name: &str) -> Option<Interceptor> {
        let key = find_key(name).filter(|key| KeySet::PROGRAM.has(*key))?;
        Some(Interceptor { key })
    }

    /// Adds this extension to a tensor, replacing an earlier one: from now on the handler receives the calls with this tensor as an
    /// argument. Views of the tensor also reach the handler, without an extension unless they get one.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let tags = Interceptor::register("tags", |call| call.run())?;
    /// let x = Tensor::new([1.0f32])?;
    /// tags.attach(&x, "input".to_string());
    /// assert_eq!(*tags.extension::<String>(&x).unwrap(), "input");
    /// # Ok(()) }
    /// ```
    pub fn attach<T: Any + Send + Sync>(&self, tensor: &Tensor, extension: T) {
        meta::set_extension(tensor.as_ref(), self.key, Some(Arc::new(extension)));
    }

    /// The extension of a tensor; `None` if it has none, or one of another type.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let tags = Interceptor::register("tags", |call| call.run())?;
    /// let x = Tensor::new([1.0f32])?;
    /// assert!(tags.extension::<u32>(&x).is_none());
    /// tags.attach(&x, 7u32);
    /// assert_eq!(*tags.extension::<u32>(&x).unwrap(), 7);
    /// assert!(tags.extension::<String>(&x).is_none());
    /// # Ok(()) }
    /// ```
    pub fn extension<T: Any + Send + Sync>(&self, tensor: &Tensor) -> Option<Arc<T>> {
        extension(tensor.as_ref(), self.key)
    }

    /// Removes the extension of a tensor, so that it is a plain one again.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let tags = Interceptor::register("tags", |call| call.run())?;
    /// let x = Tensor::new([1.0f32])?;
    /// tags.attach(&x, 7u32);
    /// tags.remove(&x);
    /// assert!(tags.extension::<u32>(&x).is_none());
    /// # Ok(()) }
    /// ```
    pub fn remove(&self, tensor: &Tensor) {
        meta::set_extension(tensor.as_ref(), self.key, None);
    }

    /// Sends every call of this thread to the handler while the guard lives.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Error, Tensor, interceptor::Interceptor};
    /// let nothing = Interceptor::register("nothing", |_| Err(Error::other("this program computes nothing")))?;
    /// let x = Tensor::new([1.0f32])?;
    /// assert!(x.relu().is_ok());
    /// let _on = nothing.enter();
    /// assert!(x.relu().is_err());
    /// # Ok(()) }
    /// ```
    #[must_use = "the interceptor is on only while the guard lives"]
    pub fn enter(&self) -> KeyGuard {
        KeyGuard::include(KeySet::of(self.key))
    }

    /// Sends no call of this thread to the handler while the guard lives.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Error, Tensor, interceptor::Interceptor};
    /// let nothing = Interceptor::register("nothing", |_| Err(Error::other("this program computes nothing")))?;
    /// let x = Tensor::new([1.0f32])?;
    /// nothing.attach(&x, ());
    /// assert!(x.relu().is_err());
    /// let _off = nothing.exclude();
    /// assert!(x.relu().is_ok());
    /// # Ok(()) }
    /// ```
    #[must_use = "the interceptor is off only while the guard lives"]
    pub fn exclude(&self) -> KeyGuard {
        KeyGuard::exclude(KeySet::of(self.key))
    }
}

/// A call of an op, as passed to a handler.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, interceptor::Interceptor};
/// let x = Tensor::new([0.0f32])?;
/// // A handler that computes one op otherwise and leaves the others as they are.
/// let spy = Interceptor::register("spy", |call| match call.op() {
///     "neg" => Ok(vec![call.tensors()[0].mul(-1.0)?]),
///     _ => call.run(),
/// })?;
/// spy.attach(&x, ());
/// assert_eq!((x.neg()?.item::<f32>()?, x.exp()?.item::<f32>()?), (-0.0, 1.0));
/// # Ok(()) }
/// ```
pub struct Call<'a> {
    call: &'a op::Call<'a>,
    below: KeySet,
    interceptor: Interceptor,
    /// Whether it was enabled by [`Interceptor::enter`].
    on_by_thread: bool,
    /// The tensors written by an in-place or `out=` call.
    written: RefCell<Option<Outputs>>,
}

impl<'a> Call<'a> {
    /// The op's name.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// let spy = Interceptor::register("spy", |call| {
    ///     assert_eq!(call.op(), "neg");
    ///     call.run()
    /// })?;
    /// spy.attach(&x, ());
    /// x.neg()?;
    /// # Ok(()) }
    /// ```
    pub fn op(&self) -> &'static str {
        self.call.args.op.name
    }

    /// The interceptor of the handler.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// // Results are marked as their arguments were.
    /// let spy = Interceptor::register("spy", |call| {
    ///     let made = call.run()?;
    ///     made.iter().for_each(|t| call.interceptor().attach(t, "made"));
    ///     Ok(made)
    /// })?;
    /// spy.attach(&x, "given");
    /// assert_eq!(*spy.extension::<&str>(&x.neg()?).unwrap(), "made");
    /// # Ok(()) }
    /// ```
    pub fn interceptor(&self) -> Interceptor {
        self.interceptor
    }

    /// All tensors among the arguments, lists flattened.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// let spy = Interceptor::register("spy", |call| {
    ///     assert_eq!(call.tensors().len(), 2);
    ///     call.run()
    /// })?;
    /// spy.attach(&x, ());
    /// x.mul(&Tensor::new([2.0f32])?)?;
    /// # Ok(()) }
    /// ```
    pub fn tensors(&self) -> Vec<Tensor> {
        self.refs().cloned().map(Tensor::from_ref).collect()
    }

    /// The extension of each of [`Call::tensors`]; `None` for those without one of this type.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// let spy = Interceptor::register("spy", |call| {
    ///     let extensions = call.extensions::<u32>();
    ///     assert_eq!((extensions[0].as_deref(), extensions[1].as_deref()), (Some(&7), None));
    ///     call.run()
    /// })?;
    /// spy.attach(&x, 7u32);
    /// x.mul(&Tensor::new([2.0f32])?)?;
    /// # Ok(()) }
    /// ```
    pub fn extensions<T: Any + Send + Sync>(&self) -> Vec<Option<Arc<T>>> {
        self.refs().map(|t| extension(t, self.interceptor.key)).collect()
    }

    /// An argument by its name in the op's schema, `dim` of `softmax`; `None` if the op has none of that name.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// use keyway::Arg;
    /// let spy = Interceptor::register("spy", |call| {
    ///     assert!(matches!(call.argument("dim"), Some(Arg::Int(-1))));
    ///     assert!(call.argument("colour").is_none());
    ///     call.run()
    /// })?;
    /// spy.attach(&x, ());
    /// x.softmax(-1)?;
    /// # Ok(()) }
    /// ```
    pub fn argument(&self, name: &str) -> Option<Arg<'a>> {
        let schema = &self.call.args.op.schema;
        let at = (0..self.call.args.values.len()).find(|&at| schema.param_name(at) == name)?;
        Some(self.call.args.values[at])
    }

    /// Whether the call writes to its first argument.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// let spy = Interceptor::register("spy", |call| {
    ///     assert_eq!(call.is_in_place(), call.op() == "relu");
    ///     call.run()
    /// })?;
    /// spy.attach(&x, ());
    /// x.relu_()?;
    /// x.neg()?;
    /// # Ok(()) }
    /// ```
    pub fn is_in_place(&self) -> bool {
        matches!(self.call.out, Out::InPlace)
    }

    /// Whether the op has a decomposition for when no kernel exists, see [`Call::run_parts`].
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// let spy = Interceptor::register("spy", |call| {
    ///     assert_eq!(call.has_parts(), call.op() == "mse_loss");
    ///     call.run()
    /// })?;
    /// spy.attach(&x, ());
    /// x.mse_loss(&Tensor::new([1.0f32])?)?;
    /// x.exp()?;
    /// # Ok(()) }
    /// ```
    pub fn has_parts(&self) -> bool {
        self.call.args.op.spec.decomposition.is_some()
    }

    /// Redispatches the call unchanged and returns its results.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// let spy = Interceptor::register("spy", |call| call.run())?;
    /// spy.attach(&x, ());
    /// assert_eq!(x.exp()?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the call.
    pub fn run(&self) -> Result<Vec<Tensor>> {
        self.finish(self.call, redispatch(self.call, self.below)?)
    }

    /// Redispatches the call with other tensors instead of [`Call::tensors`], in that order.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// // Every op sees the tensors with 1 added.
    /// let spy = Interceptor::register("spy", |call| {
    ///     let other: Vec<Tensor> = call.tensors().iter().map(|t| t.add(1.0)).collect::<keyway::Result<_>>()?;
    ///     call.run_with(&other)
    /// })?;
    /// spy.attach(&x, ());
    /// assert_eq!(x.mul(5.0)?.item::<f32>()?, 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A number of tensors that differs from that of the call; errors of the call.
    pub fn run_with(&self, tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        let count = self.refs().count();
        if tensors.len() != count {
            let (expected, got) =
                (format!("{count}, as the call of `{}` has", self.op()), tensors.len().to_string());
            let (op, argument) = ("interceptor::Call::run_with", "tensors");
            return Err(keyway_dispatcher::Error::Value { op, argument, expected, got }.into());
        }
        if let (Out::InPlace, Some(first), Some(target)) =
            (self.call.out, tensors.first(), self.refs().next())
            && !first.ptr_eq(&Tensor::from_ref(target.clone()))
        {
            let expected = format!("the first one as it came, which `{}` writes to in place", self.op());
            let (op, argument) = ("interceptor::Call::run_with", "tensors");
            return Err(
                keyway_dispatcher::Error::Value { op, argument, expected, got: "another".into() }.into()
            );
        }
        let mut next = tensors.iter().cloned();
        replacing(
            &self.call.args,
            |_| Ok(next.next()),
            |args| {
                let call = op::Call { args, out: self.call.out };
                self.finish(&call, redispatch(&call, self.below)?)
            },
        )?
    }

    /// Runs the decomposition of the op, with each part passed to the handler.
    ///
    /// ```standalone_crate
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, interceptor::Interceptor};
    /// let x = Tensor::new([0.0f32])?;
    /// use std::sync::Mutex;
    /// static SEEN: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    /// let spy = Interceptor::register("spy", |call| {
    ///     SEEN.lock().unwrap().push(call.op());
    ///     if call.op() == "mse_loss" { call.run_parts() } else { call.run() }
    /// })?;
    /// spy.attach(&x, ());
    /// x.mse_loss(&Tensor::new([1.0f32])?)?;
    /// assert!(SEEN.lock().unwrap().len() > 1, "the parts came too");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An op without a decomposition; errors of the parts.
    pub fn run_parts(&self) -> Result<Vec<Tensor>> {
        if !self.has_parts() {
            let (expected, got) =
                ("composed of others; ask with `has_parts`".to_string(), format!("`{}`", self.op()));
            let (op, argument) = ("interceptor::Call::run_parts", "op");
            return Err(keyway_dispatcher::Error::Value { op, argument, expected, got }.into());
        }
        let key = KeySet::of(self.interceptor.key);
        let _on = if self.on_by_thread { KeyGuard::include(key) } else { KeyGuard::clear(key) };
        self.finish(self.call, decompose(self.call)?)
    }

    fn finish(&self, call: &op::Call<'_>, mut made: Outputs) -> Result<Vec<Tensor>> {
        match call.out {
            // An op may return an argument, to which the handler must not attach.
            Out::New => unalias(&call.args, &mut made),
            _ => *self.written.borrow_mut() = Some(made.clone()),
        }
        Ok(made.into_iter().map(Tensor::from_ref).collect())
    }

    fn refs(&self) -> impl Iterator<Item = &'a TensorRef> {
        self.call
            .args
            .values
            .iter()
            .flat_map(|arg| match arg {
                Arg::Tensor(t) => std::slice::from_ref(t),
                Arg::Tensors(list) => list,
                _ => &[],
            })
            .copied()
    }
}

fn extension<T: Any + Send + Sync>(tensor: &TensorRef, key: DispatchKey) -> Option<Arc<T>> {
    meta::extension(tensor, key)?.downcast().ok()
}

/// The maximum number of handlers that may run within each other on a thread: each takes room on the stack.
const DEEPEST: u32 = 100;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Counts the handlers that run within each other on this thread, while it lives.
struct Depth;

impl Depth {
    fn enter(op: &str) -> Result<Depth> {
        let depth = DEPTH.get();
        if depth >= DEEPEST {
            return Err(Error::other(format!(
                "{op}: expected at most {DEEPEST} handlers of interceptors within each other, but a handler called an op that \
                 came to it again; call it within `Interceptor::exclude`, or go on with `Call::run`"
            )));
        }
        DEPTH.set(depth + 1);
        Ok(Depth)
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// The results of a handler, checked.
fn answer(
    call: &op::Call<'_>,
    below: KeySet,
    interceptor: Interceptor,
    handler: &dyn Fn(&Call<'_>) -> Result<Vec<Tensor>>,
) -> Result<Outputs> {
    let _depth = Depth::enter(call.args.name())?;
    let on_by_thread = local_keys().0.has(interceptor.key);
    let asked = Call { call, below, interceptor, on_by_thread, written: RefCell::new(None) };
    let _off = interceptor.exclude();
    let made = handler(&asked)?;
    if matches!(call.out, Out::New) {
        let (got, name) = (made.len(), call.args.name());
        if let Some(expected) = call.args.op.schema.outputs.filter(|expected| *expected != got) {
            let message =
                format!("{name}: expected {expected} results of an interceptor's handler, got {got}");
            return Err(Error::other(message));
        }
        return Ok(made.into_iter().map(Tensor::into_ref).collect());
    }
    let written = asked.written.take();
    written.ok_or_else(|| {
        Error::other(format!(
            "{}: an interceptor's handler ended an in-place or `out=` call without `run`, so nothing was written",
            call.args.name()
        ))
    })
}
