//! Windowed reductions, one line of outputs at a time.

use crate::kernels::gather::fetch;
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::vectors::{Lanes, Vector, narrow, widen};
use keyway_cpu_loops::{parallel_try, reserve};
use keyway_sdk::author::{Error, Real, Scratch};
use std::any::TypeId;
use std::ops::Range;

/// The number of elements that justifies another thread.
pub const GRAIN: usize = 1 << 14;
/// The number of channels below which the bookkeeping of a line dominates its time.
const CHANNELS: usize = 8;
/// The number of channels whose accumulators stay in registers, with vectors of 64 bytes and with smaller ones. 2-byte
/// elements are read as fast in small pieces of a pixel; larger ones are not if they come from main memory.
const TOGETHER: [usize; 2] = [64, 32];

/// The image size in bytes above which it is read from main memory, where accesses to pieces of distant rows stall; and the
/// prefetch distance of channels, in positions.
const LARGE: usize = 16 << 20;
const AHEAD: usize = 4;

/// A reduction over the elements of a window, in the order of the window.
pub trait Reduce<A>: Sync {
    /// The stored index of an element in its channel.
    type Place: Copy;
    /// The initial state.
    const FIRST: (A, Self::Place);
    /// The stored form of this index.
    fn place(at: usize) -> Self::Place;
    /// The state after one more element.
    fn take(so_far: (A, Self::Place), x: A, at: Self::Place) -> (A, Self::Place);
    /// The state after one more element, which is not the first.
    #[inline(always)]
    fn more(so_far: (A, Self::Place), x: A, at: Self::Place) -> (A, Self::Place) {
        Self::take(so_far, x, at)
    }
}

/// The input image, and the axes of the windows over it.
pub struct Lines<'a, T> {
    pub input: &'a Volume<'a, T>,
    pub axes: &'a [Axis; 3],
}

/// A line of outputs: along the last dimension, or along the channels.
#[derive(Clone, Copy)]
pub struct Line {
    pub first: [usize; 5],
    pub along: usize,
}

impl Line {
    /// The offset of the line in a tensor, and the stride of its results.
    #[inline(always)]
    pub fn of<T>(&self, t: &Volume<'_, T>) -> (usize, usize) {
        ((0..5).map(|d| self.first[d] * t.strides[d]).sum(), t.strides[self.along])
    }

    /// The window position of the line's first output.
    pub fn place(&self) -> [usize; 3] {
        let [_, _, d, h, w] = self.first;
        [d, h, w]
    }

    /// Whether the line consists of the channels of one position.
    pub fn has_channels(&self) -> bool {
        self.along == 1
    }

    /// Rounds the line's results and writes them.
    ///
    /// # Safety
    /// The tensor must have the elements that its sizes describe, and those of the line must be uniquely owned.
    pub unsafe fn write<T: Lanes>(&self, t: &Volume<'_, T>, results: &[T::Acc]) {
        let (begin, step) = self.of(t);
        // SAFETY: as the caller guarantees.
        unsafe { narrow(t.data.as_ptr().add(begin), step, results) };
    }

    /// Writes the indices of the line's results.
    ///
    /// # Safety
    /// As for [`Line::write`].
    pub unsafe fn write_places<P: Copy + Into<i64>>(&self, t: &Volume<'_, i64>, places: &[P]) {
        let (begin, step) = self.of(t);
        let to = t.data.as_ptr().wrapping_add(begin);
        for (i, &place) in places.iter().enumerate() {
            // SAFETY: as the caller guarantees.
            unsafe { to.wrapping_add(if step == 1 { i } else { i * step }).write(place.into()) };
        }
    }
}

/// The scratch memory of a thread for a line.
pub struct Memory<A, P> {
    pub values: Scratch<A>,
    pub places: Vec<P>,
    /// The offsets of the window's elements, and their stored indices.
    pub window: Vec<(usize, P)>,
    /// The offsets of the window's rows, and the indices of their first elements, for the positions of this sample's
    /// row.
    rows: Vec<(usize, usize)>,
    of: Option<[usize; 3]>,
    /// A copy of the elements that one step of the line reads, if they cannot be used in place.
    pub read: Scratch<A>,
    /// A row de-interleaved by stride phase.
    parts: Scratch<A>,
}

impl<A: Real, P: Copy> Memory<A, P> {
    /// Allocates `results` results, initialised to `first`, for a line that reads `read` elements per step.
    pub fn new(first: (A, P), results: usize, read: usize, parts: usize) -> Result<Self, Error> {
        let mut places = reserve(results)?;
        places.resize(results, first.1);
        Ok(Memory {
            values: Scratch::zeroed(results)?,
            places,
            window: Vec::new(),
            rows: Vec::new(),
            of: None,
            read: Scratch::zeroed(read)?,
            parts: Scratch::zeroed(parts)?,
        })
    }

    /// Initialises each result.
    pub fn begin(&mut self, (value, place): (A, P)) {
        self.values.fill(value);
        self.places.fill(place);
    }
}

/// Calls `line` with the start index of each line of the range, given the number of lines in each dimension.
pub fn each_first(counts: [usize; 5], range: Range<usize>, mut line: impl FnMut([usize; 5])) {
    let mut first = [0; 5];
    let mut rest = range.start;
    for d in (0..5).rev() {
        first[d] = rest % counts[d];
        rest /= counts[d];
    }
    for _ in range {
        line(first);
        for d in (0..5).rev() {
            first[d] += 1;
            if first[d] < counts[d] {
                break;
            }
            first[d] = 0;
        }
    }
}

/// Whether the elements have the accumulation type.
pub fn unwidened<T: Lanes>() -> bool {
    TypeId::of::<T>() == TypeId::of::<T::Acc>()
}

/// Reads elements with stride `step`, and widens them.
///
/// # Safety
/// There must be `to.len()` elements.
pub unsafe fn read<T: Lanes>(from: *const T, step: usize, to: &mut [T::Acc]) {
    // SAFETY: as the caller guarantees.
    unsafe {
        match step {
            1 => widen(to.as_mut_ptr(), from, to.len()),
            _ => to.iter_mut().enumerate().for_each(|(i, x)| *x = (*from.add(i * step)).to_acc()),
        }
    }
}

/// Whether lines should be along the channels of a position instead of along the positions of a row.
pub fn by_channels<T>(image: &Volume<'_, T>) -> bool {
    image.strides[1] == 1 && image.sizes[1] >= CHANNELS
}

impl<T: Lanes> Lines<'_, T> {
    /// Calls `write` with each line of the output and its stored indices.
    ///
    /// # Safety
    /// The input must contain the elements that the sizes describe.
    pub unsafe fn each<R: Reduce<T::Acc>, O>(
        &self,
        out: &Volume<'_, O>,
        write: impl Fn(Line, &mut [T::Acc], &[R::Place]) + Sync,
    ) -> Result<(), Error> {
        let along = if by_channels(self.input) { 1 } else { 4 };
        let length = out.sizes[along];
        let mut counts = out.sizes;
        counts[along] = 1;
        let window: usize = self.axes.iter().map(|axis| axis.taps.len()).product();
        let rows = Rows::of(&self.axes[2])?;
        let columns = if along == 1 { Columns::of(&self.axes[2])? } else { Columns::default() };
        let parts = if along == 4 { rows.deinterleaved_len() } else { 0 };
        let is_large = self.input.sizes.iter().fold(size_of::<T>(), |n, s| n.saturating_mul(*s)) >= LARGE;
        let lines = counts.iter().product();
        if lines == 0 || length == 0 {
            return Ok(());
        }
        parallel_try(lines, GRAIN / length.saturating_mul(window).max(1), |range| {
            let mut memory = Memory::new(R::FIRST, length, self.input.sizes[along], parts)?;
            each_first(counts, range, |first| {
                let line = Line { first, along };
                // SAFETY: as the caller guarantees.
                unsafe {
                    if along == 1 {
                        self.of_channels::<R>(line, &columns, is_large, &mut memory);
                    } else {
                        memory.begin(R::FIRST);
                        self.of_places::<R>(line, &rows, &mut memory);
                    }
                }
                write(line, &mut memory.values, &memory.places);
            });
            Ok(())
        })
    }

    /// Returns `n` elements of stride `step`, contiguous and widened: borrowed, or copied to `copy`.
    ///
    /// # Safety
    /// There must be `n` elements, and `copy` must have capacity for them.
    pub unsafe fn read(from: *const T, step: usize, n: usize, copy: &mut [T::Acc]) -> &[T::Acc] {
        let copy = &mut copy[..n];
        // SAFETY: as the caller guarantees.
        unsafe {
            if step == 1 && unwidened::<T>() {
                return std::slice::from_raw_parts(from.cast(), n);
            }
            read(from, step, copy);
        }
        copy
    }

    /// # Safety
    /// As for [`Lines::each`].
    unsafe fn of_channels<R: Reduce<T::Acc>>(
        &self,
        line: Line,
        columns: &Columns,
        is_large: bool,
        memory: &mut Memory<T::Acc, R::Place>,
    ) {
        let [sample, _, d, h, w] = line.first;
        let [depth, height, width] = self.axes;
        // The positions of a row are consecutive, and their windows cover the same rows.
        if memory.of != Some([sample, d, h]) {
            memory.of = Some([sample, d, h]);
            memory.rows.clear();
            let begin = sample * self.input.strides[0];
            for z in depth.reads(d) {
                let row =
                    |y| (begin + z * depth.stride + y * height.stride, (z * height.size + y) * width.size);
                memory.rows.extend(height.reads(h).map(row));
            }
        }
        memory.window.clear();
        for &(at, row) in &memory.rows {
            for &x in columns.at(w) {
                memory.window.push((at + x * width.stride, R::place(row + x)));
            }
        }
        if is_large {
            for &(at, _) in &memory.rows {
                let of = |&x: &usize| self.input.data.as_ptr().wrapping_add(at + x * width.stride);
                columns.new_at(w + AHEAD).map(of).for_each(|pixel| fetch(pixel, self.input.sizes[1]));
            }
        }
        // SAFETY: the window's elements are within the image, whose channels the caller guarantees.
        unsafe { Self::under::<R>(self.input.data.as_ptr(), memory) };
    }

    /// Reduces the channels of one position over its window.
    ///
    /// # Safety
    /// There must be a channel for each result at each element of the window.
    pub unsafe fn under<R: Reduce<T::Acc>>(from: *const T, memory: &mut Memory<T::Acc, R::Place>) {
        let Memory { values, places, window, read, .. } = memory;
        let mut whole = 0;
        // SAFETY: as the caller guarantees; `values` and `places` have the same length.
        unsafe {
            let (to, at) = (values.as_mut_ptr(), places.as_mut_ptr());
            while size_of::<T::Vector>() == 64 && size_of::<T>() >= 4 && whole + TOGETHER[0] <= values.len() {
                let to = (to.add(whole), at.add(whole));
                Self::together::<R, { TOGETHER[0] }>(from.wrapping_add(whole), window, to);
                whole += TOGETHER[0];
            }
            while whole + TOGETHER[1] <= values.len() {
                let to = (to.add(whole), at.add(whole));
                Self::together::<R, { TOGETHER[1] }>(from.wrapping_add(whole), window, to);
                whole += TOGETHER[1];
            }
            let (values, places) = (&mut values[whole..], &mut places[whole..]);
            values.fill(R::FIRST.0);
            places.fill(R::FIRST.1);
            for &(at, place) in window.iter().take(if values.is_empty() { 0 } else { window.len() }) {
                let read = Self::read(from.wrapping_add(at + whole), 1, values.len(), read);
                for ((value, kept), &x) in values.iter_mut().zip(places.iter_mut()).zip(read) {
                    (*value, *kept) = R::take((*value, *kept), x, place);
                }
            }
        }
    }

    /// Reduces `N` channels of one position, whose accumulators stay in registers.
    ///
    /// # Safety
    /// There must be `N` channels at each element of the window, and `N` results, uniquely owned.
    #[inline(always)]
    unsafe fn together<R: Reduce<T::Acc>, const N: usize>(
        from: *const T,
        window: &[(usize, R::Place)],
        to: (*mut T::Acc, *mut R::Place),
    ) {
        let read = |at: usize| {
            let mut read = [T::Acc::ZERO; N];
            for i in (0..N).step_by(T::Vector::LANES) {
                // SAFETY: as the caller guarantees; the copy has whole vectors.
                unsafe { T::read(from.wrapping_add(at + i)).store(read.as_mut_ptr().add(i)) };
            }
            read
        };
        let (mut value, mut kept) = ([R::FIRST.0; N], [R::FIRST.1; N]);
        if let Some((&(at, place), rest)) = window.split_first() {
            let first = read(at);
            for i in 0..N {
                (value[i], kept[i]) = R::take(R::FIRST, first[i], place);
            }
            for &(at, place) in rest {
                let read = read(at);
                for i in 0..N {
                    (value[i], kept[i]) = R::more((value[i], kept[i]), read[i], place);
                }
            }
        }
        // SAFETY: as the caller guarantees.
        unsafe {
            store(to.0, &value);
            store(to.1, &kept);
        }
    }

    /// # Safety
    /// As for [`Lines::each`].
    unsafe fn of_places<R: Reduce<T::Acc>>(
        &self,
        line: Line,
        rows: &Rows,
        memory: &mut Memory<T::Acc, R::Place>,
    ) {
        let [sample, channel, d, h, _] = line.first;
        let [depth, height, width] = self.axes;
        let begin = sample * self.input.strides[0] + channel * self.input.strides[1];
        for z in depth.reads(d) {
            for y in height.reads(h) {
                let at = begin + z * depth.stride + y * height.stride;
                let from = self.input.data.as_ptr().cast_const().wrapping_add(at);
                // SAFETY: the row is in the image, whose elements the caller guarantees.
                let read = unsafe { Self::read(from, width.stride, width.size, &mut memory.read) };
                let read = rows.deinterleaved(read, &mut memory.parts);
                let row = (z * height.size + y) * width.size;
                for tap in &rows.taps {
                    let (values, places) =
                        (&mut memory.values[tap.inside.clone()], &mut memory.places[tap.inside.clone()]);
                    let (read, at) = (&read[tap.part..], row + tap.element);
                    match rows.step {
                        1 => take_all::<_, R>(values, places, read, at, 1),
                        2 => take_all::<_, R>(values, places, read, at, 2),
                        step => take_all::<_, R>(values, places, read, at, step),
                    }
                }
            }
        }
    }
}

/// The elements of a row that each position reads.
#[derive(Default)]
struct Columns {
    elements: Vec<usize>,
    /// The end of each position's elements.
    ends: Vec<usize>,
}

impl Columns {
    fn of(width: &Axis) -> Result<Columns, Error> {
        let most = width.count.saturating_mul(width.taps.len());
        let mut columns = Columns { elements: reserve(most)?, ends: reserve(width.count)? };
        for place in 0..width.count {
            columns.elements.extend(width.reads(place));
            columns.ends.push(columns.elements.len());
        }
        Ok(columns)
    }

    #[inline(always)]
    fn at(&self, place: usize) -> &[usize] {
        &self.elements[if place == 0 { 0 } else { self.ends[place - 1] }..self.ends[place]]
    }

    /// The elements of a position, if it exists, that the previous position does not read.
    fn new_at(&self, place: usize) -> impl Iterator<Item = &usize> {
        let place = place.min(self.ends.len());
        let begin = if place == 0 { 0 } else { self.ends[place - 1] };
        let end = self.ends.get(place).map_or(begin, |end| *end);
        let last = self.elements[..begin].last().copied();
        self.elements[begin..end].iter().filter(move |x| last.is_none_or(|last| **x > last))
    }
}

/// Stores values from registers in pieces: a whole array would be copied through memory.
///
/// # Safety
/// `to` must have capacity for `N` elements, uniquely owned.
#[inline(always)]
unsafe fn store<X: Copy, const N: usize>(to: *mut X, from: &[X; N]) {
    const SOME: usize = 16;
    const { assert!(N.is_multiple_of(SOME)) };
    let mut i = 0;
    while i < N {
        // SAFETY: as the caller guarantees; both have `SOME` elements from index `i`.
        unsafe { to.add(i).cast::<[X; SOME]>().write(*from.as_ptr().add(i).cast()) };
        i += SOME;
    }
}

/// The access pattern of the positions of a row on an input row that is de-interleaved by stride phase, so that
/// neighbouring positions read neighbouring elements.
pub struct Rows {
    step: usize,
    /// The number of elements of each phase.
    length: usize,
    pub taps: Vec<Tap>,
}

/// A window element along the last dimension.
pub struct Tap {
    /// The positions at which the tap is inside the image.
    pub inside: Range<usize>,
    /// The element of the row that the first of these positions reads.
    element: usize,
    /// The index of that element in the de-interleaved row.
    pub part: usize,
}

impl Rows {
    pub fn of(width: &Axis) -> Result<Rows, Error> {
        // With a stride beyond the row, each element is a phase of its own, and a tap is inside the image at one position
        // at most.
        let step = width.step.min(width.size).max(1);
        let length = width.size.div_ceil(step).max(1);
        let mut taps = reserve(width.taps.len())?;
        taps.extend((0..width.taps.len()).filter_map(|tap| {
            let inside = width.inside(tap, 0..width.count);
            let element = width.element(inside.start, tap).filter(|_| !inside.is_empty())?;
            Some(Tap { inside, element, part: element % step * length + element / step })
        }));
        Ok(Rows { step, length, taps })
    }

    /// The row de-interleaved by stride phase.
    fn deinterleaved<'a, A: Real>(&self, row: &'a [A], parts: &'a mut [A]) -> &'a [A] {
        match self.step {
            1 => return row,
            2 => self.part(row, 2, parts),
            step => self.part(row, step, parts),
        }
        parts
    }

    #[inline(always)]
    fn part<A: Real>(&self, row: &[A], step: usize, parts: &mut [A]) {
        for (remainder, to) in parts.chunks_mut(self.length).enumerate().take(step.min(row.len())) {
            to.iter_mut().zip(row[remainder..].iter().step_by(step)).for_each(|(to, &x)| *to = x);
        }
    }

    /// The number of elements of the de-interleaved row.
    pub fn deinterleaved_len(&self) -> usize {
        self.step * self.length
    }

    /// Adds a de-interleaved row to a plain one.
    pub fn add_parted<A: Real>(&self, parts: &[A], row: &mut [A]) {
        match self.step {
            1 => row.iter_mut().zip(parts).for_each(|(to, &x)| *to += x),
            2 => {
                let (even, odd) = parts.split_at(self.length);
                let pairs = row.chunks_exact_mut(2).zip(even.iter().zip(odd));
                pairs.for_each(|(to, (&even, &odd))| (to[0], to[1]) = (to[0] + even, to[1] + odd));
                if row.len() % 2 == 1 {
                    row[row.len() - 1] += even[self.length - 1];
                }
            }
            step => {
                for (remainder, part) in parts.chunks(self.length).enumerate().take(step.min(row.len())) {
                    row[remainder..].iter_mut().step_by(step).zip(part).for_each(|(to, &x)| *to += x);
                }
            }
        }
    }
}

/// Reduces one element into each result; elements have stride `step` in the channel, and the first has this index.
#[inline(always)]
pub fn take_all<A: Real, R: Reduce<A>>(
    values: &mut [A],
    places: &mut [R::Place],
    read: &[A],
    at: usize,
    step: usize,
) {
    let n = values.len();
    let (read, places) = (&read[..n], &mut places[..n]);
    for i in 0..n {
        (values[i], places[i]) = R::take((values[i], places[i]), read[i], R::place(at + i * step));
    }
}
