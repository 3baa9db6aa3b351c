//! Memory in use over time, at a resolution that a picture can show.

use serde::{Deserialize, Serialize};

/// Maximum number of points, an even number.
const MOST: usize = 2048;

/// A stretch of time.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let memory = profiler::memory();
/// drop(Tensor::zeros(256)?);
/// let cpu = &memory.snapshot().devices[0];
/// let highest = cpu.timeline.iter().map(|point| point.peak_bytes).max();
/// assert_eq!((highest, cpu.timeline.last().map(|point| point.bytes)), (Some(1024), Some(0)));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelinePoint {
    /// The end, in microseconds since the profile began.
    pub micros: u64,
    /// Bytes held at its end.
    pub bytes: u64,
    /// The most bytes held within it.
    pub peak_bytes: u64,
}

/// Bytes in use on one device. Above the maximum number of points, adjacent pairs are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    points: Vec<TimelinePoint>,
    /// Changes of one point, and of those the last one has.
    each: usize,
    filled: usize,
}

impl Timeline {
    /// Records that `bytes` are in use after a change.
    pub(super) fn note(&mut self, micros: u64, bytes: u64) {
        match self.points.last_mut() {
            Some(last) if self.filled < self.each => {
                *last = TimelinePoint { micros, bytes, peak_bytes: last.peak_bytes.max(bytes) };
                self.filled += 1;
            }
            _ => {
                if self.points.len() == MOST {
                    self.halve();
                }
                self.points.push(TimelinePoint { micros, bytes, peak_bytes: bytes });
                (self.each, self.filled) = (self.each.max(1), 1);
            }
        }
    }

    fn halve(&mut self) {
        let joined = |two: &[TimelinePoint; 2]| TimelinePoint {
            peak_bytes: two[0].peak_bytes.max(two[1].peak_bytes),
            ..two[1]
        };
        self.points = self.points.as_chunks().0.iter().map(joined).collect();
        self.each *= 2;
    }

    pub(super) fn points(&self) -> &[TimelinePoint] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the number of changes, each is within one point, and no peak is lost.
    #[test]
    fn points_cover_all_changes() {
        for changes in [0, 1, 2, MOST - 1, MOST, MOST + 1, 3 * MOST + 5, 40_000] {
            let bytes = |i: usize| (i as u64 * 7919) % 10_007;
            let mut timeline = Timeline::default();
            (0..changes).for_each(|i| timeline.note(i as u64, bytes(i)));
            let points = timeline.points();
            assert!(points.len() <= MOST && (changes < MOST || points.len() >= MOST / 2), "{changes}");
            let mut first = 0;
            for point in points {
                let last = point.micros as usize;
                let peak = (first..=last).map(bytes).max().unwrap();
                assert_eq!((point.bytes, point.peak_bytes), (bytes(last), peak), "{changes} {first}");
                first = last + 1;
            }
            assert_eq!(first, changes);
        }
    }
}
