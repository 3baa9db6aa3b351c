//! The figures of a memory profile.

use super::timeline::TimelinePoint;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The page; `SNAPSHOT` in it becomes the data.
const PAGE: &str = include_str!("page.html");

/// Bytes and number of storages that an op or a device uses.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let x = Tensor::zeros(256)?;
/// drop(Tensor::zeros(256)?);
/// let usage = memory.snapshot().devices[0].usage;
/// assert_eq!((usage.bytes, usage.peak_bytes, usage.made_bytes), (1024, 2048, 2048));
/// assert_eq!((usage.storages, usage.made), (1, 2));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUsage {
    /// Bytes held now.
    pub bytes: u64,
    /// The maximum number of bytes held at one time.
    pub peak_bytes: u64,
    /// The total bytes of all storages that were created.
    pub made_bytes: u64,
    /// Storages held now.
    pub storages: u64,
    /// The number of storages that were created.
    pub made: u64,
}

impl MemoryUsage {
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.made_bytes += bytes;
        self.storages += 1;
        self.made += 1;
        self.peak_bytes = self.peak_bytes.max(self.bytes);
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.storages -= 1;
    }
}

/// The storages that one op allocated within one module, which are in use.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let _x = Tensor::zeros(256)?.exp()?;
/// let snapshot = memory.snapshot();
/// let owner = snapshot.owners.iter().find(|owner| owner.op == "exp").expect("its result is held");
/// assert_eq!((owner.device.as_str(), owner.bytes, owner.storages), ("cpu", 1024, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The op that allocated them; `(program)` for values that the program passed, and for allocations of other threads;
    /// `(backward)` for the initial gradients of the pass and for copies of gradients on leaves; a gradient that was uniquely
    /// owned is attributed to its op.
    pub op: String,
    /// The ops around it, the outermost first.
    pub within: Vec<String>,
    /// The enclosing modules by name, as `layers.0`; empty outside any, and in a layer that is not part of a module.
    pub module: String,
    /// The device's name.
    pub device: String,
    /// Name of the allocator.
    pub allocator: String,
    /// Bytes in all.
    pub bytes: u64,
    /// Number of storages.
    pub storages: u64,
}

/// Memory that an op allocated on a device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// drop(Tensor::zeros(256)?.exp()?);
/// let snapshot = memory.snapshot();
/// let exp = snapshot.ops.iter().find(|op| op.op == "exp").expect("it made a result");
/// assert_eq!((exp.usage.made_bytes, exp.usage.bytes, exp.bytes_at_peak), (1024, 0, 1024));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpMemory {
    /// The op, as in [`Owner::op`].
    pub op: String,
    /// The device.
    pub device: String,
    /// Bytes allocated, and of these the peak and the current bytes in use.
    #[serde(flatten)]
    pub usage: MemoryUsage,
    /// Bytes in use when the device first reached its peak.
    pub bytes_at_peak: u64,
}

/// Memory in use on a device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let _x = Tensor::zeros(256)?;
/// let cpu = &memory.snapshot().devices[0];
/// assert_eq!((cpu.device.as_str(), cpu.usage.bytes), ("cpu", 1024));
/// assert_eq!(cpu.timeline.last().map(|point| point.bytes), Some(1024));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceUsage {
    /// The device.
    pub device: String,
    /// Bytes allocated there, and of these the peak and the current bytes in use.
    #[serde(flatten)]
    pub usage: MemoryUsage,
    /// Bytes in use over time, with a resolution of up to 2048 points.
    pub timeline: Vec<TimelinePoint>,
    /// The current segments of the device's memory, as its backend reports them; `None` if it reports none. The format is that of
    /// [`report::memory`](keyway_dispatcher::device::report::memory).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<serde_json::Value>,
}

/// Memory in use at one moment, by the storages created since the profile began. Sizes are the requested ones. Memory of the
/// program, such as that of [`Tensor::from_vec`](crate::Tensor::from_vec), is included; the statistics of an allocator,
/// [`memory_stats`](crate::device::memory_stats), lack it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let _x = Tensor::zeros(256)?.exp()?;
/// let snapshot = memory.snapshot();
/// for owner in &snapshot.owners {
///     println!("{} bytes of `{}` in `{}`", owner.bytes, owner.op, owner.module);
/// }
/// assert_eq!(snapshot.devices[0].usage.bytes, 1024);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySnapshot {
    /// The usage by device, sorted by name.
    pub devices: Vec<DeviceUsage>,
    /// Bytes in use by op and module, largest first.
    pub owners: Vec<Owner>,
    /// Memory allocated by each op, highest peak first.
    pub ops: Vec<OpMemory>,
}

impl MemorySnapshot {
    /// Writes the snapshot as JSON, with the field names of this type.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use keyway::{Tensor, profiler};
    /// let memory = profiler::memory();
    /// let _x = Tensor::zeros(256)?;
    /// let mut file = Vec::new();
    /// memory.snapshot().write_json(&mut file)?;
    /// let read: profiler::MemorySnapshot = serde_json::from_slice(&file)?;
    /// assert_eq!(read.devices[0].usage.bytes, 1024);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut out, self)?;
        out.flush()
    }

    /// Writes the snapshot as a self-contained HTML page: bytes in use on each device over time, and by op at the peak and now.
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
    /// Errors of `out`.
    #[doc(alias = "memory_viz")]
    pub fn write_html(&self, mut out: impl Write) -> io::Result<()> {
        // `<` occurs only in strings; in a script element it could end or comment out the text after it.
        let data = serde_json::to_string(self)?.replace('<', "\\u003c");
        out.write_all(PAGE.replacen("\"SNAPSHOT\"", &data, 1).as_bytes())?;
        out.flush()
    }
}
