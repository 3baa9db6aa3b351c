//! Results in the type that arithmetic is done in, written as elements.

use keyway_sdk::author::Widen;

/// Values that are narrowed together.
const CHUNK: usize = 32;

/// `to[i] = f(i)` for each element, narrowed a chunk at a time. `f` is called once for each index, in order.
#[inline(always)]
pub fn narrow_each<T: Widen>(to: &mut [T], mut f: impl FnMut(usize) -> T::Wide) {
    let (chunks, rest) = to.as_chunks_mut::<CHUNK>();
    let whole = chunks.len() * CHUNK;
    for (c, chunk) in chunks.iter_mut().enumerate() {
        let mut wide = [T::Wide::default(); CHUNK];
        wide.iter_mut().enumerate().for_each(|(k, wide)| *wide = f(c * CHUNK + k));
        *chunk = T::narrow_chunk(&wide);
    }
    rest.iter_mut().enumerate().for_each(|(k, to)| *to = T::narrow(f(whole + k)));
}

/// Narrows as many elements as both slices have.
#[inline(always)]
pub fn narrow_slice<T: Widen>(wide: &[T::Wide], to: &mut [T]) {
    let n = wide.len().min(to.len());
    let wide = &wide[..n];
    narrow_each(&mut to[..n], |i| wide[i]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::author::Element;
    use keyway_sdk::half::{bf16, f16};

    fn check<T: Widen>() {
        for n in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 5] {
            let wide: Vec<T::Wide> = (0..n).map(|i| T::Wide::from_f64(i as f64 * 0.37)).collect();
            let expected: Vec<T> = wide.iter().map(|x| T::narrow(*x)).collect();
            let (mut each, mut slice) = (vec![T::default(); n], vec![T::from_f64(1.0); n + 3]);
            narrow_each(&mut each, |i| wide[i]);
            assert_eq!(each, expected, "{} {n}", T::NAME);
            narrow_slice(&wide, &mut slice);
            assert_eq!(slice[..n], expected, "{} {n}", T::NAME);
            assert!(slice[n..].iter().all(|x| *x == T::from_f64(1.0)), "{}: wrote too much", T::NAME);
        }
    }

    #[test]
    fn whole_chunks_and_the_rest_are_narrowed_alike() {
        check::<f16>();
        check::<bf16>();
        check::<f32>();
        check::<i64>();
    }
}
