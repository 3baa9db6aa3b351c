//! Pseudorandom numbers (splitmix64), so that a seed gives the same draws everywhere.

/// A stream of pseudorandom numbers.
#[derive(Clone, Copy, Debug)]
pub struct Source(u64);

impl Source {
    /// The stream seeded by these numbers.
    pub fn of(numbers: &[u64]) -> Source {
        let mut source = Source(0x6B65_7977_6179_0001);
        for &number in numbers {
            source.0 ^= number.wrapping_mul(0xD6E8_FEB8_6659_FD93);
            source.next();
        }
        source
    }

    /// The stream seeded by a name and these numbers.
    pub fn named(name: &str, numbers: &[u64]) -> Source {
        let bytes = name.bytes().map(u64::from);
        Source::of(&bytes.chain(numbers.iter().copied()).collect::<Vec<_>>())
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        self.0 = self.0.rotate_left(17) ^ z;
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A uniform integer below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    /// A random element of the list.
    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// True with probability 1 / `count`.
    pub fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_each_number_and_repeats() {
        let first = |numbers: &[u64]| Source::of(numbers).next();
        assert_eq!(first(&[1, 2, 3]), first(&[1, 2, 3]));
        let others: std::collections::BTreeSet<u64> =
            [[1, 2, 3], [1, 2, 4], [1, 3, 2], [2, 1, 3], [0, 0, 0]].iter().map(|n| first(n)).collect();
        assert_eq!(others.len(), 5);
        let mean = (0..10_000).map(|nth| Source::of(&[9, nth]).unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        let mut seen = [0; 8];
        (0..800).for_each(|nth| seen[Source::of(&[nth, 5]).below(8)] += 1);
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
    }
}
