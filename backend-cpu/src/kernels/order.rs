//! Mapping of elements to unsigned sort keys, for the ops that sort and search. NaN is the greatest value, and -0 equals 0.

use super::radix::sort_upper;
use keyway_sdk::author::{Element, Error, Scratch};
use keyway_sdk::half::{bf16, f16};

/// An element type with a total order.
pub trait Key: Element {
    /// Whether keys have at most 32 bits.
    const NARROW: bool;
    /// Whether different elements have different keys.
    const EXACT: bool;
    /// The sort key, which has the order of the elements.
    fn key(self) -> u64;
    /// An element with this key.
    fn of_key(key: u64) -> Self;
}

macro_rules! integers {
    ($($t:ty, $narrow:literal, $flip:expr, $back:expr);* $(;)?) => {$(
        impl Key for $t {
            const NARROW: bool = $narrow;
            const EXACT: bool = true;
            #[inline(always)]
            fn key(self) -> u64 { $flip(self) }
            #[inline(always)]
            fn of_key(key: u64) -> Self { $back(key) }
        }
    )*};
}
integers! {
    u8, true, u64::from, |key| key as u8;
    u16, true, u64::from, |key| key as u16;
    u32, true, u64::from, |key| key as u32;
    u64, false, |x| x, |key| key;
    bool, true, u64::from, |key| key != 0;
    i8, true, |x: i8| (i64::from(x) + (1 << 7)) as u64, |key: u64| (key as i64 - (1 << 7)) as i8;
    i16, true, |x: i16| (i64::from(x) + (1 << 15)) as u64, |key: u64| (key as i64 - (1 << 15)) as i16;
    i32, true, |x: i32| (i64::from(x) + (1 << 31)) as u64, |key: u64| (key as i64 - (1 << 31)) as i32;
    i64, false, |x: i64| (x as u64) ^ (1 << 63), |key: u64| (key ^ (1 << 63)) as i64;
}

impl Key for f32 {
    const NARROW: bool = true;
    const EXACT: bool = false;
    #[inline(always)]
    fn key(self) -> u64 {
        if self.is_nan() {
            return u64::from(u32::MAX);
        }
        let bits = (self + 0.0).to_bits(); // -0 + 0 is 0
        u64::from(if bits >> 31 == 0 { bits | 1 << 31 } else { !bits })
    }
    #[inline(always)]
    fn of_key(key: u64) -> Self {
        let key = key as u32;
        f32::from_bits(if key >> 31 == 1 { key ^ 1 << 31 } else { !key })
    }
}

impl Key for f64 {
    const NARROW: bool = false;
    const EXACT: bool = false;
    #[inline(always)]
    fn key(self) -> u64 {
        if self.is_nan() {
            return u64::MAX;
        }
        let bits = (self + 0.0).to_bits();
        if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
    }
    #[inline(always)]
    fn of_key(key: u64) -> Self {
        f64::from_bits(if key >> 63 == 1 { key ^ 1 << 63 } else { !key })
    }
}

impl Key for f16 {
    const NARROW: bool = true;
    const EXACT: bool = false;
    #[inline(always)]
    fn key(self) -> u64 {
        self.to_f32().key()
    }
    #[inline(always)]
    fn of_key(key: u64) -> Self {
        f16::from_f32(f32::of_key(key))
    }
}

impl Key for bf16 {
    const NARROW: bool = true;
    const EXACT: bool = false;
    #[inline(always)]
    fn key(self) -> u64 {
        self.to_f32().key()
    }
    #[inline(always)]
    fn of_key(key: u64) -> Self {
        bf16::from_f32(f32::of_key(key))
    }
}

/// The smallest and the greatest key of `n` elements, at least one.
pub fn range<T: Key>(n: usize, read: impl Fn(usize) -> T) -> (u64, u64) {
    (0..n).fold((u64::MAX, 0), |(least, most), i| {
        let key = read(i).key();
        (least.min(key), most.max(key))
    })
}

/// The minimum number of elements for a radix sort of a full line.
const MANY: usize = 256;

/// Memory for the permutation of a line, reused between lines.
pub struct Ranking {
    memory: Scratch<u64>,
    n: usize,
    k: usize,
}

/// The sorted indices of the elements.
pub enum Places<'a> {
    /// The indices are the lower 32 bits.
    Narrow(&'a [u64]),
    /// The indices are the lower 64 bits.
    Wide(&'a [u128]),
}

impl Ranking {
    /// Allocates memory to find the first `k` elements of lines of `n` elements.
    pub fn new<T: Key>(n: usize, k: usize) -> Result<Ranking, Error> {
        let one = T::NARROW && u32::try_from(n).is_ok() && (k < n || n < MANY);
        let words = if one { n } else { n.saturating_mul(2) };
        // SAFETY: `rank` writes each word before it is read.
        Ok(Ranking { memory: unsafe { Scratch::unwritten(words) }?, n, k })
    }

    /// Sorts the elements and returns their indices. The sort is stable.
    pub fn rank<T: Key>(&mut self, descending: bool, read: impl Fn(usize) -> T) -> Places<'_> {
        let (n, k) = (self.n, self.k);
        if n == 0 {
            // Empty memory may be unaligned, and is not cast.
            return Places::Narrow(&[]);
        }
        let flip = if descending { u64::MAX } else { 0 };
        let (digits, few) = (k == n && n >= MANY, u32::try_from(n).is_ok());
        let whole = (0, u64::from(u32::MAX));
        let (least, most) = if few && (digits || !T::NARROW) { range(n, &read) } else { whole };
        let first = if descending { most } else { least } ^ flip;
        // Key and index are packed in one integer, whose order is the stable order of the elements.
        let fill = self.memory.as_mut_ptr();
        if few && most - least <= whole.1 {
            for i in 0..n {
                let key = (read(i).key() ^ flip).wrapping_sub(first);
                // SAFETY: the memory has a word for each element.
                unsafe { fill.add(i).write(key << 32 | i as u64) };
            }
            let (pairs, spare) = self.memory.split_at_mut(n);
            Places::Narrow(if digits { sort_upper(pairs, &mut spare[..n]) } else { smallest(pairs, k) })
        } else {
            let fill = fill.cast::<u128>();
            for i in 0..n {
                // SAFETY: the memory has two words for each element, and is aligned to 64 bytes.
                unsafe { fill.add(i).write(u128::from(read(i).key() ^ flip) << 64 | i as u128) };
            }
            // SAFETY: the elements were just written, are borrowed as long as the memory is, and are not empty, so that the
            // memory is aligned.
            Places::Wide(smallest(unsafe { std::slice::from_raw_parts_mut(fill, n) }, k))
        }
    }
}

impl Places<'_> {
    /// Calls `visit` with each rank and index.
    #[inline(always)]
    pub fn each(&self, mut visit: impl FnMut(usize, usize)) {
        match self {
            Places::Narrow(all) => all.iter().enumerate().for_each(|(r, v)| visit(r, *v as u32 as usize)),
            Places::Wide(all) => all.iter().enumerate().for_each(|(r, v)| visit(r, *v as u64 as usize)),
        }
    }
}

/// The number of elements that are compared with the last retained one before any is inserted.
const CHUNK: usize = 64;

/// The first few elements of a line in sorted order, maintained while the line is read (top-k).
pub struct First {
    k: usize,
    flip: u64,
    kept: Vec<(u64, usize)>,
}

impl First {
    /// Allocates for the first `k` of each line; lines have at least `k` elements.
    pub fn new(k: usize, descending: bool) -> First {
        First { k, flip: if descending { u64::MAX } else { 0 }, kept: vec![(0, 0); k] }
    }

    /// Finds the first elements of a line of `n` elements. Equal elements preserve their order.
    #[inline(always)]
    pub fn find<T: Key>(&mut self, n: usize, read: impl Fn(usize) -> T) {
        for i in 0..self.k {
            self.kept[i] = (read(i).key() ^ self.flip, i);
        }
        // Equal keys differ by their indices, so that the sort is stable.
        self.kept.sort_unstable();
        let (mut i, flip) = (self.k, self.flip);
        while i < n {
            let len = CHUNK.min(n - i);
            let mut keys = [u64::MAX; CHUNK];
            if len == CHUNK {
                // A loop of constant length, which the compiler vectorises.
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

    /// Inserts an element and drops the last one.
    #[inline(always)]
    fn keep(&mut self, key: u64, i: usize) {
        let mut at = self.k - 1;
        while at > 0 && self.kept[at - 1].0 > key {
            self.kept[at] = self.kept[at - 1];
            at -= 1;
        }
        self.kept[at] = (key, i);
    }

    /// The indices of the retained elements of the last line.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept.iter().map(|(_, i)| *i)
    }
}

/// The `k` smallest, sorted.
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
                    let mut ranking = Ranking::new::<f32>(n, k).unwrap();
                    let mut expected = Vec::new();
                    ranking.rank(descending, |i| line[i]).each(|_, i| expected.push(i));
                    let mut first = First::new(k, descending);
                    first.find(n, |i| line[i]);
                    assert_eq!(first.places().collect::<Vec<_>>(), expected, "{k} of {n}, {descending}");
                }
            }
        }
    }

    fn check_whole<T: Key>(line: &[T]) {
        for descending in [false, true] {
            let mut expected: Vec<usize> = (0..line.len()).collect();
            let flip = if descending { u64::MAX } else { 0 };
            expected.sort_by_key(|i| line[*i].key() ^ flip);
            let (mut ranking, mut made) = (Ranking::new::<T>(line.len(), line.len()).unwrap(), Vec::new());
            ranking.rank(descending, |i| line[i]).each(|_, i| made.push(i));
            assert_eq!(made, expected, "{} of {}, {descending}", T::NAME, line.len());
        }
    }

    #[test]
    fn whole_lines_are_in_stable_order() {
        for n in [1, MANY - 1, MANY, 5000] {
            let bits = |i: usize| (i as u64 % 1700 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for shift in [0, 20, 32, 50, 63] {
                check_whole::<i64>(&(0..n).map(|i| bits(i) as i64 >> shift).collect::<Vec<_>>());
                check_whole::<u64>(&(0..n).map(|i| bits(i) >> shift).collect::<Vec<_>>());
                check_whole::<i32>(
                    &(0..n).map(|i| (bits(i) >> 32) as i32 >> (shift / 2)).collect::<Vec<_>>(),
                );
                check_whole::<u8>(&(0..n).map(|i| (bits(i) >> 56) as u8).collect::<Vec<_>>());
                let floats = (0..n).map(|i| if i % 7 == 3 { f64::NAN } else { bits(i) as i64 as f64 });
                check_whole::<f64>(&floats.clone().collect::<Vec<_>>());
                check_whole::<f32>(&floats.clone().map(|x| x as f32).collect::<Vec<_>>());
                check_whole::<f16>(&floats.map(|x| f16::from_f64(x / 1e15)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_key_leads_back_to_its_element() {
        fn check<T: Key>(elements: &[T]) {
            elements.iter().for_each(|x| assert_eq!(T::of_key(x.key()), *x, "{}", T::NAME));
        }
        check(&[i8::MIN, -1, 0, i8::MAX]);
        check(&[i16::MIN, -1, 0, i16::MAX]);
        check(&[i32::MIN, -1, 0, i32::MAX]);
        check(&[i64::MIN, -1, 0, i64::MAX]);
        check(&[0, u8::MAX]);
        check(&[0, u16::MAX]);
        check(&[0, u32::MAX]);
        check(&[0, u64::MAX]);
        check(&[false, true]);
        check(&[f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-40, f32::INFINITY]);
        check(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-310, f64::INFINITY]);
        check(&[-1.5, 0.0, 6e-8, 100.0].map(f16::from_f64));
        check(&[-1.5, 0.0, 1e-40, 100.0].map(bf16::from_f64));
    }
}
