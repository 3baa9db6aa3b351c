//! The host's services, completed for older hosts with fewer services.

use super::connection::host_api;
use crate::abi::RawStr;
use crate::abi::codes::status;
use crate::abi::host::HostApi;
use crate::abi::table::{Table, complete, stated_size};
use std::mem::MaybeUninit;

/// The result of a service that the host lacks.
trait Answer {
    fn absent() -> Self;
}

impl Answer for () {
    fn absent() {}
}
impl Answer for i32 {
    fn absent() -> i32 {
        if let Some(host) = host_api() {
            // SAFETY: the host copies the text before it returns; `set_error` is within the minimum size of the table.
            unsafe { (host.set_error)(RawStr::new("the host is older than this service; update Keyway")) };
        }
        status::UNSUPPORTED
    }
}
impl Answer for u32 {
    fn absent() -> u32 {
        0
    }
}
impl Answer for u16 {
    fn absent() -> u16 {
        u16::MAX
    }
}
impl<T> Answer for *const T {
    fn absent() -> *const T {
        std::ptr::null()
    }
}

/// A service that the host does not have.
trait Absent {
    const STUB: Self;
}

macro_rules! absent {
    ($($argument:ident)*) => {
        impl<R: Answer, $($argument),*> Absent for unsafe extern "C" fn($($argument),*) -> R {
            const STUB: Self = {
                unsafe extern "C" fn stub<R: Answer, $($argument),*>($(_: $argument),*) -> R {
                    R::absent()
                }
                stub::<R, $($argument),*>
            };
        }
    };
}
absent!(A);
absent!(A B);
absent!(A B C);
absent!(A B C D);
absent!(A B C D E);
absent!(A B C D E F);
absent!(A B C D E F G);
absent!(A B C D E F G H);
absent!(A B C D E F G H I);
absent!(A B C D E F G H I J);

impl<R: Answer> Absent for extern "C" fn() -> R {
    const STUB: Self = {
        extern "C" fn stub<R: Answer>() -> R {
            R::absent()
        }
        stub::<R>
    };
}

/// A table without services. A new service needs its line here only.
const NO_HOST: HostApi = HostApi {
    struct_size: 0,
    abi_version: 0,
    log: Absent::STUB,
    set_error: Absent::STUB,
    parallel_for: Absent::STUB,
    num_threads: Absent::STUB,
    intern: Absent::STUB,
    allocate: Absent::STUB,
    free: Absent::STUB,
    tensor_new: Absent::STUB,
    tensor_composite: Absent::STUB,
    tensor_raw: Absent::STUB,
    tensor_release: Absent::STUB,
    set_output: Absent::STUB,
    call_op: Absent::STUB,
    rule_output: Absent::STUB,
    tensor_retain: Absent::STUB,
    rule_plan: Absent::STUB,
    cache_get: Absent::STUB,
    cache_put: Absent::STUB,
    name: Absent::STUB,
    setting: Absent::STUB,
    tensor_composite_of: Absent::STUB,
    tensor_attr: Absent::STUB,
};

/// The host's complete table: itself, or a copy in which the services that an older host lacks return `UNSUPPORTED`. `None`
/// if there is no table or it is shorter than the minimum.
///
/// # Safety
/// `host` must be null or point to a table of the size in its first field that lives as long as the process; the host
/// upholds this.
/// upholds this.
pub(super) unsafe fn whole(host: *const HostApi) -> Option<&'static HostApi> {
    if host.is_null() || !host.is_aligned() {
        return None;
    }
    // SAFETY: not null, aligned, and the caller guarantees a table.
    let size = unsafe { stated_size(host) };
    if size < HostApi::MIN_SIZE {
        return None;
    }
    if size >= size_of::<HostApi>() {
        // SAFETY: the table is as large as this type at least and lives as long as the process.
        return Some(unsafe { &*host });
    }
    // SAFETY: the caller guarantees as many bytes as the table states; each field is the host's or the stub's.
    let own = unsafe { complete(host, MaybeUninit::new(NO_HOST)).assume_init() };
    Some(Box::leak(Box::new(own)))
}
