//! Device memory for the duration of a call, and results that kernels write to it for the host.

use super::Kernel;
use super::launch::Operand;
use super::map::{Side, write};
use crate::gpu::Gpu;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::Error;

/// A device and the stream of a call.
pub type On = (&'static Gpu, Queue);

/// Memory that is freed on drop, after the work submitted until then.
pub struct Scratch {
    on: On,
    at: u64,
    bytes: u64,
}

impl Scratch {
    /// Uninitialised memory of `count` elements of `bytes` bytes each; the address is 0 if `count` is 0.
    pub fn new(on: On, count: usize, bytes: usize) -> Result<Scratch, Error> {
        let bytes = count.saturating_mul(bytes) as u64;
        let at = if bytes == 0 { 0 } else { on.0.memory.allocate(&on.0.context, bytes, on.1)? };
        Ok(Scratch { on, at, bytes })
    }

    /// Memory of `count` words with the value `value`.
    pub fn filled(on: On, count: usize, value: u64) -> Result<Scratch, Error> {
        let words = Scratch::new(on, count, 8)?;
        let side = |operand, strides| Side { operand, bytes: 8, strides };
        let from = Operand { value, ..Operand::default() };
        let sides = [side(words.operand(), &[1]), side(from, &[1])];
        write(on, COPY, format_args!("copy_b64"), &[count as i64], sides, [0; 3])?;
        Ok(words)
    }

    /// The address of the memory.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// As an operand.
    pub fn operand(&self) -> Operand {
        Operand { data: self.at, ..Operand::default() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // If freeing fails, the stream is in an error state that its next call reports.
            let _ = self.on.0.memory.free(&self.on.0.context, self.at, self.bytes, self.on.1);
        }
    }
}

/// The copies of `cast.cu`.
pub const COPY: Kernel = Kernel { family: "cast", name: "copy", dtype: "" };

/// Copies elements of `bytes` each, with these sizes; the operands' strides are those of target and source, not negative.
pub fn copy(
    on: On,
    bytes: usize,
    sizes: &[i64],
    (to, to_strides): (Operand, &[i64]),
    (from, from_strides): (Operand, &[i64]),
) -> Result<(), Error> {
    let side = |operand, strides| Side { operand, bytes, strides };
    super::cast::copy(on, sizes, [side(to, to_strides), side(from, from_strides)])
}

/// Copies words of the device's memory to the host, and synchronises.
pub fn words(on: On, at: u64, count: usize) -> Result<Vec<u64>, Error> {
    let mut words = Vec::new();
    let bytes = (count * 8) as u64;
    words.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { requested: bytes, available: 0 })?;
    words.resize(count, 0u64);
    if count > 0 {
        // SAFETY: the words are this function's, and the stream is waited for before they are read.
        unsafe { on.0.context.copy_out(words.as_mut_ptr().cast(), at, bytes, on.1)? };
        on.0.context.synchronize_stream(on.1)?;
    }
    Ok(words)
}
