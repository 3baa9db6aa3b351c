//! The sizes and strides of one tensor in one structure: no heap allocation up to [`INLINE`] dimensions, and no destructor.

/// The number of dimensions stored inline. Images have 4 and volumes 5.
const INLINE: usize = 5;

/// Sizes and strides; a composite tensor has sizes only.
#[derive(Clone)]
pub(crate) struct Geometry {
    ndim: u32,
    strided: bool,
    inline: [[usize; INLINE]; 2],
    heap: Option<Box<[Vec<usize>; 2]>>,
}

impl Geometry {
    /// The geometry of a 0-d tensor.
    #[inline(always)]
    pub(crate) fn empty() -> Geometry {
        Geometry { ndim: 0, strided: true, inline: [[0; INLINE]; 2], heap: None }
    }

    /// Sets the geometry of a strided tensor; both lists have one entry for each dimension.
    #[inline(always)]
    pub(crate) fn set(&mut self, sizes: &[usize], strides: &[usize]) {
        self.ndim = sizes.len() as u32;
        if sizes.len() > INLINE {
            self.heap = Some(on_heap(sizes, strides));
            return;
        }
        // Two short loops: a `memcpy` call costs more than copying the few values.
        self.inline[0].iter_mut().zip(sizes).for_each(|(to, &size)| *to = size);
        self.inline[1].iter_mut().zip(strides).for_each(|(to, &stride)| *to = stride);
    }

    /// Sets the geometry of a composite tensor.
    pub(crate) fn set_composite(&mut self, sizes: &[usize]) {
        self.set(sizes, &[]);
        self.strided = false;
    }

    /// Sets the geometry of a new contiguous tensor.
    #[inline(always)]
    pub(crate) fn set_row_major(&mut self, sizes: &[usize]) {
        if sizes.len() > INLINE {
            return self.set(sizes, &crate::base::dims::contiguous_strides(sizes));
        }
        self.ndim = sizes.len() as u32;
        let mut next = 1usize;
        for (i, &size) in sizes.iter().enumerate().rev() {
            self.inline[0][i] = size;
            self.inline[1][i] = next;
            next = next.wrapping_mul(size.max(1));
        }
    }

    #[inline(always)]
    pub(crate) fn ndim(&self) -> usize {
        self.ndim as usize
    }

    #[inline(always)]
    pub(crate) fn sizes(&self) -> &[usize] {
        match self.inline[0].get(..self.ndim()) {
            Some(sizes) => sizes,
            None => self.heap.as_ref().map_or(&[], |heap| &heap[0]),
        }
    }

    #[inline(always)]
    pub(crate) fn strides(&self) -> &[usize] {
        if !self.strided {
            return &[];
        }
        match self.inline[1].get(..self.ndim()) {
            Some(strides) => strides,
            None => self.heap.as_ref().map_or(&[], |heap| &heap[1]),
        }
    }
}

#[cold]
#[inline(never)]
fn on_heap(sizes: &[usize], strides: &[usize]) -> Box<[Vec<usize>; 2]> {
    Box::new([sizes.to_vec(), strides.to_vec()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dims::contiguous_strides;

    #[test]
    fn few_and_many_dimensions_read_back() {
        for ndim in 0..9 {
            let sizes: Vec<usize> = (0..ndim).collect();
            let strides: Vec<usize> = (10..10 + ndim).collect();
            let mut g = Geometry::empty();
            g.set(&sizes, &strides);
            assert_eq!((g.ndim(), g.sizes(), g.strides()), (ndim, &sizes[..], &strides[..]));
            let mut g = Geometry::empty();
            g.set_row_major(&sizes);
            assert_eq!((g.sizes(), g.strides()), (&sizes[..], contiguous_strides(&sizes).as_slice()));
            let mut g = Geometry::empty();
            g.set_composite(&sizes);
            assert_eq!((g.sizes(), g.strides()), (&sizes[..], &[][..]));
        }
    }
}
