//! Integer codes of the contract. The meaning of a code never changes.
//!
//! Each list states how a reader treats an unknown code or bit: it refuses one that requests behavior, with an error that
//! names the code, and ignores one that only adds information.

/// The status of a call across the boundary.
/// An unknown status is a failure.
pub mod status {
    /// The call succeeded.
    pub const OK: i32 = 0;
    /// The kernel failed; the message describes the failure.
    pub const FAILED: i32 = 1;
    /// The kernel does not support these arguments; the host tries the next candidate.
    pub const UNSUPPORTED: i32 = 2;
    /// An allocation did not fit.
    pub const OUT_OF_MEMORY: i32 = 3;
    /// An argument is wrong in a way that the host could not detect.
    pub const INVALID_ARGUMENT: i32 = 4;
    /// The plugin panicked. It is poisoned: every later call returns this status too, and its resources are leaked.
    pub const PANICKED: i32 = 5;
    /// The device is lost.
    pub const DEVICE_LOST: i32 = 6;
}

/// Element types. Host and plugin share these codes; other dtypes get codes from `VENDOR_FIRST` when their name is
/// interned, and are described by a [`DTypeApi`](super::dtype::DTypeApi). A code that is neither listed here nor interned
/// is refused.
pub mod dtype {
    /// One byte, 0 or 1.
    pub const BOOL: u16 = 0;
    /// Unsigned 8-bit integer.
    pub const U8: u16 = 1;
    /// Signed 8-bit integer.
    pub const I8: u16 = 2;
    /// Signed 16-bit integer.
    pub const I16: u16 = 3;
    /// Signed 32-bit integer.
    pub const I32: u16 = 4;
    /// Signed 64-bit integer.
    pub const I64: u16 = 5;
    /// IEEE binary16.
    pub const F16: u16 = 6;
    /// bfloat16.
    pub const BF16: u16 = 7;
    /// IEEE binary32.
    pub const F32: u16 = 8;
    /// IEEE binary64.
    pub const F64: u16 = 9;
    /// Unsigned 16-bit integer.
    pub const U16: u16 = 10;
    /// Unsigned 32-bit integer.
    pub const U32: u16 = 11;
    /// Unsigned 64-bit integer.
    pub const U64: u16 = 12;
    /// Two F32: real and imaginary part.
    pub const C64: u16 = 13;
    /// Two F64: real and imaginary part.
    pub const C128: u16 = 14;
    /// The first code of a dtype that a plugin defines.
    pub const VENDOR_FIRST: u16 = 32;
}

/// The kind of values of a [`DTypeApi`](super::dtype::DTypeApi), in the order of promotion.
/// The host refuses a dtype of an unknown category.
pub mod dtype_category {
    /// Truth values.
    pub const BOOL: u32 = 0;
    /// Integers of 0 or more.
    pub const UNSIGNED: u32 = 1;
    /// Integers with a sign.
    pub const SIGNED: u32 = 2;
    /// Real floating point.
    pub const FLOAT: u32 = 3;
    /// Complex floating point.
    pub const COMPLEX: u32 = 4;
    /// Any other kind of values.
    pub const OTHER: u32 = 5;
}

/// The type of the value of a [`RawArg`](super::tensor::RawArg).
/// The host refuses a call with an unknown tag; a kernel returns `UNSUPPORTED` for it.
pub mod tag {
    /// No value: an absent optional argument.
    pub const NONE: u32 = 0;
    /// `value` is a `*const RawTensor`.
    pub const TENSOR: u32 = 1;
    /// `value` is a `*const *const RawTensor` of `len` entries.
    pub const TENSORS: u32 = 2;
    /// `value` is the bits of an `i64`.
    pub const INT: u32 = 3;
    /// `value` is the bits of an `f64`.
    pub const FLOAT: u32 = 4;
    /// `value` is 0 or 1.
    pub const BOOL: u32 = 5;
    /// `value` is a `*const i64` of `len` entries.
    pub const INTS: u32 = 6;
    /// `value` is a `*const f64` of `len` entries.
    pub const FLOATS: u32 = 7;
    /// `value` is a `*const u8` of `len` bytes, UTF-8.
    pub const STR: u32 = 8;
    /// `value` is a dtype code.
    pub const DTYPE: u32 = 9;
}

/// Flags of a [`RawTensor`](super::tensor::RawTensor).
/// A kernel ignores unknown bits: using them is optional.
pub mod tensor_flag {
    /// The elements are contiguous: row-major without gaps.
    pub const CONTIGUOUS: u32 = 1;
    /// `data` is host memory with one element, although the call runs on another device; all strides are 0. The element
    /// must be read before the kernel returns: its memory may be freed afterwards.
    pub const HOST_SCALAR: u32 = 2;
    /// The element is a scalar of the caller, stored unrounded as an f64 8 bytes after it, for kernels that compute in a
    /// wider type than that of the elements. Only with `HOST_SCALAR`.
    pub const NUMBER: u32 = 4;
}

/// Capabilities of a device.
/// The host ignores unknown bits: it does not use these capabilities.
pub mod device_flag {
    /// The host may read and write the device's memory through its pointers.
    pub const HOST_ACCESSIBLE: u64 = 1;
    /// Work is queued on streams and finishes later.
    pub const ASYNCHRONOUS: u64 = 2;
}

/// Requests of a kernel to the host.
/// The host refuses a plugin with an unknown bit.
pub mod kernel_flag {
    /// The output sizes depend on the data: the kernel allocates its outputs with `set_output`.
    pub const ALLOCATES: u32 = 1;
}

/// Properties of an op of a plugin.
/// The host refuses a plugin with an unknown bit.
pub mod op_flag {
    /// Element-wise, computed in f32 if the arguments are integers: the result is a float.
    pub const TO_FLOAT: u32 = 1;
    /// Element-wise, with a result of bool.
    pub const TO_BOOL: u32 = 2;
    /// The last argument of the backward op is the mask of requested gradients.
    pub const BACKWARD_WANTS: u32 = 4;
}

/// Memory formats of a new strided tensor, for [`HostApi::tensor_new`](super::host::HostApi), and of an output, for
/// [`HostApi::rule_output`](super::host::HostApi).
/// The host refuses an unknown format; `tensor_new` accepts the first three.
pub mod memory_format {
    /// Row-major without gaps.
    pub const CONTIGUOUS: u32 = 0;
    /// Dimension 1 innermost, the other dimensions in order; for 3, 4 or 5 dimensions.
    pub const CHANNELS_LAST: u32 = 1;
    /// With the strides passed along.
    pub const STRIDES: u32 = 2;
    /// The format that an element-wise op preserves for the arguments that are broadcast.
    pub const PRESERVE: u32 = 3;
    /// The memory order of one argument, if it has the output's shape.
    pub const LIKE: u32 = 4;
    /// The format of the images among some arguments, whatever their shapes: channels_last if any argument of 3 to 5
    /// dimensions is, otherwise row-major.
    pub const IMAGES: u32 = 5;
}

/// Properties of an interposer.
/// The host refuses a plugin with an unknown bit.
pub mod interposer_flag {
    /// Enabled on every thread that does not exclude it; without this flag, on threads that include it.
    pub const DEFAULT_ON: u32 = 1;
}

/// Properties of a call that an interposer sees.
/// An interposer must ignore unknown bits.
pub mod interposed_flag {
    /// The thread runs a backward pass.
    pub const BACKWARD: u32 = 1;
    /// The result is written to argument 0.
    pub const IN_PLACE: u32 = 2;
    /// The results are written to tensors of the caller (`out=`).
    pub const OUT: u32 = 4;
}

/// Kinds of names that [`HostApi::intern`](super::host::HostApi) maps to numbers.
/// For an unknown kind `intern` returns 65535, which is never a valid number, and `name` an error.
pub mod name_kind {
    /// A device such as `cpu`.
    pub const DEVICE: u32 = 0;
    /// A layout such as `strided`.
    pub const LAYOUT: u32 = 1;
    /// A dtype such as `f32`.
    pub const DTYPE: u32 = 2;
}

/// Settings of the program that kernels may read with [`HostApi::setting`](super::host::HostApi).
/// For an unknown setting `setting` returns 0, the default.
pub mod setting {
    /// The precision of products and convolutions of f32: one of [`matmul_precision`](super::matmul_precision).
    pub const FLOAT32_MATMUL_PRECISION: u32 = 1;
}

/// The gradient of the conversion of a strided tensor to a composite layout.
/// A layout with an unknown value is refused.
pub mod layout_gradient {
    /// The gradient of the strided tensor is that of the converted one, element by element, also if the conversion is lossy
    /// (straight-through estimator).
    pub const STRAIGHT_THROUGH: u32 = 0;
    /// The gradient is first projected on the pattern of the converted tensor, so that elements that are not stored have
    /// gradient 0. The layout's functions must have `project`.
    pub const PROJECTED: u32 = 1;
}

/// The precision of products and convolutions of f32.
/// A kernel treats an unknown value as `HIGHEST`, and may be more precise than requested.
pub mod matmul_precision {
    /// Computed in f32.
    pub const HIGHEST: u32 = 0;
    /// The factors may be rounded to 10 fraction bits, as in TF32; accumulation is in f32.
    pub const HIGH: u32 = 1;
}

/// Severity of a log line.
/// A line of an unknown level is passed on with its code; the host's own log omits it.
pub mod level {
    /// Something failed.
    pub const ERROR: u32 = 1;
    /// Something is doubtful.
    pub const WARN: u32 = 2;
    /// Something happened.
    pub const INFO: u32 = 3;
    /// Detail for a developer.
    pub const DEBUG: u32 = 4;
}

/// Interfaces of a plugin, which `get_interface` returns, and of a device, which
/// [`DeviceApi::extension`](super::device::DeviceApi::extension) returns. Both return null for an unknown one.
pub mod interface {
    /// [`PluginApi`](super::super::plugin::PluginApi).
    pub const PLUGIN: u32 = 1;
    /// The first experimental interface: an experimental interface that changes gets another id.
    pub const EXPERIMENTAL: u32 = 65536;
    /// [`PeerApi`](super::super::extension::PeerApi), of a device.
    pub const PEER: u32 = 65537;
    /// [`CaptureApi`](super::super::extension::CaptureApi), of a device.
    pub const CAPTURE: u32 = 65538;
    /// [`ReportApi`](super::super::extension::ReportApi), of a device.
    pub const REPORT: u32 = 65539;
}
