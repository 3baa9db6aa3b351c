//! `index_select`, `embedding`, `gather` and `index`: elements read at indices.

use super::elements::Taken;
use super::indices::{Offsets, checked, layout};
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::scratch::On;
use super::space::{Laid, dense, up_to_two, wrapped};
use super::{Kernel, device_of};
use crate::checks::Bounds;
use crate::driver::Argument;
use keyway_sdk::author::strided::{Dim, Strided};
use keyway_sdk::author::{Call, Error};

family!("index");

/// `Take` in index.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct TakeArgument {
    out: u64,
    index: Operand,
    source: Operand,
    stride: i64,
    count: u64,
    dims: Dims<3>,
}
// SAFETY: `Take` has these fields.
unsafe impl Argument for TakeArgument {}

/// The maximum size of an element, in bytes.
const LARGEST: usize = 16;

/// Gathers elements: each output element is the source's element at its index, in units of `stride` elements. The strides
/// of index and source are those along the output's dimensions.
pub fn take(
    on: On,
    out: &Laid,
    (index, index_strides): (Operand, &[i64]),
    (source, source_strides): (Operand, &[i64]),
    stride: i64,
) -> Result<(), Error> {
    let space = Strided::new(&out.sizes, [&out.strides, index_strides, source_strides])?;
    if space.numel() == 0 {
        return Ok(());
    }
    let mut dims = space.dims().to_vec();
    let (factor, stride) = widened(&mut dims, (out.operand.data, source.data), out.bytes, stride as usize);
    let bytes = out.bytes * factor;
    for piece in pieces(&dims, POSITIONS) {
        let argument = TakeArgument {
            out: out.operand.shifted(piece.offsets[0], bytes).data,
            index: index.shifted(piece.offsets[1], 8),
            source: source.shifted(piece.offsets[2], bytes),
            stride: stride as i64,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        let kernel = Kernel { family: "index", name: "take", dtype: "" };
        let entry = format_args!("take_b{}", bytes * 8);
        launch(on.0, kernel, entry, up_to_two(piece.count), &argument, on.1)?;
    }
    Ok(())
}

/// Merges elements of the innermost dimension that share an index into one larger element, if all are contiguous; returns
/// the number of elements per larger one, and the stride in larger elements.
fn widened(dims: &mut [Dim<3>], (out, source): (u64, u64), bytes: usize, stride: usize) -> (usize, usize) {
    let Some((inner, outer)) = dims.split_last_mut() else { return (1, stride) };
    let fits = |factor: usize| {
        let whole = |n: usize| n.is_multiple_of(factor);
        let aligned = |at: u64| at != 0 && at.is_multiple_of((bytes * factor) as u64);
        whole(inner.size)
            && whole(stride)
            && outer.iter().all(|dim| whole(dim.strides[0]) && whole(dim.strides[2]))
            && aligned(out)
            && aligned(source)
    };
    if inner.strides != [1, 0, 1] {
        return (1, stride);
    }
    let mut factor = LARGEST / bytes;
    while factor > 1 && !fits(factor) {
        factor /= 2;
    }
    inner.size /= factor;
    for dim in outer {
        dim.strides[0] /= factor;
        dim.strides[2] /= factor;
    }
    (factor, stride / factor)
}

fn index_select(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let source = Laid::argument(call, 0, Taken::Raw)?.with_dim();
    let index = Laid::argument(call, 2, Taken::Raw)?.with_dim();
    let out = Laid::output(call, 0)?.with_dim();
    let dim = wrapped(call.int(1)?, source.sizes.len());
    let checked = checked(on, index, Bounds::of_dim(kernel.name, "index", dim, source.sizes[dim]))?;
    let index = &checked.laid;
    let (mut across, mut along) = (source.strides.clone(), vec![0; out.sizes.len()]);
    (across[dim], along[dim]) = (0, index.strides[0]);
    take(on, &out, (index.operand, &along), (source.operand, &across), source.strides[dim])
}

fn embedding(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let (weight, index) = (Laid::argument(call, 0, Taken::Raw)?, Laid::argument(call, 1, Taken::Raw)?);
    let out = Laid::output(call, 0)?;
    let checked = checked(on, index, Bounds::of_dim(kernel.name, "indices", 0, weight.sizes[0]))?;
    let index = &checked.laid;
    let mut along = index.strides.clone();
    along.push(0);
    let mut across = vec![0; index.sizes.len()];
    across.push(weight.strides[1]);
    take(on, &out, (index.operand, &along), (weight.operand, &across), weight.strides[0])
}

fn gather(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let source = Laid::argument(call, 0, Taken::Raw)?.with_dim();
    let index = Laid::argument(call, 2, Taken::Raw)?.with_dim();
    let out = Laid::output(call, 0)?.with_dim();
    let dim = wrapped(call.int(1)?, source.sizes.len());
    let checked = checked(on, index, Bounds::of_dim(kernel.name, "index", dim, source.sizes[dim]))?;
    let index = &checked.laid;
    let mut across = source.strides.clone();
    across[dim] = 0;
    take(on, &out, (index.operand, &index.strides), (source.operand, &across), source.strides[dim])
}

fn index(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let (source, out) = (Laid::argument(call, 0, Taken::Raw)?, Laid::output(call, 0)?);
    let dims = call.ints(2)?;
    let at = Offsets::new(on, (kernel.name, call, 1), dims, &source.sizes, &source.strides)?;
    let steps = dense(&at.sizes);
    let layout = layout(source.sizes.len(), dims, at.sizes.len());
    let (along, across): (Vec<i64>, Vec<i64>) = layout
        .iter()
        .map(|&(is_index, d)| if is_index { (steps[d], 0) } else { (0, source.strides[d]) })
        .unzip();
    take(on, &out, (at.values.operand(), &along), (source.operand, &across), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(size: usize, strides: [usize; 3]) -> Dim<3> {
        Dim { size, strides }
    }

    #[test]
    fn rows_at_an_index_are_moved_by_larger_elements_where_they_lie_so() {
        let rows = |width: usize, stride| vec![dim(5, [width, 1, 0]), dim(width, [1, 0, stride])];
        let mut dims = rows(6, 1);
        assert_eq!(widened(&mut dims, (16, 32), 2, 6), (2, 3));
        assert_eq!(dims, [dim(5, [3, 1, 0]), dim(3, [1, 0, 1])]);
        let mut dims = rows(24, 1);
        assert_eq!(widened(&mut dims, (16, 32), 2, 24), (8, 3));
        assert_eq!(dims, [dim(5, [3, 1, 0]), dim(3, [1, 0, 1])]);
        // Rows of an odd length, an odd address, non-unit column stride, an index for each element.
        for (mut dims, at, stride) in [
            (rows(5, 1), (16, 32), 5),
            (rows(6, 1), (16, 34), 6),
            (rows(6, 1), (16, 32), 7),
            (rows(6, 2), (16, 32), 6),
            (vec![dim(6, [1, 1, 0])], (16, 32), 1),
        ] {
            let before = dims.clone();
            assert_eq!(widened(&mut dims, at, 2, stride), (1, stride));
            assert_eq!(dims, before);
        }
    }
}
