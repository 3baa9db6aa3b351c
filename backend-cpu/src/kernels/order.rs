//! Elements as unsigned keys of the same order, for the ops that sort and search. NaN is the greatest of
//! all, and -0 equals 0.

use keyway_sdk::author::Element;
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

/// Memory for [`Ranking::rank`], kept between lines.
#[derive(Default)]
pub struct Ranking {
    narrow: Vec<u64>,
    wide: Vec<u128>,
}

impl Ranking {
    /// Gives the places of the first `k` of `n` elements in order to `visit`. Equal elements keep their
    /// order.
    pub fn rank<T: Key>(
        &mut self,
        n: usize,
        k: usize,
        descending: bool,
        read: impl Fn(usize) -> T,
        mut visit: impl FnMut(usize, usize),
    ) {
        // Place and key in one number: the order of the numbers is the stable order of the elements.
        if T::NARROW && n <= u32::MAX as usize {
            let flip = if descending { u64::from(u32::MAX) } else { 0 };
            self.narrow.clear();
            self.narrow.extend((0..n).map(|i| (read(i).key() ^ flip) << 32 | i as u64));
            smallest(&mut self.narrow, k).iter().enumerate().for_each(|(r, v)| visit(r, *v as u32 as usize));
        } else {
            let flip = if descending { u64::MAX } else { 0 };
            self.wide.clear();
            self.wide.extend((0..n).map(|i| u128::from(read(i).key() ^ flip) << 64 | i as u128));
            smallest(&mut self.wide, k).iter().enumerate().for_each(|(r, v)| visit(r, *v as u64 as usize));
        }
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
