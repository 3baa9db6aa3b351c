//! Reductions over tensors by their sizes and strides alone.

use super::error::Error;
use super::strided::{Strided, row_major};

/// The index mapping of a reduction, from each output element to the input elements that it reduces: the iteration of
/// `sum`, `amax`, `argmax` and the like, for kernels of a device whose memory the host cannot read.
///
/// ```
/// use keyway_sdk::author::strided::Reduction;
///
/// // The sums over the rows of a 2 x 3 matrix in row-major order.
/// let input = [1.0, 2.0, 3.0, 10.0, 20.0, 30.0];
/// let over = Reduction::new(&[2, 3], &[3, 1], Some(&[1]), false, &[1])?;
/// let mut sums = [0.0; 2];
/// for [to, from] in over.outputs.offsets() {
///     sums[to] = over.terms.offsets().map(|[_, term]| input[from + term]).sum();
/// }
/// assert_eq!(sums, [6.0, 60.0]);
/// # Ok::<(), keyway_sdk::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reduction {
    /// For each output its offset, and the offset of its first input element.
    pub outputs: Strided<2>,
    /// For each reduced element its row-major number, and its offset from the first input element.
    pub terms: Strided<2>,
}

impl Reduction {
    /// The reduction of an input over `dims`; negative ones count from the end. All dimensions are reduced if the list is
    /// absent or empty. `out` has the strides of the output, which has size 1 in each reduced dimension if `keepdim` is
    /// set, and lacks these dimensions otherwise.
    ///
    /// [`Error::InvalidArgument`] for a dimension out of range, for a wrong number of strides, and as [`Strided::new`].
    pub fn new(
        sizes: &[i64],
        strides: &[i64],
        dims: Option<&[i64]>,
        keepdim: bool,
        out: &[i64],
    ) -> Result<Reduction, Error> {
        let ndim = sizes.len();
        let wrong = |argument, expected, got: &dyn std::fmt::Debug| Error::InvalidArgument {
            argument,
            expected,
            got: format!("{got:?}"),
        };
        let mut reduced = vec![dims.is_none_or(<[i64]>::is_empty); ndim];
        for &dim in dims.unwrap_or_default() {
            let at = if dim < 0 { dim + ndim as i64 } else { dim };
            match usize::try_from(at).ok().and_then(|at| reduced.get_mut(at)) {
                Some(flag) => *flag = true,
                // A 0-d tensor has one element, whichever dimension is given.
                None if ndim == 0 && (dim == 0 || dim == -1) => {}
                None => return Err(wrong("dim", format!("dimensions of {ndim}"), &dim)),
            }
        }
        let kept = reduced.iter().filter(|reduced| keepdim || !**reduced).count();
        if strides.len() != ndim || out.len() != kept {
            let expected = format!("{ndim} of the input, {kept} of the output");
            return Err(wrong("strides", expected, &(strides, out)));
        }
        let mut out = out.iter();
        let [mut outer, mut to, mut from, mut inner, mut term] = [const { Vec::new() }; 5];
        for ((&size, &stride), reduced) in sizes.iter().zip(strides).zip(reduced) {
            let own = if keepdim || !reduced { out.next() } else { None };
            if reduced {
                inner.push(size);
                term.push(stride);
            } else {
                outer.push(size);
                to.push(own.copied().unwrap_or_default());
                from.push(stride);
            }
        }
        Ok(Reduction {
            outputs: Strided::new(&outer, [&to, &from])?,
            terms: Strided::new(&inner, [&row_major(&inner)?, &term])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms' offsets of each output, by its offset.
    fn all(over: &Reduction) -> Vec<(usize, Vec<usize>)> {
        let terms = |from: usize| {
            let mut terms: Vec<[usize; 2]> = over.terms.offsets().collect();
            terms.sort_unstable();
            terms.into_iter().map(|[_, term]| from + term).collect()
        };
        let mut all: Vec<_> = over.outputs.offsets().map(|[to, from]| (to, terms(from))).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn dimensions_are_kept_or_dropped() {
        let (sizes, strides) = ([2, 3, 2], [6, 2, 1]);
        let middle = vec![(0, vec![0, 2, 4]), (1, vec![1, 3, 5]), (2, vec![6, 8, 10]), (3, vec![7, 9, 11])];
        let over = |dims: &[i64], keep, out: &[i64]| Reduction::new(&sizes, &strides, Some(dims), keep, out);
        assert_eq!(all(&over(&[1], false, &[2, 1]).unwrap()), middle);
        assert_eq!(all(&over(&[-2], true, &[2, 7, 1]).unwrap()), middle);
        let ends = vec![(0, vec![0, 1, 6, 7]), (1, vec![2, 3, 8, 9]), (2, vec![4, 5, 10, 11])];
        assert_eq!(all(&over(&[0, 2], false, &[1]).unwrap()), ends);
        for dims in [None, Some([].as_slice())] {
            let whole = Reduction::new(&sizes, &strides, dims, false, &[]).unwrap();
            assert_eq!(all(&whole), [(0, (0..12).collect())]);
        }
    }

    #[test]
    fn terms_are_numbered_in_row_major_order_however_they_lie() {
        // A transposed 2 x 3 matrix: element (row, column) is at offset row + 2 column.
        let over = Reduction::new(&[2, 3], &[1, 2], None, false, &[]).unwrap();
        let mut terms: Vec<_> = over.terms.offsets().collect();
        terms.sort_unstable();
        assert_eq!(terms, [[0, 0], [1, 2], [2, 4], [3, 1], [4, 3], [5, 5]]);
    }

    #[test]
    fn no_elements_and_no_dimensions() {
        let nothing = Reduction::new(&[0, 2], &[2, 1], Some(&[0]), false, &[1]).unwrap();
        assert_eq!(all(&nothing), [(0, vec![]), (1, vec![])], "sums of nothing");
        assert!(all(&Reduction::new(&[0, 2], &[2, 1], Some(&[1]), false, &[1]).unwrap()).is_empty());
        for dims in [None, Some([0].as_slice()), Some(&[-1])] {
            assert_eq!(all(&Reduction::new(&[], &[], dims, true, &[]).unwrap()), [(0, vec![0])]);
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        for dims in [[2].as_slice(), &[-3], &[0, 5], &[i64::MIN]] {
            let error = Reduction::new(&[2, 3], &[3, 1], Some(dims), false, &[1]).unwrap_err().to_string();
            assert!(error.contains("dim"), "{error}");
        }
        assert!(Reduction::new(&[], &[], Some(&[1]), false, &[]).is_err());
        assert!(Reduction::new(&[2, 3], &[3, 1], Some(&[1]), true, &[1]).is_err());
        assert!(Reduction::new(&[2, 3], &[3], Some(&[1]), false, &[1]).is_err());
        assert!(Reduction::new(&[2, i64::MAX], &[1, 1], None, false, &[]).is_err());
    }
}
