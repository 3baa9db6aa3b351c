//! Products of bf16 by the tile unit of some x86-64 processors (AMX), or by the dot products of vectors that more have
//! (AVX-512 BF16), both of which sum in f32.
//!
//! Here alone features are asked for at run time: these are a matter of the processor and, of tiles, of the system's leave, and
//! none of the levels that libraries are built for has them. Both take subnormal numbers for 0.

#[cfg(target_arch = "x86_64")]
mod dots;
mod emulated;
mod pack;
mod unit;

pub use emulated::{Emulated, EmulatedDots};
pub use pack::{Operand, SIDE, STEP, Source, pack};
pub use unit::{Block, Gathered, Native, Rows, Unit};
