//! Copies of contiguous elements.

/// Bytes that are copied at a time, and the maximum size for which these copies are used instead of `memcpy`: for such
/// short rows the call takes as long as the copy.
const CHUNK: usize = 64;
const SHORT: usize = 2048;

/// Copies `n` contiguous elements.
///
/// # Safety
/// `from` must have `n` elements and `to` capacity for them, without overlap and uniquely owned; the caller upholds this.
#[inline(always)]
pub unsafe fn copy_dense<T: Copy>(to: *mut T, from: *const T, n: usize) {
    let bytes = n * size_of::<T>();
    // SAFETY: as the caller guarantees; each chunk is within the `bytes`.
    unsafe {
        match bytes {
            16..32 => copy_chunks::<16>(to.cast(), from.cast(), bytes),
            32..CHUNK => copy_chunks::<32>(to.cast(), from.cast(), bytes),
            CHUNK..=SHORT => copy_chunks::<CHUNK>(to.cast(), from.cast(), bytes),
            _ if bytes > SHORT && is_close_behind(to.addr(), from.addr()) => {
                copy_chunks::<CHUNK>(to.cast(), from.cast(), bytes);
            }
            _ => std::ptr::copy_nonoverlapping(from, to, n),
        }
    }
}

/// Whether the target starts just after the source, modulo the page size: `rep movsb`, which the system's `memcpy` uses for
/// long rows, then takes 2 to 12 times as long on some processors (Zen 3, Zen 4; glibc bug 30994).
fn is_close_behind(to: usize, from: usize) -> bool {
    const PAGE: usize = 4096;
    matches!(to.wrapping_sub(from) % PAGE, 1..32)
}

/// Copies at least `SIZE` bytes, `SIZE` at a time.
///
/// # Safety
/// The bytes must be valid at both addresses, and the target uniquely owned.
#[inline(always)]
unsafe fn copy_chunks<const SIZE: usize>(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: as the caller guarantees.
    let copy = |at: usize| unsafe {
        let chunk = from.add(at).cast::<[u8; SIZE]>().read_unaligned();
        to.add(at).cast::<[u8; SIZE]>().write_unaligned(chunk);
    };
    (0..bytes / SIZE).for_each(|k| copy(k * SIZE));
    // The last chunk may overlap the previous one and write the same bytes again.
    copy(bytes - SIZE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_any_number_are_copied_and_nothing_beside_them() {
        let from: Vec<u16> = (1..4000).collect();
        for n in [0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 1023, 1024, 1025, 2047, 2048, 3000] {
            let mut to = vec![0; 4000];
            // SAFETY: two separate vectors have more than `n` elements.
            unsafe { copy_dense(to[1..].as_mut_ptr(), from.as_ptr(), n) };
            assert_eq!((to[0], &to[1..=n]), (0, &from[..n]));
            assert!(to[n + 1..].iter().all(|x| *x == 0));
        }
    }
}
