//! Words of host memory to which kernels report invalid values, and which the host reads without a copy.

use super::context::Context;
use keyway_sdk::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// `Report` in elementwise.cuh.
#[repr(C)]
struct Slot {
    /// Nonzero after a failed check.
    wrong: AtomicU64,
    /// One of the invalid values.
    value: AtomicI64,
}

/// Number of slots of a device: one for each kind of check.
pub const SLOTS: usize = 1024;

/// Slots in page-locked memory, which kernels of every stream access at its host address. It is allocated at the first use
/// and never freed, since graphs may write to it during their whole lifetime.
#[derive(Default)]
pub struct Slots(OnceLock<&'static [Slot]>);

impl Slots {
    /// The address of a slot, for a kernel.
    pub fn address(&self, context: &Context, number: usize) -> Result<u64, Error> {
        let slots = match self.0.get() {
            Some(slots) => slots,
            None => {
                let at = context.allocate_pinned((SLOTS * size_of::<Slot>()) as u64)?.cast::<Slot>();
                for n in 0..SLOTS {
                    // SAFETY: the memory has capacity for SLOTS slots, and is not shared yet.
                    unsafe { at.add(n).write(Slot { wrong: AtomicU64::new(0), value: AtomicI64::new(0) }) };
                }
                // SAFETY: as above, and it is never freed. Two threads may both allocate memory; one allocation is used.
                self.0.get_or_init(|| unsafe { std::slice::from_raw_parts(at, SLOTS) })
            }
        };
        let slot = slots.get(number).ok_or_else(|| Error::Failed { detail: format!("no slot {number}") })?;
        Ok(std::ptr::from_ref(slot).expose_provenance() as u64)
    }

    /// Takes the finding in a slot since the last call.
    pub fn take(&self, number: usize) -> Option<i64> {
        let slot = self.0.get()?.get(number)?;
        if slot.wrong.load(Ordering::Acquire) == 0 {
            return None;
        }
        slot.wrong.store(0, Ordering::Relaxed);
        Some(slot.value.load(Ordering::Relaxed))
    }
}
