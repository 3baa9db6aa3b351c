//! Size classes: multiples of 64 up to 512, then four classes per doubling, up to 1 MiB.

/// Largest size of the thread-local lists.
pub(super) const SMALL_MAX: usize = 4096;
/// Largest size of the shared lists.
pub(super) const MEDIUM_MAX: usize = (1 << 20) - 1;

/// The number of classes up to [`SMALL_MAX`].
pub(super) const SMALL_CLASSES: usize = 20;
/// The number of classes up to 1 MiB.
pub(super) const CLASSES: usize = SMALL_CLASSES + 32;

/// The class for `1 <= bytes <= 1 MiB`, and the size of its blocks, a multiple of 64.
#[inline]
pub(super) fn of(bytes: usize) -> (usize, usize) {
    if bytes <= 512 {
        let class = (bytes - 1) >> 6;
        return (class, (class + 1) << 6);
    }
    // `last` is within `2^log .. 2^(log + 1)`, which is divided into quarters.
    let last = bytes - 1;
    let log = last.ilog2() as usize;
    let quarter = last >> (log - 2);
    (8 + (log - 9) * 4 + (quarter - 4), (quarter + 1) << (log - 2))
}

/// Size of a class's blocks.
pub(super) fn size(class: usize) -> usize {
    if class < 8 {
        return (class + 1) << 6;
    }
    let (log, quarter) = (9 + (class - 8) / 4, 4 + (class - 8) % 4);
    (quarter + 1) << (log - 2)
}
