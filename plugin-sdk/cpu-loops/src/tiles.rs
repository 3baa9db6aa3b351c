//! Products of bf16 by the tile unit of some x86-64 processors (AMX), which sums in f32.
//!
//! Here alone features are asked for at run time: the unit is a matter of the processor and of the system's leave, and
//! none of the levels that libraries are built for has it. The unit takes subnormal numbers for 0.

mod emulated;
mod pack;
mod unit;

pub use emulated::Emulated;
pub use pack::{Operand, SIDE, STEP, Source, pack};
pub use unit::{Amx, Block, Gathered, Rows, Unit};
