//! Chunks of the output positions of a weight's gradient, which are reduced sequentially.

use std::ops::Range;

/// The approximate number of positions whose products are summed before they are added to the total, which bounds rounding
/// errors; and the number of rows of positions below which a chunk mostly copies rows that its neighbour also copies.
const TERMS: usize = 512;
const SHORT: usize = 8;

/// A chunk of positions: some rows of an image, or some whole images.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub samples: Range<usize>,
    pub rows: Range<usize>,
}

/// All positions, in chunks of about [`TERMS`] positions that are as even as possible.
pub fn chunks(samples: usize, height: usize, width: usize) -> Vec<Chunk> {
    let even = |count: usize, most: usize| {
        let parts = count.div_ceil(most);
        (0..parts).map(move |i| i * count / parts..(i + 1) * count / parts)
    };
    let images = TERMS / (height * width).max(1);
    if images > 1 {
        return even(samples, images).map(|samples| Chunk { samples, rows: 0..height }).collect();
    }
    let rows = (TERMS / width.max(1)).max(SHORT);
    let of = |sample| even(height, rows).map(move |rows| Chunk { samples: sample..sample + 1, rows });
    (0..samples).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_each_place_once_and_are_even() {
        for (samples, height, width) in
            [(1, 1, 1), (4, 7, 7), (23, 7, 7), (3, 14, 14), (2, 56, 56), (1, 9, 700)]
        {
            let chunks = chunks(samples, height, width);
            let mut seen = vec![0; samples * height];
            for chunk in &chunks {
                for sample in chunk.samples.clone() {
                    chunk.rows.clone().for_each(|row| seen[sample * height + row] += 1);
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{samples} {height} {width}: {chunks:?}");
            let places = |c: &Chunk| c.samples.len() * c.rows.len() * width;
            let all = chunks.iter().map(places);
            let (most, least) = (all.clone().max().unwrap(), all.min().unwrap());
            assert!(
                most <= TERMS.max(SHORT * width) && least * 2 >= most,
                "{samples} {height} {width}: {chunks:?}"
            );
        }
        assert_eq!(chunks(4, 7, 7), [Chunk { samples: 0..4, rows: 0..7 }]);
        assert_eq!(chunks(0, 7, 7), []);
    }
}
