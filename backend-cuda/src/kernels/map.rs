//! Host code of the element-wise engine.

use super::elements::{Taken, of_host};
use super::launch::{Dims, Operand, POSITIONS, Piece, launch, pieces};
use super::scratch::COPY;
use super::space::{each, up_to_two};
use super::{Kernel, device_of};
use crate::driver::Argument;
use crate::gpu::Gpu;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::strided::{Dim, Strided};
use keyway_sdk::author::{Call, Error, Tensor, dtype_name, dtype_size};

/// Threads per block.
const THREADS: usize = 128;
/// Bytes per thread and step of a dense kernel, for the operand with the largest elements.
const AT_ONCE: usize = 16;

#[repr(C)]
#[derive(Clone, Copy)]
struct DenseArgument<const N: usize> {
    operand: [Operand; N],
    scalar: [u64; 3],
    count: u64,
}
// SAFETY: `Dense<N>` in elementwise.cuh has these fields.
unsafe impl<const N: usize> Argument for DenseArgument<N> {}

#[repr(C)]
#[derive(Clone, Copy)]
struct StridedArgument<const N: usize> {
    operand: [Operand; N],
    scalar: [u64; 3],
    count: u64,
    packs: u64,
    dims: Dims<N>,
}
// SAFETY: `Strided<N>` in elementwise.cuh has these fields.
unsafe impl<const N: usize> Argument for StridedArgument<N> {}

/// An operand of a kernel: the address of its elements, their size, and their strides.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The address, or a scalar.
    pub operand: Operand,
    /// Bytes of an element.
    pub bytes: usize,
    /// The strides in elements.
    pub strides: &'a [i64],
}

impl<'a> Side<'a> {
    /// A tensor of a call.
    pub fn new(tensor: &Tensor<'a>, taken: Taken) -> Result<Side<'a>, Error> {
        let bytes = dtype_size(tensor.dtype()).ok_or_else(|| Error::Unsupported {
            what: format!("dtype {} ({}) on this device", dtype_name(tensor.dtype()), tensor.dtype()),
        })?;
        let operand = match tensor.is_host_scalar() {
            true => Operand { value: of_host(tensor, taken)?, ..Operand::default() },
            false => Operand { data: tensor.data_ptr().addr() as u64, ..Operand::default() },
        };
        Ok(Side { operand, bytes, strides: tensor.strides() })
    }
}

/// An argument of a call.
pub fn argument<'a>(call: &Call<'a>, index: usize, taken: Taken) -> Result<Side<'a>, Error> {
    Side::new(&call.tensor(index)?, taken)
}

/// Computes the output with the kernel `NAME_DTYPE` from the arguments with these indices.
pub fn map<const N: usize>(
    call: &Call<'_>,
    kernel: Kernel,
    arguments: [usize; N],
    taken: Taken,
    scalars: [u64; 3],
) -> Result<(), Error> {
    let mut sides = [Side { operand: Operand::default(), bytes: 1, strides: &[] }; N];
    for (side, index) in sides.iter_mut().zip(arguments) {
        *side = argument(call, index, taken)?;
    }
    fill_output(call, kernel, format_args!("{}_{}", kernel.name, kernel.dtype), sides, scalars)
}

/// Writes the output with the kernel of this name.
pub fn fill_output<const N: usize>(
    call: &Call<'_>,
    kernel: Kernel,
    name: std::fmt::Arguments<'_>,
    sides: [Side<'_>; N],
    scalars: [u64; 3],
) -> Result<(), Error> {
    let output = call.output(0)?;
    let out = Side::new(&output, Taken::Raw)?;
    let on = (device_of(call)?, call.stream());
    match N {
        1 => write(on, kernel, name, output.sizes(), [out, sides[0]], scalars),
        2 => write(on, kernel, name, output.sizes(), [out, sides[0], sides[1]], scalars),
        _ => write(on, kernel, name, output.sizes(), [out, sides[0], sides[1], sides[2]], scalars),
    }
}

/// Writes the first of the operands, all of which have these sizes.
pub fn write<const N: usize>(
    (gpu, stream): (&Gpu, Queue),
    kernel: Kernel,
    name: std::fmt::Arguments<'_>,
    sizes: &[i64],
    sides: [Side<'_>; N],
    scalar: [u64; 3],
) -> Result<(), Error> {
    // The strides of a single element are irrelevant.
    let zeros = vec![0; sizes.len()];
    let strides = sides.map(|side| if side.operand.data == 0 { zeros.as_slice() } else { side.strides });
    let space = Strided::<N>::new(sizes, strides)?;
    if space.numel() == 0 {
        return Ok(());
    }
    let largest = sides.iter().map(|side| side.bytes).max().unwrap_or(1);
    let lanes = AT_ONCE / largest;
    if let [only] = space.dims()
        && only.strides[0] == 1
        && only.strides.iter().all(|stride| *stride <= 1)
    {
        let mut operand = sides.map(|side| side.operand);
        let mut aligned = true;
        for ((operand, side), stride) in operand.iter_mut().zip(&sides).zip(only.strides) {
            let array = operand.data != 0 && stride == 1;
            operand.once = u64::from(!array);
            aligned &= !array || operand.data.is_multiple_of((side.bytes * lanes) as u64);
        }
        if aligned {
            let argument = DenseArgument { operand, scalar, count: space.numel() as u64 };
            let blocks = space.numel().div_ceil(lanes).div_ceil(THREADS);
            let grid = ([blocks, 1], THREADS as u32);
            return launch(gpu, kernel, format_args!("{name}_dense"), grid, &argument, stream);
        }
    }
    strided((gpu, stream), kernel, name, space.dims(), sides, scalar)
}

/// Writes the first of the operands, with the strides of the dimensions; a negative stride is its two's complement.
pub fn strided<const N: usize>(
    (gpu, stream): (&Gpu, Queue),
    kernel: Kernel,
    name: std::fmt::Arguments<'_>,
    dims: &[Dim<N>],
    sides: [Side<'_>; N],
    scalar: [u64; 3],
) -> Result<(), Error> {
    for piece in pieces(dims, POSITIONS) {
        let mut operand = sides.map(|side| side.operand);
        for ((operand, side), offset) in operand.iter_mut().zip(&sides).zip(piece.offsets) {
            *operand = operand.shifted(offset, side.bytes);
        }
        let takes_packs = takes_packs(kernel);
        let lanes = if takes_packs { packs(&piece, &mut operand, sides.map(|side| side.bytes)) } else { 0 };
        let argument = StridedArgument {
            operand,
            scalar,
            count: piece.count as u64,
            packs: u64::from(lanes > 0),
            dims: Dims::new(&piece.dims),
        };
        let grid = match lanes {
            0 if takes_packs => up_to_two(piece.count),
            lanes => each(piece.count.div_ceil(lanes.max(1))),
        };
        launch(gpu, kernel, format_args!("{name}_strided"), grid, &argument, stream)?;
    }
    Ok(())
}

/// Whether the strided entries of a kernel process packs, as declared in its file.
fn takes_packs(kernel: Kernel) -> bool {
    match (kernel.family, kernel.name) {
        ("cast", name) => name == COPY.name,
        ("ternary", "where" | "masked_fill") => true,
        ("binary" | "ternary", _) => matches!(kernel.dtype, "f16" | "bf16" | "f32" | "f64"),
        _ => false,
    }
}

/// The number of elements of a pack if a piece is processed in packs, otherwise 0: along the innermost dimension each
/// operand has whole, contiguous, aligned packs, or one element, and is then marked as broadcast.
fn packs<const N: usize>(piece: &Piece<N>, operand: &mut [Operand; N], bytes: [usize; N]) -> usize {
    let Some((inner, outer)) = piece.dims.split_last() else { return 0 };
    let in_memory = |k: usize| operand[k].data != 0;
    let largest = (0..N).filter(|&k| in_memory(k)).map(|k| bytes[k]).max().unwrap_or(AT_ONCE);
    let lanes = AT_ONCE / largest;
    let fits = |k: usize| match inner.strides[k] {
        1 => {
            operand[k].data.is_multiple_of((bytes[k] * lanes) as u64)
                && outer.iter().all(|dim| dim.strides[k].is_multiple_of(lanes))
        }
        step => step == 0 && k > 0,
    };
    if lanes < 2 || !inner.size.is_multiple_of(lanes) || (0..N).any(|k| in_memory(k) && !fits(k)) {
        return 0;
    }
    for (operand, step) in operand.iter_mut().zip(inner.strides) {
        operand.once = u64::from(operand.data != 0 && step == 0);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_whole_packs_go_by_packs() {
        let dim = |size: usize, strides: [usize; 3]| Dim { size, strides };
        let at = |data: u64| Operand { data, ..Operand::default() };
        let of = |dims: &[Dim<3>], data: [u64; 3], bytes: [usize; 3]| {
            let mut operand = data.map(at);
            let piece = Piece { offsets: [0; 3], dims: dims.to_vec(), count: 1 };
            (packs(&piece, &mut operand, bytes), operand.map(|operand| operand.once))
        };
        let row = [dim(7, [8, 8, 0]), dim(8, [1, 1, 1])];
        assert_eq!(of(&row, [16, 32, 48], [4; 3]), (4, [0; 3]));
        assert_eq!(of(&row, [16, 32, 48], [2; 3]), (8, [0; 3]));
        assert_eq!(of(&row, [16, 32, 0], [8; 3]), (2, [0; 3]));
        // A column, smaller elements, lines in descending order.
        assert_eq!(of(&[dim(7, [8, 8, 1]), dim(8, [1, 1, 0])], [16, 32, 4], [4; 3]), (4, [0, 0, 1]));
        assert_eq!(of(&row, [16, 32, 4], [4, 4, 1]), (4, [0; 3]));
        assert_eq!(of(&[dim(7, [8, 8usize.wrapping_neg(), 0]), row[1]], [16, 32, 48], [4; 3]), (4, [0; 3]));
        // Lines of an odd length, an odd stride between lines, an odd address, a non-unit stride, an output with one
        // element.
        for (dims, data) in [
            ([dim(7, [8, 8, 0]), dim(6, [1, 1, 1])], [16, 32, 48]),
            ([dim(7, [8, 9, 0]), row[1]], [16, 32, 48]),
            (row, [16, 32, 44]),
            ([dim(7, [8, 8, 0]), dim(8, [1, 1, 2])], [16, 32, 48]),
            ([dim(7, [8, 8, 0]), dim(8, [0, 1, 1])], [16, 32, 48]),
        ] {
            assert_eq!(of(&dims, data, [4; 3]), (0, [0; 3]));
        }
    }
}
