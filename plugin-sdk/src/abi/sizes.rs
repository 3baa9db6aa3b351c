//! The offset of each field of the contract, checked by the compiler: a change of a structure other than at its end, and
//! any change of a table's minimum size, breaks existing plugins.
//!
//! - `frozen`: never grows. For small structures, and those that each call reads: their Rust types are the same in every
//!   version, so a reference to one is always to a complete structure.
//! - `table ... least N`: begins with its size and grows at its end. The first N bytes are present in every version; fields
//!   beyond may be absent ([`Table`]). N never changes.

use super::RawStr;
use super::device::{DeviceApi, RawDeviceProperties, RawMemoryStats};
use super::dtype::DTypeApi;
use super::extension::{CaptureApi, PeerApi, ReportApi};
use super::host::HostApi;
use super::interposer::{RawInterposed, RawInterposer};
use super::layout::{LayoutApi, LayoutOpsApi};
use super::op::{RawKernel, RawOp, RawOutput, RawPlan};
use super::plugin::{EntryPoint, PluginApi, PluginContents, RawList};
use super::preference::RawPreference;
use super::table::{Field, Structure, Table};
use super::tensor::{RawArg, RawCall, RawTensor};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the binary contract is defined for machines with addresses of 64 bits");

/// The size of the type of a field.
const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! structures {
    ($($kind:ident $name:ident: $size:literal $(least $least:literal)? { $($field:ident: $offset:literal),+ $(,)? })+) => {
        $(
            const _: () = {
                assert!(size_of::<$name>() == $size, concat!("the size of ", stringify!($name)));
                $(assert!(
                    std::mem::offset_of!($name, $field) == $offset,
                    concat!("where ", stringify!($name), " has ", stringify!($field))
                );)+
                // Fails to compile if a field is missing from the list.
                #[allow(dead_code)]
                fn all($name { $($field: _),+ }: $name) {}
            };
            structures!(@$kind $name: $size $(least $least)? { $($field)+ });
        )+

        /// Every structure of the contract.
        pub const STRUCTURES: &[Structure] = &[$(Structure {
            name: stringify!($name),
            size: $size,
            fields: structures!(@fields $name { $($field)+ }),
        }),+];
    };
    (@fields $name:ident { $($field:ident)+ }) => {
        &[$(Field {
            name: stringify!($field),
            offset: std::mem::offset_of!($name, $field),
            size: size_of_field(|s: &$name| &s.$field),
        }),+]
    };
    (@frozen $name:ident: $size:literal { $($field:ident)+ }) => {};
    (@table $name:ident: $size:literal least $least:literal { $($field:ident)+ }) => {
        const _: () = {
            assert!(std::mem::offset_of!($name, struct_size) == 0);
            assert!(
                super::table::whole_fields::<$name>($least) == $least,
                concat!("the least size of ", stringify!($name), " ends within a field")
            );
        };
        // SAFETY: the structure is `repr(C)`; the assertions above check the offsets of its fields and that these are all;
        // and a field beyond the minimum size must have a type that may be zero, as `mod.rs` requires.
        unsafe impl Table for $name {
            const MIN_SIZE: usize = $least;
            const FIELDS: &'static [Field] = structures!(@fields $name { $($field)+ });
        }
    };
}

type RawKernelList = RawList<RawKernel>;

structures! {
    frozen RawStr: 16 { ptr: 0, len: 8 }
    frozen RawKernelList: 16 { items: 0, len: 8 }
    frozen RawArg: 16 { tag: 0, len: 4, value: 8 }
    frozen RawTensor: 88 {
        struct_size: 0, ndim: 4, dtype: 8, layout: 10, device: 12, device_index: 14, flags: 16, n_components: 20,
        data: 24, sizes: 32, strides: 40, numel: 48, handle: 56, components: 64, attrs: 72, n_attrs: 80, reserved: 84,
    }
    frozen RawCall: 48 {
        struct_size: 0, n_args: 4, args: 8, outputs: 16, n_outputs: 24, reserved: 28, stream: 32, context: 40,
    }
    table EntryPoint: 24 least 24 { struct_size: 0, reserved: 4, negotiate: 8, get_interface: 16 }
    table PluginApi: 16 least 16 { struct_size: 0, abi_version: 4, initialize: 8 }
    table PluginContents: 136 least 72 {
        struct_size: 0, reserved: 4, devices: 8, layouts: 24, ops: 40, kernels: 56, interposers: 72, dtypes: 88,
        layout_ops: 104, preferences: 120,
    }
    table DTypeApi: 104 least 96 {
        struct_size: 0, bits: 4, name: 8, alignment: 24, category: 28, flags: 32, promotes_to: 40, max: 56, min: 64,
        epsilon: 72, to_f64: 80, from_f64: 88, format: 96,
    }
    table HostApi: 184 least 48 {
        struct_size: 0, abi_version: 4, log: 8, set_error: 16, parallel_for: 24, num_threads: 32, intern: 40,
        allocate: 48, free: 56, tensor_new: 64, tensor_composite: 72, tensor_raw: 80, tensor_release: 88,
        set_output: 96, call_op: 104, rule_output: 112, tensor_retain: 120, rule_plan: 128, cache_get: 136,
        cache_put: 144, name: 152, setting: 160, tensor_composite_of: 168, tensor_attr: 176,
    }
    table DeviceApi: 248 least 88 {
        struct_size: 0, priority: 4, name: 8, flags: 24, count: 32, properties: 40, allocate: 48, free: 56,
        copy_from_host: 64, copy_to_host: 72, copy_between: 80, stream_create: 88, stream_destroy: 96,
        stream_synchronize: 104, event_create: 112, event_destroy: 120, event_record: 128, event_wait: 136,
        event_query: 144, event_synchronize: 152, event_elapsed: 160, synchronize: 168, memory_stats: 176,
        empty_cache: 184, reset_peak: 192, set_memory_limit: 200, pinned_allocate: 208, pinned_free: 216,
        copy_from_host_async: 224, copy_to_host_async: 232, extension: 240,
    }
    table PeerApi: 32 least 32 { struct_size: 0, reserved: 4, can_access: 8, enable: 16, disable: 24 }
    table CaptureApi: 40 least 40 { struct_size: 0, reserved: 4, begin: 8, end: 16, launch: 24, destroy: 32 }
    table ReportApi: 24 least 24 { struct_size: 0, reserved: 4, facts: 8, memory: 16 }
    table RawDeviceProperties: 40 least 16 { struct_size: 0, units: 4, total_memory: 8, flags: 16, name: 24 }
    table RawMemoryStats: 72 least 24 {
        struct_size: 0, reserved: 4, in_use: 8, held: 16, peak_in_use: 24, peak_held: 32, allocations: 40, frees: 48,
        cache_hits: 56, limit: 64,
    }
    table LayoutApi: 128 least 48 {
        struct_size: 0, precedence: 4, name: 8, components: 24, attrs: 32, n_components: 40, n_attrs: 44, attr_types: 48,
        options: 64, absolute: 80, relative: 88, relative_to_max: 96, gradient: 104, reserved: 108, samples: 112,
    }
    table LayoutOpsApi: 96 least 56 {
        struct_size: 0, reserved: 4, layout: 8, device: 24, shapes: 40, accepts: 56, validate: 64, to_strided: 72,
        from_strided: 80, project: 88,
    }
    table RawKernel: 96 least 96 {
        struct_size: 0, flags: 4, op: 8, signature: 24, device: 40, layout: 56, dtype: 72, run: 88,
    }
    table RawPreference: 64 least 64 { struct_size: 0, reserved: 4, op: 8, device: 24, format: 40, cost: 56 }
    table RawOp: 104 least 64 {
        struct_size: 0, flags: 4, schema: 8, rule: 24, elementwise: 32, saves: 36, saves_outputs: 40, n_parts: 44,
        backward: 48, decomposition: 64, parts: 72, samples: 80, reference: 96,
    }
    table RawOutput: 40 least 40 {
        struct_size: 0, ndim: 4, sizes: 8, strides: 16, dtype: 24, reserved: 26, format: 28, of: 32, reserved_end: 36,
    }
    table RawPlan: 28 least 28 {
        struct_size: 0, compute: 4, reserved: 6, cast: 8, cast_index: 12, broadcast: 16, contiguous: 20, alias: 24,
    }
    table RawInterposer: 48 least 48 {
        struct_size: 0, flags: 4, name: 8, ops: 24, n_ops: 32, order: 36, run: 40,
    }
    table RawInterposed: 80 least 80 {
        struct_size: 0, flags: 4, depth: 8, n_outputs: 12, op: 16, call: 32, context: 40, set_argument: 48, next: 56,
        output: 64, set_output: 72,
    }
}
