//! Memory profile: bytes of storages by the op, the modules and the backward pass that allocated them.

mod book;
mod timeline;
mod usage;

use super::profile::{Profile, profile};
use book::Keeper;
use keyway_dispatcher::memory::{Observation, observe_storages};
use std::sync::Arc;
pub use timeline::TimelinePoint;
pub use usage::{DeviceUsage, MemorySnapshot, MemoryUsage, OpMemory, Owner};

/// A running memory profile; dropping it ends it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory: profiler::MemoryProfile = profiler::memory();
/// let x = Tensor::zeros(256)?;
/// assert_eq!(memory.snapshot().devices[0].usage.bytes, 1024);
/// drop(x);
/// assert_eq!(memory.snapshot().devices[0].usage.bytes, 0);
/// # Ok(()) }
/// ```
#[must_use = "storages are counted only while the profile lives"]
pub struct MemoryProfile {
    keeper: Arc<Keeper>,
    _observation: Observation,
    // Records the ops of the thread's calls.
    _profile: Profile,
}

/// Records the storages created while the result lives: by the op, modules and backward pass of this thread, and those of other
/// threads together. It also counts and times this thread's calls, as [`profile`] does.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// let x = Tensor::from_vec(vec![1.0f32; 256], 256)?;
/// let y = x.mul(&x)?.exp()?;
/// let snapshot = memory.snapshot();
/// let cpu = &snapshot.devices[0];
/// assert_eq!((cpu.device.as_str(), cpu.usage.bytes), ("cpu", 2048));
/// // The product is gone, but was there beside the other two.
/// assert_eq!(cpu.usage.peak_bytes, 3072);
/// let held: Vec<_> = snapshot.owners.iter().map(|h| (h.op.as_str(), h.bytes)).collect();
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
    /// The memory in use now; the profile continues.
    pub fn snapshot(&self) -> MemorySnapshot {
        self.keeper.snapshot()
    }
}
