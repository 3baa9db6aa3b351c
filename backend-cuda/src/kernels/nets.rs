//! Host code shared by the families of neural network kernels: operands in device memory, images of up to three dimensions,
//! and distribution of rows to threads.

use super::launch::POSITIONS;
use crate::driver::Argument;
use crate::gpu::Gpu;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::strided::{Dim, Strided};
use keyway_sdk::author::{Call, Error, Tensor, dtype_name, dtype_size};

/// A tensor in device memory.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// The address.
    pub data: u64,
    /// Bytes of an element.
    pub bytes: usize,
    /// Sizes.
    pub sizes: &'a [i64],
    /// The strides in elements.
    pub strides: &'a [i64],
}

impl<'a> Array<'a> {
    /// The operand of a tensor of a call.
    pub fn new(tensor: &Tensor<'a>) -> Result<Array<'a>, Error> {
        if tensor.is_host_scalar() {
            return Err(unsupported("a host scalar for this argument"));
        }
        let bytes = dtype_size(tensor.dtype()).ok_or_else(|| Error::Unsupported {
            what: format!("dtype {} ({}) on this device", dtype_name(tensor.dtype()), tensor.dtype()),
        })?;
        let data = tensor.data_ptr().addr() as u64;
        Ok(Array { data, bytes, sizes: tensor.sizes(), strides: tensor.strides() })
    }

    /// Argument `index`.
    pub fn argument(call: &Call<'a>, index: usize) -> Result<Array<'a>, Error> {
        Array::new(&call.tensor(index)?)
    }

    /// Argument `index`, which is optional.
    pub fn optional(call: &Call<'a>, index: usize) -> Result<Option<Array<'a>>, Error> {
        if call.is_none(index)? { Ok(None) } else { Array::argument(call, index).map(Some) }
    }

    /// Output `index`.
    pub fn output(call: &Call<'a>, index: usize) -> Result<Array<'a>, Error> {
        Array::new(&call.output(index)?)
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.sizes.iter().map(|&size| size.max(0) as usize).product()
    }
}

/// The error of an unsupported call.
#[cold]
pub fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::Unsupported { what: format!("{what}, on this device") }
}

/// Converts a number of positions to the kernels' 32-bit integers.
pub fn counted(n: usize) -> Result<u32, Error> {
    if n < POSITIONS { Ok(n as u32) } else { Err(unsupported(format!("{n} positions, 2^31 or more"))) }
}

/// An image `[batch, channels, ..]` with three spatial dimensions; missing ones come first with size 1.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// The address.
    pub data: u64,
    /// Sizes.
    pub sizes: [usize; 5],
    /// The strides in elements.
    pub strides: [i64; 5],
}

impl Image {
    /// Converts an operand of 3 to 5 dimensions.
    pub fn new(of: &Array<'_>) -> Result<Image, Error> {
        let lacking = 5usize.checked_sub(of.sizes.len()).filter(|lacking| *lacking <= 2);
        let lacking = lacking.ok_or_else(|| unsupported("an image of other than 3 to 5 dimensions"))?;
        let (mut sizes, mut strides) = ([1; 5], [0; 5]);
        for (d, (&size, &stride)) in of.sizes.iter().zip(of.strides).enumerate() {
            let at = if d < 2 { d } else { d + lacking };
            (sizes[at], strides[at]) = (size.max(0) as usize, stride);
        }
        Ok(Image { data: of.data, sizes, strides })
    }

    /// Argument `index`.
    pub fn argument(call: &Call<'_>, index: usize) -> Result<Image, Error> {
        Image::new(&Array::argument(call, index)?)
    }

    /// Output `index`.
    pub fn output(call: &Call<'_>, index: usize) -> Result<Image, Error> {
        Image::new(&Array::output(call, index)?)
    }

    /// The number of elements of a channel.
    pub fn plane(&self) -> usize {
        self.sizes[2..].iter().product()
    }

    /// Whether the image has no elements.
    pub fn is_empty(&self) -> bool {
        self.sizes.contains(&0)
    }
}

/// A list for three spatial dimensions; missing ones come first.
pub fn three(list: &[i64], otherwise: i64) -> [i64; 3] {
    let mut made = [otherwise; 3];
    made.iter_mut().rev().zip(list.iter().rev()).for_each(|(to, &from)| *to = from);
    made
}

/// A dimension of a call as an index below `ndim`; `None` for 0-d tensors.
pub fn along(ndim: usize, dim: i64) -> Result<Option<usize>, Error> {
    let at = if dim < 0 { dim + ndim as i64 } else { dim };
    match usize::try_from(at) {
        _ if ndim == 0 => Ok(None),
        Ok(at) if at < ndim => Ok(Some(at)),
        _ => Err(Error::InvalidArgument {
            argument: "dim",
            expected: format!("a dimension of {ndim}"),
            got: dim.to_string(),
        }),
    }
}

/// The rows and the reduced space of a reduction over some dimensions, all if none is given: rows over output and input,
/// the reduced space over the input.
pub fn split(
    input: &Array<'_>,
    out: &Array<'_>,
    dims: &[i64],
    kept: bool,
) -> Result<(Strided<2>, Strided<1>), Error> {
    let mut reduced = vec![dims.is_empty(); input.sizes.len()];
    for &dim in dims {
        if let Some(at) = along(input.sizes.len(), dim)? {
            reduced[at] = true;
        }
    }
    let (mut rows, mut terms) = ([vec![], vec![], vec![]], [vec![], vec![]]);
    let mut at = 0;
    for ((&size, &stride), &reduced) in input.sizes.iter().zip(input.strides).zip(&reduced) {
        if reduced {
            terms[0].push(size);
            terms[1].push(stride);
        } else {
            rows[0].push(size);
            rows[1].push(out.strides.get(at).copied().unwrap_or(0));
            rows[2].push(stride);
        }
        at += usize::from(kept || !reduced);
    }
    Ok((Strided::new(&rows[0], [&rows[1], &rows[2]])?, Strided::new(&terms[0], [&terms[1]])?))
}

/// A dimension with signed strides.
pub fn dim<const N: usize>(size: usize, strides: [i64; N]) -> Dim<N> {
    Dim { size, strides: strides.map(|stride| stride as usize) }
}

/// Threads per block of a row kernel, unless a single row has more, as in nets.cuh.
pub const ROW_THREADS: usize = 128;
const MOST_ROW_THREADS: usize = 512;
/// Adjacent rows per block.
const ROWS_BESIDE: usize = 32;
/// The number of blocks below which a chip has idle parts, and the number of elements per thread above which a row gets
/// more threads.
const FEW_BLOCKS: usize = 128;
const ROW_TERMS: usize = 16;
/// The number of blocks of rows that occupies a chip.
const BLOCKS: usize = 1024;
/// The minimum number of elements per thread for another block of the row, and the maximum number of blocks per row.
const SPLIT_TERMS: usize = 16;
const MOST_SPLITS: usize = 256;

/// Bytes of a row cached by a thread, as in nets.cuh.
const KEPT_BYTES: usize = 128;
/// Minimum number of pieces of a row for each thread of its warp.
const KEPT_PIECES: usize = 4;

/// Bytes of the compute type of a dtype of `bytes` bytes.
pub fn wide_bytes(bytes: usize) -> usize {
    bytes.max(4)
}

/// `Sharing` in nets.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// The number of rows.
    pub rows: u64,
    /// The number of elements of each.
    pub terms: u64,
    lanes: u32,
    beside: u32,
}

impl Sharing {
    /// The distribution of rows and reductions in these dimensions, by the strides of operand `k`, the input.
    pub fn new<const N: usize, const M: usize>(
        (rows, k): (&Strided<N>, usize),
        (terms, l): (&Strided<M>, usize),
    ) -> Result<Sharing, Error> {
        let step = |dim: Option<usize>| dim.unwrap_or(usize::MAX);
        let (count, each) = (rows.numel(), terms.numel());
        counted(count)?;
        counted(each)?;
        let beside = step(rows.dims().last().map(|dim| dim.strides[k]).filter(|_| count > 1))
            < step(terms.dims().last().map(|dim| dim.strides[l]).filter(|_| each > 1));
        // A warp has adjacent rows; otherwise as many threads per row as there are elements. More elements per thread if
        // there are few rows.
        let (few, most) = if beside {
            (count <= FEW_BLOCKS * ROWS_BESIDE * 8, ROW_THREADS / ROWS_BESIDE)
        } else {
            (count <= FEW_BLOCKS, ROW_THREADS)
        };
        let more = most * (MOST_ROW_THREADS / ROW_THREADS);
        let most = if few && each >= more * ROW_TERMS { more } else { most };
        let lanes = each.max(1).next_power_of_two().min(most);
        Ok(Sharing { rows: count as u64, terms: each as u64, lanes: lanes as u32, beside: u32::from(beside) })
    }

    /// The distribution for cached rows, as `Kept` in nets.cuh: of elements of `bytes` bytes, computed in `wide` bytes,
    /// that are [in pieces](in_pieces) in all operands. `None` for longer rows, or if the pieces are not whole.
    pub fn kept(self, bytes: usize, wide: usize) -> Option<Sharing> {
        let pieces = self.terms as usize / piece(bytes);
        let is_whole = self.terms as usize == pieces * piece(bytes);
        // Threads with large parts of a row are faster than blocks of many threads, except within a warp.
        let of_a_warp = pieces.div_ceil(KEPT_PIECES).max(1).next_power_of_two().min(32);
        let least = (self.terms as usize).div_ceil(KEPT_BYTES / wide).max(1).next_power_of_two();
        let lanes = of_a_warp.max(least).min(MOST_ROW_THREADS);
        let fits = self.terms as usize <= lanes * (KEPT_BYTES / wide);
        (is_whole && pieces > 0 && fits).then_some(Sharing { lanes: lanes as u32, beside: 0, ..self })
    }

    /// The distribution for threads that process groups of `at_once` elements: `terms` then counts groups.
    pub fn taken(self, at_once: usize) -> Sharing {
        let terms = self.terms / at_once as u64;
        let lanes = self.lanes.min(terms.next_power_of_two().try_into().unwrap_or(u32::MAX));
        Sharing { terms, lanes, ..self }
    }

    /// Number of blocks that share a row if there are few long rows, [taken](Self::taken) in groups of `at_once`; 1 if there are
    /// enough rows.
    pub fn splits(&self, at_once: usize) -> usize {
        let free = (BLOCKS / self.blocks().max(1)).clamp(1, MOST_SPLITS);
        let terms = (self.terms as usize).max(1);
        let wanted = terms.div_ceil(self.lanes as usize * SPLIT_TERMS.div_ceil(at_once)).clamp(1, free);
        // The number of nonempty blocks.
        terms.div_ceil(terms.div_ceil(wanted))
    }

    /// Threads per block: a warp of adjacent rows, if there are several threads per row.
    pub fn threads(&self) -> u32 {
        let rows = if self.beside == 1 { ROWS_BESIDE as u32 } else { 1 };
        (self.lanes * rows).max(ROW_THREADS as u32)
    }

    /// Blocks of a launch.
    pub fn blocks(&self) -> usize {
        (self.rows as usize).div_ceil((self.threads() / self.lanes) as usize)
    }
}

/// The number of elements of `bytes` bytes in 16 bytes.
pub fn piece(bytes: usize) -> usize {
    16 / bytes.clamp(1, 16)
}

/// Whether groups of adjacent elements of `bytes` bytes are always aligned [pieces](piece) of 16 bytes: `steps` are all
/// other strides.
pub fn in_pieces(data: u64, bytes: usize, steps: &[i64]) -> bool {
    data.is_multiple_of(16) && steps.iter().all(|step| step % piece(bytes) as i64 == 0)
}

/// The reduction dimensions of rows, the innermost counted in pieces, if all of these operands - each an address, and the
/// indices of its strides among those of rows and of reductions - have that alignment, and the strides in `same` are 0
/// along a piece.
pub fn by_pieces<const N: usize, const M: usize>(
    (rows, terms): (&Strided<N>, &Strided<M>),
    operands: &[(u64, usize, usize)],
    same: &[usize],
    bytes: usize,
) -> Option<Vec<Dim<M>>> {
    let (inner, outer) = terms.dims().split_last()?;
    let each = piece(bytes);
    let are_pieces = operands.iter().all(|&(data, of_rows, of_terms)| {
        let of_rows = rows.dims().iter().map(|dim| dim.strides[of_rows] as i64);
        let steps: Vec<i64> = of_rows.chain(outer.iter().map(|dim| dim.strides[of_terms] as i64)).collect();
        inner.strides[of_terms] == 1 && in_pieces(data, bytes, &steps)
    });
    if !are_pieces || !inner.size.is_multiple_of(each) || same.iter().any(|&k| inner.strides[k] != 0) {
        return None;
    }
    let last =
        Dim { size: inner.size / each, strides: inner.strides.map(|stride| stride.wrapping_mul(each)) };
    Some(outer.iter().copied().chain([last]).collect())
}

/// Calls `work` with device memory that is freed after its launches; no memory for 0 bytes.
pub fn with_scratch(
    on: (&Gpu, Queue),
    bytes: u64,
    work: impl FnOnce(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    super::reduce::with_scratch(on, bytes, work)
}

/// `Shape` in tile.cuh.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Shape {
    parts: u64,
    rows: u32,
    columns: u32,
    inner: u32,
    across: u32,
    tiles: u32,
    chunk: u32,
    splits: u32,
    left_by_term: u32,
    right_by_term: u32,
    left_pieces: u32,
    right_pieces: u32,
    by_cores: u32,
}

/// The number of results of a block along each side, its reduction depth per step, and its threads.
const TILE: usize = 64;
const DEPTH: usize = 16;
const TILE_THREADS: usize = 256;
/// Threads per block of tensor core kernels, and the minimum number of rows, columns and reduction indices for them.
const CORE_THREADS: usize = 128;
const CORES_LEAST: u32 = 8;
/// The number of blocks of products that occupies a chip, and the minimum reduction length of each.
const TILE_BLOCKS: usize = 256;
const TERMS: usize = 256;
/// Maximum number of batches of one launch.
pub const BATCHES: usize = 65535;

impl Shape {
    /// The shape of products with these m, n and k; and whether adjacent threads read along the reduction dimension of each
    /// operand.
    pub fn new(
        batches: usize,
        [rows, columns, inner]: [usize; 3],
        by_term: [bool; 2],
    ) -> Result<Shape, Error> {
        let [left_by_term, right_by_term] = by_term.map(u32::from);
        let across = columns.div_ceil(TILE);
        let tiles = rows.div_ceil(TILE).saturating_mul(across);
        let free = TILE_BLOCKS / tiles.saturating_mul(batches).max(1);
        let splits = inner.div_ceil(TERMS).min(free).max(1);
        let chunk = inner.div_ceil(splits).next_multiple_of(DEPTH).max(DEPTH);
        let splits = inner.div_ceil(chunk).max(1);
        counted(tiles.saturating_mul(splits))?;
        Ok(Shape {
            parts: 0,
            rows: counted(rows)?,
            columns: counted(columns)?,
            inner: counted(inner)?,
            across: across as u32,
            tiles: tiles as u32,
            chunk: counted(chunk)?,
            splits: splits as u32,
            left_by_term,
            right_by_term,
            left_pieces: 0,
            right_pieces: 0,
            by_cores: 0,
        })
    }

    /// Selects tensor cores, if the chip has them for this dtype, the program allows it, and there is enough work; `pieces`
    /// states for each operand whether it is [in pieces](in_pieces).
    #[must_use]
    pub fn on_cores(self, gpu: &Gpu, kernel: super::Kernel, pieces: [bool; 2]) -> Shape {
        let has = gpu.multiplies(kernel.dtype) || gpu.rounds(kernel.dtype);
        if !has || self.rows.min(self.columns).min(self.inner) < CORES_LEAST {
            return self;
        }
        let [left_pieces, right_pieces] = pieces.map(u32::from);
        Shape { left_pieces, right_pieces, by_cores: 1, ..self }
    }

    /// Launches a product of `batches`; `argument` creates the parameters from the shape; an accumulator has `accumulator`
    /// bytes.
    pub fn launch<A: Argument>(
        mut self,
        (gpu, stream): (&Gpu, Queue),
        (kernel, name): (super::Kernel, &str),
        (batches, accumulator): (usize, usize),
        argument: impl Fn(Shape) -> A,
    ) -> Result<(), Error> {
        let results = self.rows as usize * self.columns as usize;
        let parts = if self.splits > 1 { batches * self.splits as usize * results * accumulator } else { 0 };
        with_scratch((gpu, stream), parts as u64, |at| {
            self.parts = at;
            let argument = argument(self);
            let go = |kernel: super::Kernel, end: &str, blocks: usize, threads: usize| {
                let entry = format_args!("{name}_{}_{end}", kernel.dtype);
                let grid = ([blocks, batches], threads as u32);
                super::launch::launch(gpu, kernel, entry, grid, &argument, stream)
            };
            let tiles = self.tiles as usize * self.splits as usize;
            match self.by_cores {
                0 => go(kernel, "tile", tiles, TILE_THREADS)?,
                _ => go(super::Kernel { family: "tensor", ..kernel }, "cores", tiles, CORE_THREADS)?,
            }
            match self.splits {
                0 | 1 => Ok(()),
                _ => go(kernel, "finish", results.div_ceil(TILE_THREADS), TILE_THREADS),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_have_all_terms_and_none_is_empty() {
        for inner in [0, 1, 16, 255, 256, 257, 1000, 4096, 100_000, 9_999_999] {
            for (batches, rows) in [(1, 1), (1, 64), (3, 100), (1, 5000), (70, 1)] {
                let shape = Shape::new(batches, [rows, 10, inner], [false; 2]).unwrap();
                let (chunk, splits) = (shape.chunk as usize, shape.splits as usize);
                assert!(chunk.is_multiple_of(DEPTH) && chunk * splits >= inner, "{shape:?}");
                assert!(splits == 1 || chunk * (splits - 1) < inner, "{shape:?}");
            }
        }
        assert!(Shape::new(1, [1 << 31, 1, 1], [false; 2]).is_err());
    }

    #[test]
    fn rows_that_lie_side_by_side_are_shared_so() {
        let along = |rows: [i64; 2], terms: [i64; 2]| {
            let (rows, terms) =
                (Strided::new(&rows[..1], [&rows[1..]]), Strided::new(&terms[..1], [&terms[1..]]));
            let sharing = Sharing::new((&rows.unwrap(), 0), (&terms.unwrap(), 0)).unwrap();
            (sharing.beside, sharing.lanes, sharing.blocks())
        };
        assert_eq!(along([100, 7], [7, 1]), (0, 8, 7));
        assert_eq!(along([100, 1], [7, 100]), (1, 4, 4));
        assert_eq!(along([3, 1000], [1000, 1]), (0, 128, 3));
        // Few channels of many pixels: each of 16 warps has one element of 32 of them.
        assert_eq!(along([64, 1], [50_176, 64]), (1, 16, 2));
    }

    fn sharing(rows: i64, terms: i64) -> Sharing {
        let (rows, terms) = (Strided::new(&[rows], [&[terms]]), Strided::new(&[terms], [&[1]]));
        Sharing::new((&rows.unwrap(), 0), (&terms.unwrap(), 0)).unwrap()
    }

    #[test]
    fn rows_are_kept_by_a_warp_or_by_as_few_threads_as_hold_them() {
        let kept = |terms, bytes| {
            sharing(1000, terms).kept(bytes, wide_bytes(bytes)).map(|kept| (kept.lanes, kept.threads()))
        };
        for (terms, bytes, expected) in [
            (8, 4, Some((1, 128))),
            (512, 4, Some((32, 128))),
            (512, 2, Some((16, 128))),
            (1024, 4, Some((32, 128))),
            (8192, 4, Some((256, 256))),
            (8192, 2, Some((256, 256))),
            (8192, 8, Some((512, 512))),
            (16384, 4, Some((512, 512))),
            (16388, 4, None),
            (510, 4, None),
        ] {
            assert_eq!(kept(terms, bytes), expected, "{terms} of {bytes} bytes");
        }
    }

    #[test]
    fn blocks_that_share_a_row_all_have_terms() {
        assert_eq!((sharing(64, 100_352).splits(1), sharing(5000, 100_000).splits(1)), (13, 1));
        for (rows, terms) in
            [(1, 1), (1, 10), (2, 70_001), (3, 5000), (64, 100_352), (100, 1_000_003), (1, 1 << 30)]
        {
            let sharing = sharing(rows, terms);
            let splits = sharing.splits(1);
            let each = (terms as usize).div_ceil(splits);
            assert!((splits - 1) * each < terms as usize, "{rows} {terms}");
            assert!(
                splits <= MOST_SPLITS && (splits == 1 || splits * sharing.blocks() <= BLOCKS),
                "{rows} {terms}"
            );
        }
    }
}
