//! Functions of slices with narrowed results.

use crate::inner_loop::{Inputs, Wide, chunks};
use keyway_sdk::author::{Plain, Widen};

/// The number of elements computed and narrowed together.
const CHUNK: usize = 32;

mod sealed {
    pub trait Sealed {}
}

/// Up to three slices, the inputs of [`zip_wide`].
pub trait Slices: Copy + sealed::Sealed {
    /// One element of each slice.
    type Item: Copy;
    #[doc(hidden)]
    #[allow(private_interfaces, private_bounds)]
    type Pointers: Inputs<Item = Self::Item>;

    /// The length of the shortest slice.
    fn shortest(self) -> usize;
    #[doc(hidden)]
    fn pointers(self) -> Self::Pointers;
}

macro_rules! slices {
    ($($t:ident $k:tt),*) => {
        impl<$($t: Plain),*> sealed::Sealed for ($(&[$t],)*) {}

        impl<$($t: Plain),*> Slices for ($(&[$t],)*) {
            type Item = ($($t,)*);
            #[allow(private_interfaces)]
            type Pointers = ($(*const $t,)*);

            #[inline(always)]
            fn shortest(self) -> usize {
                let shortest = usize::MAX;
                $(let shortest = shortest.min(self.$k.len());)*
                shortest
            }
            #[inline(always)]
            fn pointers(self) -> Self::Pointers {
                ($(self.$k.as_ptr(),)*)
            }
        }
    };
}
slices!(A 0);
slices!(A 0, B 1);
slices!(A 0, B 1, C 2);

/// `to[i] = f(from[i])` up to the length of the shortest slice, where `f` returns values of the computation type; they are
/// narrowed as by [`CallExt::map1_wide`](crate::CallExt::map1_wide).
#[inline(always)]
pub fn zip_wide<S: Slices, T: Widen>(from: S, to: &mut [T], f: impl Fn(S::Item) -> T::Wide + Sync) {
    let n = to.len().min(from.shortest());
    // SAFETY: each slice has `n` elements, and the written one overlaps no input.
    unsafe { chunks::<S::Pointers, Wide<T>, _, CHUNK>(&f, to.as_mut_ptr(), from.pointers(), 0, n) }
}

/// Narrows elements, up to the length of the shorter slice.
#[inline(always)]
pub fn narrow_slice<T: Widen<Wide: Plain>>(wide: &[T::Wide], to: &mut [T]) {
    zip_wide((wide,), to, |(x,)| x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::author::Element;
    use keyway_sdk::half::{bf16, f16};

    fn check<T: Widen<Wide: Plain>>() {
        for n in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 5] {
            let wide: Vec<T::Wide> = (0..n).map(|i| T::Wide::from_f64(i as f64 * 0.37)).collect();
            let expected: Vec<T> = wide.iter().map(|x| T::narrow(*x)).collect();
            let (one, longer) = (T::from_f64(1.0), vec![T::Wide::default(); n + 2]);
            let (mut zipped, mut narrow) = (vec![one; n + 3], vec![one; n + 3]);
            zip_wide((&longer[..], &wide[..]), &mut zipped, |(_, x)| x);
            narrow_slice(&wide, &mut narrow);
            for made in [zipped, narrow] {
                assert_eq!(made[..n], expected, "{} {n}", T::NAME);
                assert!(made[n..].iter().all(|x| *x == one), "{}: wrote too much", T::NAME);
            }
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
