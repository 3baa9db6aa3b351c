//! `plugin!` and `register_kernel!`: the macros that export safe code through the contract.

use super::call::Call;
use super::connection::connect;
use super::contents::Contents;
use super::error::Error;
use super::guard::guarded;
use super::services;
use crate::abi::plugin::{PluginApi, PluginContents};
use crate::abi::{ABI_MAX, ABI_MIN, codes};
use keyway_abi_root::{KeywayRoot, KeywayRootRef};

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

/// The version of this crate.
#[doc(hidden)]
pub const SDK_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The text of [`ABI_MIN`].
#[doc(hidden)]
pub const ABI_MIN_TEXT: &str = text(&digits::<{ digit_count(ABI_MIN) }>(ABI_MIN));
/// The text of [`ABI_MAX`].
#[doc(hidden)]
pub const ABI_MAX_TEXT: &str = text(&digits::<{ digit_count(ABI_MAX) }>(ABI_MAX));

/// The text of decimal digits.
#[doc(hidden)]
pub const fn text(digits: &'static [u8]) -> &'static str {
    match std::str::from_utf8(digits) {
        Ok(text) => text,
        Err(_) => panic!("decimal digits are ASCII"),
    }
}

/// The root module as `abi_stable` exports it.
#[doc(hidden)]
pub fn root_ref(root: KeywayRoot) -> KeywayRootRef {
    use keyway_abi_root::abi_stable::prefix_type::PrefixTypeTrait;
    root.leak_into_prefix()
}

/// Runs a plugin's setup function and passes the result to the host.
///
/// # Safety
/// `host` and `out` must be valid as [`PluginApi::initialize`] requires; the host upholds this.
#[doc(hidden)]
pub unsafe fn initialize(
    host: *const crate::abi::host::HostApi,
    out: *mut PluginContents,
    setup: fn(&mut Contents) -> Result<(), Error>,
) -> i32 {
    // SAFETY: the host passes a table that lives as long as the process.
    let Some(host) = (unsafe { services::whole(host) }) else { return codes::status::INVALID_ARGUMENT };
    connect(host);
    guarded(|| {
        let mut contents = Contents::default();
        setup(&mut contents)?;
        // SAFETY: the host passes a valid, writable `out`, per this function's contract.
        unsafe { contents.write(out) };
        Ok(())
    })
}

/// Runs one kernel under the panic guard.
///
/// # Safety
/// `call` must be valid as [`KernelFn`](crate::abi::tensor::KernelFn) requires; the host upholds this.
// Takes a function pointer, so that the guard is compiled once and not for each of a library's kernels.
#[doc(hidden)]
pub unsafe fn run_kernel(
    call: *const crate::abi::tensor::RawCall,
    run: fn(&Call<'_>) -> Result<(), Error>,
) -> i32 {
    guarded(|| {
        // SAFETY: the caller guarantees a valid call, which lives until this function returns; this is the only `Call` created
        // from it.
        let call = unsafe { Call::new(&*call) };
        run(&call)
    })
}

/// The last `N` decimal digits of an integer, for a constant text.
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

/// The number of decimal digits of an integer.
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

/// The sign of an integer, for a constant text.
#[doc(hidden)]
pub const fn sign(value: i32) -> &'static str {
    if value < 0 { "-" } else { "" }
}

/// Fails the build if a text of the manifest would end its JSON string.
#[doc(hidden)]
pub const fn check_texts(texts: &[&str]) {
    let mut t = 0;
    while t < texts.len() {
        let bytes = texts[t].as_bytes();
        let mut i = 0;
        while i < bytes.len() {
            assert!(
                bytes[i] >= b' ' && bytes[i] != b'"' && bytes[i] != b'\\',
                "a text of `plugin!` must be without quotes, backslashes and control characters"
            );
            i += 1;
        }
        t += 1;
    }
}

/// Fails the build if a plugin's name is invalid.
#[doc(hidden)]
pub const fn check_name(name: &str) {
    assert!(
        crate::abi::manifest::is_name(name),
        "the `name` of `plugin!` must be `domain/name`, such as `example.org/fast`, of letters, digits and `._-+`"
    );
}

/// The setup function of a plugin with kernels alone.
#[doc(hidden)]
pub fn no_setup(_: &mut Contents) -> Result<(), Error> {
    Ok(())
}

/// Exports this library as a Keyway plugin. Used once, in the root of a `cdylib` crate.
///
/// ```ignore
/// keyway_sdk::plugin! {
///     name: "example.org/relu",
///     version: env!("CARGO_PKG_VERSION"),
///     description: "A faster relu",
/// }
/// ```
///
/// The name is `domain/name`, with a domain that you own; `keyway-*` is reserved for the Keyway project, and a library with
/// such a name is refused outside of its installation. The texts are literals, or macros such as `env!` that expand to one.
/// Further fields may follow, in this order:
///
/// | field | default | meaning |
/// |---|---|---|
/// | `devices: ["cpu", ..]` | none | devices that the plugin serves or defines, for listings |
/// | `layouts: ["strided", ..]` | none | layouts that it serves or defines, for listings |
/// | `needs: ["libx.so.1", ..]` | none | other libraries that must be installed, for documentation |
/// | `priority: 10` | 0 | if several plugins have a kernel for one key, the highest priority is tried first |
/// | `compatible_with: ["example.org/gpu", ..]` | none | plugins whose device memory the kernels of this one can use |
/// | `setup: \|contents\| ..` | nothing | adds devices, layouts, ops and interposers, see
/// [`Contents`](crate::author::Contents) |
///
/// Kernels are not listed or counted here. Each [`register_kernel!`](crate::register_kernel) adds an item to this library
/// and a record to its file; the host refuses the library if the kernels it registers differ from its records. It cannot
/// detect a module that was not compiled at all. Kernels in a library crate below this one are linked only if the crate is
/// named here: `use my_kernels as _;`.
#[macro_export]
macro_rules! plugin {
    (@list) => { "" };
    (@list $first:expr $(, $rest:expr)*) => { concat!("\"", $first, "\"" $(, ",\"", $rest, "\"")*) };
    (@setup) => { $crate::__private::no_setup };
    (@setup $setup:expr) => { $setup };
    (@priority) => { 0 };
    (@priority $priority:expr) => { $priority };
    (
        name: $name:expr,
        version: $version:expr,
        description: $description:expr
        $(, devices: [$($device:expr),* $(,)?])?
        $(, layouts: [$($layout:expr),* $(,)?])?
        $(, needs: [$($needs:expr),* $(,)?])?
        $(, priority: $priority:expr)?
        $(, compatible_with: [$($compatible:expr),* $(,)?])?
        $(, setup: $setup:expr)?
        $(,)?
    ) => {
        #[cfg(panic = "abort")]
        compile_error!("a Keyway plugin must be built with panic = \"unwind\": a panic is caught and reported, an abort kills the host");

        // The author's expressions are resolved among these items, so their names must not collide with the author's.
        const _: () = {
            const __KEYWAY_SETUP: fn(&mut $crate::author::Contents) -> ::core::result::Result<(), $crate::author::Error> =
                $crate::plugin!(@setup $($setup)?);
            const __KEYWAY_PRIORITY: i32 = $crate::plugin!(@priority $($priority)?);
            const __KEYWAY_PARTS: &[&str] = &[
                concat!(
                    "{\"name\":\"", $name, "\",\"version\":\"", $version, "\",\"description\":\"", $description,
                    "\",\"devices\":[", $crate::plugin!(@list $($($device),*)?),
                    "],\"layouts\":[", $crate::plugin!(@list $($($layout),*)?),
                    "],\"needs\":[", $crate::plugin!(@list $($($needs),*)?),
                    "],\"compatible_with\":[", $crate::plugin!(@list $($($compatible),*)?),
                    "],\"priority\":"
                ),
                $crate::__private::sign(__KEYWAY_PRIORITY),
                $crate::__private::text(&$crate::__private::digits::<
                    { $crate::__private::digit_count(__KEYWAY_PRIORITY.unsigned_abs()) },
                >(__KEYWAY_PRIORITY.unsigned_abs())),
                ",\"sdk\":\"",
                $crate::__private::SDK_VERSION,
                "\",\"abi_min\":",
                $crate::__private::ABI_MIN_TEXT,
                ",\"abi_max\":",
                $crate::__private::ABI_MAX_TEXT,
                ",\"variant\":\"",
                $crate::__private::manifest::variant(),
                "\",\"cpu_features\":",
                $crate::__private::manifest::cpu_features(),
                "}",
            ];
            const _: () = $crate::__private::check_name($name);
            const _: () = $crate::__private::check_texts(&[
                $name, $version, $description,
                $($($device,)*)? $($($layout,)*)? $($($needs,)*)? $($($compatible,)*)?
            ]);
            #[used]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".note.keyway"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__keyway"))]
            static __KEYWAY_MANIFEST: [u8; $crate::__private::manifest::encoded_len(__KEYWAY_PARTS)] =
                $crate::__private::manifest::encode(__KEYWAY_PARTS);

            unsafe extern "C" fn __keyway_initialize(
                host: *const $crate::__private::HostApi,
                out: *mut $crate::__private::PluginContents,
            ) -> i32 {
                // SAFETY: the host upholds the contract of `PluginApi::initialize`.
                unsafe { $crate::__private::initialize(host, out, __KEYWAY_SETUP) }
            }
            static __KEYWAY_API: $crate::__private::PluginApi = $crate::__private::PluginApi {
                struct_size: ::core::mem::size_of::<$crate::__private::PluginApi>() as u32,
                abi_version: $crate::__private::ABI_MAX,
                initialize: __keyway_initialize,
            };
            extern "C" fn __keyway_negotiate(host_min: u32, host_max: u32) -> u32 {
                $crate::__private::negotiate(host_min, host_max)
            }
            extern "C" fn __keyway_get_interface(id: u32, version: u32) -> *const u8 {
                $crate::__private::get_interface(id, version, &__KEYWAY_API)
            }
            extern "C" fn __keyway_get_table(id: u32, version: u32) -> *const ::core::ffi::c_void {
                $crate::__private::get_interface(id, version, &__KEYWAY_API).cast()
            }
            // SAFETY: the name is Keyway's own, and this macro is its only exporter in the library.
            #[unsafe(export_name = "keyway_plugin_v1")]
            pub static __KEYWAY_ENTRY: $crate::__private::EntryPoint = $crate::__private::EntryPoint {
                struct_size: ::core::mem::size_of::<$crate::__private::EntryPoint>() as u32,
                reserved: 0,
                negotiate: __keyway_negotiate,
                get_interface: __keyway_get_table,
            };
            fn __keyway_root() -> $crate::__private::KeywayRootRef {
                $crate::__private::root_ref($crate::__private::KeywayRoot {
                    negotiate: __keyway_negotiate,
                    get_interface: __keyway_get_interface,
                })
            }
            extern "C" fn __keyway_erased_root() -> $crate::__private::abi_stable::library::RootModuleResult {
                $crate::__private::abi_stable::library::__call_root_module_loader(__keyway_root)
            }
            // SAFETY: the name is abi_stable's own loader symbol, and this macro is its only exporter in the library.
            #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
            pub static __KEYWAY_ROOT: $crate::__private::abi_stable::library::LibHeader = {
                // SAFETY: the constructor returns the type that the header names, as `export_root_module` does.
                unsafe {
                    $crate::__private::abi_stable::library::LibHeader::from_constructor::<
                        $crate::__private::KeywayRootRef,
                    >(
                        __keyway_erased_root,
                        $crate::__private::abi_stable::library::CheckTypeLayout::Yes,
                    )
                }
            };
        };
    };
    ($($other:tt)*) => {
        compile_error!(
            "`plugin!` takes `name`, `version` and `description`, then any of `devices`, `layouts`, `needs`, `priority`, `compatible_with` and `setup`, each once and in this order; see the documentation of `keyway_sdk::plugin`"
        );
    };
}

/// Registers a kernel for one op, device and layout, and each of the given dtypes.
///
/// The kernel is a `fn(&Call) -> Result<(), Error>`; the signature is that of the op, in the letters of
/// [`RawOp::schema`](crate::abi::op::RawOp::schema). `flags: allocates` marks a kernel that allocates its own outputs.
/// A dtype is an identifier, or a string literal: `"vendor.example/fp8_e4m3" => run`.
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
    (@name $dtype:ident) => { stringify!($dtype) };
    (@name $dtype:literal) => { $dtype };
    (
        op: $op:expr, signature: $signature:expr, device: $device:expr, layout: $layout:expr,
        flags: allocates,
        $($dtype:tt => $run:expr),+ $(,)?
    ) => {
        $crate::register_kernel!(
            @emit $crate::abi::codes::kernel_flag::ALLOCATES, $op, $signature, $device, $layout, $($dtype => $run),+
        );
    };
    (
        op: $op:expr, signature: $signature:expr, device: $device:expr, layout: $layout:expr,
        $($dtype:tt => $run:expr),+ $(,)?
    ) => {
        $crate::register_kernel!(@emit 0, $op, $signature, $device, $layout, $($dtype => $run),+);
    };
    (
        @emit $flags:expr, $op:expr, $signature:expr, $device:expr, $layout:expr, $($dtype:tt => $run:expr),+
    ) => {
        // The author's expressions are resolved among these items, so their names must not collide with the author's.
        const _: () = {
            const __KEYWAY_FLAGS: u32 = $flags;
            const __KEYWAY_PARTS: &[&str] = &[
                $op, " ", $signature, " ", $device, " ", $layout, " ",
                concat!($($crate::register_kernel!(@name $dtype), ","),+),
            ];
            #[used]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".note.keyway.k"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__keyway_k"))]
            static __KEYWAY_RECORD: [u8; $crate::__private::manifest::encoded_len(__KEYWAY_PARTS)] =
                $crate::__private::manifest::encode(__KEYWAY_PARTS);

            static __KEYWAY_KERNELS: &[(&str, $crate::__private::KernelFn)] = &[$({
                unsafe extern "C" fn __keyway_run(__keyway_call: *const $crate::__private::RawCall) -> i32 {
                    // SAFETY: the host upholds the contract of `KernelFn`.
                    unsafe { $crate::__private::run_kernel(__keyway_call, $run) }
                }
                ($crate::register_kernel!(@name $dtype), __keyway_run as $crate::__private::KernelFn)
            }),+];
            $crate::__private::inventory::submit! {
                $crate::__private::KernelItems {
                    flags: __KEYWAY_FLAGS,
                    op: $op,
                    signature: $signature,
                    device: $device,
                    layout: $layout,
                    kernels: __KEYWAY_KERNELS,
                }
            }
        };
    };
}
