//! The device interface: memory of every size, pinned memory, synchronous and asynchronous copies in all directions,
//! streams and events, running out of memory, statistics.

use super::{Context, Family, Scope};
use crate::array::{Array, Number};
use crate::call::Prepared;
use crate::case::Case;
use crate::oracle::{self, Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use crate::process::resident;
use keyway::Device;
use keyway::dispatcher::Error as DispatchError;
use keyway::dispatcher::device::{self as api, Event, Stream, memory_stats};
use keyway::dispatcher::memory::{Storage, copy_bytes, copy_bytes_async, read_bytes, write_bytes};
use std::process::id;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "device",
    about: "allocation, pinned memory, copies, streams, events, out of memory, statistics",
    cases,
    run,
};

const VARIANTS: [&str; 16] = [
    "sizes",
    "alignment",
    "round_trip",
    "copy_within",
    "copy_between",
    "streams",
    "events",
    "order",
    "synchronize",
    "kernels_on_a_stream",
    "out_of_memory",
    "statistics",
    "pinned",
    "async_copies",
    "staged_copies",
    "copies_kept",
];

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let name = scope.target.device.name();
    cases.extend(VARIANTS.iter().map(|variant| Case::about(FAMILY.name, name, *variant)));
}

/// Sizes in bytes around the granularity of allocators.
const SIZES: [usize; 12] = [0, 1, 2, 63, 64, 65, 511, 4095, 4096, 4097, 100_003, 3 << 20];

/// Bytes copied to the device and back, and number of copies: if each retained its bytes in host memory, the process would grow
/// by 80 MiB.
const COPIED: usize = 2 << 20;
const ROUND_TRIPS: usize = 40;

fn pattern(bytes: usize, salt: u8) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(31).wrapping_add(salt)).collect()
}

fn expect(storage: &Storage, offset: usize, expected: &[u8], what: &str) -> Steps {
    let mut got = vec![0; expected.len()];
    read_bytes(storage, offset, &mut got)?;
    match (0..got.len()).find(|&i| got[i] != expected[i]) {
        None => Ok(()),
        Some(i) => Err(Failure::new(
            format!("{what}: byte {i} of {}", got.len()),
            expected[i].to_string(),
            got[i].to_string(),
        )
        .into()),
    }
}

fn run(context: &Context<'_>) -> Steps {
    let device = context.target.device;
    match context.case.variant.as_str() {
        "sizes" => {
            // All are alive together, so that two that share memory are detected.
            let made: Vec<(Storage, Vec<u8>)> = SIZES
                .iter()
                .enumerate()
                .map(|(nth, &bytes)| {
                    let storage = Storage::allocate(device, bytes)?;
                    let values = pattern(bytes, nth as u8);
                    write_bytes(&storage, 0, &values)?;
                    Ok((storage, values))
                })
                .collect::<Result<_, DispatchError>>()?;
            made.iter().try_for_each(|(s, values)| expect(s, 0, values, "memory of several sizes"))
        }
        "alignment" => SIZES.iter().filter(|&&bytes| bytes > 0).try_for_each(|&bytes| {
            let storage = Storage::allocate(device, bytes)?;
            let address = storage.pointer().as_ptr() as usize;
            if address.is_multiple_of(64) {
                return Ok(());
            }
            Err(Failure::new(
                format!("the address of {bytes} bytes"),
                "a multiple of 64",
                format!("{address:#x}"),
            )
            .into())
        }),
        "round_trip" => SIZES.iter().try_for_each(|&bytes| {
            let storage = Storage::allocate(device, bytes)?;
            let values = pattern(bytes, 7);
            write_bytes(&storage, 0, &values)?;
            // In two parts, split at an odd offset.
            let middle = bytes / 3;
            expect(&storage, middle, &values[middle..], "the second part read alone")?;
            expect(&storage, 0, &values, "written and read back")
        }),
        "copy_within" => copy(device, device),
        "copy_between" => {
            let (count, _) = api::server(device.kind).map_or((0, String::new()), api::count);
            copy(device, Device::CPU)?;
            copy(Device::CPU, device)?;
            (1..count).try_for_each(|index| {
                let other = Device { kind: device.kind, index: index as u16 };
                copy(device, other)?;
                copy(other, device)
            })
        }
        "streams" => {
            let stream = Stream::new(device)?;
            let storage = {
                let _inside = stream.enter();
                let storage = Storage::allocate(device, 4096)?;
                write_bytes(&storage, 0, &pattern(4096, 3))?;
                storage
            };
            stream.synchronize()?;
            expect(&storage, 0, &pattern(4096, 3), "written on a stream of its own")
        }
        "events" => {
            let (first, second) = (Stream::new(device)?, Stream::new(device)?);
            let event = Event::new(device)?;
            event.record(&first)?;
            second.wait(&event)?;
            event.synchronize()?;
            second.synchronize()?;
            if event.is_done()? {
                return Ok(());
            }
            Err(Failure::new("an event that was waited for", "done", "not done").into())
        }
        "order" => at_each_length(device, |work| {
            // Work before an event on one stream is finished before work after it on another.
            let (first, second) = (Stream::new(device)?, Stream::new(device)?);
            let event = Event::new(device)?;
            // Into pinned memory, so that no host function waits.
            let copied = Storage::allocate_pinned(device, BUSY)?;
            let source = work.start(&first)?;
            event.record(&first)?;
            second.wait(&event)?;
            {
                let _inside = second.enter();
                copy_bytes_async(&copied, 0, &source, 0, BUSY)?;
            }
            second.synchronize()?;
            expect(&copied, 0, &pattern(BUSY, LAST), "copied after an event")
        }),
        "synchronize" => at_each_length(device, |work| {
            let stream = Stream::new(device)?;
            let event = Event::new(device)?;
            for way in ["the stream was", "the event was", "the device was"] {
                let _kept = work.start(&stream)?;
                event.record(&stream)?;
                match way {
                    "the stream was" => stream.synchronize()?,
                    "the event was" => event.synchronize()?,
                    _ => api::synchronize(device)?,
                }
                if !event.is_done()? {
                    let what = format!("work that came before, when {way} waited for");
                    return Err(Failure::new(what, "done", "not done").into());
                }
            }
            Ok(())
        }),
        "kernels_on_a_stream" => kernels_on_a_stream(context, device),
        "out_of_memory" => {
            let small = Storage::allocate(device, 1000)?;
            write_bytes(&small, 0, &pattern(1000, 5))?;
            match Storage::allocate(device, 1 << 60) {
                Err(DispatchError::OutOfMemory { .. }) => {}
                Err(other) => {
                    let got = other.to_string();
                    return Err(Failure::new("2^60 bytes", "an error of kind out of memory", got).into());
                }
                Ok(_) => return Err(Failure::new("2^60 bytes", "out of memory", "an allocation").into()),
            }
            let next = Storage::allocate(device, 1000)?;
            write_bytes(&next, 0, &pattern(1000, 6))?;
            expect(&small, 0, &pattern(1000, 5), "memory from before")?;
            expect(&next, 0, &pattern(1000, 6), "memory from after")
        }
        "statistics" => {
            // An asynchronous device frees when its work is done.
            let now = || api::synchronize(device).and_then(|()| memory_stats(device));
            let Some(before) = now()? else { return Ok(()) };
            let held: Vec<Storage> =
                (0..5).map(|_| Storage::allocate(device, 10_000)).collect::<Result<_, _>>()?;
            let during = now()?.unwrap_or_default();
            drop(held);
            let after = now()?.unwrap_or_default();
            let grown = during.in_use.saturating_sub(before.in_use);
            if !(50_000..=5 * 65_536).contains(&grown) {
                let got = format!("{grown} bytes more in use");
                return Err(
                    Failure::new("five tensors of 10,000 bytes", "50,000 bytes, rounded up", got).into()
                );
            }
            if after.in_use != before.in_use {
                let (before, after) = (before.in_use.to_string(), after.in_use.to_string());
                return Err(Failure::new("bytes in use when all is freed", before, after).into());
            }
            Ok(())
        }
        "pinned" => {
            // All are alive together; a device without pinned memory returns plain memory.
            let made = SIZES
                .iter()
                .map(|&bytes| {
                    let storage = Storage::allocate_pinned(device, bytes)?;
                    write_bytes(&storage, 0, &pattern(bytes, 13))?;
                    Ok((storage, bytes))
                })
                .collect::<Result<Vec<_>, DispatchError>>()?;
            made.iter().try_for_each(|(s, bytes)| expect(s, 0, &pattern(*bytes, 13), "pinned memory"))?;
            drop(made);
            api::empty_cache(device)?;
            let cached = api::pinned_stats(device)?.cached;
            if cached == 0 {
                return Ok(());
            }
            let got = format!("{cached} bytes");
            Err(Failure::new("pinned memory that is cached after `empty_cache`", "none", got).into())
        }
        "async_copies" => SIZES.iter().try_for_each(|&bytes| {
            let stream = Stream::new(device)?;
            let (up, down) =
                (Storage::allocate_pinned(device, bytes)?, Storage::allocate_pinned(device, bytes)?);
            write_bytes(&up, 0, &pattern(bytes, 17))?;
            let there = {
                let _inside = stream.enter();
                let there = Storage::allocate(device, bytes)?;
                copy_bytes_async(&there, 0, &up, 0, bytes)?;
                // The source's memory may be released: it is reused only after the copy.
                drop(up);
                let other = Storage::allocate_pinned(device, bytes)?;
                write_bytes(&other, 0, &vec![0xEE; bytes])?;
                copy_bytes_async(&down, 0, &there, 0, bytes)?;
                there
            };
            stream.synchronize()?;
            expect(&down, 0, &pattern(bytes, 17), "queued to the device and back")?;
            expect(&there, 0, &pattern(bytes, 17), "queued to the device")
        }),
        "copies_kept" => {
            let there = Storage::allocate(device, COPIED)?;
            let mut values = pattern(COPIED, 23);
            let mut copy = || -> Steps {
                write_bytes(&there, 0, &values)?;
                Ok(read_bytes(&there, 0, &mut values)?)
            };
            (0..3).try_for_each(|_| copy())?;
            let before = resident(id());
            (0..ROUND_TRIPS).try_for_each(|_| copy())?;
            let grown = resident(id()).saturating_sub(before);
            if grown > (COPIED * ROUND_TRIPS / 2) as u64 {
                let what = format!(
                    "the process grew in {ROUND_TRIPS} copies of {COPIED} bytes to the device and back"
                );
                return Err(Failure::new(what, "no growth", format!("{grown} bytes more")).into());
            }
            Ok(())
        }
        "staged_copies" => {
            // Larger than the chunk of copies between kinds of devices, and not a multiple of it.
            let bytes = (9 << 20) + 7;
            let values = pattern(bytes, 19);
            let source = Storage::allocate(device, bytes)?;
            write_bytes(&source, 0, &values)?;
            for other in api_kinds(device) {
                let there = Storage::allocate(other, bytes)?;
                copy_bytes(&there, 0, &source, 0, bytes)?;
                let back = Storage::allocate(device, bytes)?;
                copy_bytes(&back, 0, &there, 0, bytes)?;
                expect(&back, 0, &values, &format!("{bytes} bytes to {other} and back"))?;
            }
            Ok(())
        }
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}

/// The bytes of each copy that keeps a stream busy, and the number of sources.
const BUSY: usize = 1 << 20;
const COPIES: u8 = 24;
const LAST: u8 = COPIES - 1;

/// The bytes of the copies before them: the test is repeated with larger ones, because this thread may be preempted for the
/// duration of a copy, and then a device that does not wait is indistinguishable from one that does.
const AHEAD: [usize; 5] = [0, 4 << 20, 16 << 20, 64 << 20, 128 << 20];
const COPIES_AHEAD: usize = 4;

/// Work that occupies a stream for a while.
struct Work {
    device: Device,
    sources: Vec<Storage>,
    /// The target and the source of the copies that go ahead.
    ahead: (Storage, Storage),
}

impl Work {
    /// Submits the work; after it the memory contains `pattern(BUSY, LAST)`.
    fn start(&self, stream: &Stream) -> Result<Storage, DispatchError> {
        let _inside = stream.enter();
        let target = Storage::allocate(self.device, BUSY)?;
        self.overwrite(&target)?;
        Ok(target)
    }

    /// Copies every source to the memory, on the stream that this thread has entered.
    fn overwrite(&self, target: &Storage) -> Result<(), DispatchError> {
        let (to, from) = &self.ahead;
        (0..COPIES_AHEAD).try_for_each(|_| copy_bytes_async(to, 0, from, 0, from.bytes()))?;
        self.sources.iter().try_for_each(|source| copy_bytes_async(target, 0, source, 0, BUSY))
    }
}

fn at_each_length(device: Device, check: impl Fn(&Work) -> Steps) -> Steps {
    at_each_length_of(device, |salt| pattern(BUSY, salt), check)
}

/// Checks copies after work of each length, whose sources contain `bytes(0)` to `bytes(LAST)`.
fn at_each_length_of(device: Device, bytes: impl Fn(u8) -> Vec<u8>, check: impl Fn(&Work) -> Steps) -> Steps {
    // Created before, so that the host does not take longer than the device.
    let sources = (0..COPIES)
        .map(|salt| {
            let source = Storage::allocate_pinned(device, BUSY)?;
            write_bytes(&source, 0, &bytes(salt))?;
            Ok(source)
        })
        .collect::<Result<Vec<_>, DispatchError>>()?;
    let ahead = |bytes| Ok((Storage::allocate(device, bytes)?, Storage::allocate_pinned(device, bytes)?));
    let mut work = Work { device, sources, ahead: ahead(0)? };
    for bytes in AHEAD {
        work.ahead = match ahead(bytes) {
            // A device with less memory is tested with less work.
            Err(DispatchError::OutOfMemory { .. }) => break,
            other => other?,
        };
        check(&work)?;
    }
    Ok(())
}

/// Checks that a kernel runs on its thread's current stream, after the stream's earlier work.
fn kernels_on_a_stream(context: &Context<'_>, device: Device) -> Steps {
    let names = ["add", "mul", "exp"];
    let kernel =
        context.target.kernels.iter().find(|k| {
            k.device == device.kind && k.dtype == keyway::DType::F32.code() && names.contains(&k.op)
        });
    let Some(kernel) = kernel else { return Ok(()) };
    let Some(def) = keyway::ops::all().find(|def| def.name() == kernel.op) else { return Ok(()) };
    let sizes = vec![BUSY / 4];
    let values = |salt: u8| {
        let bytes = (0..sizes[0]).map(move |i| f64::from(((i * 7 + salt as usize) % 61) as u16) / 64.0);
        Array::new(keyway::DType::F32, sizes.clone(), bytes.map(Number::Float).collect())
    };
    let one = |array: Array| {
        let count = (def.schema.matches("Tensor").count() - 1).max(1);
        let mut all = vec![Value::Array(array); count];
        let sample = crate::inputs::of_sample(&(def.samples)()[0].args, keyway::DType::F32, 0);
        all.extend(sample.0.into_iter().skip(count));
        Inputs(all)
    };
    let expected = oracle::find(def.name())
        .and_then(|oracle| oracle(&one(values(LAST))).ok())
        .ok_or_else(|| Stop::Skipped("the op has no oracle".to_string()))?;
    let bytes = |salt: u8| {
        values(salt).values.iter().flat_map(|&v| crate::encode::bytes(v, keyway::DType::F32)).collect()
    };
    at_each_length_of(device, bytes, |work| {
        let stream = Stream::new(device)?;
        let prepared = Prepared::bare(&one(values(0)), device)?;
        let made = {
            let _inside = stream.enter();
            // Overwritten repeatedly, and correct only at the end.
            prepared
                .placed
                .iter()
                .filter_map(|p| p.tensor.as_ref().storage())
                .try_for_each(|s| work.overwrite(s))?;
            prepared.call(def, keyway::dispatcher::op::Out::New)?
        };
        stream.synchronize()?;
        Ok(crate::compare::outputs(&expected, &made, 1.0)?)
    })
}

/// The first device of each other kind of device that has any.
fn api_kinds(device: Device) -> impl Iterator<Item = Device> {
    let others = keyway::dispatcher::registry::devices().into_iter();
    others
        .filter(move |entry| entry.kind != device.kind && api::count(entry).0 > 0)
        .map(|entry| Device { kind: entry.kind, index: 0 })
}

fn copy(from: Device, to: Device) -> Steps {
    for bytes in SIZES {
        let source = Storage::allocate(from, bytes)?;
        let values = pattern(bytes, 11);
        write_bytes(&source, 0, &values)?;
        let target = Storage::allocate(to, bytes + 8)?;
        write_bytes(&target, 0, &vec![0xEE; bytes + 8])?;
        copy_bytes(&target, 3, &source, 0, bytes)?;
        let what = format!("{bytes} bytes from {from} to {to}");
        expect(&target, 3, &values, &what)?;
        expect(&target, 0, &[0xEE; 3], &format!("before {what}"))?;
        expect(&target, 3 + bytes, &[0xEE; 5], &format!("after {what}"))?;
    }
    Ok(())
}
