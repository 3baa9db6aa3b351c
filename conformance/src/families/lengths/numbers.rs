//! The lengths: powers of two and their neighbours, primes near them, multiples of vector widths.

use super::super::drawn::source::Source;

/// Bytes and elements of vector registers, cache lines and unrolled loops.
const WIDTHS: [usize; 6] = [4, 8, 16, 32, 64, 256];

/// A power of two, one less, one more, and the primes next to it.
pub fn near_power(exponent: u32) -> [usize; 5] {
    let power = 1 << exponent;
    [power - 1, power, power + 1, prime(power, false), prime(power, true)]
}

/// The least prime above `from`, or the largest below; `from` itself if there is none below.
pub fn prime(from: usize, up: bool) -> usize {
    let is_prime = |n: &usize| *n > 1 && (2..).take_while(|by| by * by <= *n).all(|by| !n.is_multiple_of(by));
    match up {
        true => (from + 1..).find(is_prime),
        false => (2..from).rev().find(is_prime),
    }
    .unwrap_or(from)
}

/// A length below 2^`most`, of any magnitude with the same probability: a prime next to it, a multiple of a vector width, or
/// one more or less than one, or any.
pub fn draw(most: usize, source: &mut Source) -> usize {
    let any = f64::exp2(source.unit() * most as f64) as usize + 1;
    let multiple = |source: &mut Source| any.next_multiple_of(source.one_of(&WIDTHS));
    match source.below(6) {
        0 | 1 => prime(any, true),
        2 | 3 => multiple(source),
        4 => {
            let multiple = multiple(source);
            if source.once_in(2) { multiple + 1 } else { multiple - 1 }
        }
        _ => any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_have_their_neighbours_and_primes() {
        assert_eq!(near_power(12), [4095, 4096, 4097, 4093, 4099]);
        assert_eq!(near_power(1), [1, 2, 3, 2, 3]);
        assert_eq!((prime(20, true), prime(20, false)), (23, 19));
    }

    #[test]
    fn drawn_lengths_have_every_trait_and_magnitude() {
        let mut source = Source::of(&[7]);
        let all: Vec<usize> = (0..600).map(|_| draw(18, &mut source)).collect();
        assert!(all.iter().all(|&length| (1..(1 << 18) + 256).contains(&length)));
        let some = |is: &dyn Fn(usize) -> bool| all.iter().filter(|&&length| is(length)).count() > 60;
        assert!(some(&|n| n > 100 && prime(n - 1, true) == n), "primes");
        assert!(some(&|n| n > 100 && n.is_multiple_of(16)), "multiples");
        assert!(some(&|n| n < 64) && some(&|n| n > 20_000), "magnitudes");
    }
}
