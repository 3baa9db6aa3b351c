//! Iteration spaces with a fixed order: a position is a row-major index, and strides may be negative.

use super::elements::Taken;
use super::launch::{Operand, POSITIONS};
use super::map::Side;
use keyway_sdk::author::strided::{Dim, row_major};
use keyway_sdk::author::{Call, Error, Tensor};

/// Threads per block of kernels with one thread per position.
const THREADS: usize = 128;
/// The number of positions that occupies a device with two positions per thread.
const MANY: usize = 1 << 20;

/// The blocks and threads for `count` positions.
pub fn each(count: usize) -> ([usize; 2], u32) {
    ([count.div_ceil(THREADS), 1], THREADS as u32)
}

/// As [`each`], for kernels whose threads have up to two positions, a grid apart.
pub fn up_to_two(count: usize) -> ([usize; 2], u32) {
    each(if count < MANY { count } else { count.div_ceil(2) })
}

/// A tensor with owned sizes and strides, which may be changed.
#[derive(Clone, Debug)]
pub struct Laid {
    /// The address, or a scalar.
    pub operand: Operand,
    /// Bytes of an element.
    pub bytes: usize,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
}

impl Laid {
    /// A tensor of a call.
    pub fn new(tensor: &Tensor<'_>, taken: Taken) -> Result<Laid, Error> {
        let side = Side::new(tensor, taken)?;
        let (sizes, strides) = (tensor.sizes().to_vec(), tensor.strides().to_vec());
        Ok(Laid { operand: side.operand, bytes: side.bytes, sizes, strides })
    }

    /// Argument `index` of a call.
    pub fn argument(call: &Call<'_>, index: usize, taken: Taken) -> Result<Laid, Error> {
        Laid::new(&call.tensor(index)?, taken)
    }

    /// Output `index` of a call.
    pub fn output(call: &Call<'_>, index: usize) -> Result<Laid, Error> {
        Laid::new(&call.output(index)?, Taken::Raw)
    }

    /// A 0-d tensor reshaped to one dimension of size 1; other tensors unchanged.
    #[must_use]
    pub fn with_dim(mut self) -> Laid {
        if self.sizes.is_empty() {
            (self.sizes, self.strides) = (vec![1], vec![1]);
        }
        self
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.sizes.iter().product::<i64>() as usize
    }

    /// The strides of this tensor broadcast to `shape`.
    pub fn expanded(&self, shape: &[i64]) -> Vec<i64> {
        let lead = shape.len().saturating_sub(self.sizes.len());
        let own = |d: usize| if self.sizes[d] == 1 { 0 } else { self.strides[d] };
        (0..shape.len()).map(|d| d.checked_sub(lead).map_or(0, own)).collect()
    }
}

/// A dimension that may count from the end.
pub fn wrapped(dim: i64, ndim: usize) -> usize {
    (if dim < 0 { dim + ndim as i64 } else { dim }) as usize
}

/// Row-major strides of a tensor's sizes, which do not overflow.
pub fn dense(sizes: &[i64]) -> Vec<i64> {
    row_major(sizes).unwrap_or_else(|_| vec![0; sizes.len()])
}

/// The dimensions in their order, outermost first: those of size 1 are dropped, and adjacent ones merged if every operand allows
/// it. A negative stride is its two's complement.
pub fn in_order<const N: usize>(sizes: &[i64], strides: [&[i64]; N]) -> Vec<Dim<N>> {
    let mut made: Vec<Dim<N>> = Vec::with_capacity(sizes.len());
    for (d, &size) in sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
        let inner = Dim { size: size as usize, strides: strides.map(|s| s[d] as usize) };
        match made.last_mut() {
            Some(outer) if (0..N).all(|k| outer.strides[k] == inner.strides[k].wrapping_mul(inner.size)) => {
                *outer = Dim { size: outer.size.wrapping_mul(inner.size), strides: inner.strides };
            }
            _ => made.push(inner),
        }
    }
    made
}

/// Refuses more positions than a kernel supports.
pub fn countable(count: usize, what: &str) -> Result<usize, Error> {
    match count < POSITIONS {
        true => Ok(count),
        false => Err(Error::Unsupported { what: format!("{count} {what}, 2^31 or more, on this device") }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch::{Dims, pieces};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_row_major_with_any_strides(
            sizes in prop::collection::vec(1..4i64, 0..11),
            seed in any::<u64>(),
            limit in 2..200usize,
        ) {
            let strides: Vec<i64> = (0..sizes.len() as u32).map(|d| (seed.rotate_left(d * 7) % 99) as i64 - 49).collect();
            let numbers = dense(&sizes);
            let dims = in_order(&sizes, [&numbers, &strides]);
            let mut number = 0;
            for piece in pieces(&dims, limit) {
                // The kernel's arithmetic: offsets are added modulo 2^64.
                let _ = Dims::new(&piece.dims);
                let mut at: Vec<usize> = vec![0; piece.dims.len()];
                for _ in 0..piece.count {
                    let offset = |k: usize| {
                        let steps = piece.dims.iter().zip(&at);
                        steps.fold(piece.offsets[k], |o, (dim, i)| o.wrapping_add(dim.strides[k].wrapping_mul(*i)))
                    };
                    prop_assert_eq!(offset(0), number);
                    let mut rest = number as i64;
                    let mut expected = 0;
                    for d in (0..sizes.len()).rev() {
                        expected += rest % sizes[d] * strides[d];
                        rest /= sizes[d];
                    }
                    prop_assert_eq!(offset(1) as i64, expected);
                    number += 1;
                    for d in (0..at.len()).rev() {
                        at[d] += 1;
                        if at[d] < piece.dims[d].size {
                            break;
                        }
                        at[d] = 0;
                    }
                }
            }
            prop_assert_eq!(number as i64, sizes.iter().product::<i64>());
        }
    }
}
