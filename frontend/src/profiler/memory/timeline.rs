//! Memory in use over time, at a resolution that a picture can show.

use serde::{Deserialize, Serialize};

/// Maximum number of moments, an even number.
const MOST: usize = 2048;

/// A stretch of time.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// drop(Tensor::zeros(256)?);
/// let cpu = &memory.snapshot().devices[0];
/// let highest = cpu.timeline.iter().map(|moment| moment.peak_bytes).max();
/// assert_eq!((highest, cpu.timeline.last().map(|moment| moment.bytes)), (Some(1024), Some(0)));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Its end, in microseconds since the profile began.
    pub micros: u64,
    /// Bytes held at its end.
    pub bytes: u64,
    /// The most bytes held within it.
    pub peak_bytes: u64,
}

/// Bytes in use on one device. Above the maximum number of moments, adjacent pairs are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    moments: Vec<Moment>,
    /// Changes of one moment, and of those the last one has.
    each: usize,
    filled: usize,
}

impl Timeline {
    /// Records that `bytes` are in use after a change.
    pub(super) fn note(&mut self, micros: u64, bytes: u64) {
        match self.moments.last_mut() {
            Some(last) if self.filled < self.each => {
                *last = Moment { micros, bytes, peak_bytes: last.peak_bytes.max(bytes) };
                self.filled += 1;
            }
            _ => {
                if self.moments.len() == MOST {
                    self.halve();
                }
                self.moments.push(Moment { micros, bytes, peak_bytes: bytes });
                (self.each, self.filled) = (self.each.max(1), 1);
            }
        }
    }

    fn halve(&mut self) {
        let joined =
            |two: &[Moment; 2]| Moment { peak_bytes: two[0].peak_bytes.max(two[1].peak_bytes), ..two[1] };
        self.moments = self.moments.as_chunks().0.iter().map(joined).collect();
        self.each *= 2;
    }

    pub(super) fn moments(&self) -> &[Moment] {
        &self.moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the number of changes, each is within one moment, and no peak is lost.
    #[test]
    fn moments_cover_all_changes() {
        for changes in [0, 1, 2, MOST - 1, MOST, MOST + 1, 3 * MOST + 5, 40_000] {
            let bytes = |i: usize| (i as u64 * 7919) % 10_007;
            let mut timeline = Timeline::default();
            (0..changes).for_each(|i| timeline.note(i as u64, bytes(i)));
            let moments = timeline.moments();
            assert!(moments.len() <= MOST && (changes < MOST || moments.len() >= MOST / 2), "{changes}");
            let mut first = 0;
            for moment in moments {
                let last = moment.micros as usize;
                let peak = (first..=last).map(bytes).max().unwrap();
                assert_eq!((moment.bytes, moment.peak_bytes), (bytes(last), peak), "{changes} {first}");
                first = last + 1;
            }
            assert_eq!(first, changes);
        }
    }
}
