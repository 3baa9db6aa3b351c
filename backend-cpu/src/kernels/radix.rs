//! An LSD radix sort of pairs of integers.

/// The maximum number of bits of a digit, and the number of bits for few pairs.
const WIDEST: u32 = 11;
const NARROWEST: u32 = 8;
/// The minimum number of pairs for digits of the maximum width.
const MANY: usize = 1 << 13;

/// Sorts pairs stably by their upper halves: LSD radix sort, with as few passes as the largest key needs. The result is in
/// one of the two slices, which have the same length.
pub fn sort_upper<'a>(mut pairs: &'a mut [u64], mut spare: &'a mut [u64]) -> &'a mut [u64] {
    let most = pairs.iter().copied().max().unwrap_or(0) >> 32;
    let bits = u64::BITS - most.leading_zeros();
    let widest = if pairs.len() < MANY { NARROWEST } else { WIDEST };
    let width = bits.div_ceil(bits.div_ceil(widest).max(1)).max(1);
    let mut places = [0u32; 1 << WIDEST];
    let places = &mut places[..1 << width];
    for low in (0..bits).step_by(width as usize) {
        let digit = |pair: u64| (pair >> (32 + low)) as usize & ((1 << width) - 1);
        places.fill(0);
        pairs.iter().for_each(|&pair| places[digit(pair)] += 1);
        let mut at = 0;
        for place in &mut *places {
            (*place, at) = (at, at + *place);
        }
        for &pair in pairs.iter() {
            let place = &mut places[digit(pair)];
            spare[*place as usize] = pair;
            *place += 1;
        }
        std::mem::swap(&mut pairs, &mut spare);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_halves_are_sorted_in_order() {
        for n in [0, 1, 3000, 3 * MANY] {
            for bits in [0, 1, 8, 9, 12, 13, 24, 25, 32] {
                let key = |j: u64| j.wrapping_mul(0x9e37_79b9_7f4a_7c15).checked_shr(64 - bits).unwrap_or(0);
                let mut pairs: Vec<u64> = (0..n as u64).map(|j| key(j % 1700) << 32 | j).collect();
                let mut spare = vec![0; n];
                let mut expected = pairs.clone();
                expected.sort();
                assert_eq!(sort_upper(&mut pairs, &mut spare), expected, "{n} of {bits} bits");
            }
        }
    }
}
