//! Report of a profile, as data.

use keyway_dispatcher::ledger::Fallback;
use keyway_dispatcher::{Device, registry};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The calls of one op that were run in one way.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32, -1.0])?;
/// let profile = profiler::profile();
/// x.relu()?;
/// let report = profile.report();
/// let row = &report.rows[0];
/// assert_eq!((row.op.as_str(), row.calls, row.bytes), ("relu", 1, 16));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpStats {
    /// The op.
    pub op: String,
    /// The plugin that ran the calls; `(view)`, `(host)`, `(decomposition)`, `(fallback)` or `(failed)` if none did.
    pub served_by: String,
    /// The kernel's key, `cpu/channels_last/f32`; without a kernel, the key of the first tensor.
    pub key: String,
    /// Number of calls.
    pub calls: u64,
    /// Nanoseconds in these calls themselves, without the ops that they called.
    pub self_ns: u64,
    /// Nanoseconds in these calls with all that they called.
    pub total_ns: u64,
    /// Bytes of all arguments and results that these calls read and wrote themselves.
    pub bytes: u64,
    /// Bytes of scratch memory that the kernels requested from the host in these calls: packed weights, transposed or padded
    /// rows, accumulators. It may increase with the number of threads.
    #[serde(default)]
    pub scratch_bytes: u64,
    /// The same by the shapes and formats of the arguments, as PyTorch's `group_by_input_shape`; the most frequent first.
    pub shapes: Vec<Shapes>,
}

/// The calls of a row with the same shapes and formats.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32, -1.0])?;
/// let profile = profiler::profile();
/// x.relu()?;
/// let report = profile.report();
/// let shapes = &report.rows[0].shapes[0];
/// assert_eq!((&shapes.inputs[..], &shapes.outputs[..]), (&["f32[2]".to_string()][..], &["f32[2]".to_string()][..]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shapes {
    /// The tensors among the arguments: `f32[32,16,8,8] channels_last`; row-major is not named.
    pub inputs: Vec<String>,
    /// The results.
    pub outputs: Vec<String>,
    /// Number of calls.
    pub calls: u64,
    /// Nanoseconds in these calls themselves.
    pub self_ns: u64,
    /// Nanoseconds in these calls with all that they called.
    pub total_ns: u64,
    /// Bytes of arguments and results.
    pub bytes: u64,
    /// Like [`OpStats::scratch_bytes`].
    #[serde(default)]
    pub scratch_bytes: u64,
}

/// Copies that change the order of elements, at one source location.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::zeros((3, 4))?.t()?;
/// let profile = profiler::profile();
/// x.contiguous()?;
/// let report = profile.report();
/// assert_eq!((report.reorderings[0].calls, report.reorderings[0].bytes), (1, 96));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reordering {
    /// The op that copied.
    pub op: String,
    /// The enclosing ops, outermost first, derivatives as `backward of conv`; empty if the program itself requested the copy.
    pub callers: Vec<String>,
    /// The modules in which it happened, `2.0`, as in the names of a state dict; empty outside of any.
    pub path: String,
    /// The source.
    pub from: String,
    /// The copy.
    pub to: String,
    /// Number of calls.
    pub calls: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Nanoseconds.
    pub ns: u64,
}

impl Reordering {
    /// The location in words: `reshape in flatten, module 3`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::zeros((3, 4))?.t()?;
    /// let profile = profiler::profile();
    /// x.contiguous()?;
    /// let report = profile.report();
    /// assert_eq!(report.reorderings[0].location(), "the program itself");
    /// # Ok(()) }
    /// ```
    pub fn location(&self) -> String {
        in_words(&self.callers, &self.path)
    }
}

/// An op at one source location that changed the memory format of images.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{MemoryFormat, Tensor, profiler};
/// let x = Tensor::zeros((2, 3, 4, 4))?.to(MemoryFormat::ChannelsLast)?;
/// let weight = Tensor::zeros((5, 4))?;
/// let profile = profiler::profile();
/// x.linear(&weight, None)?;
/// let report = profile.report();
/// let change = &report.format_changes[0];
/// assert_eq!((change.op.as_str(), change.from.as_str(), change.to.as_str()), ("matmul", "channels_last", "contiguous"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatChange {
    /// The op.
    pub op: String,
    /// The plugin that ran it.
    pub served_by: String,
    /// Like [`Reordering::callers`].
    pub callers: Vec<String>,
    /// Like [`Reordering::path`].
    pub path: String,
    /// The format of the arguments: `contiguous`, `channels_last`, or `both formats` if they differ.
    pub from: String,
    /// The format of the result.
    pub to: String,
    /// The arguments of the first call.
    pub inputs: Vec<String>,
    /// The results of the first call.
    pub outputs: Vec<String>,
    /// Number of calls.
    pub calls: u64,
}

impl FormatChange {
    /// The location in words.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{MemoryFormat, Tensor, profiler};
    /// let x = Tensor::zeros((2, 3, 4, 4))?.to(MemoryFormat::ChannelsLast)?;
    /// let weight = Tensor::zeros((5, 4))?;
    /// let profile = profiler::profile();
    /// x.linear(&weight, None)?;
    /// let report = profile.report();
    /// let change = &report.format_changes[0];
    /// assert_eq!(change.location(), "linear");
    /// # Ok(()) }
    /// ```
    pub fn location(&self) -> String {
        in_words(&self.callers, &self.path)
    }
}

/// The memory of tensors on one device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let profile = profiler::profile();
/// let held = Tensor::zeros(1000)?;
/// let report = profile.report();
/// assert!(report.memory.iter().any(|m| m.device == "cpu" && m.peak_in_use >= 4_000));
/// # drop(held);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMemory {
    /// The device.
    pub device: String,
    /// Bytes currently used by tensors.
    pub in_use: u64,
    /// Most bytes that tensors held at a time, since the program began or the device's peaks were reset.
    pub peak_in_use: u64,
    /// Peak bytes allocated from the system, caches included.
    pub peak_held: u64,
}

/// The report of a profile.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32, -1.0])?;
/// let profile = profiler::profile();
/// x.relu()?;
/// let report = profile.report();
/// assert_eq!(report.rows.len(), 1);
/// assert!(report.reorderings.is_empty() && report.seconds > 0.0);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// One row for each op, plugin and key, the largest self time first.
    pub rows: Vec<OpStats>,
    /// Reordering copies, the longest time first.
    pub reorderings: Vec<Reordering>,
    /// Ops that changed the format of images, in order of occurrence.
    pub format_changes: Vec<FormatChange>,
    /// Seconds since the profile began, between calls included.
    pub seconds: f64,
    /// Memory of each device that provides statistics.
    pub memory: Vec<DeviceMemory>,
    /// Calls that ran on another device than requested.
    pub fallbacks: Vec<Fallback>,
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// `clone in reshape in backward of flatten, module 3.0`, without the first.
pub(super) fn in_words(callers: &[String], path: &str) -> String {
    let mut words = match callers.is_empty() {
        true => "the program itself".to_string(),
        false => callers.iter().rev().map(String::as_str).collect::<Vec<_>>().join(" in "),
    };
    if !path.is_empty() {
        words = format!("{words}, module {path}");
    }
    words
}

/// Saturating sum: an edited file may hold any numbers.
pub(super) fn total(figures: impl Iterator<Item = u64>) -> u64 {
    figures.fold(0, u64::saturating_add)
}

impl Report {
    /// Calls of all rows.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// let profile = profiler::profile();
    /// x.relu()?;
    /// let report = profile.report();
    /// assert_eq!(report.calls(), 1);
    /// # Ok(()) }
    /// ```
    pub fn calls(&self) -> u64 {
        total(self.rows.iter().map(|row| row.calls))
    }

    /// Nanoseconds spent in ops: the own times of all rows.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// let profile = profiler::profile();
    /// x.relu()?;
    /// let report = profile.report();
    /// assert_eq!(report.op_ns(), report.rows[0].self_ns);
    /// # Ok(()) }
    /// ```
    pub fn op_ns(&self) -> u64 {
        total(self.rows.iter().map(|row| row.self_ns))
    }

    /// Bytes that all rows read and wrote.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// let profile = profiler::profile();
    /// x.relu()?;
    /// let report = profile.report();
    /// // Two elements of four bytes are read and as many written.
    /// assert_eq!(report.bytes(), 16);
    /// # Ok(()) }
    /// ```
    pub fn bytes(&self) -> u64 {
        total(self.rows.iter().map(|row| row.bytes))
    }

    /// Bytes of scratch memory of all rows.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// let profile = profiler::profile();
    /// x.relu()?;
    /// let report = profile.report();
    /// assert_eq!(report.scratch_bytes(), 0);
    /// # Ok(()) }
    /// ```
    pub fn scratch_bytes(&self) -> u64 {
        total(self.rows.iter().map(|row| row.scratch_bytes))
    }
}

/// Memory statistics of every device that this program has used and that provides them.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let held = Tensor::zeros(1000)?;
/// let memory = profiler::device_memory();
/// assert!(memory.iter().any(|m| m.device == "cpu" && m.in_use >= 4_000));
/// # drop(held);
/// # Ok(()) }
/// ```
#[doc(alias = "memory_stats")]
pub fn device_memory() -> Vec<DeviceMemory> {
    let mut memory = Vec::new();
    for entry in registry::devices() {
        // Unused drivers are not initialised: that may take long, or fail.
        if !keyway_dispatcher::device::kind_was_used(entry.kind) {
            continue;
        }
        let (count, _) = keyway_dispatcher::device::count(entry);
        for index in 0..u16::try_from(count).unwrap_or(u16::MAX) {
            let device = Device { kind: entry.kind, index };
            if keyway_dispatcher::device::was_used(device)
                && let Ok(Some(stats)) = keyway_dispatcher::device::memory_stats(device)
            {
                memory.push(DeviceMemory {
                    device: device.to_string(),
                    in_use: stats.in_use,
                    peak_in_use: stats.peak_in_use,
                    peak_held: stats.peak_held,
                });
            }
        }
    }
    memory
}
