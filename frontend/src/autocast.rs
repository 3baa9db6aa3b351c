//! Automatic mixed precision: a dispatch key above autograd that selects the dtype in which each op computes.
//!
//! While a guard of [`autocast`] lives, on this thread and on every device:
//! - products (`mm`, `linear`, `conv`, `scaled_dot_product_attention` and similar ops) cast f32 arguments to the dtype of the
//!   guard;
//! - functions that leave the range of f16, sums, norms, softmax and losses cast f16 and bf16 arguments to f32;
//! - all other ops compute in the dtypes of their arguments, promoted as always.
//!
//! The definition of an op has its kind ([`OpFlags`]); the rules are those of PyTorch's `autocast` on CUDA, on every device. Calls
//! with f64 arguments, in-place and `out=` calls are unchanged. The casts are recorded by autograd, so parameters and their
//! gradients remain f32. A backward pass computes in the dtypes of the forward pass, wherever it is called.
//!
//! The cast of a parameter is cached until the outermost guard ends, unless the parameter is changed meanwhile; the cache holds a
//! handle of the parameter, so that `as_slice_mut` and `accessor_mut` refuse it meanwhile.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::prelude::*;
//! use keyway::autocast;
//! let w = Tensor::ones((3, 2))?.requires_grad_(true)?;
//! let loss = {
//!     let _guard = autocast(DType::BF16)?;
//!     let y = Tensor::ones((4, 3))?.mm(&w)?;
//!     assert_eq!(y.dtype(), DType::BF16);
//!     y.softmax(-1)?.sum_all()?
//! };
//! assert_eq!(loss.dtype(), DType::F32);
//! loss.backward()?;
//! assert_eq!(w.grad().unwrap().dtype(), DType::F32);
//! # Ok(()) }
//! ```
//!
//! f16 needs a [`GradScaler`](crate::optim::GradScaler) as well, since small gradients underflow to 0; bf16 does not.

use crate::arguments::replacing;
use crate::autograd::{is_grad_enabled, meta};
use crate::chosen::Chosen;
use crate::error::Result;
use crate::ops::def::{OpFlags, definition};
use crate::{DType, Tensor};
use keyway_dispatcher::device::capture::is_captured;
use keyway_dispatcher::error::{Error, Result as DispatchResult};
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet, local_keys};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::op::{Arg, Call, OpEntry, Out, Outputs};
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use keyway_dispatcher::tensor::TensorRef;
use once_cell::sync::OnceCell;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

const KEY: KeySet = KeySet::of(DispatchKey::AUTOCAST);

/// Set when a program first requests mixed precision.
static KEY_REGISTERED: OnceCell<()> = OnceCell::new();

thread_local! {
    /// The dtypes of the live guards.
    static CHOSEN: Chosen<DType> = const { Chosen::new() };
    static KEPT: RefCell<FxHashMap<(usize, DType, bool), Kept>> = RefCell::new(FxHashMap::default());
}

/// A parameter and its cached cast. The handle of the parameter prevents reuse of its address.
struct Kept {
    of: TensorRef,
    version: u32,
    cast: Tensor,
}

/// Ends mixed precision when dropped; the most recent live guard determines the dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let a = Tensor::ones((2, 2))?;
/// let guard = keyway::autocast(DType::BF16)?;
/// assert_eq!(a.mm(&a)?.dtype(), DType::BF16);
/// drop(guard);
/// assert_eq!(a.mm(&a)?.dtype(), DType::F32);
/// # Ok(()) }
/// ```
#[must_use = "mixed precision lasts only while the guard lives"]
#[derive(Debug)]
pub struct AutocastGuard {
    number: u64,
    _key: KeyGuard,
}

/// Mixed precision on this thread while the guard lives, with products in f16 or bf16. See the [module](self).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let _guard = keyway::autocast(DType::F16)?;
/// let a = Tensor::ones((2, 2))?;
/// assert_eq!(a.mm(&a)?.dtype(), DType::F16);
/// assert!(keyway::autocast(DType::F64).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Any other dtype.
#[doc(alias = "amp")]
pub fn autocast(dtype: DType) -> Result<AutocastGuard> {
    if ![DType::F16, DType::BF16].contains(&dtype) {
        let (expected, got) = ("f16 or bf16", dtype.to_string());
        return Err(Error::Value { op: "autocast", argument: "dtype", expected: expected.into(), got }.into());
    }
    crate::runtime::start()?;
    KEY_REGISTERED.get_or_try_init(install)?;
    Ok(enter(dtype))
}

fn enter(dtype: DType) -> AutocastGuard {
    let key = KeyGuard::include(KEY);
    AutocastGuard { number: CHOSEN.with(|all| all.push(dtype)), _key: key }
}

/// Disables mixed precision on this thread while the guard lives: for a part that needs f32.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::autocast::{autocast, autocast_off};
/// use keyway::prelude::*;
/// let _on = autocast(DType::F16)?;
/// let _off = autocast_off();
/// let a = Tensor::ones((2, 2))?;
/// assert_eq!(a.mm(&a)?.dtype(), DType::F32);
/// # Ok(()) }
/// ```
#[must_use = "mixed precision is off only while the guard lives"]
pub fn autocast_off() -> KeyGuard {
    KeyGuard::exclude(KEY)
}

/// The dtype of products on this thread; `None` without mixed precision.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, autocast::{autocast, autocast_dtype}};
/// assert_eq!(autocast_dtype(), None);
/// let _guard = autocast(DType::BF16)?;
/// assert_eq!(autocast_dtype(), Some(DType::BF16));
/// # Ok(()) }
/// ```
#[doc(alias = "is_autocast_enabled")]
#[doc(alias = "get_autocast_dtype")]
pub fn autocast_dtype() -> Option<DType> {
    let (included, excluded) = local_keys();
    if !included.minus(excluded).has(DispatchKey::AUTOCAST) {
        return None;
    }
    CHOSEN.try_with(Chosen::last).ok().flatten()
}

/// Runs `run` with the mixed precision of an earlier time instead of the current one.
pub(crate) fn restored<T>(dtype: Option<DType>, run: impl FnOnce() -> T) -> T {
    let _as_then = dtype.map(enter);
    let _off = dtype.is_none().then(autocast_off);
    run()
}

impl Drop for AutocastGuard {
    fn drop(&mut self) {
        // When a thread ends, its lists may be gone.
        if CHOSEN.try_with(|all| all.remove(self.number)) == Ok(true) {
            // Dropped outside the borrow: extension slots of a tensor may hold a program's own types.
            drop(KEPT.try_with(RefCell::take));
        }
    }
}

fn install() -> DispatchResult<()> {
    register_key_handler(KeyHandler {
        key: DispatchKey::AUTOCAST,
        name: "autocast".to_string(),
        applies: |op| target_of(op).is_some(),
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

/// The dtype that an op's arguments are cast to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Chosen,
    F32,
}

fn target_of(op: &OpEntry) -> Option<Target> {
    match definition(op)? {
        d if d.is(OpFlags::AUTOCAST) => Some(Target::Chosen),
        d if d.is(OpFlags::AUTOCAST_F32) => Some(Target::F32),
        _ => None,
    }
}

fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    let chosen = CHOSEN.with(Chosen::last);
    let (Some(target), Some(chosen), Out::New) = (target_of(call.args.op), chosen, call.out) else {
        return keyway_dispatcher::call::redispatch(call, below);
    };
    let to = if target == Target::F32 { DType::F32 } else { chosen };
    let wanted =
        |t: &TensorRef| t.dtype() != to && [DType::F32, DType::F16, DType::BF16].contains(&t.dtype());
    let mut tensors = call.args.values.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t),
        Arg::Tensors(list) => list,
        _ => &[],
    });
    let left_alone = |t: &TensorRef| t.dtype().is_float() && t.dtype() != to && !wanted(t);
    // The op's decomposition runs in this dtype.
    let _off = autocast_off();
    if tensors.clone().any(|t| left_alone(t)) || !tensors.any(|t| wanted(t)) {
        return keyway_dispatcher::call::redispatch(call, below);
    }
    replacing(
        &call.args,
        |t| wanted(t).then(|| cast(t, to)).transpose(),
        |args| keyway_dispatcher::call::redispatch(&Call { args, out: Out::New }, below),
    )?
}

/// The tensor cast to another dtype; the cast of a parameter is cached.
fn cast(tensor: &TensorRef, to: DType) -> Result<Tensor> {
    let of = Tensor::from_ref(tensor.clone());
    if !meta::is_collecting_leaf(tensor) || tensor.base().is_some() || is_captured(tensor.device()) {
        return of.to_dtype(to);
    }
    let key = (std::ptr::from_ref(&**tensor).addr(), to, is_grad_enabled());
    let version = of.version();
    let found = KEPT.with_borrow(|kept| {
        let found = kept.get(&key).filter(|k| k.version == version && Shared::ptr_eq(&k.of, tensor));
        found.map(|k| k.cast.clone())
    });
    if let Some(found) = found {
        return Ok(found);
    }
    let made = of.to_dtype(to)?;
    let kept = Kept { of: tensor.clone(), version, cast: made.clone() };
    drop(KEPT.with_borrow_mut(|all| all.insert(key, kept)));
    Ok(made)
}
