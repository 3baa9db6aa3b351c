//! Copies of an image from which tiles are loaded: pixels have a constant pitch with zero padding, so that the output
//! positions, as one flat row, read each tap at a constant distance from their own pixel. Each row of positions is followed
//! by padding positions, whose results are discarded.

use crate::image::has_dense_channels;
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::tiles::SIDE;
use keyway_cpu_loops::transpose;
use std::ops::Range;

/// The maximum number of channels for which the taps of a row may be merged with the channels, and the maximum number of
/// elements of such a pixel.
const FEW: usize = 16;
const FOLDED: usize = 128;
/// The number of pixels of a row below which rows are transposed together.
const NARROW: usize = 8;

/// The geometry of a copy. With strides, rows and columns are de-interleaved into one plane per stride phase of the taps,
/// in which neighbouring positions read neighbouring pixels.
pub struct Planes {
    /// The number of elements of a pixel: whole steps of tiles, with zeros after the channels.
    pub pixel: usize,
    /// The row stride in pixels.
    pub pitch: usize,
    /// The number of rows that taps reach beyond the rows of the positions.
    pub reach: usize,
    /// The number of positions of a row.
    pub width: usize,
    /// The number of taps with separate offsets in the copy: the taps of the kernel, or its rows.
    pub taps: usize,
    channels: usize,
    step: [usize; 2],
    first: [isize; 2],
    /// The offset of each plane's first row in the image.
    rows: Vec<usize>,
    /// The columns whose channels a pixel contains, for each plane.
    columns: Vec<Vec<usize>>,
    /// The plane, row and column in the copy that each tap reads.
    places: Vec<(usize, usize, usize)>,
    /// Whether the image itself is read, without a copy.
    pub in_place: bool,
}

/// The part of an image that is copied at a time.
#[derive(Clone)]
pub struct Part {
    pub samples: Range<usize>,
    /// Rows of positions: the whole image if there are several samples.
    pub rows: Range<usize>,
    pub first_channel: usize,
}

/// Rows of an image with dense channels: borrowed, or transposed.
struct Turned<'a, T> {
    image: &'a Volume<'a, T>,
    channels: usize,
    /// The rows that were transposed together, and memory for them: small images have several short rows per transpose.
    rows: Range<usize>,
    memory: Vec<u16>,
    from: *const u16,
}

impl<'a, T> Turned<'a, T> {
    fn of(image: &'a Volume<'a, T>, channels: usize) -> Self {
        Turned { image, channels, rows: 0..0, memory: Vec::new(), from: std::ptr::null() }
    }

    /// Prepares to read these channels and rows of a sample.
    ///
    /// # Safety
    /// The image must have these channels and rows.
    unsafe fn begin(&mut self, (sample, first_channel): (usize, usize), rows: Range<usize>) {
        let [step, channel, _, down, _] = self.image.strides;
        let from = self.image.data.as_ptr().cast_const().cast::<u16>();
        self.from = from.wrapping_add(sample * step + first_channel * channel);
        if has_dense_channels(self.image) {
            return;
        }
        let width = self.image.sizes[4];
        self.rows = if width < NARROW && down == width { rows } else { 0..0 };
        self.memory.resize(self.rows.len().max(1) * width * self.channels, 0);
        // SAFETY: as the caller guarantees; the rows are contiguous.
        unsafe { self.turn(self.rows.start, self.rows.len() * width) };
    }

    /// Transposes `pixels` pixels, starting at a row.
    ///
    /// # Safety
    /// The image must have the pixels, and the memory capacity for them.
    unsafe fn turn(&mut self, row: usize, pixels: usize) {
        let [_, channel, _, down, _] = self.image.strides;
        let from = self.from.wrapping_add(row * down);
        // SAFETY: as the caller guarantees.
        unsafe { transpose(self.memory.as_mut_ptr(), self.channels, from, channel, self.channels, pixels) };
    }

    /// Returns a row, valid until the next call.
    ///
    /// # Safety
    /// The row must be one of those passed to `begin`.
    unsafe fn row(&mut self, y: usize) -> Row {
        let [_, _, _, down, across] = self.image.strides;
        let size = self.image.sizes[4];
        if has_dense_channels(self.image) {
            return Row { from: self.from.wrapping_add(y * down), size, across };
        }
        let at = match self.rows.is_empty() {
            false => (y - self.rows.start) * size * self.channels,
            true => {
                // SAFETY: as the caller guarantees.
                unsafe { self.turn(y, size) };
                0
            }
        };
        Row { from: self.memory.as_ptr().wrapping_add(at), size, across: self.channels }
    }
}

/// A row of pixels whose channels are dense.
#[derive(Clone, Copy)]
struct Row {
    from: *const u16,
    /// The number of pixels.
    size: usize,
    /// The stride between pixels, in elements.
    across: usize,
}

impl Planes {
    /// The planes for positions along two axes, whose taps are in ascending order. An image that may be read in place has
    /// `channels` channels.
    pub fn of(axes: &[Axis; 2], channels: usize, may_be_in_place: bool) -> Planes {
        let step = [0, 1].map(|d| axes[d].step);
        let first = [0, 1].map(|d| axes[d].taps.first().copied().unwrap_or(0));
        let taps = [0, 1].map(|d| -> Vec<usize> {
            axes[d].taps.iter().map(|tap| (tap - first[d]).cast_unsigned()).collect()
        });
        let across = taps[1].len();
        let folded = (across * channels).next_multiple_of(SIDE);
        let fold = channels <= FEW && folded <= FOLDED && folded < across * SIDE;
        let parts = |d: usize| -> Vec<usize> {
            let mut parts: Vec<usize> = taps[d].iter().map(|tap| tap % step[d]).collect();
            parts.sort_unstable();
            parts.dedup();
            parts
        };
        let rows = parts(0);
        let (columns, across) = match fold {
            true => (vec![taps[1].clone()], vec![0]),
            false => (parts(1).into_iter().map(|part| vec![part]).collect(), taps[1].clone()),
        };
        let plane = |y: usize, x: usize| {
            let row = rows.iter().position(|&row| row == y % step[0]).unwrap_or(0);
            let column = columns.iter().position(|column| column[0] == x % step[1]).unwrap_or(0);
            (row * columns.len() + column, y / step[0], x / step[1])
        };
        let places: Vec<_> = taps[0].iter().flat_map(|&y| across.iter().map(move |&x| (y, x))).collect();
        let places: Vec<_> = places.into_iter().map(|(y, x)| plane(y, x)).collect();
        let far = |of: fn(&(usize, usize, usize)) -> usize| places.iter().map(of).max().unwrap_or(0);
        let (reach, beyond) = (far(|place| place.1), far(|place| place.2));
        let inside = |axis: &Axis| {
            let last = (axis.count.max(1) - 1).cast_signed();
            axis.step == 1 && axis.taps.iter().all(|tap| *tap >= 0 && tap + last < axis.size.cast_signed())
        };
        let in_place = may_be_in_place && channels.is_multiple_of(SIDE) && axes.iter().all(inside);
        Planes {
            pixel: if fold { folded } else { channels.next_multiple_of(SIDE) },
            pitch: if in_place { axes[1].size } else { axes[1].count + beyond },
            reach: if in_place { axes[0].size - axes[0].count } else { reach },
            width: axes[1].count,
            taps: places.len(),
            channels,
            step,
            first,
            rows,
            columns,
            places,
            in_place,
        }
    }

    /// Whether most of a copy would be zeros, since the distance of taps is much larger than the image.
    pub fn mostly_zeros(&self, axes: &[Axis; 2]) -> bool {
        let far = |beyond: usize, axis: &Axis| beyond > 4 * (axis.count + axis.size / axis.step) + SIDE;
        far(self.reach, &axes[0]) || far(self.pitch - self.width, &axes[1])
    }

    /// The number of pixels of a plane with `rows` rows, including those that a block of positions reads beyond the
    /// last row.
    pub fn plane(&self, rows: usize) -> usize {
        (rows * self.pitch + SIDE - 1).next_multiple_of(SIDE)
    }

    /// The number of planes.
    pub fn count(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// The number of rows of the copy for each sample of a part.
    pub fn tall(&self, part: &Part) -> usize {
        part.rows.len() + self.reach
    }

    /// The number of flat positions of a part, from the first to the last valid one.
    pub fn flat(&self, part: &Part) -> usize {
        ((part.samples.len() - 1) * self.tall(part) + part.rows.len() - 1) * self.pitch + self.width
    }

    /// The plane that each tap reads, and the distance in pixels from a position's own pixel to the one that the tap reads.
    pub fn distances(&self) -> impl Iterator<Item = (usize, usize)> {
        self.places.iter().map(|&(plane, y, x)| (plane, y * self.pitch + x))
    }

    /// The kernel tap and the channel of an element of the copy's pixels; `None` for padding elements.
    pub fn meaning(&self, tap: usize, element: usize) -> Option<(usize, usize)> {
        let folded = self.columns[0].len();
        (element < folded * self.channels)
            .then(|| (tap * folded + element / self.channels, element % self.channels))
    }

    /// The first address that the first position of a part reads, in an image that is read in place.
    pub fn first_read<T>(&self, image: &Volume<'_, T>, part: &Part) -> *const u16 {
        let [y, x] = self.first.map(isize::cast_unsigned);
        let [sample, _, _, down, across] = image.strides;
        let at = part.samples.start * sample + (part.rows.start + y) * down + x * across + part.first_channel;
        image.data.as_ptr().cast_const().cast::<u16>().wrapping_add(at)
    }

    /// Copies the pixels that the positions of a part read.
    ///
    /// # Safety
    /// The volume must be an [`image`](crate::image::image) that contains the elements its sizes describe, each of two
    /// bytes, and the part must be within it; `to` must have the [`Planes::size`] of planes of `plane` pixels, uniquely
    /// owned.
    pub unsafe fn copy<T>(&self, to: *mut u16, plane: usize, image: &Volume<'_, T>, part: &Part) {
        let tall = self.tall(part);
        let line = self.pitch * self.pixel;
        let mut transposed = Turned::of(image, self.channels);
        for (i, (row, columns)) in self
            .rows
            .iter()
            .flat_map(|row| self.columns.iter().map(move |columns| (row, columns)))
            .enumerate()
        {
            let to = to.wrapping_add(i * plane * self.pixel);
            let row_of =
                |r: usize| ((part.rows.start + r) * self.step[0] + row).cast_signed() + self.first[0];
            let rows = [0, tall].map(|r| row_of(r).clamp(0, image.sizes[3].cast_signed()).cast_unsigned());
            for (s, sample) in part.samples.clone().enumerate() {
                // SAFETY: the caller guarantees the elements.
                unsafe { transposed.begin((sample, part.first_channel), rows[0]..rows[1]) };
                for r in 0..tall {
                    let (y, to) = (row_of(r), to.wrapping_add((s * tall + r) * line));
                    // SAFETY: the caller guarantees the elements of source and target.
                    unsafe {
                        if y < 0 || y.cast_unsigned() >= image.sizes[3] {
                            to.write_bytes(0, line);
                        } else {
                            self.copy_row(to, transposed.row(y.cast_unsigned()), columns);
                        }
                    }
                }
            }
            let rows = part.samples.len() * tall;
            let behind = self.plane(rows) * self.pixel - rows * line;
            // SAFETY: a plane has this many elements after its rows.
            unsafe { to.add(rows * line).write_bytes(0, behind) };
        }
    }

    /// # Safety
    /// As for [`Planes::copy`].
    unsafe fn copy_row(&self, to: *mut u16, Row { from, size, across }: Row, columns: &[usize]) {
        let (c, pixel) = (self.channels, self.pixel);
        // The columns of the copy for which this column is in the image.
        let inside = |column: usize| {
            let first = self.first[1] + column.cast_signed();
            let reaching =
                |x: isize| (x - first).max(0).cast_unsigned().div_ceil(self.step[1]).min(self.pitch);
            reaching(0)..reaching(size.cast_signed()).max(reaching(0))
        };
        let source =
            |x: usize, column: usize| (x * self.step[1] + column).wrapping_add_signed(self.first[1]) * across;
        let all = inside(columns[0]);
        let neighbours = across == c && columns.iter().enumerate().all(|(i, &column)| column == i);
        let whole = match neighbours {
            true => all.start.max(inside(0).start)..inside(columns.len() - 1).end.max(all.start),
            false => all.start..all.start,
        };
        let step = self.step[1] * across;
        // The pixels inside that are followed by at least as many elements of the row as a pixel of the copy has.
        let mut lines = whole.start..whole.start;
        if columns.len() > 1 && pixel == SIDE && !whole.is_empty() {
            let room = (size * across).saturating_sub(source(whole.start, 0));
            lines.end += room.checked_sub(SIDE).map_or(0, |room| room / step + 1).min(whole.len());
        }
        // SAFETY: as the caller guarantees; columns of the copy that are inside read pixels of the image, and after the
        // start of each of `lines` the row has all elements that are read.
        unsafe {
            if !lines.is_empty() {
                // Each is written once, and the elements after its taps in the row are masked out.
                let mask: [u16; SIDE] =
                    std::array::from_fn(|e| if e < columns.len() * c { u16::MAX } else { 0 });
                for x in lines.clone() {
                    let mut line = *from.wrapping_add(source(x, 0)).cast::<[u16; SIDE]>();
                    line.iter_mut().zip(&mask).for_each(|(element, kept)| *element &= kept);
                    *to.add(x * SIDE).cast() = line;
                }
                to.write_bytes(0, lines.start * SIDE);
                to.add(lines.end * SIDE).write_bytes(0, (self.pitch - lines.end) * SIDE);
            } else if columns.len() > 1 || c < pixel {
                to.write_bytes(0, self.pitch * pixel);
            } else {
                to.write_bytes(0, all.start * pixel);
                to.add(all.end * pixel).write_bytes(0, (self.pitch - all.end) * pixel);
            }
            if columns.len() == 1 && c == pixel && self.step[1] == 1 && across == c {
                let first = from.wrapping_add(source(all.start, columns[0]));
                first.copy_to_nonoverlapping(to.add(all.start * pixel), all.len() * pixel);
                return;
            }
            for x in lines.end..whole.end {
                let from = from.wrapping_add(source(x, 0));
                copy_few(to.add(x * pixel), from, columns.len() * c);
            }
            for (i, &column) in columns.iter().enumerate() {
                let inside = inside(column);
                let before = inside.start..whole.start.clamp(inside.start, inside.end);
                for some in [before, whole.end.clamp(inside.start, inside.end)..inside.end] {
                    let (mut from, mut to) = (
                        from.wrapping_add(source(some.start, column)),
                        to.wrapping_add(some.start * pixel + i * c),
                    );
                    for _ in some {
                        // A constant number of channels, so that the copy is inlined.
                        if c == HALF {
                            copy_few(to, from, HALF)
                        } else {
                            copy_few(to, from, c)
                        }
                        (from, to) = (from.wrapping_add(step), to.wrapping_add(pixel));
                    }
                }
            }
        }
    }
}

/// A frequent number of channels of a group.
const HALF: usize = SIDE / 2;

/// Copies `n` elements inline; most copies are so short that a call would take longer.
///
/// # Safety
/// `from` must have `n` elements and `to` capacity for them, without overlap.
#[inline(always)]
pub unsafe fn copy_few(to: *mut u16, from: *const u16, n: usize) {
    /// Copies from both ends; the two copies may overlap.
    ///
    /// # Safety
    /// As for [`copy_few`], with `n` from `N` to `2 * N`.
    #[inline(always)]
    unsafe fn ends<const N: usize>(to: *mut u16, from: *const u16, n: usize) {
        // SAFETY: as the caller guarantees; elements are aligned as their arrays are.
        unsafe {
            let (first, last) = (*from.cast::<[u16; N]>(), *from.add(n - N).cast::<[u16; N]>());
            *to.cast() = first;
            *to.add(n - N).cast() = last;
        }
    }
    // SAFETY: as the caller guarantees.
    unsafe {
        match n {
            16..=32 => ends::<16>(to, from, n),
            8..16 => ends::<8>(to, from, n),
            4..8 => ends::<4>(to, from, n),
            0..4 => (0..n).for_each(|i| *to.add(i) = *from.add(i)),
            _ => to.copy_from_nonoverlapping(from, n),
        }
    }
}
