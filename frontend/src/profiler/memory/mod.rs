//! Who holds how much memory: storages by the op, the modules and the backward pass that made them.

mod book;
mod timeline;

use super::{Profile, profile};
use book::Keeper;
use keyway_dispatcher::memory::{Observation, observe_storages};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::sync::Arc;
pub use timeline::Moment;

/// The page; `SNAPSHOT` in it becomes the data.
const PAGE: &str = include_str!("page.html");

/// Bytes and storages of one maker or device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let x = Tensor::zeros(256)?;
/// drop(Tensor::zeros(256)?);
/// let held = memory.snapshot().devices[0].held;
/// assert_eq!((held.bytes, held.peak_bytes, held.made_bytes), (1024, 2048, 2048));
/// assert_eq!((held.storages, held.made), (1, 2));
/// # Ok(()) }
/// ```
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

/// Storages of one maker that are held.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let _x = Tensor::zeros(256)?.exp()?;
/// let snapshot = memory.snapshot();
/// let holder = snapshot.holders.iter().find(|holder| holder.op == "exp").expect("its result is held");
/// assert_eq!((holder.device.as_str(), holder.bytes, holder.storages), ("cpu", 1024, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The op that made them; `(program)` for values that the program gave, and for what other threads made; `(backward)` for
    /// what the pass begins from, and for copies of gradients that leaves keep; a gradient that nobody else held is its op's.
    pub op: String,
    /// The ops around it, the outermost first.
    pub within: Vec<String>,
    /// The modules around it by their names in what holds them, as `layers.0`; empty outside any, as within a layer on its own.
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
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// drop(Tensor::zeros(256)?.exp()?);
/// let snapshot = memory.snapshot();
/// let exp = snapshot.ops.iter().find(|op| op.op == "exp").expect("it made a result");
/// assert_eq!((exp.held.made_bytes, exp.held.bytes, exp.bytes_at_peak), (1024, 0, 1024));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpMemory {
    /// The op, as in [`Holder::op`].
    pub op: String,
    /// The device.
    pub device: String,
    /// What it made, and what of that was and is held.
    #[serde(flatten)]
    pub held: Use,
    /// What of it was held when the device held the most (for the first time).
    pub bytes_at_peak: u64,
}

/// What was held on a device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let _x = Tensor::zeros(256)?;
/// let cpu = &memory.snapshot().devices[0];
/// assert_eq!((cpu.device.as_str(), cpu.held.bytes), ("cpu", 1024));
/// assert_eq!(cpu.timeline.last().map(|moment| moment.bytes), Some(1024));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// The device.
    pub device: String,
    /// What was made there, and what of that was and is held.
    #[serde(flatten)]
    pub held: Use,
    /// What was held over time. Each change is within one of up to 2048 moments.
    pub timeline: Vec<Moment>,
    /// What the device's memory is cut into now, as its backend tells it; nothing where it keeps no such account. The form is that of
    /// [`report::memory`](keyway_dispatcher::device::report::memory).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<serde_json::Value>,
}

/// What was held at one moment, of the storages that were made since the profile began. Sizes are those that were asked for. Memory
/// that the program brought, as [`Tensor::from_vec`](crate::Tensor::from_vec) takes it, counts too, which the account of an
/// allocator, [`memory_stats`](crate::device::memory_stats), does not know.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let _x = Tensor::zeros(256)?.exp()?;
/// let snapshot = memory.snapshot();
/// for holder in &snapshot.holders {
///     println!("{} bytes of `{}` in `{}`", holder.bytes, holder.op, holder.module);
/// }
/// assert_eq!(snapshot.devices[0].held.bytes, 1024);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySnapshot {
    /// By device, in the order of names.
    pub devices: Vec<DeviceUse>,
    /// Who holds how much; the most first.
    pub holders: Vec<Holder>,
    /// What each op made; the highest peak first.
    pub ops: Vec<OpMemory>,
}

impl MemorySnapshot {
    /// Writes the snapshot as JSON, with the fields as they are called here.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use keyway::{Tensor, profiler};
    /// let memory = profiler::memory();
    /// let _x = Tensor::zeros(256)?;
    /// let mut file = Vec::new();
    /// memory.snapshot().write_json(&mut file)?;
    /// let read: profiler::MemorySnapshot = serde_json::from_slice(&file)?;
    /// assert_eq!(read.devices[0].held.bytes, 1024);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut out, self)?;
        out.flush()
    }

    /// Writes the snapshot as a page that a browser opens without any other file: what each device held over time, which ops
    /// held it at the peak, and who holds it now.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use keyway::{Tensor, profiler};
    /// let memory = profiler::memory();
    /// let _x = Tensor::zeros(256)?;
    /// let mut page = Vec::new();
    /// memory.snapshot().write_html(&mut page)?;
    /// assert!(String::from_utf8(page)?.contains("</html>"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `out`.
    #[doc(alias = "memory_viz")]
    pub fn write_html(&self, mut out: impl Write) -> io::Result<()> {
        // `<` stands inside strings alone; in a script element it could end or comment out what follows.
        let data = serde_json::to_string(self)?.replace('<', "\\u003c");
        out.write_all(PAGE.replacen("\"SNAPSHOT\"", &data, 1).as_bytes())?;
        out.flush()
    }
}

/// A profile of memory that is being taken; dropping it ends it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory: profiler::MemoryProfile = profiler::memory();
/// let x = Tensor::zeros(256)?;
/// assert_eq!(memory.snapshot().devices[0].held.bytes, 1024);
/// drop(x);
/// assert_eq!(memory.snapshot().devices[0].held.bytes, 0);
/// # Ok(()) }
/// ```
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
/// let cpu = &snapshot.devices[0];
/// assert_eq!((cpu.device.as_str(), cpu.held.bytes), ("cpu", 2048));
/// // The product is gone, but was there beside the other two.
/// assert_eq!(cpu.held.peak_bytes, 3072);
/// let held: Vec<_> = snapshot.holders.iter().map(|h| (h.op.as_str(), h.bytes)).collect();
/// assert_eq!(held, [("(program)", 1024), ("exp", 1024)]);
/// let mut page = Vec::new();
/// snapshot.write_html(&mut page)?;
/// # Ok(()) }
/// ```
#[doc(alias = "memory_snapshot")]
#[doc(alias = "profile_memory")]
pub fn memory() -> MemoryProfile {
    let keeper = Arc::new(Keeper::new());
    let observation = observe_storages(keeper.clone());
    MemoryProfile { keeper, _observation: observation, _profile: profile() }
}

impl MemoryProfile {
    /// What is held now; the profile goes on.
    pub fn snapshot(&self) -> MemorySnapshot {
        self.keeper.snapshot()
    }
}
