//! The dtype of mixed precision that a thread has chosen, and the casts of parameters that it caches.

use crate::chosen::Chosen;
use crate::error::Result;
use crate::{DType, Tensor};
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet, local_keys};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::tensor::TensorRef;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

const KEY: KeySet = KeySet::of(DispatchKey::AUTOCAST);

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

pub(crate) fn enter(dtype: DType) -> AutocastGuard {
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

/// The dtype of the guard made last on this thread, even where a guard of [`autocast_off`] lives.
#[inline]
pub(crate) fn chosen() -> Option<DType> {
    CHOSEN.with(Chosen::last)
}

/// The cached cast of a parameter that has not changed since, for calls with or without a graph; else that of `cast`.
pub(crate) fn cached(
    tensor: &TensorRef,
    to: DType,
    is_grad_enabled: bool,
    cast: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    let key = (std::ptr::from_ref(&**tensor).addr(), to, is_grad_enabled);
    let version = tensor.version();
    let found = KEPT.with_borrow(|kept| {
        let found = kept.get(&key).filter(|k| k.version == version && Shared::ptr_eq(&k.of, tensor));
        found.map(|k| k.cast.clone())
    });
    if let Some(found) = found {
        return Ok(found);
    }
    let made = cast()?;
    let kept = Kept { of: tensor.clone(), version, cast: made.clone() };
    drop(KEPT.with_borrow_mut(|all| all.insert(key, kept)));
    Ok(made)
}
