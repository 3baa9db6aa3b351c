//! Marshalling of a call: its raw form, built on the stack.

use super::holder::Holder;
use crate::base::dims::{self, Dims, expanded_strides, same};
use crate::base::dtype::{Category, DType};
use crate::base::error::Result;
use crate::base::key::Device;
use crate::base::message::{failure, set_error};
use crate::device::{current_stream, streams_in_use};
use crate::memory::Storage;
use crate::op::{Arg, Args, OutSpec, Plan};
use crate::registry::KernelEntry;
use crate::tensor::TensorRef;
use keyway_sdk::abi::codes::{dtype as code, status, tag, tensor_flag};
use keyway_sdk::abi::tensor::{RawArg, RawCall, RawTensor};
use keyway_sdk::half::{bf16, f16};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// The context of a kernel that allocates its own outputs, or of a rule.
#[derive(Default)]
pub(crate) struct CallContext {
    pub(crate) made: SmallVec<[Option<TensorRef>; 2]>,
    pub(crate) stated: SmallVec<[OutSpec; 1]>,
    /// The plan; its outputs are in `stated`.
    pub(crate) plan: Option<Plan>,
    /// The number of arguments of the call, for a rule; 0 for a kernel.
    pub(crate) n_args: usize,
}

const ZEROS: [usize; 64] = [0; 64];

/// A scalar as a 0-d element, and the scalar itself as f64 at byte 8 if the element has at most 8 bytes.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct NumberBytes(#[allow(dead_code, reason = "kernels read it by its address")] [u8; 16]);

/// The bytes of a scalar in the kernel's compute dtype; `None` if its plugin failed to convert it.
fn encode(arg: Arg<'_>, dtype: DType) -> Option<NumberBytes> {
    let (integer, real) = match arg {
        Arg::Int(v) => (v, v as f64),
        Arg::Bool(v) => (i64::from(v), f64::from(u8::from(v))),
        Arg::Float(v) => (v as i64, v),
        _ => (0, 0.0),
    };
    let mut out = [0u8; 16];
    let mut put = |bytes: &[u8]| out[..bytes.len()].copy_from_slice(bytes);
    match dtype.code() {
        code::BOOL => put(&[u8::from(real != 0.0)]),
        code::F64 => put(&real.to_ne_bytes()),
        code::F32 => put(&(real as f32).to_ne_bytes()),
        code::F16 => put(&f16::from_f32(real as f32).to_ne_bytes()),
        code::BF16 => put(&bf16::from_f32(real as f32).to_ne_bytes()),
        _ if dtype.is_built_in() && dtype.category() == Category::Integer => {
            put(&integer.to_le_bytes()[..dtype.size()]);
            if cfg!(target_endian = "big") {
                out[..dtype.size()].reverse();
            }
        }
        code::C64 => put(&(real as f32).to_ne_bytes()),
        code::C128 => put(&real.to_ne_bytes()),
        _ => out = encode_by_plugin(real, dtype)?,
    }
    if leaves_room(dtype) {
        out[8..].copy_from_slice(&real.to_ne_bytes());
    }
    Some(NumberBytes(out))
}

/// Whether the scalar as f64 fits after an element of this dtype.
fn leaves_room(dtype: DType) -> bool {
    dtype.size() <= 8
}

/// The bytes of a scalar in a plugin's dtype.
#[cold]
fn encode_by_plugin(real: f64, dtype: DType) -> Option<[u8; 16]> {
    let mut out = [0u8; 16];
    match dtype.encode(&[real], &mut out[..dtype.size()]) {
        Ok(()) => Some(out),
        Err(error) => {
            set_error(&error);
            None
        }
    }
}

/// Tensors, arguments and broadcast shapes that fit the stack; more are allocated on the heap.
const INLINE_TENSORS: usize = 6;
pub(super) const INLINE_ARGS: usize = 8;
const INLINE_OUTPUTS: usize = 4;

/// An arena for values that do not move after they are written.
struct Arena<'a, T> {
    slots: &'a mut [MaybeUninit<T>],
    used: usize,
}

impl<T> Arena<'_, T> {
    /// Writes the next value and returns its address; null if it is full, which its capacity rules out.
    #[inline(always)]
    fn push(&mut self, value: T) -> *mut T {
        let Some(slot) = self.slots.get_mut(self.used) else { return std::ptr::null_mut() };
        self.used += 1;
        slot.write(value)
    }

    #[inline(always)]
    fn first(&self) -> *const T {
        self.slots.as_ptr().cast()
    }

    /// The address of the next value.
    #[inline(always)]
    fn next(&self) -> *const T {
        self.first().wrapping_add(self.used)
    }
}

/// Creates an [`Arena`] for `count` values: on this stack if there are at most `inline`.
macro_rules! arena {
    ($name:ident: $type:ty, $inline:expr, $count:expr) => {
        let mut stack = [const { MaybeUninit::<$type>::uninit() }; $inline];
        let mut heap: Vec<MaybeUninit<$type>> = Vec::new();
        let slots: &mut [MaybeUninit<$type>] = if $count <= $inline {
            &mut stack
        } else {
            heap.resize_with($count, MaybeUninit::uninit);
            &mut heap
        };
        #[allow(unused_mut, reason = "some arenas are moved before they are written to")]
        let mut $name: Arena<'_, $type> = Arena { slots, used: 0 };
    };
}

/// A scalar passed as a tensor, expanded to the shape `target` if present.
fn raw_number(
    bytes: *const NumberBytes,
    dtype: DType,
    device: Device,
    target: Option<(&[usize], usize)>,
) -> RawTensor {
    let (sizes, numel) = target.unwrap_or((&[], 1));
    RawTensor {
        struct_size: size_of::<RawTensor>() as u32,
        ndim: sizes.len() as u32,
        dtype: dtype.code(),
        layout: 0,
        device: device.kind,
        device_index: device.index,
        flags: tensor_flag::HOST_SCALAR | if leaves_room(dtype) { tensor_flag::NUMBER } else { 0 },
        n_components: 0,
        data: bytes.cast_mut().cast::<c_void>(),
        sizes: sizes.as_ptr().cast(),
        strides: ZEROS.as_ptr().cast(),
        numel: numel as i64,
        handle: std::ptr::null(),
        components: std::ptr::null(),
        attrs: std::ptr::null(),
        n_attrs: 0,
        reserved: 0,
    }
}

/// The conversion of the arguments of a call for a plugin.
#[derive(Clone, Copy)]
pub(crate) struct Marshalling<'a> {
    /// The shape that broadcast arguments appear in.
    target: &'a [usize],
    /// The mask of arguments that are broadcast to it; bit `i` for argument `i`.
    broadcast: u32,
    /// The dtype of scalars passed as tensors.
    compute: DType,
    /// The mask of arguments that may be such scalars; bit `i` for argument `i`.
    number_slots: u32,
}

impl<'a> Marshalling<'a> {
    /// Arguments are passed unchanged.
    pub(crate) const AS_IS: Marshalling<'static> =
        Marshalling { target: &[], broadcast: 0, compute: DType::F32, number_slots: 0 };

    /// Arguments are passed according to a plan: broadcast to output 0, scalars as 0-d tensors of the compute dtype.
    #[inline(always)]
    pub(crate) fn planned(plan: &'a Plan, number_slots: u32) -> Marshalling<'a> {
        let target = plan.outputs.first().map_or(&[][..], |output| &output.sizes);
        Marshalling { target, broadcast: plan.broadcast, compute: plan.compute, number_slots }
    }

    /// Without broadcasting.
    pub(crate) fn without_broadcast(self) -> Marshalling<'a> {
        Marshalling { broadcast: 0, ..self }
    }

    /// Whether argument `i` is passed with another shape than its own.
    #[inline(always)]
    fn broadcasts(&self, i: usize, t: &TensorRef) -> bool {
        self.broadcast & (1 << i) != 0 && !same(t.sizes(), self.target) && t.is_strided()
    }
}

/// Owned data that a raw call points to; tensors carry their own raw form.
struct Frame<'a, 'r> {
    /// Arguments that appear otherwise than they are.
    raws: Arena<'r, RawTensor>,
    /// Lists of tensors, and the outputs.
    pointers: Arena<'r, *const RawTensor>,
    numbers: Arena<'r, NumberBytes>,
    /// Strides of the broadcast arguments. Allocated with its full capacity first, so that no element moves while pointers
    /// to it exist.
    expanded: SmallVec<[Dims; 2]>,
    // A holder must not move.
    #[allow(clippy::vec_box)]
    held: Vec<Box<Holder>>,
    marshalling: Marshalling<'a>,
    device: Device,
}

impl Frame<'_, '_> {
    /// Adds a tensor as it is; its raw form.
    #[inline(always)]
    fn push(&mut self, t: &TensorRef) -> *const RawTensor {
        let raw = if t.is_strided() { std::ptr::from_ref(t.raw().get()) } else { self.hold(t) };
        self.pointers.push(raw);
        raw
    }

    /// The raw form of a composite tensor, alive until the call is over.
    #[cold]
    fn hold(&mut self, t: &TensorRef) -> *const RawTensor {
        let holder = Holder::new(t.clone());
        let raw = holder.raw();
        self.held.push(holder);
        raw
    }

    /// The raw form of tensor argument `i` in this call.
    #[inline(always)]
    fn argument(&mut self, i: usize, t: &TensorRef, tensors: usize) -> *const RawTensor {
        let host_scalar = t.ndim() == 0 && t.device() != self.device && t.device() == Device::CPU;
        let broadcasts = self.marshalling.broadcasts(i, t);
        if t.is_strided() && !broadcasts && !host_scalar {
            return t.raw().get();
        }
        if !t.is_strided() { self.hold(t) } else { self.otherwise(t, broadcasts, host_scalar, tensors) }
    }

    /// The raw form of a tensor in the shape of output 0, or as a scalar in host memory.
    #[inline(never)]
    fn otherwise(
        &mut self,
        t: &TensorRef,
        broadcasts: bool,
        host_scalar: bool,
        tensors: usize,
    ) -> *const RawTensor {
        let mut raw = t.raw().copied();
        if broadcasts {
            let target = self.marshalling.target;
            if self.expanded.is_empty() {
                self.expanded.reserve_exact(tensors);
            }
            self.expanded.push(expanded_strides(t.sizes(), t.strides(), target));
            raw.ndim = target.len() as u32;
            raw.sizes = target.as_ptr().cast();
            raw.strides = self.expanded.last().map_or(std::ptr::null(), |e| e.as_ptr().cast());
            raw.numel = dims::count(target) as i64;
            raw.flags = 0;
        }
        if host_scalar {
            raw.flags = tensor_flag::HOST_SCALAR;
        }
        self.raws.push(raw)
    }

    /// The raw form of scalar argument `i`, which is passed as a tensor; `None` as for [`encode`].
    #[inline(never)]
    fn number(&mut self, i: usize, arg: Arg<'_>) -> Option<*const RawTensor> {
        let marshalling = self.marshalling;
        let bytes = self.numbers.push(encode(arg, marshalling.compute)?);
        let shape = (marshalling.broadcast & (1 << i) != 0)
            .then(|| (marshalling.target, dims::count(marshalling.target)));
        Some(self.raws.push(raw_number(bytes, marshalling.compute, self.device, shape)))
    }
}

#[inline(always)]
fn raw_arg(tag: u32, len: usize, value: u64) -> RawArg {
    RawArg { tag, len: len as u32, value }
}

/// The raw form of an argument without tensors.
#[inline(always)]
fn plain(arg: Arg<'_>) -> RawArg {
    match arg {
        Arg::None | Arg::Tensor(_) | Arg::Tensors(_) => raw_arg(tag::NONE, 0, 0),
        Arg::Int(v) => raw_arg(tag::INT, 0, v as u64),
        Arg::Float(v) => raw_arg(tag::FLOAT, 0, v.to_bits()),
        Arg::Bool(v) => raw_arg(tag::BOOL, 0, u64::from(v)),
        Arg::Ints(v) => raw_arg(tag::INTS, v.len(), v.as_ptr().addr() as u64),
        Arg::Floats(v) => raw_arg(tag::FLOATS, v.len(), v.as_ptr().addr() as u64),
        Arg::Str(v) => raw_arg(tag::STR, v.len(), v.as_ptr().addr() as u64),
        Arg::DType(v) => raw_arg(tag::DTYPE, 0, u64::from(v.code())),
    }
}

/// Records that work on this memory is submitted to this thread's streams.
#[cold]
fn note_use(args: &[Arg<'_>], outputs: &[TensorRef]) {
    let note = |t: &TensorRef| match t.storage() {
        Some(storage) => storage.note_use(),
        None => t.components().iter().filter_map(|c| c.storage()).for_each(Storage::note_use),
    };
    outputs.iter().for_each(note);
    for arg in args {
        match arg {
            Arg::Tensor(t) => note(t),
            Arg::Tensors(list) => list.iter().for_each(|t| note(t)),
            _ => {}
        }
    }
}

/// Builds the raw call on this stack, passes it to `run` and returns its result. `context` receives the outputs that the
/// plugin creates or describes; without one it may do neither.
///
/// # Errors
/// The status of a scalar that its dtype's plugin failed to convert, with a stored message.
#[inline(always)]
pub(crate) fn with_call<R>(
    args: &[Arg<'_>],
    marshalling: Marshalling<'_>,
    outputs: &[TensorRef],
    n_outputs: usize,
    device: Device,
    context: Option<&mut CallContext>,
    run: impl FnOnce(*const RawCall) -> R,
) -> Result<R, i32> {
    if streams_in_use() {
        note_use(args, outputs);
    }
    let mut tensors = args.len();
    for arg in args {
        if let Arg::Tensors(list) = arg {
            tensors += list.len();
        }
    }
    let places = tensors + n_outputs.max(outputs.len());
    arena!(raws: RawTensor, INLINE_TENSORS, places);
    arena!(pointers: *const RawTensor, INLINE_TENSORS, places);
    arena!(numbers: NumberBytes, INLINE_ARGS, args.len());
    arena!(raw_args: RawArg, INLINE_ARGS, args.len());
    let mut frame =
        Frame { raws, pointers, numbers, expanded: SmallVec::new(), held: Vec::new(), marshalling, device };

    for (i, arg) in args.iter().enumerate() {
        raw_args.push(match *arg {
            Arg::Tensor(t) => raw_arg(tag::TENSOR, 0, frame.argument(i, t, tensors) as u64),
            Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) if marshalling.number_slots & (1 << i) != 0 => {
                match frame.number(i, *arg) {
                    Some(number) => raw_arg(tag::TENSOR, 0, number as u64),
                    None => return Err(status::FAILED),
                }
            }
            Arg::Tensors(list) => {
                let first = frame.pointers.next();
                list.iter().for_each(|t| {
                    frame.push(t);
                });
                raw_arg(tag::TENSORS, list.len(), first as u64)
            }
            other => plain(other),
        });
    }
    let first_output = frame.pointers.next();
    if outputs.is_empty() {
        (0..n_outputs).for_each(|_| {
            frame.pointers.push(std::ptr::null());
        });
    } else {
        outputs.iter().for_each(|t| {
            frame.push(t);
        });
    }

    let call = RawCall {
        struct_size: size_of::<RawCall>() as u32,
        n_args: args.len() as u32,
        args: raw_args.first(),
        outputs: first_output,
        n_outputs: n_outputs as u32,
        reserved: 0,
        stream: current_stream(device),
        context: context.map_or(std::ptr::null_mut(), |context| std::ptr::from_mut(context).cast()),
    };
    Ok(run(&call))
}

/// Whether the arguments of a call can be passed unchanged, given that no argument needs marshalling because of its kind
/// and no stream is to be recorded.
#[inline(always)]
pub(crate) fn is_straight(args: &Args<'_>, plan: &Plan, outputs: usize) -> bool {
    args.values.len() <= INLINE_ARGS
        && outputs <= INLINE_OUTPUTS
        && !streams_in_use()
        && (plan.broadcast == 0 || !broadcasts_any(args, plan))
}

fn broadcasts_any(args: &Args<'_>, plan: &Plan) -> bool {
    let marshalling = Marshalling::planned(plan, 0);
    args.values
        .iter()
        .enumerate()
        .any(|(i, arg)| matches!(arg, Arg::Tensor(t) if marshalling.broadcasts(i, t)))
}

/// Runs a kernel, which allocates no outputs, on a call that [`is_straight`]: only lists of addresses are built.
///
/// # Errors
/// Errors of the kernel.
#[inline(always)]
pub(super) fn call_straight(
    kernel: &'static KernelEntry,
    args: &Args<'_>,
    outputs: &[TensorRef],
    device: Device,
) -> Result<()> {
    let mut slots = [const { MaybeUninit::uninit() }; INLINE_ARGS];
    let mut raw_args: Arena<'_, RawArg> = Arena { slots: &mut slots, used: 0 };
    let mut slots = [const { MaybeUninit::uninit() }; INLINE_OUTPUTS];
    let mut pointers: Arena<'_, *const RawTensor> = Arena { slots: &mut slots, used: 0 };
    for arg in args.values {
        raw_args.push(match *arg {
            Arg::Tensor(t) => raw_arg(tag::TENSOR, 0, std::ptr::from_ref(t.raw().get()) as u64),
            other => plain(other),
        });
    }
    outputs.iter().for_each(|t| {
        pointers.push(t.raw().get());
    });
    let call = RawCall {
        struct_size: size_of::<RawCall>() as u32,
        n_args: raw_args.used as u32,
        args: raw_args.first(),
        outputs: pointers.first(),
        n_outputs: pointers.used as u32,
        reserved: 0,
        stream: current_stream(device),
        context: std::ptr::null_mut(),
    };
    // SAFETY: `call` is valid for the time of this call, and the plugin's library is never unmapped.
    let code = unsafe { (kernel.run)(&call) };
    if code == status::OK { Ok(()) } else { Err(failure(args.name(), kernel.plugin.name, device, code)) }
}
