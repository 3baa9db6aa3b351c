//! Elements of strided memory, read by the host in row-major order, in chunks of any size.

use super::copy::{is_host, read_bytes};
use super::{Storage, host_vec};
use crate::base::dims::{Dims, count};
use crate::base::error::Result;

/// The maximum number of elements read one by one if the host cannot read the memory and most of the bytes between them are
/// not needed.
const FEW: usize = 1024;
/// The number of bytes of one read of strided elements, gaps included.
const SPAN: usize = 1 << 20;

/// The position of strided elements in a storage: offset, sizes and strides, in elements.
#[derive(Clone, Copy, Debug)]
pub struct StridedElements<'a> {
    /// The first element.
    pub offset: usize,
    /// Sizes.
    pub sizes: &'a [usize],
    /// Strides.
    pub strides: &'a [usize],
    /// Bytes of an element.
    pub element: usize,
}

/// The way in which elements are read.
enum Source {
    /// Contiguous elements.
    Row,
    /// The host reads the memory.
    Host,
    /// A copy of all from the first element to the last.
    Copy(Vec<u8>),
    /// Elements of another device's memory, read one by one.
    Each,
}

/// Reads the elements of strided memory in row-major order.
pub struct ElementReader {
    storage: Storage,
    source: Source,
    /// The byte of the first element.
    begin: usize,
    element: usize,
    /// The sizes of the loops, merged into as few as possible.
    sizes: Dims,
    strides: Dims,
    /// The position of the next element: its linear index, its multi-index, its offset from the first.
    next: usize,
    index: Dims,
    at: usize,
    numel: usize,
}

impl ElementReader {
    /// Creates a reader of these elements, which must be within the storage.
    ///
    /// # Errors
    /// The device's error; `OutOfMemory`.
    pub fn new(storage: &Storage, elements: StridedElements<'_>) -> Result<ElementReader> {
        let StridedElements { offset, element, .. } = elements;
        let numel = count(elements.sizes);
        let (sizes, strides) = loops(elements.sizes, elements.strides);
        let begin = offset * element;
        let source = match (&sizes[..], &strides[..]) {
            _ if numel == 0 => Source::Row,
            ([], _) | ([_], [1]) => Source::Row,
            _ if is_host(storage)? => Source::Host,
            _ => {
                let reach: usize = sizes.iter().zip(&strides).map(|(&n, &s)| (n - 1) * s).sum();
                let bytes = (reach + 1) * element;
                if numel <= FEW && bytes > SPAN {
                    Source::Each
                } else {
                    let mut copy = host_vec(bytes)?;
                    copy.resize(bytes, 0);
                    read_bytes(storage, begin, &mut copy)?;
                    Source::Copy(copy)
                }
            }
        };
        let index = Dims::from_elem(0, sizes.len());
        let storage = storage.clone();
        Ok(ElementReader { storage, source, begin, element, sizes, strides, next: 0, index, at: 0, numel })
    }

    /// The number of elements not read yet.
    pub fn left(&self) -> usize {
        self.numel - self.next
    }

    /// Fills `target` with the next elements; at least as many must remain.
    ///
    /// # Errors
    /// `Value` for more elements than remain; the device's error.
    pub fn read(&mut self, target: &mut [u8]) -> Result<()> {
        if matches!(self.source, Source::Row) {
            read_bytes(&self.storage, self.begin + self.next * self.element, target)?;
            self.next += target.len() / self.element;
            return Ok(());
        }
        if matches!(self.source, Source::Host) {
            self.storage.synchronize()?;
        }
        let element = self.element;
        let mut target = target;
        // There is at least one loop: otherwise the elements would be contiguous.
        let inner = self.sizes.len() - 1;
        while target.len() >= element && self.next < self.numel {
            let n = (target.len() / element).min(self.sizes[inner] - self.index[inner]);
            let (row, rest) = target.split_at_mut(n * element);
            let (from, step) = (self.at * element, self.strides[inner] * element);
            match &self.source {
                Source::Copy(copy) => gather(copy, from, step, row, element),
                Source::Host => self.storage.gather(self.begin + from, step, row, element)?,
                _ => {
                    for (i, to) in row.chunks_exact_mut(element).enumerate() {
                        read_bytes(&self.storage, self.begin + from + i * step, to)?;
                    }
                }
            }
            self.advance(n);
            target = rest;
        }
        Ok(())
    }

    /// Steps over elements of the innermost loop.
    fn advance(&mut self, n: usize) {
        self.next += n;
        let mut step = n;
        for d in (0..self.sizes.len()).rev() {
            self.index[d] += step;
            self.at += self.strides[d] * step;
            if self.index[d] < self.sizes[d] {
                return;
            }
            self.at -= self.strides[d] * self.sizes[d];
            self.index[d] = 0;
            step = 1;
        }
    }
}

/// Merges sizes and strides into as few loops as possible.
fn loops(sizes: &[usize], strides: &[usize]) -> (Dims, Dims) {
    let (mut merged, mut steps) = (Dims::new(), Dims::new());
    for (&size, &stride) in sizes.iter().zip(strides).filter(|(size, _)| **size != 1) {
        match (merged.last_mut(), steps.last_mut()) {
            (Some(last), Some(step)) if *step == stride * size => (*last, *step) = (*last * size, stride),
            _ => {
                merged.push(size);
                steps.push(stride);
            }
        }
    }
    (merged, steps)
}

/// Copies elements with a stride of `step` bytes into contiguous memory.
fn gather(from: &[u8], first: usize, step: usize, to: &mut [u8], element: usize) {
    for (i, to) in to.chunks_exact_mut(element).enumerate() {
        let at = first + i * step;
        to.copy_from_slice(&from[at..at + element]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset: usize, sizes: &[usize], strides: &[usize], chunk: usize) -> Vec<u16> {
        let storage = Storage::from_vec((0u16..100).collect());
        let mut reader =
            ElementReader::new(&storage, StridedElements { offset, sizes, strides, element: 2 }).unwrap();
        let mut all = Vec::new();
        while reader.left() > 0 {
            let mut bytes = vec![0u8; 2 * chunk.min(reader.left())];
            reader.read(&mut bytes).unwrap();
            all.extend(bytes.as_chunks::<2>().0.iter().map(|b| u16::from_ne_bytes(*b)));
        }
        all
    }

    #[test]
    fn elements_come_in_row_major_order_whatever_the_strides_and_the_pieces() {
        for (offset, sizes, strides) in [
            (0, &[2usize, 3][..], &[3usize, 1][..]),
            (5, &[3, 2], &[1, 3]),
            (7, &[2, 3, 4], &[24, 1, 6]),
            (1, &[4, 1, 3], &[2, 50, 9]),
            (9, &[3, 2], &[0, 1]),
            (9, &[], &[]),
            (9, &[4], &[0]),
            (0, &[3, 0], &[1, 1]),
        ] {
            let mut expected = vec![offset];
            for (&size, &stride) in sizes.iter().zip(strides) {
                expected = expected.iter().flat_map(|o| (0..size).map(move |i| o + i * stride)).collect();
            }
            let expected: Vec<u16> = expected.into_iter().map(|o| o as u16).collect();
            for chunk in [1, 2, 3, 5, 100] {
                assert_eq!(read(offset, sizes, strides, chunk), expected, "{sizes:?} {strides:?} by {chunk}");
            }
        }
    }

    #[test]
    fn elements_outside_the_storage_are_refused() {
        let storage = Storage::from_vec(vec![0u8; 10]);
        let elements = StridedElements { offset: 5, sizes: &[3, 2], strides: &[1, 4], element: 1 };
        let mut reader = ElementReader::new(&storage, elements).unwrap();
        assert!(reader.read(&mut [0; 6]).is_err());
    }
}
