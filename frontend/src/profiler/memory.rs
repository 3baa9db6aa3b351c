//! Who holds how much memory: storages by the op, the modules and the backward pass that made them.

use super::record::{LOCAL, place};
use super::{Profile, profile};
use keyway_dispatcher::Device;
use keyway_dispatcher::memory::{Observation, StorageObserver, observe_storages};
use keyway_dispatcher::progress::in_backward;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What stands for the op of storages that no op made: values that the program gave.
const PROGRAM: &str = "(program)";
/// The same within a backward pass: gradients as leaves keep them.
const BACKWARD: &str = "(backward)";

/// Who made a storage.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Maker {
    /// The callers from the outermost on; the last one is the op.
    ops: Vec<String>,
    module: String,
}

/// Bytes and storages of one maker or device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Bytes held now.
    pub bytes: u64,
    /// The most bytes held at once.
    pub peak_bytes: u64,
    /// Bytes of all storages that were made.
    pub made_bytes: u64,
    /// Storages held now.
    pub storages: u64,
    /// Storages that were made.
    pub made: u64,
}

impl Use {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.made_bytes += bytes;
        self.storages += 1;
        self.made += 1;
        self.peak_bytes = self.peak_bytes.max(self.bytes);
    }

    fn take(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.storages -= 1;
    }
}

struct Live {
    maker: Arc<Maker>,
    device: Device,
    allocator: Arc<str>,
    bytes: u64,
}

#[derive(Default)]
struct Book {
    live: FxHashMap<u64, Live>,
    devices: FxHashMap<Device, Use>,
    ops: FxHashMap<(String, Device), Use>,
}

#[derive(Default)]
struct Keeper(Mutex<Book>);

impl Keeper {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Maker {
    /// What this thread is in. The stack is empty on threads that are not profiled.
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
        book.devices.entry(device).or_default().add(bytes);
        book.ops.entry((maker.op().to_string(), device)).or_default().add(bytes);
        book.live.insert(number, Live { maker, device, allocator: allocator.into(), bytes });
    }

    fn dropped(&self, number: u64) {
        let mut book = self.book();
        let Some(Live { maker, device, bytes, .. }) = book.live.remove(&number) else { return };
        if let Some(held) = book.devices.get_mut(&device) {
            held.take(bytes);
        }
        if let Some(held) = book.ops.get_mut(&(maker.op().to_string(), device)) {
            held.take(bytes);
        }
    }
}

/// Storages of one maker that are held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The op that made them; `(program)` for values that the program gave, and for what other threads made; `(backward)` for
    /// gradients as leaves keep them.
    pub op: String,
    /// The ops around it, the outermost first.
    pub within: Vec<String>,
    /// The modules around it, as `layers.0`; empty outside any.
    pub module: String,
    /// Where they lie.
    pub device: String,
    /// Who gave the memory.
    pub allocator: String,
    /// Bytes in all.
    pub bytes: u64,
    /// How many they are.
    pub storages: u64,
}

/// What an op made on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpMemory {
    /// The op, as in [`Holder::op`].
    pub op: String,
    /// The device.
    pub device: String,
    /// What it made, and what of that was and is held.
    #[serde(flatten)]
    pub held: Use,
}

/// What was held at one moment, of the storages that were made since the profile began. Sizes are those that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySnapshot {
    /// By device, in the order of names.
    pub devices: Vec<(String, Use)>,
    /// Who holds how much; the most first.
    pub holders: Vec<Holder>,
    /// What each op made; the highest peak first.
    pub ops: Vec<OpMemory>,
}

impl MemorySnapshot {
    /// Writes the snapshot as JSON, with the fields as they are called here.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut out, self)?;
        out.flush()
    }
}

/// A profile of memory that is being taken; dropping it ends it.
#[must_use = "storages are counted only while the profile lives"]
pub struct MemoryProfile {
    keeper: Arc<Keeper>,
    _observation: Observation,
    // Lets the thread's calls be known by their ops.
    _profile: Profile,
}

/// Accounts for the storages that are made while the result lives: by the op, modules and backward pass of this thread, and those
/// of other threads together. It also counts and times this thread's calls, as [`profile`] does.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let x = Tensor::from_vec(vec![1.0f32; 256], 256)?;
/// let y = x.mul(&x)?.exp()?;
/// let snapshot = memory.snapshot();
/// assert_eq!((snapshot.devices[0].0.as_str(), snapshot.devices[0].1.bytes), ("cpu", 2048));
/// // The product is gone, but was there beside the other two.
/// assert_eq!(snapshot.devices[0].1.peak_bytes, 3072);
/// let held: Vec<_> = snapshot.holders.iter().map(|h| (h.op.as_str(), h.bytes)).collect();
/// assert_eq!(held, [("(program)", 1024), ("exp", 1024)]);
/// let mut file = Vec::new();
/// snapshot.write_json(&mut file)?;
/// # Ok(()) }
/// ```
#[doc(alias = "memory_snapshot")]
#[doc(alias = "profile_memory")]
pub fn memory() -> MemoryProfile {
    let keeper = Arc::new(Keeper::default());
    let observation = observe_storages(keeper.clone());
    MemoryProfile { keeper, _observation: observation, _profile: profile() }
}

impl MemoryProfile {
    /// What is held now; the profile goes on.
    pub fn snapshot(&self) -> MemorySnapshot {
        let book = self.keeper.book();
        let mut devices: Vec<_> = book.devices.iter().map(|(d, held)| (d.to_string(), *held)).collect();
        devices.sort_by(|a, b| a.0.cmp(&b.0));
        let mut ops: Vec<_> = book
            .ops
            .iter()
            .map(|((op, device), held)| OpMemory { op: op.clone(), device: device.to_string(), held: *held })
            .collect();
        ops.sort_by(|a, b| {
            b.held
                .peak_bytes
                .cmp(&a.held.peak_bytes)
                .then_with(|| (&a.op, &a.device).cmp(&(&b.op, &b.device)))
        });
        let mut by_maker: FxHashMap<(&Maker, Device, &str), (u64, u64)> = FxHashMap::default();
        for live in book.live.values() {
            let sum = by_maker.entry((&live.maker, live.device, &live.allocator)).or_default();
            *sum = (sum.0 + live.bytes, sum.1 + 1);
        }
        let mut holders: Vec<_> = by_maker
            .into_iter()
            .map(|((maker, device, allocator), (bytes, storages))| Holder {
                op: maker.op().to_string(),
                within: maker.ops.split_last().map_or(Vec::new(), |(_, outer)| outer.to_vec()),
                module: maker.module.clone(),
                device: device.to_string(),
                allocator: allocator.to_string(),
                bytes,
                storages,
            })
            .collect();
        let place = |h: &Holder| (h.op.clone(), h.within.clone(), h.module.clone(), h.device.clone());
        holders.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| place(a).cmp(&place(b))));
        MemorySnapshot { devices, holders, ops }
    }
}
