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

/// What a kernel that makes its own outputs writes to.
pub(crate) struct CallContext {
    pub(crate) made: SmallVec<[Option<TensorRef>; 2]>,
    pub(crate) stated: SmallVec<[(DType, Dims); 1]>,
}

type Pointers = SmallVec<[*const RawTensor; 6]>;

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

/// Builds the raw call on this stack and hands it to `run`. With a plan, arguments appear as it says:
/// broadcast to output 0, numbers as 0-d tensors of the compute dtype. Without one they appear as they are.
/// Returns what `run` returned and what the plugin left in the call's context.
pub(crate) fn with_call<R>(
    args: &[Arg<'_>],
    number_slots: u32,
    plan: Option<&Plan>,
    outputs: &[TensorRef],
    n_outputs: usize,
    device: Device,
    run: impl FnOnce(*const RawCall) -> R,
) -> (R, CallContext) {
    let tensors: usize = args
        .iter()
        .map(|arg| match arg {
            Arg::Tensors(list) => list.len(),
            _ => 1,
        })
        .sum();
    let target: &[usize] = plan.and_then(|p| p.outputs.first()).map_or(&[], |o| &o.sizes);
    let target_numel: usize = target.iter().product();
    let (broadcast, compute) = plan.map_or((0, DType::F32), |p| (p.broadcast, p.compute));

    // Pointers into these are taken below, so they are given their full capacity first.
    let mut expanded: SmallVec<[Dims; 2]> = SmallVec::new();
    let mut numbers: SmallVec<[[u8; 16]; 2]> = SmallVec::with_capacity(args.len());
    let mut raws: SmallVec<[RawTensor; 6]> = SmallVec::with_capacity(tensors + outputs.len());
    let mut held: Vec<Box<Holder>> = Vec::new();
    let needs_expansion = |t: &TensorRef, i: usize| broadcast & (1 << i) != 0 && t.sizes() != target && t.is_strided();
    let expansions = args
        .iter()
        .enumerate()
        .filter(|(i, arg)| matches!(arg, Arg::Tensor(t) if needs_expansion(t, *i)))
        .count();
    expanded.reserve_exact(expansions);

    let mut pointers: Pointers = SmallVec::with_capacity(tensors + outputs.len());
    let mut push = |raws: &mut SmallVec<[RawTensor; 6]>, pointers: &mut Pointers, tensor: &TensorRef| {
        if let Some(storage) = tensor.storage() {
            storage.note_use();
            raws.push(raw_tensor(tensor));
            pointers.push(raws.last().map_or(std::ptr::null(), std::ptr::from_ref));
        } else {
            tensor.components().iter().filter_map(|c| c.storage()).for_each(Storage::note_use);
            held.push(Holder::new(tensor.clone()));
            pointers.push(held.last().map_or(std::ptr::null(), |h| h.raw()));
        }
    };

    let mut raw_args: SmallVec<[RawArg; 8]> = SmallVec::with_capacity(args.len());
    for (i, arg) in args.iter().enumerate() {
        let number_as_tensor =
            number_slots & (1 << i) != 0 && matches!(arg, Arg::Int(_) | Arg::Float(_) | Arg::Bool(_));
        let (tag, len, value) = match *arg {
            _ if number_as_tensor => {
                numbers.push(encode(*arg, compute));
                let spread = broadcast & (1 << i) != 0;
                raws.push(RawTensor {
                    struct_size: size_of::<RawTensor>() as u32,
                    ndim: if spread { target.len() as u32 } else { 0 },
                    dtype: compute.code(),
                    layout: 0,
                    device: device.kind,
                    device_index: device.index,
                    flags: tensor_flag::HOST_SCALAR,
                    n_components: 0,
                    data: numbers.last().map_or(std::ptr::null_mut(), |n| n.as_ptr().cast_mut().cast::<c_void>()),
                    sizes: target.as_ptr().cast(),
                    strides: ZEROS.as_ptr().cast(),
                    numel: if spread { target_numel as i64 } else { 1 },
                    handle: std::ptr::null(),
                    components: std::ptr::null(),
                    attrs: std::ptr::null(),
                    n_attrs: 0,
                    reserved: 0,
                });
                pointers.push(raws.last().map_or(std::ptr::null(), std::ptr::from_ref));
                (tag::TENSOR, 1, 0)
            }
            Arg::None => (tag::NONE, 0, 0),
            Arg::Tensor(t) => {
                push(&mut raws, &mut pointers, t);
                if let (true, Some(raw)) = (t.is_strided(), raws.last_mut()) {
                    if needs_expansion(t, i) {
                        expanded.push(expanded_strides(t.sizes(), t.strides(), target));
                        raw.ndim = target.len() as u32;
                        raw.sizes = target.as_ptr().cast();
                        raw.strides = expanded.last().map_or(std::ptr::null(), |e| e.as_ptr().cast());
                        raw.numel = target_numel as i64;
                        raw.flags = 0;
                    }
                    if t.device() != device && t.ndim() == 0 && t.device() == Device::CPU {
                        raw.flags = tensor_flag::HOST_SCALAR;
                    }
                }
                (tag::TENSOR, 1, 0)
            }
            Arg::Tensors(list) => {
                list.iter().for_each(|t| push(&mut raws, &mut pointers, t));
                (tag::TENSORS, list.len() as u32, 0)
            }
            Arg::Int(v) => (tag::INT, 0, v as u64),
            Arg::Float(v) => (tag::FLOAT, 0, v.to_bits()),
            Arg::Bool(v) => (tag::BOOL, 0, u64::from(v)),
            Arg::Ints(v) => (tag::INTS, v.len() as u32, v.as_ptr().addr() as u64),
            Arg::Floats(v) => (tag::FLOATS, v.len() as u32, v.as_ptr().addr() as u64),
            Arg::Str(v) => (tag::STR, v.len() as u32, v.as_ptr().addr() as u64),
            Arg::DType(v) => (tag::DTYPE, 0, u64::from(v.code())),
        };
        raw_args.push(RawArg { tag, len, value });
    }
    outputs.iter().for_each(|t| push(&mut raws, &mut pointers, t));

    // All vectors have their final place: the addresses in the arguments can be filled in.
    let mut at = 0;
    for arg in &mut raw_args {
        match arg.tag {
            tag::TENSOR => {
                arg.value = pointers[at] as u64;
                arg.len = 0;
                at += 1;
            }
            tag::TENSORS => {
                arg.value = pointers[at..].as_ptr() as u64;
                at += arg.len as usize;
            }
            _ => {}
        }
    }
    let none: SmallVec<[*const RawTensor; 2]> = SmallVec::from_elem(std::ptr::null(), n_outputs);
    let mut context = CallContext { made: SmallVec::new(), stated: SmallVec::new() };
    let call = RawCall {
        struct_size: size_of::<RawCall>() as u32,
        n_args: raw_args.len() as u32,
        args: raw_args.as_ptr(),
        outputs: if outputs.is_empty() { none.as_ptr() } else { pointers[at..].as_ptr() },
        n_outputs: n_outputs as u32,
        reserved: 0,
        stream: current_stream(device),
        host: super::host::table(),
        context: (&raw mut context).cast(),
    };
    let result = run(&call);
    (result, context)
}
