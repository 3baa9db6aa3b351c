//! The account of storages: which op created those that are held.

use super::super::record::LOCAL;
use super::super::stack::place;
use super::timeline::Timeline;
use super::usage::{DeviceUsage, MemorySnapshot, MemoryUsage, OpMemory, Owner};
use keyway_dispatcher::Device;
use keyway_dispatcher::device::report;
use keyway_dispatcher::memory::StorageObserver;
use keyway_dispatcher::progress::in_backward;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The op name of storages that no op allocated: values that the program passed.
const PROGRAM: &str = "(program)";
/// The name of the owner for gradients of leaves, in a backward pass.
const BACKWARD: &str = "(backward)";

/// The op and module that allocated a storage.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Maker {
    /// The callers from the outermost on; the last one is the op.
    ops: Vec<String>,
    module: String,
}

struct Live {
    maker: Arc<Maker>,
    device: Device,
    allocator: Arc<str>,
    bytes: u64,
}

/// A device's account.
#[derive(Default)]
struct OnDevice {
    usage: MemoryUsage,
    timeline: Timeline,
    /// The number of new peaks so far.
    peaks: u64,
}

/// An op's account on one device.
#[derive(Default)]
struct OfOp {
    usage: MemoryUsage,
    /// Bytes in use at the device's peak with that number. Bytes in use have changed since; if the number is not that of the
    /// device's last peak, the current bytes apply.
    before: u64,
    peaks: u64,
}

impl OfOp {
    fn at_peak(&self, peaks: u64) -> u64 {
        if self.peaks == peaks { self.before } else { self.usage.bytes }
    }

    /// The account, to be changed.
    fn changing(&mut self, peaks: u64) -> &mut MemoryUsage {
        (self.before, self.peaks) = (self.at_peak(peaks), peaks);
        &mut self.usage
    }
}

#[derive(Default)]
struct Book {
    live: FxHashMap<u64, Live>,
    devices: FxHashMap<Device, OnDevice>,
    ops: FxHashMap<(String, Device), OfOp>,
}

pub(super) struct Keeper {
    book: Mutex<Book>,
    begin: Instant,
}

impl Keeper {
    pub(super) fn new() -> Keeper {
        Keeper { book: Mutex::default(), begin: Instant::now() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self) -> u64 {
        self.begin.elapsed().as_micros() as u64
    }

    pub(super) fn snapshot(&self) -> MemorySnapshot {
        // Queried without the lock, since a backend may free memory meanwhile.
        let devices: Vec<Device> = self.book().devices.keys().copied().collect();
        let told = |device: Device| {
            let text = report::memory(device).ok().flatten()?;
            Some((device, serde_json::from_str(&text).ok()?))
        };
        let cut = devices.into_iter().filter_map(told).collect();
        self.book().snapshot(&cut)
    }
}

impl Book {
    fn snapshot(&self, cut: &FxHashMap<Device, Value>) -> MemorySnapshot {
        let device = |(device, account): (&Device, &OnDevice)| DeviceUsage {
            device: device.to_string(),
            usage: account.usage,
            timeline: account.timeline.points().to_vec(),
            cut: cut.get(device).cloned(),
        };
        let mut devices: Vec<_> = self.devices.iter().map(device).collect();
        devices.sort_by(|a, b| a.device.cmp(&b.device));
        let op = |((op, device), account): (&(String, Device), &OfOp)| OpMemory {
            op: op.clone(),
            device: device.to_string(),
            usage: account.usage,
            bytes_at_peak: account.at_peak(self.devices.get(device).map_or(0, |account| account.peaks)),
        };
        let mut ops: Vec<_> = self.ops.iter().map(op).collect();
        ops.sort_by_cached_key(|row| (Reverse(row.usage.peak_bytes), row.op.clone(), row.device.clone()));
        let mut by_maker: FxHashMap<(&Maker, Device, &str), (u64, u64)> = FxHashMap::default();
        for live in self.live.values() {
            let sum = by_maker.entry((&live.maker, live.device, &live.allocator)).or_default();
            *sum = (sum.0 + live.bytes, sum.1 + 1);
        }
        let mut owners: Vec<_> = by_maker
            .into_iter()
            .map(|((maker, device, allocator), (bytes, storages))| Owner {
                op: maker.op().to_string(),
                within: maker.ops.split_last().map_or(Vec::new(), |(_, outer)| outer.to_vec()),
                module: maker.module.clone(),
                device: device.to_string(),
                allocator: allocator.to_string(),
                bytes,
                storages,
            })
            .collect();
        let place = |h: &Owner| (h.op.clone(), h.within.clone(), h.module.clone(), h.device.clone());
        owners.sort_by_cached_key(|owner| (Reverse(owner.bytes), place(owner)));
        MemorySnapshot { devices, owners, ops }
    }
}

impl Maker {
    /// The op and module that this thread is in. The stack is empty on threads that are not profiled.
    fn here() -> Maker {
        let here = LOCAL.try_with(|local| local.stack.try_borrow().map(|stack| place(&stack)));
        let (mut ops, module) = here.ok().and_then(Result::ok).unwrap_or_default();
        if ops.is_empty() && in_backward() {
            ops.push(BACKWARD.to_string());
        }
        Maker { ops, module }
    }

    fn op(&self) -> &str {
        self.ops.last().map_or(PROGRAM, String::as_str)
    }
}

impl StorageObserver for Keeper {
    fn made(&self, number: u64, device: Device, bytes: usize, allocator: &str) {
        let (maker, bytes) = (Arc::new(Maker::here()), bytes as u64);
        let mut book = self.book();
        let Book { live, devices, ops } = &mut *book;
        let account = devices.entry(device).or_default();
        ops.entry((maker.op().to_string(), device)).or_default().changing(account.peaks).add(bytes);
        let peak = account.usage.peak_bytes;
        account.usage.add(bytes);
        account.peaks += u64::from(account.usage.peak_bytes > peak);
        account.timeline.note(self.micros(), account.usage.bytes);
        live.insert(number, Live { maker, device, allocator: allocator.into(), bytes });
    }

    fn dropped(&self, number: u64) {
        let mut book = self.book();
        let Some(Live { maker, device, bytes, .. }) = book.live.remove(&number) else { return };
        let Book { devices, ops, .. } = &mut *book;
        let Some(account) = devices.get_mut(&device) else { return };
        if let Some(op) = ops.get_mut(&(maker.op().to_string(), device)) {
            op.changing(account.peaks).take(bytes);
        }
        account.usage.take(bytes);
        account.timeline.note(self.micros(), account.usage.bytes);
    }
}
