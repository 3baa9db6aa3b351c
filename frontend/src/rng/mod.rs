//! Random numbers with one definition: every backend computes the same values from the same seed.

pub mod generator;

pub use generator::{
    Generator, GeneratorState, default_generator, initial_seed, manual_seed, with_generator,
};
pub(crate) use generator::{drawn_seed, held, with_some_generator};
pub use keyway_sdk::philox;
/// A counter-based random number generator, Philox4x32-10, for values on the host.
///
/// ```
/// use keyway::rng::Philox;
/// let mut draws = Philox::new(7);
/// let first: Vec<u32> = (0..3).map(|_| draws.next_u32()).collect();
/// draws.seek(1);
/// assert_eq!((draws.next_u32(), draws.position()), (first[1], 2));
/// assert!((0.0..1.0).contains(&draws.uniform_f64()) && draws.below(6) < 6);
/// let mut order = draws.permutation(5);
/// order.sort_unstable();
/// assert_eq!(order, [0, 1, 2, 3, 4]);
/// ```
pub use philox::Philox;
