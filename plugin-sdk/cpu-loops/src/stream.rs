//! Non-temporal stores for outputs larger than the caches.
//!
//! A store reads its cache line first (write allocate), and that line evicts another; for an output larger than the caches
//! both are wasted. Here a function writes a small block that stays in L1, and the block is copied to the output by
//! non-temporal stores, the widest of the compiled level. Smaller outputs use plain stores, since their next reader would
//! lose more than is saved here.
//!
//! On Intel processors, blocks of four pages are written alternately: this occupies more memory banks and prefetchers, and
//! without it non-temporal stores gain nothing. On AMD processors it halves the bandwidth (Zen 3, `add` of f32: 31.7 ms by
//! 16-byte stores to four pages alternately, 22.3 to one page at a time, 17.0 by 32-byte stores, 22.9 by plain stores), so
//! there pages are written one at a time. The vendor is detected at run time; the bytes written are the same.

use crate::inner_loop::{InnerLoop, Repeated};
use crate::operand::Addresses;
use crate::operand::{OPERANDS, Operand, PerOperand};
use std::sync::OnceLock;

/// The minimum output size in bytes.
const LARGE: usize = 32 << 20;
/// The size of a cache line in bytes, to which the stores are aligned.
const LINE: usize = 64;
/// Bytes that are written at a time.
const BLOCK: usize = 1024;
const PAGE: usize = 4096;
/// The number of pages that are written alternately on Intel processors.
const PAGES: usize = 4;

/// Whether non-temporal stores are faster for an output. An output that is also an input is in the cache already.
pub(crate) fn pays(out: &Operand<'_>, ins: &[Operand<'_>]) -> bool {
    cfg!(target_arch = "x86_64")
        && out.numel().saturating_mul(out.bytes) >= LARGE
        && LINE.is_multiple_of(out.bytes)
        && !ins.iter().any(|input| input.coincides(out))
}

#[repr(align(64))]
struct Block([u8; BLOCK]);

/// The number of pages to write alternately on this processor.
fn pages() -> usize {
    static PAGES_IN_TURN: OnceLock<usize> = OnceLock::new();
    *PAGES_IN_TURN.get_or_init(|| if is_amd() { 1 } else { PAGES })
}

/// Whether the processor is from AMD, or from Hygon with the same design.
fn is_amd() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let leaf = std::arch::x86_64::__cpuid(0);
        let vendor = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
        matches!(vendor.as_flattened(), b"AuthenticAMD" | b"HygonGenuine")
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    false
}

/// As [`InnerLoop::run`], for an output that [`pays`]; `bytes` are the element sizes of the operands.
///
/// # Safety
/// As for [`InnerLoop::run`], and no input may be the output.
pub(crate) unsafe fn run(
    at: Addresses,
    bytes: PerOperand,
    repeated: Repeated,
    n: usize,
    inner: InnerLoop<'_>,
) {
    // SAFETY: as the caller guarantees.
    unsafe { in_turn(pages(), at, bytes, repeated, n, inner) }
}

/// As [`run`], writing blocks of `pages` pages alternately.
///
/// # Safety
/// As for [`run`].
unsafe fn in_turn(
    pages: usize,
    at: Addresses,
    bytes: PerOperand,
    repeated: Repeated,
    n: usize,
    inner: InnerLoop<'_>,
) {
    let element = bytes[0];
    let from = |i: usize| -> Addresses {
        std::array::from_fn(|k| if repeated >> k & 1 == 1 { at[k] } else { at[k].wrapping_add(i * bytes[k]) })
    };
    // An output's elements are aligned to their size, so the next cache line starts at an element.
    let head = (at[0].addr().wrapping_neg() % LINE / element).min(n);
    let (page, block) = (PAGE / element, BLOCK / element);
    let end = head + (n - head) / (page * pages) * (page * pages);
    let mut made = Block([0; BLOCK]);
    let to_made = (&raw mut made.0).cast::<u8>();
    let copies = inner.copies() && repeated == 0;
    // SAFETY: the caller guarantees elements of each operand up to `n`; the block has the capacity of one iteration, and is
    // an output that overlaps no input.
    unsafe {
        inner.run(from(0), repeated, head);
        for first in (head..end).step_by(page * pages) {
            for within in (0..page).step_by(block) {
                for turn in 0..pages {
                    let mut operands: [*mut u8; OPERANDS] = from(first + turn * page + within);
                    let to = std::mem::replace(&mut operands[0], to_made);
                    if copies {
                        store(to, operands[1]);
                    } else {
                        inner.run(operands, repeated, block);
                        store(to, to_made);
                    }
                }
            }
        }
        inner.run(from(end), repeated, n - end);
    }
    fence();
}

/// Copies a block by non-temporal stores.
///
/// # Safety
/// There must be a block at both addresses, the target aligned to [`LINE`]; [`fence`] must be called before other threads
/// read.
#[inline(always)]
unsafe fn store(to: *mut u8, from: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        #[cfg(not(target_feature = "avx"))]
        use std::arch::x86_64::{__m128i as Vector, _mm_loadu_si128 as load, _mm_stream_si128 as stream};
        #[cfg(all(target_feature = "avx", not(target_feature = "avx512f")))]
        use std::arch::x86_64::{
            __m256i as Vector, _mm256_loadu_si256 as load, _mm256_stream_si256 as stream,
        };
        #[cfg(target_feature = "avx512f")]
        use std::arch::x86_64::{
            __m512i as Vector, _mm512_loadu_si512 as load, _mm512_stream_si512 as stream,
        };
        let (to, from) = (to.cast::<Vector>(), from.cast::<Vector>());
        for i in 0..BLOCK / size_of::<Vector>() {
            // SAFETY: the caller guarantees the blocks and the alignment of the target, which is that of the widest vector;
            // the compiled level has these instructions.
            unsafe { stream(to.add(i), load(from.add(i))) };
        }
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    // SAFETY: the caller guarantees the blocks, which do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, BLOCK);
    }
}

/// Orders non-temporal stores before all later stores.
#[inline(always)]
fn fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor has this instruction; it has no operands.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_once_from_any_address_and_in_any_number() {
        let a: Vec<u32> = (0..20_000).collect();
        let b: Vec<u16> = (0..20_000).map(|i| i as u16 ^ 0x55).collect();
        let f = |(a, b): (u32, u16)| a * 3 + u32::from(b);
        let inner = InnerLoop::of_elements::<(*const u32, *const u16), *mut u32, _>(&f);
        for (first, n) in [(0, 0), (0, 1), (3, 5), (5, 4096), (1, 4112), (0, 8192), (7, 13_000), (16, 19_000)]
        {
            let mut out = vec![u32::MAX; 20_000];
            for pages in [1, PAGES, pages()] {
                out.fill(u32::MAX);
                let at = [
                    out[first..].as_mut_ptr().cast(),
                    a[first..].as_ptr().cast_mut().cast(),
                    b[first..].as_ptr().cast_mut().cast(),
                    std::ptr::null_mut(),
                ];
                // SAFETY: the vectors have `n` elements after `first`.
                unsafe { in_turn(pages, at, [4, 4, 2, 0], 0, n, inner) };
                for (i, x) in out.iter().enumerate() {
                    let expected = if (first..first + n).contains(&i) { f((a[i], b[i])) } else { u32::MAX };
                    assert_eq!(*x, expected, "element {i} of {n} from {first}, {pages} pages in turn");
                }
            }
        }
    }

    #[test]
    fn a_copy_reads_from_any_address() {
        let a: Vec<u32> = (0..20_000).collect();
        let inner = InnerLoop::of_elements::<(*const u32,), *mut u32, _>(&|(a,)| a).copying();
        for (from, to) in [(0, 0), (1, 0), (3, 5)] {
            let mut out = vec![u32::MAX; 20_000];
            let (at, read) = (out[to..].as_mut_ptr().cast(), a[from..].as_ptr().cast_mut().cast());
            // SAFETY: the vectors have 19,000 elements after these offsets.
            unsafe { run([at, read, read, read], [4, 4, 0, 0], 0, 19_000, inner) };
            assert_eq!(out[to..to + 19_000], a[from..from + 19_000]);
            assert!(out[..to].iter().chain(&out[to + 19_000..]).all(|x| *x == u32::MAX));
        }
    }

    #[test]
    fn a_repeated_input_is_repeated() {
        let (a, b) = (vec![2u8; 40_000], [5u8; crate::inner_loop::LANES]);
        let inner = InnerLoop::of_elements::<(*const u8, *const u8), *mut u8, _>(&|(a, b)| a + b);
        let mut out = vec![0u8; 40_000];
        let at = [out.as_mut_ptr(), a.as_ptr().cast_mut(), b.as_ptr().cast_mut(), std::ptr::null_mut()];
        // SAFETY: the vectors have the elements, and the second input one chunk.
        unsafe { run(at, [1, 1, 1, 0], 0b100, 40_000, inner) };
        assert!(out.iter().all(|x| *x == 7));
    }
}
