//! Strided layouts of a shape: each order of its dimensions in memory, dense, stepped and with strides that coincide with
//! other sizes.
//!
//! A kernel that selects a fast path by one stride, although the path needs two, is correct for the usual orders. It is
//! wrong for an order in which that stride has the expected value by coincidence.

/// The distance between elements of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Without gaps.
    Dense,
    /// Every stride doubled, with an offset of one element.
    Stepped,
    /// Each stride is increased to the nearest size, or product of neighbouring sizes, of the shape: a value that some
    /// other order has for this stride.
    Coincident,
}

/// Every spacing.
pub const SPACINGS: [Spacing; 3] = [Spacing::Dense, Spacing::Stepped, Spacing::Coincident];

/// Strides and offset of a tensor, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strides {
    /// The stride of each dimension.
    pub strides: Vec<usize>,
    /// The number of elements before the first one.
    pub offset: usize,
}

/// Maximum number of orders that one call of [`orders`] returns: the permutations of four dimensions.
const MAX_ORDERS: usize = 24;

/// The number of orders of the dimensions that are longer than one.
pub fn count(sizes: &[usize]) -> usize {
    let longer = sizes.iter().filter(|&&size| size > 1).count();
    (1..=longer).product::<usize>().max(1)
}

/// Indices of the orders to test for these sizes: all, or for five and more dimensions a different part for each `turn`.
pub fn orders(sizes: &[usize], turn: usize) -> impl Iterator<Item = usize> {
    let count = count(sizes);
    (0..count.min(MAX_ORDERS)).map(move |nth| (turn * MAX_ORDERS + nth) % count)
}

/// Order `nth` of the dimensions, innermost first. Dimensions of size 0 and 1 are outermost.
pub fn permutation(sizes: &[usize], nth: usize) -> Vec<usize> {
    let mut rest: Vec<usize> = (0..sizes.len()).rev().filter(|&dim| sizes[dim] > 1).collect();
    let units = (0..sizes.len()).rev().filter(|&dim| sizes[dim] <= 1);
    let mut left = nth % count(sizes);
    let mut order = Vec::with_capacity(sizes.len());
    // The digits of `nth` in the factorial number system select from the remaining dimensions (Lehmer code).
    while !rest.is_empty() {
        order.push(rest.remove(left % (rest.len())));
        left /= rest.len() + 1;
    }
    order.extend(units);
    order
}

/// The layout of a shape whose dimensions have order `nth`.
pub fn strides(sizes: &[usize], nth: usize, spacing: Spacing) -> Strides {
    let candidates = coincidences(sizes);
    let mut strides = vec![1; sizes.len()];
    let mut least = 1;
    for dim in permutation(sizes, nth) {
        let near = candidates.iter().copied().find(|&size| size >= least && size <= 4 * least);
        let stride = match spacing {
            Spacing::Coincident => near.unwrap_or(least),
            Spacing::Dense | Spacing::Stepped => least,
        };
        strides[dim] = stride;
        least = stride * sizes[dim].max(1);
    }
    match spacing {
        Spacing::Stepped => {
            Strides { strides: strides.into_iter().map(|stride| 2 * stride).collect(), offset: 1 }
        }
        Spacing::Dense | Spacing::Coincident => Strides { strides, offset: 0 },
    }
}

/// Sizes above one and products of neighbouring ones, ascending.
fn coincidences(sizes: &[usize]) -> Vec<usize> {
    let mut found: Vec<usize> = (0..sizes.len())
        .flat_map(|first| (first + 1..=sizes.len()).map(move |end| first..end))
        .map(|range| sizes[range].iter().product())
        .filter(|&size: &usize| size > 1)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Offsets;
    use std::collections::BTreeSet;

    #[test]
    fn every_order_is_given_once() {
        for sizes in [&[2, 3, 4][..], &[3, 1, 2, 5], &[2, 2, 2, 2], &[4], &[], &[1, 1]] {
            let all: BTreeSet<Vec<usize>> = (0..count(sizes)).map(|nth| permutation(sizes, nth)).collect();
            assert_eq!(all.len(), count(sizes), "{sizes:?}");
            assert!(all.iter().all(|order| order.iter().collect::<BTreeSet<_>>().len() == sizes.len()));
        }
        let five = [2, 3, 2, 3, 2];
        let in_turn: BTreeSet<usize> = (0..5).flat_map(|turn| orders(&five, turn)).collect();
        assert_eq!(in_turn.len(), 120);
    }

    #[test]
    fn no_two_elements_share_an_address() {
        for sizes in [&[2, 3, 4][..], &[2, 5, 7, 2], &[3, 1, 3], &[6], &[]] {
            for (nth, spacing) in (0..count(sizes)).flat_map(|nth| SPACINGS.map(|spacing| (nth, spacing))) {
                let Strides { strides, offset } = strides(sizes, nth, spacing);
                let at: Vec<usize> = Offsets::new(sizes, &strides, offset).collect();
                let distinct: BTreeSet<usize> = at.iter().copied().collect();
                assert_eq!(distinct.len(), at.len(), "{sizes:?} {strides:?}");
            }
        }
    }

    #[test]
    fn a_stride_coincides_with_another_size() {
        // The dimensions from the innermost: 0, 2, 3, 1. The stride of rows (7) is the size of columns, whose stride is not 1.
        let sizes = [2, 4, 5, 7];
        let found = (0..count(&sizes)).map(|nth| strides(&sizes, nth, Spacing::Coincident).strides);
        let coincides = |s: &Vec<usize>| s[2] == 7 && s[3] != 1;
        assert!(found.into_iter().any(|s| coincides(&s) || s[2] == 4 && s[3] != 1));
    }
}
