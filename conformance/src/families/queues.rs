//! Long queues of an asynchronous device: more commands than its queue may have room for are submitted before one result is
//! read, while the device is busy with earlier work. None may be lost.

use super::{Context, Family, Scope, has_out, preferred, tensors};
use crate::case::Case;
use crate::memory::Arrangement;
use crate::outcome::{Failure, Steps, Stop};
use crate::target::Service;
use keyway::dispatcher::Error as DispatchError;
use keyway::dispatcher::call;
use keyway::dispatcher::device::{self as api, Event, Stream};
use keyway::dispatcher::memory::{Storage, copy_bytes_async, read_bytes, write_bytes};
use keyway::dispatcher::op::{Args, Out};
use keyway::dispatcher::tensor::TensorImpl;
use keyway::{DType, Device, Tensor};
use std::time::{Duration, Instant};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "queues",
    about: "10,000 commands of each kind on an asynchronous device before one result is read",
    cases,
    run,
};

/// The variants about the device itself.
const COPIES: &str = "copies";
const EVENTS: &str = "events";
/// The number of commands before one result is read.
const COMMANDS: usize = 10_000;
/// Streams that share the commands of [`EVENTS`].
const STREAMS: usize = 4;
/// The bytes of the copies that keep the device busy meanwhile.
const BUSY: usize = 16 << 20;
/// The longest time that the device is busy with earlier work.
const LONGEST: Duration = Duration::from_secs(1);
/// Ops of a quick run.
const QUICK: usize = 3;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let device = scope.target.device;
    if !api::properties(device).is_ok_and(|p| p.asynchronous) {
        return;
    }
    [COPIES, EVENTS].iter().for_each(|variant| cases.push(Case::about(FAMILY.name, device.name(), *variant)));
    let mut listed = 0;
    for op in scope.ops.iter().filter(|op| has_out(op.def) && !op.def.rule.is_view()) {
        let Ok(entry) = op.def.entry() else { continue };
        let kernel = |dtype: &DType| {
            op.def.dtypes.has(*dtype) && scope.target.service(entry, *dtype) == Service::Kernel
        };
        let Some(dtype) = preferred(op.def).filter(kernel).or_else(|| DType::REAL.into_iter().find(kernel))
        else {
            continue;
        };
        let count = |nth: &usize| {
            tensors(&op.samples[*nth]).map(|t| t.sizes.iter().product::<usize>()).sum::<usize>()
        };
        let Some(nth) = super::full(&op.samples).into_iter().min_by_key(count) else { continue };
        listed += 1;
        if !scope.quick || listed <= QUICK {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let device = context.target.device;
    match context.case.variant.as_str() {
        COPIES => copies(device),
        EVENTS => events(device),
        _ => calls(context),
    }
}

/// Work that keeps the device busy while commands are queued after it.
struct Ahead {
    device: Device,
    from: Storage,
    to: Storage,
    /// The duration of one copy on the device.
    each: Duration,
}

impl Ahead {
    fn new(device: Device) -> Result<Ahead, DispatchError> {
        let (from, to) = (Storage::allocate(device, BUSY)?, Storage::allocate(device, BUSY)?);
        write_bytes(&from, 0, &vec![0; BUSY])?;
        copy_bytes_async(&to, 0, &from, 0, BUSY)?;
        api::synchronize(device)?;
        let begun = Instant::now();
        copy_bytes_async(&to, 0, &from, 0, BUSY)?;
        api::synchronize(device)?;
        let each = begun.elapsed().max(Duration::from_micros(10));
        Ok(Ahead { device, from, to, each })
    }

    /// Submits commands, first without other work, then while the device is busy for as long as their submission took. Each
    /// time the initial state is that after `prepare`.
    fn behind(&self, prepare: impl Fn() -> Steps, give: impl Fn() -> Steps) -> Steps {
        prepare()?;
        api::synchronize(self.device)?;
        let begun = Instant::now();
        give()?;
        let wanted = (begun.elapsed() * 2).min(LONGEST);
        api::synchronize(self.device)?;
        prepare()?;
        api::synchronize(self.device)?;
        let copies = wanted.as_nanos() / self.each.as_nanos().max(1) + 1;
        for _ in 0..copies {
            copy_bytes_async(&self.to, 0, &self.from, 0, BUSY)?;
        }
        give()
    }
}

fn lost(what: &str, nth: usize, expected: &[u8], got: &[u8]) -> Stop {
    let (expected, got) = (format!("{expected:?}"), format!("{got:?}"));
    Failure::new(format!("{what} {nth} of {COMMANDS} that were queued before one read"), expected, got).into()
}

/// Copies of four bytes, each to a separate address.
fn copies(device: Device) -> Steps {
    let bytes = |nth: usize| ((nth as u32).wrapping_mul(0x9E37_79B1) | 1).to_ne_bytes();
    let all: Vec<u8> = (0..COMMANDS).flat_map(bytes).collect();
    let (from, to) = (Storage::allocate(device, all.len())?, Storage::allocate(device, all.len())?);
    write_bytes(&from, 0, &all)?;
    Ahead::new(device)?.behind(
        || Ok(write_bytes(&to, 0, &vec![0; all.len()])?),
        || Ok((0..COMMANDS).try_for_each(|nth| copy_bytes_async(&to, 4 * nth, &from, 4 * nth, 4))?),
    )?;
    let mut got = vec![0; all.len()];
    read_bytes(&to, 0, &mut got)?;
    let (expected, got) = (all.chunks_exact(4), got.chunks_exact(4));
    match expected.zip(got).enumerate().find(|(_, (expected, got))| expected != got) {
        None => Ok(()),
        Some((nth, (expected, got))) => Err(lost("copy", nth, expected, got)),
    }
}

/// Copies along a chain, each on another stream than the previous one, after an event of it.
fn events(device: Device) -> Steps {
    let streams = (0..STREAMS).map(|_| Stream::new(device)).collect::<Result<Vec<_>, _>>()?;
    let links = COMMANDS / 3;
    let chain = Storage::allocate(device, 4 * (links + 1))?;
    let value = [1, 2, 3, 4];
    let prepare = || -> Steps {
        write_bytes(&chain, 0, &vec![0; 4 * (links + 1)])?;
        Ok(write_bytes(&chain, 0, &value)?)
    };
    Ahead::new(device)?.behind(prepare, || {
        let mut before: Option<Event> = None;
        for nth in 0..links {
            let stream = &streams[nth % STREAMS];
            if let Some(before) = before.take() {
                stream.wait(&before)?;
            }
            {
                let _inside = stream.enter();
                copy_bytes_async(&chain, 4 * (nth + 1), &chain, 4 * nth, 4)?;
            }
            let event = Event::new(device)?;
            event.record(stream)?;
            before = Some(event);
        }
        Ok(())
    })?;
    api::synchronize(device)?;
    let mut got = [0; 4];
    read_bytes(&chain, 4 * links, &mut got)?;
    if got == value { Ok(()) } else { Err(lost("copy, wait or record", links, &value, &got)) }
}

/// Calls of one kernel, each into a separate part of the same memory.
fn calls(context: &Context<'_>) -> Steps {
    let (device, op) = (context.target.device, context.entry()?);
    let prepared = context.place(&context.inputs()?.1)?;
    let made = context.call(&prepared)?;
    let results = made.iter().map(|t| Slots::new(t, device)).collect::<keyway::Result<Vec<_>>>()?;
    let outs: Vec<Vec<&Tensor>> =
        (0..COMMANDS).map(|nth| results.iter().map(|slots| &slots.tensors[nth]).collect()).collect();
    let give = || -> Steps {
        prepared.with_args(&prepared.tensors(), |values| {
            outs.iter().try_for_each(|outs| {
                let given: Vec<_> = outs.iter().map(|t| t.as_ref()).collect();
                let called = call::call(Args { op, values }, Out::Given(&given));
                called.map(drop).map_err(|error| context.refused(keyway::Error::from(error)))
            })
        })
    };
    let prepare = || results.iter().try_for_each(Slots::clear);
    Ahead::new(device)?.behind(prepare, give)?;
    results.iter().try_for_each(Slots::check)
}

/// Room for the results of all calls.
struct Slots {
    storage: Storage,
    /// The distance in bytes from one part to the next.
    step: usize,
    tensors: Vec<Tensor>,
    expected: Vec<u8>,
}

impl Slots {
    fn new(like: &Tensor, device: Device) -> keyway::Result<Slots> {
        let expected = like.to_bytes()?;
        // Aligned as an allocation is.
        let step = expected.len().next_multiple_of(64).max(64);
        let storage = Storage::allocate(device, step * COMMANDS)?;
        let (dtype, sizes) = (like.dtype(), like.shape());
        let strides = Arrangement::Contiguous.strides(sizes);
        let tensor = |nth: usize| {
            let offset = nth * step / dtype.size();
            Ok(Tensor::from_ref(TensorImpl::strided(storage.clone(), offset, sizes, &strides, dtype)?))
        };
        let tensors = (0..COMMANDS).map(tensor).collect::<keyway::Result<_>>()?;
        Ok(Slots { storage, step, tensors, expected })
    }

    fn clear(&self) -> Steps {
        Ok(write_bytes(&self.storage, 0, &vec![0xA5; self.storage.bytes()])?)
    }

    fn check(&self) -> Steps {
        let mut got = vec![0; self.storage.bytes()];
        read_bytes(&self.storage, 0, &mut got)?;
        let each = got.chunks_exact(self.step).map(|slot| &slot[..self.expected.len()]);
        match each.enumerate().find(|(_, got)| *got != self.expected) {
            None => Ok(()),
            Some((nth, got)) => Err(lost("call", nth, &self.expected, got)),
        }
    }
}
