//! The devices whose memory the host, and so a kernel's own loops, may read through pointers.

use super::names::{NameKind, name};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A bit set of device numbers.
struct Bits([AtomicU64; 16]);

impl Bits {
    const fn new() -> Bits {
        Bits([const { AtomicU64::new(0) }; 16])
    }

    #[inline(always)]
    fn has(&self, number: u16) -> bool {
        self.0
            .get(usize::from(number / 64))
            .is_some_and(|w| w.load(Ordering::Relaxed) >> (number % 64) & 1 != 0)
    }

    fn set(&self, number: u16) {
        if let Some(word) = self.0.get(usize::from(number / 64)) {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
        }
    }
}

/// Devices whose memory the host may read.
static REACHABLE: Bits = Bits::new();
/// Other devices that the host was queried about. A number keeps its name, so the answer stays true.
static OUT_OF_REACH: Bits = Bits::new();
/// The names of this library's host-accessible devices.
static OWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Whether the host may read the memory of a device through its pointers: true for the CPU, which is device 0, and for
/// devices that this library declares host-accessible.
#[inline(always)]
pub(super) fn reaches(device: u16) -> bool {
    device == 0 || REACHABLE.has(device) || (!OUT_OF_REACH.has(device) && is_own_alias(device))
}

/// States that the memory of a device that this library brings is host-accessible.
pub(super) fn set_reachable(device: u16, name: &'static str) {
    OWN.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    REACHABLE.set(device);
}

/// Whether this is a device of this library that the host calls `name@plugin`, because another plugin has its name.
#[cold]
#[inline(never)]
fn is_own_alias(device: u16) -> bool {
    // Without a host the answer is unknown, and is not cached.
    let Ok(name) = name(NameKind::Device, device) else { return false };
    let base = name.split_once('@').map(|(base, _)| base);
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let reachable = base.is_some_and(|base| own.contains(&base));
    if reachable {
        REACHABLE.set(device)
    } else {
        OUT_OF_REACH.set(device)
    }
    reachable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_and_what_was_stated_are_in_reach() {
        assert!(reaches(0));
        for number in [700, 701, 1023, 1024, u16::MAX] {
            assert!(!reaches(number), "{number}");
        }
        set_reachable(700, "example.org/near");
        assert!(reaches(700) && !reaches(701));
    }
}
