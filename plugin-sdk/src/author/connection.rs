//! The host's table, from the moment that the host initialises this library.

use super::error::Error;
use crate::abi::host::HostApi;
use std::sync::atomic::{AtomicPtr, Ordering};

static HOST: AtomicPtr<HostApi> = AtomicPtr::new(std::ptr::null_mut());

/// The host's services, or `None` before the host has initialised this library (as in its unit tests).
pub fn host_api() -> Option<&'static HostApi> {
    // SAFETY: the pointer is null or that of a whole table which lives as long as the process, see [`connect`].
    unsafe { HOST.load(Ordering::Acquire).as_ref() }
}

/// Sets the host's services.
pub(super) fn connect(host: &'static HostApi) {
    HOST.store(std::ptr::from_ref(host).cast_mut(), Ordering::Release);
}

/// The result of a service's status.
pub(super) fn done(status: i32) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(Error::Host { status }) }
}

/// The error of a service that requires a host.
#[cold]
pub(crate) fn no_host() -> Error {
    Error::Unsupported {
        what: "a host service without a host (before `initialize`, or in a unit test)".into(),
    }
}
