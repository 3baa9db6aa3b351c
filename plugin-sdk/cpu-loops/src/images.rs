//! Images and convolution kernels as tensors of five dimensions, and the axes of a kernel's positions over an image.

use crate::reserve;
use keyway_sdk::author::{Call, Element, Error, Lanes};
use std::ops::Range;

/// A tensor `[first, second, spatial..]` with three spatial dimensions; missing ones come first and have size 1.
#[derive(Clone, Copy)]
pub struct Volume<'a, T> {
    /// The address of the first element.
    pub data: Lanes<'a, T>,
    /// The sizes.
    pub sizes: [usize; 5],
    /// The strides, in elements.
    pub strides: [usize; 5],
}

/// The last three elements of a list; missing leading ones are `neutral`.
pub fn three(list: &[i64], neutral: usize) -> [usize; 3] {
    let mut all = [neutral; 3];
    all.iter_mut().rev().zip(list.iter().rev()).for_each(|(to, v)| *to = (*v).max(0) as usize);
    all
}

impl<'a, T: Element> Volume<'a, T> {
    /// # Safety
    /// The elements that sizes and strides describe must exist for `'a`.
    unsafe fn of(data: *mut T, sizes: &[i64], strides: &[i64]) -> Result<Self, Error> {
        let (&[a, b, ref inner @ ..], &[a_step, b_step, ref steps @ ..]) = (sizes, strides) else {
            return Err(wrong(sizes));
        };
        if inner.len() > 3 {
            return Err(wrong(sizes));
        }
        let all = |first: i64, second: i64, rest: [usize; 3]| {
            [first.max(0) as usize, second.max(0) as usize, rest[0], rest[1], rest[2]]
        };
        Ok(Volume {
            // SAFETY: as the caller guarantees.
            data: unsafe { Lanes::new(data) },
            sizes: all(a, b, three(inner, 1)),
            strides: all(a_step, b_step, three(steps, 0)),
        })
    }

    /// Reads argument `i`.
    ///
    /// # Errors
    /// If the argument is not a tensor of 2 to 5 dimensions with this element type.
    pub fn argument(call: &Call<'a>, i: usize) -> Result<Self, Error> {
        let view = call.view::<T>(i)?;
        // SAFETY: the host guarantees the elements of a call's tensors; they are only read.
        unsafe { Volume::of(view.as_ptr().cast_mut(), view.sizes(), view.strides()) }
    }

    /// Reads output `i`.
    ///
    /// # Errors
    /// If the output is not a tensor of 2 to 5 dimensions with this element type.
    pub fn output(call: &Call<'a>, i: usize) -> Result<Self, Error> {
        let mut out = call.out::<T>(i)?;
        let data = out.as_mut_ptr();
        // SAFETY: as above; the output is uniquely owned.
        unsafe { Volume::of(data, out.sizes(), out.strides()) }
    }

    /// The elements of one stride phase as a tensor.
    pub fn of_remainder(&self, of: &Remainder, moves: &Moves) -> Self {
        let [n, c, ..] = self.sizes;
        let [sample, channel, ..] = self.strides;
        let begin: usize = (0..3).map(|d| of.first[d] * self.strides[d + 2]).sum();
        // The stride of a single element is arbitrary, and a stride far larger than the image could overflow.
        let step = |d: usize| if of.counts[d] > 1 { moves.stride[d] } else { 1 };
        let [depth, height, width] = [0, 1, 2].map(|d| self.strides[d + 2] * step(d));
        Volume {
            // SAFETY: these are elements of this tensor, which exist for `'a`.
            data: unsafe { Lanes::new(self.data.as_ptr().wrapping_add(begin)) },
            sizes: [n, c, of.counts[0], of.counts[1], of.counts[2]],
            strides: [sample, channel, depth, height, width],
        }
    }

    /// The offsets, from the kernel's first element, of the elements whose index in each spatial dimension is in these
    /// lists.
    ///
    /// # Errors
    /// Out of memory.
    pub fn places<I>(&self, numbers: [I; 3]) -> Result<Vec<usize>, Error>
    where
        I: ExactSizeIterator<Item = usize> + Clone,
    {
        let [_, _, depth, height, width] = self.strides;
        let mut places = reserve(numbers.iter().map(I::len).fold(1, usize::saturating_mul))?;
        let [d, h, w] = numbers;
        for (d, h) in d.flat_map(|d| h.clone().map(move |h| (d, h))) {
            places.extend(w.clone().map(|w| d * depth + h * height + w * width));
        }
        Ok(places)
    }
}

fn wrong(sizes: &[i64]) -> Error {
    Error::InvalidArgument {
        argument: "input",
        expected: "a tensor of 2 to 5 dimensions".into(),
        got: format!("sizes {sizes:?}"),
    }
}

/// The parameters of a convolution.
pub struct Moves {
    /// The stride: input elements between neighbouring output positions.
    pub stride: [usize; 3],
    /// The zero padding before and after the input, in elements.
    pub padding: [usize; 3],
    /// The distance between neighbouring kernel taps, in input elements.
    pub dilation: [usize; 3],
    /// The number of channel groups, each with its own kernels.
    pub groups: usize,
}

impl Moves {
    /// Reads arguments 3 to 6 of `conv`, `conv_act`, `conv_input_grad` and `conv_weight_grad`.
    ///
    /// # Errors
    /// If an argument has another type.
    pub fn of(call: &Call<'_>) -> Result<Self, Error> {
        Ok(Moves {
            stride: three(call.ints(3)?, 1),
            padding: three(call.ints(4)?, 0),
            dilation: three(call.ints(5)?, 1),
            groups: call.int(6)?.max(1) as usize,
        })
    }

    /// The spatial axes of an image under a kernel of these sizes, with the number of output positions in each.
    ///
    /// # Errors
    /// Out of memory.
    pub fn axes<T>(
        &self,
        image: &Volume<'_, T>,
        counts: [usize; 3],
        kernel: [usize; 3],
    ) -> Result<[Axis; 3], Error> {
        let axis = |d: usize| {
            let mut taps = reserve(kernel[d])?;
            taps.extend((0..kernel[d]).map(|t| self.tap(d, t)));
            Ok(Axis::of(image, d, counts[d], self.stride[d], taps))
        };
        Ok([axis(0)?, axis(1)?, axis(2)?])
    }

    /// The index of the element that tap `t` reads at the first output position, along dimension `d`.
    fn tap(&self, d: usize, t: usize) -> isize {
        // Values beyond any memory size have no output positions.
        t.wrapping_mul(self.dilation[d]).wrapping_sub(self.padding[d]).cast_signed()
    }

    /// Decomposes the gradient of an input of these spatial sizes by kernel size: one convolution of the output's gradient
    /// per stride phase.
    pub fn remainders(&self, sizes: [usize; 3], kernel: [usize; 3]) -> impl Iterator<Item = Remainder> + '_ {
        // Stride phases beyond the input's size have no elements.
        let [depth, height, width] = [0, 1, 2].map(|d| self.stride[d].min(sizes[d]));
        (0..depth * height * width).map(move |i| {
            let first = [i / width / height, i / width % height, i % width];
            let [depth, height, width] = [0, 1, 2].map(|d| self.readers(d, first[d], kernel[d]));
            Remainder {
                first,
                counts: [0, 1, 2].map(|d| (sizes[d] - first[d]).div_ceil(self.stride[d])),
                taps: [depth.0, height.0, width.0],
                reads: [depth.1, height.1, width.1],
            }
        })
    }

    /// The taps that read the input elements of stride phase `r`, along dimension `d`: their indices, and the output
    /// position at which each of them reads the first such element.
    fn readers(&self, d: usize, r: usize, kernel: usize) -> (Vec<usize>, Vec<isize>) {
        let stride = self.stride[d] as isize;
        let read = |t: usize| (r + self.padding[d]) as isize - (t * self.dilation[d]) as isize;
        (0..kernel).filter(|&t| read(t) % stride == 0).map(|t| (t, read(t) / stride)).unzip()
    }
}

/// The elements of one stride phase: those with the same remainder by the stride in each dimension.
pub struct Remainder {
    /// The index of the first element.
    pub first: [usize; 3],
    /// The number of elements in each dimension.
    pub counts: [usize; 3],
    /// The kernel taps that read these elements, in ascending order.
    pub taps: [Vec<usize>; 3],
    /// The output position at which each tap reads the first element.
    pub reads: [Vec<isize>; 3],
}

/// A spatial dimension: at output position `j`, tap `t` of the kernel reads element `j * step + taps[t]`, which is 0
/// outside the image.
#[derive(Clone)]
pub struct Axis {
    /// The number of elements of the source.
    pub size: usize,
    /// The stride of the source, in elements.
    pub stride: usize,
    /// The number of output positions.
    pub count: usize,
    /// Input elements between neighbouring output positions; 1 for a single position.
    pub step: usize,
    /// The index of the element that each tap reads at the first position.
    pub taps: Vec<isize>,
}

impl Axis {
    /// Spatial dimension `d` of a tensor.
    pub fn of<T>(image: &Volume<'_, T>, d: usize, count: usize, step: usize, taps: Vec<isize>) -> Axis {
        let step = if count > 1 { step } else { 1 };
        Axis { size: image.sizes[d + 2], stride: image.strides[d + 2], count, step, taps }
    }

    /// Whether most elements in the range of the positions are not read, because positions or taps have a large stride: a
    /// padded copy of this range is not worth its cost, and may exceed the memory.
    pub fn is_sparse(&self) -> bool {
        let [first, last] = [self.taps.iter().min(), self.taps.iter().max()].map(|tap| tap.map_or(0, |t| *t));
        let passed = (self.count.max(1) - 1).saturating_mul(self.step).saturating_add(last.abs_diff(first));
        passed / 8 > self.count.saturating_mul(self.taps.len()).saturating_add(8)
    }

    /// Whether every tap is inside the image at every position.
    pub fn stays_inside(&self) -> bool {
        let last = (self.count.max(1) - 1) * self.step;
        let reads = |place: usize, tap: &isize| place.cast_signed() + tap;
        self.taps.iter().all(|tap| reads(0, tap) >= 0 && reads(last, tap) < self.size.cast_signed())
    }

    /// The index of the element that a tap reads at a position; `None` outside the image.
    #[inline(always)]
    pub fn element(&self, place: usize, tap: usize) -> Option<usize> {
        let at = (place * self.step) as isize + self.taps[tap];
        (at >= 0 && (at as usize) < self.size).then_some(at as usize)
    }

    /// The indices of the elements that the kernel reads at a position, in the order of its taps.
    pub fn reads(&self, place: usize) -> impl Iterator<Item = usize> {
        (0..self.taps.len()).filter_map(move |tap| self.element(place, tap))
    }

    /// The positions in the range at which a tap reads inside the image.
    #[inline]
    pub fn inside(&self, tap: usize, places: Range<usize>) -> Range<usize> {
        let first = self.taps[tap];
        let step = self.step as isize;
        // The first position at which `place * step + first` is at least `from`.
        let reaching = |from: isize| {
            (from - first).max(0).div_euclid(step) as usize
                + usize::from((from - first).max(0).rem_euclid(step) > 0)
        };
        let begin = reaching(0).clamp(places.start, places.end);
        begin..reaching(self.size as isize).clamp(begin, places.end)
    }

    /// The positions at which each of these taps reads inside the image; taps are in ascending order.
    pub fn all_inside(&self, taps: Range<usize>) -> Range<usize> {
        let all = 0..self.count;
        let both = |a: Range<usize>, b: Range<usize>| a.start.max(b.start)..a.end.min(b.end);
        let some = taps.map(|tap| self.inside(tap, all.clone())).fold(all.clone(), both);
        if some.is_empty() { 0..0 } else { some }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(sizes: [usize; 5]) -> Volume<'static, f32> {
        // SAFETY: no element is read.
        Volume { data: unsafe { Lanes::new(std::ptr::null_mut()) }, sizes, strides: [1; 5] }
    }

    #[test]
    fn the_axes_of_a_kernel_are_where_its_elements_read() {
        let moves = Moves { stride: [1, 2, 1 << 40], padding: [0, 3, 5], dilation: [1, 4, 7], groups: 1 };
        let axes = moves.axes(&image([1, 1, 1, 9, 20]), [1, 2, 1], [1, 3, 2]).unwrap();
        let taps: Vec<&[isize]> = axes.iter().map(|axis| &axis.taps[..]).collect();
        assert_eq!(taps, [&[0][..], &[-3, 1, 5], &[-5, 2]]);
        // A single position has no next one.
        assert_eq!(axes.map(|axis| (axis.size, axis.count, axis.step)), [(1, 1, 1), (9, 2, 2), (20, 1, 1)]);
        assert!(moves.axes(&image([1; 5]), [1; 3], [usize::MAX; 3]).is_err());
    }

    #[test]
    fn rows_of_which_most_is_not_read_are_sparse() {
        let axis = |count, step, taps: &[isize]| {
            Axis::of(&image([1, 1, 1, 1, 33]), 2, count, step, taps.to_vec()).is_sparse()
        };
        // Typical cases of networks: strides, dilations of 18 and 36, a stride as large as the kernel, a single position.
        for (count, step, taps) in [
            (112, 2, vec![-3, -2, -1, 0, 1, 2, 3]),
            (33, 1, vec![-18, 0, 18]),
            (33, 1, vec![-36, 0, 36]),
            (14, 16, (0..16).collect()),
            (1, 1 << 40, vec![-1, 0, 1]),
            (4, 8, vec![0]),
            (0, 1, vec![]),
        ] {
            assert!(!axis(count, step, &taps), "{count} places, {step} apart, {taps:?}");
        }
        let far = 1 << 40;
        for (count, step, taps) in [
            (8, 1, vec![-20_000, 0, 20_000]),
            (1, 1, vec![-far, 0, far]),
            (1, 1, vec![far, 0, -far]),
            (3, far as usize, vec![-far]),
            (1 << 20, usize::MAX, vec![0]),
        ] {
            assert!(axis(count, step, &taps), "{count} places, {step} apart, {taps:?}");
        }
    }

    #[test]
    fn the_places_at_which_a_tap_reads_something_are_found() {
        for (size, step, first) in
            [(5, 1, 0), (5, 1, -2), (5, 2, -3), (5, 3, 4), (5, 2, 9), (0, 1, 0), (1, 7, -14), (4, 3, -1)]
        {
            let axis = Axis { size, stride: 1, count: 6, step, taps: vec![first] };
            for (begin, end) in (0..6).flat_map(|a| (a..=6).map(move |b| (a, b))) {
                let expected: Vec<usize> = (begin..end).filter(|&p| axis.element(p, 0).is_some()).collect();
                let found: Vec<usize> = axis.inside(0, begin..end).collect();
                assert_eq!(found, expected, "size {size}, step {step}, tap {first}, {begin}..{end}");
            }
        }
    }

    #[test]
    fn the_places_at_which_all_of_some_taps_read_something_are_found() {
        let axis = Axis { size: 9, stride: 1, count: 5, step: 2, taps: vec![-3, -1, 1, 3] };
        assert_eq!(axis.all_inside(0..4), 2..3);
        assert_eq!(axis.all_inside(1..3), 1..4);
        assert_eq!(axis.all_inside(2..2), 0..5);
        let far = Axis { taps: vec![-20, 0, 20], ..axis };
        assert!(far.all_inside(0..3).is_empty());
    }
}
