//! Data derived from a tensor and cached with its memory: packed weights, row pointers.

use super::call::Call;
use super::connection::{host_api, no_host};
use super::error::Error;
use super::host::lendable;
use super::tensor::{OwnedTensor, Tensor};
use std::sync::atomic::AtomicU8;

/// The key of one kind of derived data. Its address is the identity, so it is always a `static`:
///
/// ```
/// static PACKED: keyway_sdk::author::CacheKey = keyway_sdk::author::CacheKey::new();
/// ```
#[derive(Debug, Default)]
pub struct CacheKey {
    // Interior mutability, so that the compiler does not merge two statics.
    _changeable: AtomicU8,
}

impl CacheKey {
    /// A key.
    pub const fn new() -> CacheKey {
        CacheKey { _changeable: AtomicU8::new(0) }
    }

    fn number(&'static self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }
}

impl Call<'_> {
    /// The data that `make` derives from `tensor`, cached from an earlier call or computed now. The host caches it with the
    /// tensor's memory until the memory is freed or changed in place, and only a few of the latest entries for each
    /// storage; a view with other sizes, strides or offset has its own entry, and so has each shape to which it is
    /// broadcast, and each stream.
    ///
    /// A scalar passed as a tensor, and an output, have no cache: their data is computed in each call.
    ///
    /// `make` must depend on no part of the call except `tensor`. Two threads may both compute the data. Only changes that
    /// the host sees invalidate it: if the owner of foreign memory writes to it, the data is silently stale.
    pub fn cached(
        &self,
        tensor: &Tensor<'_>,
        key: &'static CacheKey,
        make: impl FnOnce() -> Result<OwnedTensor, Error>,
    ) -> Result<OwnedTensor, Error> {
        let host = host_api().ok_or_else(no_host)?;
        let Ok(raw) = lendable(tensor) else { return make() };
        let (mut version, mut found) = (0, std::ptr::null());
        // SAFETY: `raw` is a tensor of the current call, or of a handle that is held; both addresses are writable.
        match unsafe { (host.cache_get)(raw, key.number(), &mut version, &mut found) } {
            // SAFETY: the host returned an owned handle.
            0 if !found.is_null() => return unsafe { OwnedTensor::from_handle(found, true) },
            0 => {}
            status => return Err(Error::Host { status }),
        }
        let made = make()?;
        // SAFETY: as above, and the handle stays owned here.
        match unsafe { (host.cache_put)(raw, key.number(), version, made.lend()) } {
            0 => Ok(made),
            status => Err(Error::Host { status }),
        }
    }
}
