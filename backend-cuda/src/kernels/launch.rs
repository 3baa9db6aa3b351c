//! Structures shared by kernels, with the names of those in `kernels/*.cuh`, and launches.

use super::Kernel;
use crate::driver::Argument;
use crate::gpu::Gpu;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::Error;
use keyway_sdk::author::strided::{Dim, Strided};
use std::fmt::{self, Write};

/// The maximum number of dimensions of a kernel.
pub const DIMS: usize = 8;
/// The exclusive upper bound of linear indices, which are 32-bit integers; the division by multiplication is exact below
/// it.
pub const POSITIONS: usize = 1 << 31;

/// `Operand` in elementwise.cuh.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Operand {
    /// The address; 0 if `value` is the element.
    pub data: u64,
    /// The bits of a scalar.
    pub value: u64,
    /// 1 if the element at the address is broadcast.
    pub once: u64,
}

impl Operand {
    /// The operand shifted by `elements` elements of `bytes` bytes.
    pub fn shifted(self, elements: usize, bytes: usize) -> Operand {
        let moves = if self.data == 0 { 0 } else { elements.wrapping_mul(bytes) as u64 };
        Operand { data: self.data.wrapping_add(moves), ..self }
    }
}

/// `Divisor` in keyway.cuh.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Divisor {
    value: u32,
    magic: u32,
    shift: u32,
}

impl Divisor {
    /// For values from 1 to 2^31: `(n * magic / 2^32 + n) >> shift` is the quotient of any `n` below 2^31.
    pub fn new(value: u32) -> Divisor {
        let shift = value.next_power_of_two().trailing_zeros();
        let magic = ((1u64 << 32) * ((1u64 << shift) - u64::from(value))) / u64::from(value) + 1;
        Divisor { value, magic: magic as u32, shift }
    }

    #[cfg(test)]
    fn quotient(self, n: u32) -> u32 {
        ((((u64::from(n) * u64::from(self.magic)) >> 32) + u64::from(n)) >> self.shift) as u32
    }
}

/// `Dims` in keyway.cuh: innermost first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dims<const N: usize> {
    ndim: u32,
    size: [Divisor; DIMS],
    stride: [[i64; N]; DIMS],
}

impl<const N: usize> Dims<N> {
    /// A complete space, of at most [`DIMS`] dimensions and fewer than [`POSITIONS`] positions.
    pub fn of(space: &Strided<N>) -> Result<Dims<N>, Error> {
        if space.dims().len() <= DIMS && space.numel() < POSITIONS {
            return Ok(Dims::new(space.dims()));
        }
        Err(Error::Unsupported {
            what: format!(
                "{} elements in {} dimensions that cannot be joined, on this device, whose kernels take fewer than 2^31 \
                 in up to {DIMS}",
                space.numel(),
                space.dims().len()
            ),
        })
    }

    /// At most [`DIMS`] dimensions, outermost first, with fewer than [`POSITIONS`] positions.
    pub fn new(dims: &[Dim<N>]) -> Dims<N> {
        let mut made = Dims { ndim: dims.len() as u32, size: Default::default(), stride: [[0; N]; DIMS] };
        for (d, dim) in dims.iter().rev().take(DIMS).enumerate() {
            made.size[d] = Divisor::new(dim.size.max(1) as u32);
            made.stride[d] = dim.strides.map(|stride| stride as i64);
        }
        made
    }
}

/// A part of a space for one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<const N: usize> {
    /// The offset of each operand.
    pub offsets: [usize; N],
    /// The dimensions of the loops, outermost first.
    pub dims: Vec<Dim<N>>,
    /// The number of positions.
    pub count: usize,
}

/// Splits a space into pieces of at most [`DIMS`] dimensions and fewer than `limit` positions; the host iterates over the
/// outermost dimensions.
pub fn pieces<const N: usize>(dims: &[Dim<N>], limit: usize) -> Vec<Piece<N>> {
    let count = dims.iter().map(|dim| dim.size).product::<usize>();
    if count == 0 {
        return Vec::new();
    }
    if dims.len() <= DIMS && count < limit {
        return vec![Piece { offsets: [0; N], dims: dims.to_vec(), count }];
    }
    let (outer, inner) = (dims[0], &dims[1..]);
    let each = inner.iter().map(|dim| dim.size).product::<usize>();
    // The maximum number of outermost indices that fit.
    let at_once = if dims.len() > DIMS { 1 } else { ((limit - 1) / each).max(1) };
    let mut all = Vec::new();
    for begin in (0..outer.size).step_by(at_once) {
        let size = at_once.min(outer.size - begin);
        let mut part = vec![Dim { size, ..outer }];
        part.extend_from_slice(inner);
        let parts = if size == 1 { pieces(inner, limit) } else { pieces(&part, limit) };
        for mut piece in parts {
            for (offset, stride) in piece.offsets.iter_mut().zip(outer.strides) {
                // A negative stride is its two's complement.
                *offset = offset.wrapping_add(begin.wrapping_mul(stride));
            }
            all.push(piece);
        }
    }
    all
}

/// A kernel's name in a stack buffer.
struct Name {
    bytes: [u8; 96],
    len: usize,
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Launches an entry point by its name, as from `format_args!`.
pub fn launch<A: Argument>(
    gpu: &Gpu,
    kernel: Kernel,
    entry: fmt::Arguments<'_>,
    (blocks, threads): ([usize; 2], u32),
    argument: &A,
    stream: Queue,
) -> Result<(), Error> {
    launch_sharing(gpu, kernel, entry, (blocks, threads, 0), argument, stream)
}

/// As [`launch`], for a kernel whose blocks use a constant number of bytes of dynamic shared memory.
pub fn launch_sharing<A: Argument>(
    gpu: &Gpu,
    kernel: Kernel,
    entry: fmt::Arguments<'_>,
    (blocks, threads, shared): ([usize; 2], u32, u32),
    argument: &A,
    stream: Queue,
) -> Result<(), Error> {
    let mut name = Name { bytes: [0; 96], len: 0 };
    let long = || Error::Failed { detail: format!("the name of the kernel `{entry}` is too long") };
    name.write_fmt(entry).map_err(|_| long())?;
    let name = std::str::from_utf8(&name.bytes[..name.len]).map_err(|_| long())?;
    let loaded = gpu.modules.entry(&gpu.context, kernel.family, name, shared)?;
    let blocks = blocks.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    gpu.context.launch((loaded, name), (blocks, threads, shared), argument, stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn division_by_a_magic_number_is_division(n in 0..1u32 << 31, d in prop_oneof![1..100u32, 1..=1u32 << 31]) {
            prop_assert_eq!(Divisor::new(d).quotient(n), n / d);
        }

        #[test]
        fn pieces_are_the_whole(
            sizes in prop::collection::vec(1..4i64, 0..11),
            seed in any::<u64>(),
            limit in 2..200usize,
        ) {
            let strides: Vec<i64> = (0..sizes.len() as u32).map(|d| (seed.rotate_left(d * 7) % 50) as i64).collect();
            let space = Strided::new(&sizes, [&strides]).unwrap();
            let mut all = Vec::new();
            for piece in pieces(space.dims(), limit) {
                prop_assert!(piece.dims.len() <= DIMS && piece.count < limit);
                let made = Dims::new(&piece.dims);
                for at in 0..piece.count as u32 {
                    // The computation of the kernel.
                    let (mut rest, mut offset) = (at, piece.offsets[0] as i64);
                    for d in 0..made.ndim as usize {
                        let next = made.size[d].quotient(rest);
                        offset += i64::from(rest - next * made.size[d].value) * made.stride[d][0];
                        rest = next;
                    }
                    all.push([offset as usize]);
                }
            }
            prop_assert_eq!(all, space.offsets().collect::<Vec<_>>());
        }
    }

    #[test]
    fn ends_of_the_range_are_divided_right() {
        for d in [1u32, 2, 3, 5, 7, 641, 65536, 65537, (1 << 31) - 1, 1 << 31] {
            for n in [0, 1, d - 1, d, d.saturating_add(1), (1 << 31) - 1].into_iter().filter(|n| *n < 1 << 31)
            {
                assert_eq!(Divisor::new(d).quotient(n), n / d, "{n} / {d}");
            }
        }
    }
}
