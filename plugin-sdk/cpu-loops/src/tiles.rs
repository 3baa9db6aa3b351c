//! Products of bf16 by the tile unit of some x86-64 processors (AMX), or by vector dot products, which more processors
//! have (AVX-512 BF16); both accumulate in f32.
//!
//! Run-time feature detection is used only here: these features depend on the processor and, for tiles, on permission of
//! the operating system, and no level for which libraries are built includes them. Both flush subnormal values to 0.

mod block;
#[cfg(target_arch = "x86_64")]
mod dots;
mod emulated;
mod pack;
mod unit;

pub use emulated::{Emulated, EmulatedDots};
pub use pack::{Operand, SIDE, STEP, Source, pack};
pub use unit::{Block, Gathered, Native, Rows, Unit};
