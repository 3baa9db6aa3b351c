//! `adam_step` and `sgd_step`: optimizer steps, one launch for as many tensors as fit the kernel's parameters.

use super::elements::Taken;
use super::launch::launch;
use super::scratch::{On, copy};
use super::space::Laid;
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error, Group};

family!("step");

/// `MOST` and `CHUNK` in step.cu.
const MOST: usize = 88;
const CHUNK: usize = 8192;
const THREADS: u32 = 256;

/// `Tensors` in step.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Tensors {
    count: [u64; MOST],
    end: [u32; MOST],
}

/// `Number` in step.cu.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Number {
    data: u64,
    value: f64,
}

/// `AdamStep` in step.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct AdamArgument {
    tensors: Tensors,
    changed: [[u64; MOST]; 3],
    grad: [u64; MOST],
    numbers: [f64; 6],
    eps: Number,
    rate: Number,
}
// SAFETY: `AdamStep` has these fields.
unsafe impl Argument for AdamArgument {}

/// `SgdStep` in step.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SgdArgument {
    tensors: Tensors,
    changed: [[u64; MOST]; 2],
    grad: [u64; MOST],
    numbers: [f64; 6],
    flags: [u32; 4],
}
// SAFETY: `SgdStep` has these fields.
unsafe impl Argument for SgdArgument {}

// The maximum size of kernel parameters on all supported GPUs.
const _: () = assert!(size_of::<AdamArgument>() <= 4096 && size_of::<SgdArgument>() <= 4096);

/// The tensors of one launch.
struct Part<const W: usize> {
    tensors: Tensors,
    changed: [[u64; MOST]; W],
    grad: [u64; MOST],
    blocks: usize,
}

/// The nonempty tensors, split into parts of one launch each.
fn parts<const W: usize>(groups: &[Group<W>]) -> Result<Vec<Part<W>>, Error> {
    let full: Vec<&Group<W>> = groups.iter().filter(|group| group.count > 0).collect();
    let part = |groups: &[&Group<W>]| {
        let tensors = Tensors { count: [0; MOST], end: [u32::MAX; MOST] };
        let mut part = Part { tensors, changed: [[0; MOST]; W], grad: [0; MOST], blocks: 0 };
        for (nth, group) in groups.iter().enumerate() {
            part.blocks += group.count.div_ceil(CHUNK);
            let end = u32::try_from(part.blocks).ok().filter(|&end| end <= i32::MAX as u32);
            part.tensors.end[nth] = end.ok_or_else(|| Error::Unsupported {
                what: format!("{} elements in one step, on this device", part.blocks * CHUNK),
            })?;
            part.tensors.count[nth] = group.count as u64;
            part.grad[nth] = group.read.addr() as u64;
            for (list, pointer) in part.changed.iter_mut().zip(group.changed) {
                list[nth] = pointer.addr() as u64;
            }
        }
        Ok(part)
    };
    full.chunks(MOST).map(part).collect()
}

/// Runs a step on the lists of a call: copies tensors that are not updated in place, then launches each part.
fn step<const W: usize, A: Argument>(
    call: &Call<'_>,
    kernel: Kernel,
    changed: [usize; W],
    argument: impl Fn(&Part<W>) -> A,
) -> Result<(), Error> {
    let found = call.groups(changed, 1)?;
    let parts = parts(&found.groups)?;
    let on: On = match call.n_outputs() {
        0 => return Ok(()),
        _ => (device_of(call)?, call.stream()),
    };
    for (from, to) in &found.apart {
        let (from, to) = (Laid::new(from, Taken::Raw)?, Laid::new(to, Taken::Raw)?);
        copy(on, to.bytes, &to.sizes, (to.operand, &to.strides), (from.operand, &from.strides))?;
    }
    for part in &parts {
        let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
        launch(on.0, kernel, entry, ([part.blocks, 1], THREADS), &argument(part), on.1)?;
    }
    Ok(())
}

/// A scalar by value, or by address.
fn number(call: &Call<'_>, index: usize) -> Result<Number, Error> {
    let tensor = call.tensor(index)?;
    if let Some(value) = tensor.number() {
        return Ok(Number { data: 0, value });
    }
    if tensor.is_host_scalar() {
        let value = tensor.view::<f64>()?.get(&[]).unwrap_or(f64::NAN);
        return Ok(Number { data: 0, value });
    }
    Ok(Number { data: tensor.data_ptr().addr() as u64, value: 0.0 })
}

fn adam(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let [beta1, beta2, decay, shrink] = [call.float(4)?, call.float(5)?, call.float(8)?, call.float(9)?];
    let (eps, rate) = (number(call, 6)?, number(call, 7)?);
    step(call, kernel, [0, 2, 3], |part| AdamArgument {
        tensors: part.tensors,
        changed: part.changed,
        grad: part.grad,
        numbers: [beta1, beta2, 1.0 - beta1, 1.0 - beta2, decay, shrink],
        eps,
        rate,
    })
}

fn sgd(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let [lr, momentum, dampening, weight_decay] =
        [call.float(3)?, call.float(4)?, call.float(5)?, call.float(6)?];
    let (nesterov, first) = (call.bool(7)?, call.bool(8)?);
    let has_buffers = !call.tensors(2)?.is_empty();
    let share = if first { 1.0 } else { 1.0 - dampening };
    // The update is the buffer alone, or has the gradient as a separate addend.
    let apart = nesterov || !has_buffers;
    let numbers = [
        momentum,
        share,
        share * weight_decay,
        if apart { 1.0 - lr * weight_decay } else { 1.0 },
        if apart { lr } else { 0.0 },
        if apart { lr * momentum } else { lr },
    ];
    let flags = [u32::from(has_buffers), u32::from(has_buffers && !first), u32::from(apart), 0];
    if has_buffers {
        return step(call, kernel, [0, 2], |part| SgdArgument {
            tensors: part.tensors,
            changed: part.changed,
            grad: part.grad,
            numbers,
            flags,
        });
    }
    step(call, kernel, [0], |part| SgdArgument {
        tensors: part.tensors,
        changed: [part.changed[0], [0; MOST]],
        grad: part.grad,
        numbers,
        flags,
    })
}
