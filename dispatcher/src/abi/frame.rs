//! The raw form of one call, built on the stack.

use super::device::current_stream;
use super::holder::{Holder, raw_tensor};
use crate::dims::{Dims, expanded_strides};
use crate::dtype::{Category, DType};
use crate::key::Device;
use crate::memory::Storage;
use crate::op::{Arg, Plan};
use crate::tensor::TensorRef;
use keyway_sdk::abi::codes::{dtype as code, tag, tensor_flag};
use keyway_sdk::abi::tensor::{RawArg, RawCall, RawTensor};
use keyway_sdk::half::{bf16, f16};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// What a kernel that makes its own outputs writes to.
pub(crate) struct CallContext {
    pub(crate) made: SmallVec<[Option<TensorRef>; 2]>,
    pub(crate) stated: SmallVec<[(DType, Dims); 1]>,
}

const ZEROS: [usize; 64] = [0; 64];

/// The bytes of a number in the dtype that a kernel computes in.
fn encode(arg: Arg<'_>, dtype: DType) -> [u8; 16] {
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
        code::F16 => put(&f16::from_f64(real).to_ne_bytes()),
        code::BF16 => put(&bf16::from_f64(real).to_ne_bytes()),
        _ if dtype.category() == Category::Integer => {
            put(&integer.to_le_bytes()[..dtype.size()]);
            if cfg!(target_endian = "big") {
                out[..dtype.size()].reverse();
            }
        }
        code::C64 => put(&(real as f32).to_ne_bytes()),
        code::C128 => put(&real.to_ne_bytes()),
        _ => {}
    }
    out
}

/// Tensors, arguments and broadcast shapes that find room on the stack; more than these go to the heap.
const INLINE_TENSORS: usize = 6;
const INLINE_ARGS: usize = 8;

/// Room for values that never move once written.
struct Room<'a, T> {
    slots: &'a mut [MaybeUninit<T>],
    used: usize,
}

impl<T> Room<'_, T> {
    /// Writes the next value and gives its place; null when there is no room, which the count rules out.
    #[inline(always)]
    fn push(&mut self, value: T) -> *mut T {
        let Some(slot) = self.slots.get_mut(self.used) else { return std::ptr::null_mut() };
        self.used += 1;
        slot.write(value)
    }

    fn first(&self) -> *const T {
        self.slots.as_ptr().cast()
    }
}

/// Makes a [`Room`] for `count` values: on this stack if there are at most `inline`.
macro_rules! room {
    ($name:ident: $type:ty, $inline:expr, $count:expr) => {
        let mut stack = [const { MaybeUninit::<$type>::uninit() }; $inline];
        let mut heap: Vec<MaybeUninit<$type>> = Vec::new();
        let slots: &mut [MaybeUninit<$type>] = if $count <= $inline {
            &mut stack
        } else {
            heap.resize_with($count, MaybeUninit::uninit);
            &mut heap
        };
        let mut $name: Room<'_, $type> = Room { slots, used: 0 };
    };
}

/// A number in the place of a tensor, shown in the shape `target` if that is given.
fn raw_number(
    bytes: *const [u8; 16],
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
        flags: tensor_flag::HOST_SCALAR,
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

/// Builds the raw call on this stack and hands it to `run`. With a plan, arguments appear as it says:
/// broadcast to output 0, numbers as 0-d tensors of the compute dtype. Without one they appear as they are.
/// Returns what `run` returned and what the plugin left in the call's context.
#[inline]
pub(crate) fn with_call<R>(
    args: &[Arg<'_>],
    number_slots: u32,
    plan: Option<&Plan>,
    outputs: &[TensorRef],
    n_outputs: usize,
    device: Device,
    run: impl FnOnce(*const RawCall) -> R,
) -> (R, CallContext) {
    let target: &[usize] = plan.and_then(|p| p.outputs.first()).map_or(&[], |o| &o.sizes);
    let target_numel: usize = target.iter().product();
    let (broadcast, compute) = plan.map_or((0, DType::F32), |p| (p.broadcast, p.compute));
    let expands =
        |t: &TensorRef, i: usize| broadcast & (1 << i) != 0 && t.sizes() != target && t.is_strided();

    let (mut tensors, mut expansions) = (n_outputs.max(outputs.len()), 0);
    for (i, arg) in args.iter().enumerate() {
        match arg {
            Arg::Tensor(t) => {
                tensors += 1;
                expansions += usize::from(expands(t, i));
            }
            Arg::Tensors(list) => tensors += list.len(),
            _ => tensors += 1,
        }
    }
    room!(raws: RawTensor, INLINE_TENSORS, tensors);
    room!(pointers: *const RawTensor, INLINE_TENSORS, tensors);
    room!(raw_args: RawArg, INLINE_ARGS, args.len());
    room!(numbers: [u8; 16], INLINE_ARGS, args.len());
    // Given its full capacity first, so that no element moves while pointers into it are held.
    let mut expanded: SmallVec<[Dims; 2]> = SmallVec::new();
    if expansions > 0 {
        expanded.reserve_exact(expansions);
    }
    let mut held: Vec<Box<Holder>> = Vec::new();

    let mut push =
        |raws: &mut Room<'_, RawTensor>, pointers: &mut Room<'_, *const RawTensor>, t: &TensorRef| {
            if let Some(storage) = t.storage() {
                storage.note_use();
                let raw = raws.push(raw_tensor(t));
                pointers.push(raw.cast_const());
                return raw;
            }
            t.components().iter().filter_map(|c| c.storage()).for_each(Storage::note_use);
            held.push(Holder::new(t.clone()));
            pointers.push(held.last().map_or(std::ptr::null(), |h| h.raw()));
            std::ptr::null_mut()
        };

    for (i, arg) in args.iter().enumerate() {
        let as_tensor = number_slots & (1 << i) != 0;
        let plain = |tag, len: usize, value| RawArg { tag, len: len as u32, value };
        let raw = match *arg {
            Arg::Tensor(t) => {
                let raw = push(&mut raws, &mut pointers, t);
                let spread = expands(t, i);
                let host_scalar = t.ndim() == 0 && t.device() != device && t.device() == Device::CPU;
                if spread {
                    expanded.push(expanded_strides(t.sizes(), t.strides(), target));
                }
                // SAFETY: `raw` is null or the place that was written just now, in this function's own room.
                if let Some(raw) = unsafe { raw.as_mut() } {
                    if spread {
                        raw.ndim = target.len() as u32;
                        raw.sizes = target.as_ptr().cast();
                        raw.strides = expanded.last().map_or(std::ptr::null(), |e| e.as_ptr().cast());
                        raw.numel = target_numel as i64;
                        raw.flags = 0;
                    }
                    if host_scalar {
                        raw.flags = tensor_flag::HOST_SCALAR;
                    }
                }
                // The last pointer is that of this tensor, whatever its layout.
                let place = pointers.slots[pointers.used - 1];
                // SAFETY: `push` wrote it just now.
                plain(tag::TENSOR, 0, unsafe { place.assume_init() } as u64)
            }
            Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) if as_tensor => {
                let bytes = numbers.push(encode(*arg, compute));
                let shape = (broadcast & (1 << i) != 0).then_some((target, target_numel));
                let raw = raws.push(raw_number(bytes, compute, device, shape));
                pointers.push(raw.cast_const());
                plain(tag::TENSOR, 0, raw as u64)
            }
            Arg::None => plain(tag::NONE, 0, 0),
            Arg::Tensors(list) => {
                let first = pointers.first().wrapping_add(pointers.used);
                list.iter().for_each(|t| {
                    push(&mut raws, &mut pointers, t);
                });
                plain(tag::TENSORS, list.len(), first as u64)
            }
            Arg::Int(v) => plain(tag::INT, 0, v as u64),
            Arg::Float(v) => plain(tag::FLOAT, 0, v.to_bits()),
            Arg::Bool(v) => plain(tag::BOOL, 0, u64::from(v)),
            Arg::Ints(v) => plain(tag::INTS, v.len(), v.as_ptr().addr() as u64),
            Arg::Floats(v) => plain(tag::FLOATS, v.len(), v.as_ptr().addr() as u64),
            Arg::Str(v) => plain(tag::STR, v.len(), v.as_ptr().addr() as u64),
            Arg::DType(v) => plain(tag::DTYPE, 0, u64::from(v.code())),
        };
        raw_args.push(raw);
    }
    let first_output = pointers.first().wrapping_add(pointers.used);
    if outputs.is_empty() {
        (0..n_outputs).for_each(|_| {
            pointers.push(std::ptr::null());
        });
    } else {
        outputs.iter().for_each(|t| {
            push(&mut raws, &mut pointers, t);
        });
    }

    let mut context = CallContext { made: SmallVec::new(), stated: SmallVec::new() };
    let call = RawCall {
        struct_size: size_of::<RawCall>() as u32,
        n_args: args.len() as u32,
        args: raw_args.first(),
        outputs: first_output,
        n_outputs: n_outputs as u32,
        reserved: 0,
        stream: current_stream(device),
        host: super::host::table(),
        context: (&raw mut context).cast(),
    };
    let result = run(&call);
    (result, context)
}
