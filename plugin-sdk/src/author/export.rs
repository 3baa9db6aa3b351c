//! `plugin!` and `register_kernel!`: the two macros that turn safe code into the exported contract.

use super::call::Call;
use super::contents::Contents;
use super::error::Error;
use super::guard::guarded;
use crate::abi::op::RawKernel;
use crate::abi::plugin::{PluginApi, PluginContents};
use crate::abi::{ABI_MAX, ABI_MIN, codes};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The kernels of one `register_kernel!`, gathered by `inventory` inside this library.
pub struct KernelItems(pub &'static [RawKernel]);
inventory::collect!(KernelItems);

static HOST: AtomicPtr<crate::abi::host::HostApi> = AtomicPtr::new(std::ptr::null_mut());

/// The host's services, or `None` before the host initialised this library (as in its unit tests).
pub fn host_api() -> Option<&'static crate::abi::host::HostApi> {
    // SAFETY: the pointer is null or was given by the host to `initialize`, whose contract says that it
    // lives as long as the process.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }
}

/// Bit `i` is set if this library brought device `i` and called it host-accessible. Device 0 is the CPU.
static REACHABLE: AtomicU64 = AtomicU64::new(1);

/// Whether the host may read the memory of a device through its pointers.
#[inline(always)]
pub(crate) fn reaches(device: u16) -> bool {
    device == 0 || (device < 64 && REACHABLE.load(Ordering::Relaxed) >> device & 1 != 0)
}

/// States that a device's memory is host-accessible, as its plugin says.
pub(crate) fn set_reachable(device: u16) {
    if device < 64 {
        REACHABLE.fetch_or(1 << device, Ordering::Relaxed);
    }
}

#[doc(hidden)]
pub fn negotiate(host_min: u32, host_max: u32) -> u32 {
    let best = ABI_MAX.min(host_max);
    if best >= ABI_MIN.max(host_min) { best } else { 0 }
}

#[doc(hidden)]
pub fn get_interface(id: u32, version: u32, api: &'static PluginApi) -> *const u8 {
    if id == codes::interface::PLUGIN && (ABI_MIN..=ABI_MAX).contains(&version) {
        std::ptr::from_ref(api).cast()
    } else {
        std::ptr::null()
    }
}

/// Runs a plugin's set-up function and hands the result to the host.
///
/// # Safety
/// `host` and `out` must be valid as [`PluginApi::initialize`] says; the host upholds this.
#[doc(hidden)]
pub unsafe fn initialize(
    host: *const crate::abi::host::HostApi,
    out: *mut PluginContents,
    setup: fn(&mut Contents) -> Result<(), Error>,
) -> i32 {
    HOST.store(host.cast_mut(), Ordering::Release);
    guarded(|| {
        let mut contents = Contents::default();
        setup(&mut contents)?;
        // SAFETY: the host gives a valid, writable `out`, per this function's contract.
        unsafe { contents.write(out) };
        Ok(())
    })
}

/// Runs one kernel under the guard.
///
/// # Safety
/// `call` must be valid as [`KernelFn`](crate::abi::tensor::KernelFn) says; the host upholds this.
// Takes a function pointer, so that the guard is compiled once and not for each of a library's kernels.
#[doc(hidden)]
pub unsafe fn run_kernel(
    call: *const crate::abi::tensor::RawCall,
    run: fn(&Call<'_>) -> Result<(), Error>,
) -> i32 {
    guarded(|| {
        // SAFETY: the caller guarantees a valid call, which lives until this function returns; this is the
        // only `Call` made of it.
        let call = unsafe { Call::new(&*call) };
        run(&call)
    })
}

/// The decimal digits of a number, for a constant text: the last `N`.
#[doc(hidden)]
pub const fn digits<const N: usize>(mut value: u32) -> [u8; N] {
    let mut out = [b'0'; N];
    let mut i = N;
    while i > 0 {
        i -= 1;
        out[i] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out
}

/// How many decimal digits a number has.
#[doc(hidden)]
pub const fn digit_count(value: u32) -> usize {
    let mut count = 1;
    let mut rest = value / 10;
    while rest > 0 {
        count += 1;
        rest /= 10;
    }
    count
}

/// Exports this library as a Keyway plugin. Used once, in the root of a `cdylib` crate.
///
/// `kernels` is the number of kernels (one for each op and dtype) that the author expects; the loader
/// refuses the library if another number arrived, so that a module which fell out of the build is seen.
///
/// ```ignore
/// keyway_sdk::plugin! {
///     name: "example.org/relu",
///     version: env!("CARGO_PKG_VERSION"),
///     description: "A faster relu",
///     devices: ["cpu"],
///     layouts: ["strided"],
///     kernels: 2,
///     needs: [],
///     setup: |contents| Ok(()),
/// }
/// ```
#[macro_export]
macro_rules! plugin {
    (@list) => { "" };
    (@list $first:expr $(, $rest:expr)*) => { concat!("\"", $first, "\"" $(, ",\"", $rest, "\"")*) };
    (
        name: $name:expr,
        version: $version:expr,
        description: $description:expr,
        devices: [$($device:expr),* $(,)?],
        layouts: [$($layout:expr),* $(,)?],
        kernels: $kernels:expr,
        needs: [$($needs:expr),* $(,)?],
        setup: $setup:expr $(,)?
    ) => {
        #[cfg(panic = "abort")]
        compile_error!("a Keyway plugin must be built with panic = \"unwind\": a panic is caught and reported, an abort kills the host");

        const _: () = {
            use $crate::__private as p;
            const PARTS: &[&str] = &[
                concat!(
                    "{\"name\":\"", $name, "\",\"version\":\"", $version,
                    "\",\"description\":\"", $description, "\",\"kernels\":", stringify!($kernels),
                    ",\"devices\":[", $crate::plugin!(@list $($device),*),
                    "],\"layouts\":[", $crate::plugin!(@list $($layout),*),
                    "],\"needs\":[", $crate::plugin!(@list $($needs),*),
                    "],\"sdk\":\""
                ),
                p::SDK_VERSION,
                "\",\"abi_min\":",
                p::ABI_MIN_TEXT,
                ",\"abi_max\":",
                p::ABI_MAX_TEXT,
                ",\"variant\":\"",
                p::manifest::variant(),
                "\",\"cpu_features\":",
                p::manifest::cpu_features(),
                "}",
            ];
            #[used]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".note.keyway"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__keyway"))]
            static MANIFEST: [u8; p::manifest::encoded_len(PARTS)] = p::manifest::encode(PARTS);

            unsafe extern "C" fn initialize(host: *const p::HostApi, out: *mut p::PluginContents) -> i32 {
                let setup: fn(&mut $crate::author::Contents) -> ::core::result::Result<(), $crate::author::Error> = $setup;
                // SAFETY: the host upholds the contract of `PluginApi::initialize`.
                unsafe { p::initialize(host, out, setup) }
            }
            static API: p::PluginApi = p::PluginApi {
                struct_size: ::core::mem::size_of::<p::PluginApi>() as u32,
                abi_version: p::ABI_MAX,
                initialize,
            };
            extern "C" fn negotiate(host_min: u32, host_max: u32) -> u32 {
                p::negotiate(host_min, host_max)
            }
            extern "C" fn get_interface(id: u32, version: u32) -> *const u8 {
                p::get_interface(id, version, &API)
            }
            fn root() -> p::KeywayRootRef {
                p::root_ref(p::KeywayRoot { negotiate, get_interface })
            }
            extern "C" fn erased_root() -> p::abi_stable::library::RootModuleResult {
                p::abi_stable::library::__call_root_module_loader(root)
            }
            // SAFETY: the name is abi_stable's own loader symbol, and this macro is its only exporter in the library.
            #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
            pub static ROOT: p::abi_stable::library::LibHeader = {
                // SAFETY: the constructor returns the type that the header names, as `export_root_module` does.
                unsafe {
                    p::abi_stable::library::LibHeader::from_constructor::<p::KeywayRootRef>(
                        erased_root,
                        p::abi_stable::library::CheckTypeLayout::Yes,
                    )
                }
            };
        };
    };
}

/// Registers one kernel for one op, device and layout, and each of the given dtypes.
///
/// The kernel is a `fn(&Call) -> Result<(), Error>`; the signature is that of the op, in the letters of
/// [`RawOp::schema`](crate::abi::op::RawOp::schema). `flags: allocates` marks a kernel that makes its own outputs.
///
/// ```ignore
/// register_kernel! {
///     op: "relu", signature: "T>T", device: "cpu", layout: "strided",
///     f32 => relu::<f32>,
///     f64 => relu::<f64>,
/// }
/// ```
#[macro_export]
macro_rules! register_kernel {
    (
        op: $op:expr, signature: $signature:expr, device: $device:expr, layout: $layout:expr,
        flags: allocates,
        $($dtype:ident => $run:expr),+ $(,)?
    ) => {
        $crate::register_kernel!(
            @emit $crate::abi::codes::kernel_flag::ALLOCATES, $op, $signature, $device, $layout, $($dtype => $run),+
        );
    };
    (
        op: $op:expr, signature: $signature:expr, device: $device:expr, layout: $layout:expr,
        $($dtype:ident => $run:expr),+ $(,)?
    ) => {
        $crate::register_kernel!(@emit 0, $op, $signature, $device, $layout, $($dtype => $run),+);
    };
    (
        @emit $flags:expr, $op:expr, $signature:expr, $device:expr, $layout:expr, $($dtype:ident => $run:expr),+
    ) => {
        const _: () = {
            use $crate::__private as p;
            const FLAGS: u32 = $flags;
            const PARTS: &[&str] = &[
                $op, " ", $signature, " ", $device, " ", $layout, " ",
                concat!($(stringify!($dtype), ","),+),
            ];
            #[used]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".note.keyway.k"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__keyway_k"))]
            static RECORD: [u8; p::manifest::encoded_len(PARTS)] = p::manifest::encode(PARTS);

            static KERNELS: &[p::RawKernel] = &[$({
                unsafe extern "C" fn shim(call: *const p::RawCall) -> i32 {
                    // SAFETY: the host upholds the contract of `KernelFn`.
                    unsafe { p::run_kernel(call, $run) }
                }
                p::RawKernel {
                    struct_size: ::core::mem::size_of::<p::RawKernel>() as u32,
                    flags: FLAGS,
                    op: p::RawStr::new($op),
                    signature: p::RawStr::new($signature),
                    device: p::RawStr::new($device),
                    layout: p::RawStr::new($layout),
                    dtype: p::RawStr::new(stringify!($dtype)),
                    run: shim,
                }
            }),+];
            p::inventory::submit! { p::KernelItems(KERNELS) }
        };
    };
}
