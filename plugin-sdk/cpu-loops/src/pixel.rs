//! Copies of a pixel's channels.

/// Bytes that are copied at once.
const LINE: usize = 64;

/// Copies a pixel, which has too few bytes for a call of what copies memory to be worth it.
///
/// # Safety
/// There must be `n` elements and places for them, which do not meet, and nobody else may use the places; the caller upholds
/// this.
#[inline(always)]
pub unsafe fn copy_pixel<T>(to: *mut T, from: *const T, n: usize) {
    let bytes = n * size_of::<T>();
    // SAFETY: as the caller guarantees; the last bytes are copied together with some before them.
    unsafe {
        if !(LINE..=LINE * LINE).contains(&bytes) {
            return to.copy_from_nonoverlapping(from, n);
        }
        let (from, to) = (from.cast::<[u8; LINE]>(), to.cast::<[u8; LINE]>());
        for i in 0..bytes / LINE {
            to.wrapping_add(i).copy_from_nonoverlapping(from.wrapping_add(i), 1);
        }
        let last = bytes - LINE;
        to.wrapping_byte_add(last).copy_from_nonoverlapping(from.wrapping_byte_add(last), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_of_any_length_are_copied_and_nothing_beside_them() {
        let from: Vec<u16> = (1..4000).collect();
        for n in [0, 1, 31, 32, 33, 63, 64, 65, 100, 2047, 2048, 2049, 3000] {
            let mut to = vec![0; 4000];
            // SAFETY: there are more elements and places than `n`, in two vectors.
            unsafe { copy_pixel(to[1..].as_mut_ptr(), from.as_ptr(), n) };
            assert_eq!((to[0], &to[1..=n]), (0, &from[..n]));
            assert!(to[n + 1..].iter().all(|x| *x == 0), "{n}");
        }
    }
}
