//! The preserved and reduced dimensions of a reduction, in memory order.

use keyway_sdk::author::{Call, Element, Error, View};

/// One loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dim {
    /// The size of the dimension; never 1, and 0 only if the input is empty.
    pub size: usize,
    /// The stride in the input, in elements.
    pub stride: usize,
    /// The stride in the output; 0 for a reduced dimension.
    pub out: usize,
}

/// Preserved and reduced dimensions: without size 1, adjacent ones merged, in order of decreasing strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Dimensions of the output.
    pub kept: Vec<Dim>,
    /// Dimensions that the reduction runs over.
    pub reduced: Vec<Dim>,
    /// The number of outputs.
    pub outputs: usize,
    /// The number of elements that are reduced to one output.
    pub count: usize,
}

/// The offset in the input and in the output of element `index` of the space that `dims` spans.
#[inline(always)]
pub fn offset(dims: &[Dim], mut index: usize) -> (usize, usize) {
    let (mut at, mut out) = (0, 0);
    let Some((first, rest)) = dims.split_first() else { return (0, 0) };
    for dim in rest.iter().rev() {
        let i = index % dim.size;
        index /= dim.size;
        at += i * dim.stride;
        out += i * dim.out;
    }
    (at + index * first.stride, out + index * first.out)
}

fn merge(dims: &mut Vec<Dim>) {
    // An expanded dimension (stride 0) is never the innermost.
    dims.sort_by_key(|d| std::cmp::Reverse(if d.stride == 0 { usize::MAX } else { d.stride }));
    let mut n: usize = 0;
    for k in 0..dims.len() {
        let dim = dims[k];
        match n.checked_sub(1).map(|last| &mut dims[last]) {
            Some(last) if last.stride == dim.size * dim.stride && last.out == dim.size * dim.out => {
                *last = Dim { size: last.size * dim.size, ..dim };
            }
            _ => {
                dims[n] = dim;
                n += 1;
            }
        }
    }
    dims.truncate(n);
}

impl Geometry {
    /// Creates the geometry from sizes and strides of the input, strides of the output (with or without the reduced
    /// dimensions), and the mask of reduced dimensions.
    pub fn new(sizes: &[i64], strides: &[i64], out_strides: &[i64], mask: u64) -> Geometry {
        let keepdim = out_strides.len() == sizes.len();
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        let (mut outputs, mut count) = (1, 1);
        let mut k = 0;
        for (i, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
            let (size, stride) = (size as usize, stride as usize);
            let in_reduction = mask >> i & 1 != 0;
            let at = if keepdim { i } else { k };
            if in_reduction {
                count *= size;
            } else {
                outputs *= size;
                k += 1;
            }
            if size == 1 {
                continue;
            }
            if in_reduction {
                reduced.push(Dim { size, stride, out: 0 });
            } else {
                kept.push(Dim { size, stride, out: out_strides.get(at).map_or(0, |s| *s as usize) });
            }
        }
        merge(&mut kept);
        merge(&mut reduced);
        Geometry { kept, reduced, outputs, count }
    }

    /// Whether neighbours in memory belong to different outputs.
    pub fn is_columnar(&self) -> bool {
        match (self.kept.last(), self.reduced.last()) {
            (Some(kept), Some(reduced)) => {
                reduced.stride == 0 || kept.stride != 0 && kept.stride < reduced.stride
            }
            _ => false,
        }
    }
}

/// The reduced dimensions in argument `index` as a mask: a list, a single dimension, or all if it is absent.
pub fn reduced<T: Element>(call: &Call, index: usize, input: View<'_, T>) -> Result<u64, Error> {
    let ndim = input.ndim();
    let all = if ndim >= 64 { u64::MAX } else { (1 << ndim) - 1 };
    if call.is_none(index)? {
        return Ok(all);
    }
    let bit = |dim: i64| match if dim < 0 { dim + ndim as i64 } else { dim } {
        at if (0..ndim as i64).contains(&at) => 1 << at,
        _ => 0,
    };
    match (call.int(index), ndim) {
        (_, 0) => Ok(0),
        (Ok(dim), _) => Ok(bit(dim)),
        (Err(_), _) => {
            let dims = call.ints(index)?;
            Ok(if dims.is_empty() { all } else { dims.iter().fold(0, |mask, &d| mask | bit(d)) })
        }
    }
}

/// The number of elements that are reduced to one, given the dimensions as a mask.
pub fn reduced_count(sizes: &[i64], mask: u64) -> usize {
    sizes.iter().enumerate().filter(|(i, _)| mask >> i & 1 != 0).map(|(_, n)| *n as usize).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_and_the_smallest_stride_comes_last() {
        let g = Geometry::new(&[2, 3, 4], &[12, 4, 1], &[1], 0b110);
        assert_eq!(g.kept, [Dim { size: 2, stride: 12, out: 1 }]);
        assert_eq!(g.reduced, [Dim { size: 12, stride: 1, out: 0 }]);
        assert_eq!((g.outputs, g.count), (2, 12));
        // channels_last, reduced over all but the channels.
        let g = Geometry::new(&[2, 3, 4, 5], &[60, 1, 15, 3], &[0, 1, 0, 0], 0b1101);
        assert_eq!(g.reduced, [Dim { size: 40, stride: 3, out: 0 }]);
        assert!(g.is_columnar());
    }

    #[test]
    fn offsets_are_those_of_the_loops() {
        let dims = [Dim { size: 2, stride: 10, out: 3 }, Dim { size: 3, stride: 2, out: 1 }];
        let offsets: Vec<_> = (0..6).map(|i| offset(&dims, i)).collect();
        assert_eq!(offsets, [(0, 0), (2, 1), (4, 2), (10, 3), (12, 4), (14, 5)]);
    }
}
