//! Micro-kernels for panels of bf16: the tile unit (AMX), or vector dot products, behind a trait so that callers can be
//! tested without either.

pub use super::block::{Block, Gathered, Rows};

#[cfg(target_arch = "x86_64")]
use super::dots;
use super::pack::{SIDE, STEP};
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

impl Rows {
    /// The rows of a panel.
    pub fn packed(data: *const u16) -> Rows {
        Rows { data, line: SIDE, half: STEP / 2, step: STEP }
    }

    /// Dense rows with stride `line`, in elements.
    pub fn dense(data: *const u16, line: usize) -> Rows {
        Rows { data, line, half: SIDE / 2 * line, step: SIDE }
    }

    /// The rows after `steps` steps.
    pub fn at(self, steps: usize) -> Rows {
        Rows { data: self.data.wrapping_add(steps * self.step), ..self }
    }
}

/// A matrix unit that multiplies panels.
pub trait Unit: Copy + Sync {
    /// Whether the processor has AVX-512 (F and BW) for packing panels.
    const VECTORS: bool;

    /// The approximate time of a block relative to tiles: the minimum work per thread is smaller by this factor.
    fn slowness(self) -> usize {
        1
    }

    /// Runs `body` with tiles configured; within it, [`Unit::block`] may be called on this thread.
    fn with_tiles<R>(self, body: impl FnOnce() -> R) -> R;

    /// Computes one block.
    ///
    /// # Safety
    /// Rows, panel and sums must be valid, and the sums uniquely owned; this thread must be within
    /// [`Unit::with_tiles`]. The caller upholds this.
    unsafe fn block(self, block: &Block);

    /// Computes one block whose rows have a different address at each step: see [`Gathered`].
    ///
    /// # Safety
    /// As for [`Unit::block`].
    unsafe fn gathered(self, block: &Gathered<'_>);
}

/// A bf16 matrix unit of this processor. A value of this type proves that the instructions exist: [`Native::find`] detects
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Other processors have no unit.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
enum Kind {
    /// The tile unit: 32 by 32 products cost little more than a few.
    Tiles,
    /// Vector dot products of pairs (AVX-512 BF16): twice the multiplications of f32.
    Dots,
}

impl Native {
    /// Detects tiles, otherwise dot products, if the processor has them and the operating system permits them; the result
    /// is cached.
    pub fn find() -> Option<Native> {
        #[cfg(target_arch = "x86_64")]
        {
            static FOUND: OnceLock<Option<Native>> = OnceLock::new();
            *FOUND.get_or_init(|| match () {
                () if has_amx() && permitted() => Some(Native(Kind::Tiles)),
                () if has_dots() => Some(Native(Kind::Dots)),
                () => None,
            })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Detects tiles alone, for tests.
    pub fn tiles() -> Option<Native> {
        Native::find().filter(|native| native.0 == Kind::Tiles)
    }

    /// Detects dot products alone, for tests: the processor may have tiles, too.
    pub fn dots() -> Option<Native> {
        has_dots().then_some(Native(Kind::Dots))
    }

    /// Whether the unit is faster for a product of these sizes: vectors multiply the zero padding of a panel at full cost.
    pub fn pays(self, rows: usize, columns: usize, inner: usize) -> bool {
        let whole = |size: usize| size.next_multiple_of(SIDE);
        let padded = whole(rows).saturating_mul(whole(columns)).saturating_mul(whole(inner));
        self.0 == Kind::Tiles || padded / 3 * 2 <= rows.saturating_mul(columns).saturating_mul(inner)
    }
}

/// Whether the processor has bf16 dot products and the features for packing panels.
fn has_dots() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(not(target_arch = "x86_64"))]
impl Unit for Native {
    const VECTORS: bool = false;

    fn with_tiles<R>(self, body: impl FnOnce() -> R) -> R {
        body()
    }

    unsafe fn block(self, _: &Block) {
        unreachable!("`Native::find` makes none here")
    }

    unsafe fn gathered(self, _: &Gathered<'_>) {
        unreachable!("`Native::find` makes none here")
    }
}

/// Whether the processor has tiles, their bf16 product and AVX-512, and the operating system saves the state of both.
#[cfg(target_arch = "x86_64")]
fn has_amx() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
    const TILE_AND_BF16: u32 = 1 << 24 | 1 << 22;
    /// The XCR0 bits of the tile configuration and the tile data.
    const TILE_STATE: u64 = 0b11 << 17;
    #[target_feature(enable = "xsave")]
    fn saved_state() -> u64 {
        // SAFETY: the caller has checked that the instruction exists; register 0 always exists.
        unsafe { _xgetbv(0) }
    }
    // AVX-512 is tested first: it implies `xsave`, enabled by the operating system.
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("xsave")
        && __cpuid(0).eax >= 7
        && __cpuid_count(7, 0).edx & TILE_AND_BF16 == TILE_AND_BF16
        // SAFETY: the processor has `xsave`, as checked above.
        && unsafe { saved_state() } & TILE_STATE == TILE_STATE
}

/// Requests permission for the tile state from the operating system. It may be refused, by a system call filter or because
/// a thread's signal stack is too small for that state.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: the call has two integer arguments and accesses no memory of the process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

/// Other systems have different mechanisms, which are not tested.
#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn permitted() -> bool {
    false
}

/// The operand of `ldtilecfg`: eight tiles of 16 rows of 64 bytes.
#[cfg(target_arch = "x86_64")]
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

#[cfg(target_arch = "x86_64")]
static CONFIGURATION: Configuration = Configuration {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

#[cfg(target_arch = "x86_64")]
impl Unit for Native {
    const VECTORS: bool = true;

    fn slowness(self) -> usize {
        match self.0 {
            Kind::Tiles => 1,
            Kind::Dots => 8,
        }
    }

    fn with_tiles<R>(self, body: impl FnOnce() -> R) -> R {
        /// A guard that releases the tiles on drop, also if `body` panics: context switches are slower with tiles in use.
        struct Release;
        impl Drop for Release {
            fn drop(&mut self) {
                // SAFETY: the kind guarantees the tile unit.
                unsafe { std::arch::asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
            }
        }
        if self.0 == Kind::Dots {
            return body();
        }
        // SAFETY: the kind guarantees the tile unit; the configuration is of palette 1, the only one.
        unsafe {
            std::arch::asm!(
                "ldtilecfg [{0}]",
                in(reg) &raw const CONFIGURATION,
                options(readonly, nostack, preserves_flags)
            );
        }
        let _release = Release;
        body()
    }

    #[inline]
    unsafe fn block(self, block: &Block) {
        const { assert!(SIDE == 32 && STEP == 2 * 1024 / 2) };
        if self.0 == Kind::Dots {
            // SAFETY: as the caller guarantees; the kind guarantees the processor's features.
            return unsafe { dots::block(block) };
        }
        let Block { steps, left, right, sums, row, add, soon } = *block;
        // Tiles 0 to 3 are accumulators, 4 and 5 are rows, 6 and 7 are columns.
        // SAFETY: the caller guarantees the elements and configured tiles. A tile is 16 lines of 64 bytes; lines of columns
        // are dense, those of accumulators have stride `row`. A prefetch never faults.
        unsafe {
            std::arch::asm!(
                "test {add:e}, {add:e}",
                "jnz 2f",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "jmp 3f",
                "2:",
                "tileloadd tmm0, [{sums} + {row}]",
                "tileloadd tmm1, [{sums} + {row} + 64]",
                "tileloadd tmm2, [{under} + {row}]",
                "tileloadd tmm3, [{under} + {row} + 64]",
                "3:",
                "tileloadd tmm4, [{left} + {line}]",
                "tileloadd tmm6, [{right} + {dense}]",
                "prefetcht1 [{soon}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{right} + {dense} + 1024]",
                "prefetcht1 [{soon} + 64]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{lower} + {line}]",
                "prefetcht1 [{soon} + 128]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "prefetcht1 [{soon} + 192]",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {left}, {step}",
                "add {lower}, {step}",
                "add {right}, 2048",
                "add {soon}, 2048",
                "dec {steps}",
                "jnz 3b",
                "tilestored [{sums} + {row}], tmm0",
                "tilestored [{sums} + {row} + 64], tmm1",
                "tilestored [{under} + {row}], tmm2",
                "tilestored [{under} + {row} + 64], tmm3",
                add = in(reg) u32::from(add),
                sums = in(reg) sums,
                under = in(reg) sums.add(SIDE / 2 * row),
                row = in(reg) row * size_of::<f32>(),
                dense = in(reg) 64usize,
                line = in(reg) left.line * size_of::<u16>(),
                step = in(reg) left.step * size_of::<u16>(),
                left = inout(reg) left.data => _,
                lower = inout(reg) left.data.add(left.half) => _,
                right = inout(reg) right => _,
                soon = inout(reg) soon => _,
                steps = inout(reg) steps => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
    }

    #[inline]
    unsafe fn gathered(self, block: &Gathered<'_>) {
        if self.0 == Kind::Dots {
            // SAFETY: as in `block`.
            return unsafe { dots::gathered(block) };
        }
        let Gathered { offsets, left, line, right, sums, narrow } = *block;
        if narrow {
            // As below, without the right half of the columns.
            // SAFETY: as above.
            unsafe {
                std::arch::asm!(
                    "tilezero tmm0",
                    "tilezero tmm2",
                    "2:",
                    "mov {at}, [{offset}]",
                    "add {at}, {left}",
                    "tileloadd tmm4, [{at} + {line}]",
                    "add {at}, {half}",
                    "tileloadd tmm6, [{right} + {dense}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{at} + {line}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "add {right}, 2048",
                    "add {offset}, 8",
                    "cmp {offset}, {end}",
                    "jne 2b",
                    "mov {at:e}, 128",
                    "tilestored [{sums} + {at}], tmm0",
                    "tilestored [{sums} + {at} + 2048], tmm2",
                    at = out(reg) _,
                    offset = inout(reg) offsets.as_ptr() => _,
                    end = in(reg) offsets.as_ptr_range().end,
                    left = in(reg) left,
                    line = in(reg) line * size_of::<u16>(),
                    half = in(reg) SIDE / 2 * line * size_of::<u16>(),
                    right = inout(reg) right => _,
                    dense = in(reg) 64usize,
                    sums = in(reg) sums,
                    out("tmm0") _, out("tmm2") _, out("tmm4") _, out("tmm5") _, out("tmm6") _,
                    options(nostack)
                );
            }
            return;
        }
        // As above; the list of offsets is not empty.
        // SAFETY: as above.
        unsafe {
            std::arch::asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "2:",
                "mov {at}, [{offset}]",
                "add {at}, {left}",
                "tileloadd tmm4, [{at} + {line}]",
                "add {at}, {half}",
                "tileloadd tmm6, [{right} + {dense}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{right} + {dense} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{at} + {line}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {right}, 2048",
                "add {offset}, 8",
                "cmp {offset}, {end}",
                "jne 2b",
                "mov {at:e}, 128",
                "tilestored [{sums} + {at}], tmm0",
                "tilestored [{sums} + {at} + 64], tmm1",
                "tilestored [{sums} + {at} + 2048], tmm2",
                "tilestored [{sums} + {at} + 2112], tmm3",
                at = out(reg) _,
                offset = inout(reg) offsets.as_ptr() => _,
                end = in(reg) offsets.as_ptr_range().end,
                left = in(reg) left,
                line = in(reg) line * size_of::<u16>(),
                half = in(reg) SIDE / 2 * line * size_of::<u16>(),
                right = inout(reg) right => _,
                dense = in(reg) 64usize,
                sums = in(reg) sums,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
    }
}
