//! Elements as unsigned keys of the same order, for the ops that sort and search. NaN is the greatest of
//! all, and -0 equals 0.

use keyway_sdk::author::{Element, Error, Scratch};
use keyway_sdk::half::{bf16, f16};

/// An element type with an order.
pub trait Key: Element {
    /// Whether keys have at most 32 bits.
    const NARROW: bool;
    /// A number that is smaller where the element is.
    fn key(self) -> u64;
}

macro_rules! integers {
    ($($t:ty, $narrow:literal, $flip:expr);* $(;)?) => {$(
        impl Key for $t {
            const NARROW: bool = $narrow;
            #[inline(always)]
            fn key(self) -> u64 { $flip(self) }
        }
    )*};
}
integers! {
    u8, true, u64::from;
    u16, true, u64::from;
    u32, true, u64::from;
    u64, false, |x| x;
    bool, true, u64::from;
    i8, true, |x: i8| (i64::from(x) + (1 << 7)) as u64;
    i16, true, |x: i16| (i64::from(x) + (1 << 15)) as u64;
    i32, true, |x: i32| (i64::from(x) + (1 << 31)) as u64;
    i64, false, |x: i64| (x as u64) ^ (1 << 63);
}

impl Key for f32 {
    const NARROW: bool = true;
    #[inline(always)]
    fn key(self) -> u64 {
        if self.is_nan() {
            return u64::from(u32::MAX);
        }
        let bits = (self + 0.0).to_bits(); // -0 + 0 is 0
        u64::from(if bits >> 31 == 0 { bits | 1 << 31 } else { !bits })
    }
}

impl Key for f64 {
    const NARROW: bool = false;
    #[inline(always)]
    fn key(self) -> u64 {
        if self.is_nan() {
            return u64::MAX;
        }
        let bits = (self + 0.0).to_bits();
        if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
    }
}

impl Key for f16 {
    const NARROW: bool = true;
    #[inline(always)]
    fn key(self) -> u64 {
        self.to_f32().key()
    }
}

impl Key for bf16 {
    const NARROW: bool = true;
    #[inline(always)]
    fn key(self) -> u64 {
        self.to_f32().key()
    }
}

/// Whether place and key of one among `n` elements fit one `u64`.
const fn is_narrow<T: Key>(n: usize) -> bool {
    T::NARROW && n <= u32::MAX as usize
}

/// Memory for the order of a number of elements, kept between lines.
pub struct Ranking {
    memory: Scratch<u64>,
    n: usize,
}

/// Places of elements in their order.
pub enum Places<'a> {
    /// In the lower 32 bits.
    Narrow(&'a [u64]),
    /// In the lower 64 bits.
    Wide(&'a [u128]),
}

impl Ranking {
    /// For lines of `n` elements.
    pub fn new<T: Key>(n: usize) -> Result<Ranking, Error> {
        let words = if is_narrow::<T>(n) { n } else { n.saturating_mul(2) };
        // SAFETY: `rank` writes each word before anybody reads it.
        Ok(Ranking { memory: unsafe { Scratch::unwritten(words) }?, n })
    }

    /// The places of the first `k` of the elements in order. Equal elements keep their order.
    pub fn rank<T: Key>(&mut self, k: usize, descending: bool, read: impl Fn(usize) -> T) -> Places<'_> {
        if self.n == 0 {
            // Memory of no words is aligned for none.
            return Places::Narrow(&[]);
        }
        // Place and key in one number: the order of the numbers is the stable order of the elements.
        let fill = self.memory.as_mut_ptr();
        // For no elements no memory was taken, whose address would be aligned for two words.
        if self.n == 0 || is_narrow::<T>(self.n) {
            let flip = if descending { u64::from(u32::MAX) } else { 0 };
            for i in 0..self.n {
                // SAFETY: the memory has a word for each element.
                unsafe { fill.add(i).write((read(i).key() ^ flip) << 32 | i as u64) };
            }
            Places::Narrow(smallest(&mut self.memory, k))
        } else {
            let (flip, fill) = (if descending { u64::MAX } else { 0 }, fill.cast::<u128>());
            for i in 0..self.n {
                // SAFETY: the memory has two words for each element, and is aligned to 64 bytes.
                unsafe { fill.add(i).write(u128::from(read(i).key() ^ flip) << 64 | i as u128) };
            }
            // SAFETY: the elements were just written, are borrowed as the memory is, and as there are some, it is aligned.
            Places::Wide(smallest(unsafe { std::slice::from_raw_parts_mut(fill, self.n) }, k))
        }
    }
}

impl Places<'_> {
    /// Gives rank and place of each.
    #[inline(always)]
    pub fn each(&self, mut visit: impl FnMut(usize, usize)) {
        match self {
            Places::Narrow(all) => all.iter().enumerate().for_each(|(r, v)| visit(r, *v as u32 as usize)),
            Places::Wide(all) => all.iter().enumerate().for_each(|(r, v)| visit(r, *v as u64 as usize)),
        }
    }
}

/// Elements that are compared with the last kept before any is looked at.
const CHUNK: usize = 64;

/// The first few elements of lines, kept in order while a line is read.
pub struct First {
    k: usize,
    flip: u64,
    kept: Vec<(u64, usize)>,
}

impl First {
    /// For the first `k` of each line, which has as many.
    pub fn new(k: usize, descending: bool) -> First {
        First { k, flip: if descending { u64::MAX } else { 0 }, kept: vec![(0, 0); k] }
    }

    /// Goes through the `n` elements of a line. Equal elements keep their order.
    #[inline(always)]
    pub fn find<T: Key>(&mut self, n: usize, read: impl Fn(usize) -> T) {
        for i in 0..self.k {
            self.kept[i] = (read(i).key() ^ self.flip, i);
        }
        // Their places make equal keys differ, so that they keep their order.
        self.kept.sort_unstable();
        let (mut i, flip) = (self.k, self.flip);
        while i < n {
            let len = CHUNK.min(n - i);
            let mut keys = [u64::MAX; CHUNK];
            if len == CHUNK {
                // A loop of constant length, which becomes vector code.
                keys.iter_mut().enumerate().for_each(|(l, key)| *key = read(i + l).key() ^ flip);
            } else {
                keys[..len].iter_mut().enumerate().for_each(|(l, key)| *key = read(i + l).key() ^ flip);
            }
            let last = self.kept[self.k - 1].0;
            if keys.iter().fold(false, |any, key| any | (*key < last)) {
                for (l, key) in keys[..len].iter().enumerate() {
                    if *key < self.kept[self.k - 1].0 {
                        self.keep(*key, i + l);
                    }
                }
            }
            i += len;
        }
    }

    /// Puts an element in its place and drops the last.
    #[inline(always)]
    fn keep(&mut self, key: u64, i: usize) {
        let mut at = self.k - 1;
        while at > 0 && self.kept[at - 1].0 > key {
            self.kept[at] = self.kept[at - 1];
            at -= 1;
        }
        self.kept[at] = (key, i);
    }

    /// Where those of the last line lie in it.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept.iter().map(|(_, i)| *i)
    }
}

/// The `k` smallest, in order.
fn smallest<P: Ord>(all: &mut [P], k: usize) -> &[P] {
    if k == 0 {
        return &[];
    }
    let part = if k < all.len() {
        all.select_nth_unstable(k - 1);
        &mut all[..k]
    } else {
        all
    };
    part.sort_unstable();
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_line_are_those_of_all_in_order() {
        let mut random = 1u64;
        for n in [2, 7, 63, 64, 65, 500] {
            for k in [1, 2, 5, 16].into_iter().filter(|k| *k <= n) {
                for descending in [false, true] {
                    let line: Vec<f32> = (0..n)
                        .map(|_| {
                            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            // Many are equal, and some are NaN.
                            let x = (random >> 33) % 50;
                            if x == 49 { f32::NAN } else { x as f32 - 20.0 }
                        })
                        .collect();
                    let mut ranking = Ranking::new::<f32>(n).unwrap();
                    let mut expected = Vec::new();
                    ranking.rank(k, descending, |i| line[i]).each(|_, i| expected.push(i));
                    let mut first = First::new(k, descending);
                    first.find(n, |i| line[i]);
                    assert_eq!(first.places().collect::<Vec<_>>(), expected, "{k} of {n}, {descending}");
                }
            }
        }
    }
}
