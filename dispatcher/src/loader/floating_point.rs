//! The floating-point environment of a thread: rounding mode, flush-to-zero, unmasked exceptions.
//!
//! A library built with gcc's `-ffast-math` sets this when it is loaded, for the thread that loads it and all that are
//! started afterwards, and so changes everybody's results.

/// The floating-point control registers of a thread, without the exception flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control([u64; 2]);

/// The control bits of MXCSR; the others are exception flags.
#[cfg(target_arch = "x86_64")]
const SETTINGS: u32 = 0xffc0;

impl Control {
    /// The environment of this thread.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn now() -> Control {
        Control([u64::from(mxcsr() & SETTINGS), u64::from(x87())])
    }

    /// The environment of this thread.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn now() -> Control {
        let word: u64;
        // SAFETY: the instruction reads a register that every program may read.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack)) };
        Control([word, 0])
    }

    /// The environment of this thread.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn now() -> Control {
        Control([0; 2])
    }

    /// Restores this environment on this thread.
    pub(crate) fn restore(self) {
        if self == Control::now() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        {
            let word = (mxcsr() & !SETTINGS) | self.0[0] as u32;
            let x87 = self.0[1] as u16;
            // SAFETY: the instructions read words of this frame, which were read from the same registers, so that no
            // reserved bit is set; they restore the thread's earlier state.
            unsafe {
                std::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, readonly));
                std::arch::asm!("fldcw [{}]", in(reg) &x87, options(nostack, readonly));
            }
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the value was read from the same register of this thread.
        unsafe {
            std::arch::asm!("msr fpcr, {}", in(reg) self.0[0], options(nomem, nostack));
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn mxcsr() -> u32 {
    let mut word = 0_u32;
    // SAFETY: the instruction writes one word of this frame.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack)) };
    word
}

#[cfg(target_arch = "x86_64")]
fn x87() -> u16 {
    let mut word = 0_u16;
    // SAFETY: the instruction writes one word of this frame.
    unsafe { std::arch::asm!("fnstcw [{}]", in(reg) &mut word, options(nostack)) };
    word
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_set_is_set_back() {
        let before = Control::now();
        let tiny = std::hint::black_box(f32::MIN_POSITIVE);
        // Computed in the thread, not where the result is checked.
        let halved = || std::hint::black_box(std::hint::black_box(tiny) / std::hint::black_box(2.0_f32));
        // Flush to zero and denormals are zero, as `-ffast-math` sets them; and the x87 rounds down.
        Control([before.0[0] | 0x8040, before.0[1] | 0x0400]).restore();
        let (fast, changed) = (halved(), Control::now());
        before.restore();
        assert_ne!(changed, before);
        assert_eq!((fast, Control::now()), (0.0, before));
        assert!(halved() > 0.0);
    }
}
