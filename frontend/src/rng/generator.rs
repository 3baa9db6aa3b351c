//! Generators of the seed and offset of a random op: a position in the stream documented in
//! [`philox::element`](crate::rng::philox::element).
//!
//! Decisions:
//! - a generator is two integers, not a running state: an op reserves the blocks that it needs under a lock
//!   and the kernel computes them in any order;
//! - each device has a generator, so that work on one does not change the random numbers of another; [`with_generator`] replaces it by
//!   another generator on one thread, instead of a parameter of every op.

use super::Philox;
use crate::{Result, Tensor};
use keyway_dispatcher::Device;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// A position in a stream.
///
/// ```
/// use keyway::rng::{Generator, GeneratorState};
/// let state = Generator::new(7).state();
/// assert_eq!(state, GeneratorState { seed: 7, offset: 0 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GeneratorState {
    /// The seed that selects the stream.
    pub seed: u64,
    /// The next unused block.
    pub offset: u64,
}

/// Elements of a state as a tensor: seed and offset.
const STATE: [usize; 1] = [2];

impl GeneratorState {
    /// The state as a tensor that can be saved: the bits of seed and offset, shape `[2]`, i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::rng::{Generator, GeneratorState};
    /// let generator = Generator::new(u64::MAX);
    /// let _used = generator.reserve(7);
    /// let saved = generator.state().to_tensor()?;
    /// assert_eq!(saved.to_vec::<i64>()?, [-1, 7]);
    /// assert_eq!(GeneratorState::from_tensor(&saved)?, generator.state());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Insufficient memory.
    pub fn to_tensor(self) -> Result<Tensor> {
        Tensor::new([self.seed.cast_signed(), self.offset.cast_signed()])
    }

    /// The state that [`GeneratorState::to_tensor`] returned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, rng::GeneratorState};
    /// let state = GeneratorState::from_tensor(&Tensor::new([7i64, 3])?)?;
    /// assert_eq!((state.seed, state.offset), (7, 3));
    /// assert!(GeneratorState::from_tensor(&Tensor::new([7i64])?).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another shape or dtype.
    pub fn from_tensor(tensor: &Tensor) -> Result<GeneratorState> {
        let values = tensor.to_vec::<i64>()?;
        let &[seed, offset] = values.as_slice() else {
            let (op, expected, got) = ("GeneratorState::from_tensor", STATE[0], values.len());
            return Err(crate::Error::Length { op, sizes: STATE.to_vec(), expected, got });
        };
        Ok(GeneratorState { seed: seed.cast_unsigned(), offset: offset.cast_unsigned() })
    }
}

/// A pseudorandom number generator (Philox). Clones share its state; it may be used from any thread.
///
/// ```
/// use keyway::rng::Generator;
/// let generator = Generator::new(7);
/// let same = generator.clone();
/// assert_eq!(same.reserve(2).offset, 0);
/// assert_eq!(generator.reserve(1).offset, 2);
/// ```
#[derive(Clone, Debug)]
pub struct Generator(Arc<Mutex<GeneratorState>>);

impl Generator {
    /// The stream of a seed, from its beginning.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, rng};
    /// let draw = || Tensor::rand(3);
    /// let a = rng::with_generator(&rng::Generator::new(7), draw)?;
    /// let b = rng::with_generator(&rng::Generator::new(7), draw)?;
    /// assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn new(seed: u64) -> Generator {
        Generator(Arc::new(Mutex::new(GeneratorState { seed, offset: 0 })))
    }

    /// An independent generator with the same state.
    fn copied(&self) -> Generator {
        Generator(Arc::new(Mutex::new(self.state())))
    }

    fn lock(&self) -> MutexGuard<'_, GeneratorState> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Seeks to the beginning of the stream of `seed`.
    ///
    /// ```
    /// use keyway::rng::Generator;
    /// let generator = Generator::new(7);
    /// let _used = generator.reserve(5);
    /// generator.manual_seed(8);
    /// assert_eq!(generator.state(), Generator::new(8).state());
    /// ```
    pub fn manual_seed(&self, seed: u64) {
        self.set_state(GeneratorState { seed, offset: 0 });
    }

    /// The current state, to return to with [`Generator::set_state`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::rng::{self, Generator};
    /// use keyway::Tensor;
    /// let generator = Generator::new(7);
    /// let state = generator.state();
    /// let a = rng::with_generator(&generator, || Tensor::rand(3))?;
    /// generator.set_state(state);
    /// let b = rng::with_generator(&generator, || Tensor::rand(3))?;
    /// assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "get_rng_state")]
    #[must_use]
    pub fn state(&self) -> GeneratorState {
        *self.lock()
    }

    /// Sets the state.
    ///
    /// ```
    /// use keyway::rng::{Generator, GeneratorState};
    /// let generator = Generator::new(7);
    /// generator.set_state(GeneratorState { seed: 7, offset: 100 });
    /// assert_eq!(generator.reserve(1).offset, 100);
    /// ```
    #[doc(alias = "set_rng_state")]
    pub fn set_state(&self, state: GeneratorState) {
        *self.lock() = state;
    }

    /// Reserves `blocks` blocks of four words for one op and returns the position of the first.
    ///
    /// ```
    /// use keyway::rng::Generator;
    /// let generator = Generator::new(7);
    /// assert_eq!((generator.reserve(3).offset, generator.reserve(1).offset), (0, 3));
    /// ```
    #[must_use]
    pub fn reserve(&self, blocks: u64) -> GeneratorState {
        let mut state = self.lock();
        let taken = *state;
        state.offset = state.offset.wrapping_add(blocks);
        taken
    }
}

struct Defaults {
    seed: u64,
    generators: HashMap<Device, Generator>,
    /// The same generators, for the locks that are held while the process forks. Never dropped: one for each device.
    at_fork: HashMap<Device, &'static Generator>,
}

impl Defaults {
    fn of(&mut self, device: Device) -> Generator {
        let seed = self.seed;
        self.generators.entry(device).or_insert_with(|| Generator::new(seed)).clone()
    }

    /// Independent generators with the same states.
    fn copied(&self) -> Defaults {
        let generators = self.generators.iter().map(|(device, own)| (*device, own.copied())).collect();
        Defaults { seed: self.seed, generators, at_fork: HashMap::new() }
    }
}

static DEFAULTS: LazyLock<Mutex<Defaults>> = LazyLock::new(|| {
    // The random keys of a new hasher are the only entropy in the standard library.
    let seed = RandomState::new().build_hasher().finish();
    Mutex::new(Defaults { seed, generators: HashMap::new(), at_fork: HashMap::new() })
});

/// The generators that replace the default ones on a thread.
#[derive(Clone)]
enum Source {
    /// One generator, whatever the device.
    One(Generator),
    /// One for each device.
    Each(Arc<Mutex<Defaults>>),
}

thread_local! {
    static CURRENT: RefCell<Vec<Source>> = const { RefCell::new(Vec::new()) };
}

fn defaults() -> MutexGuard<'static, Defaults> {
    DEFAULTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The locks of the default generators, held while the process forks. A child continues at its parent's position.
pub(crate) fn held() -> keyway_dispatcher::fork::Held {
    let mut defaults = defaults();
    let Defaults { generators, at_fork, .. } = &mut *defaults;
    for (device, generator) in generators {
        at_fork.entry(*device).or_insert_with(|| Box::leak(Box::new(generator.clone())));
    }
    let locks: Vec<_> = defaults.at_fork.values().map(|generator| generator.lock()).collect();
    Box::new((defaults, locks))
}

/// Seeds the default generator of every device. Without it the seed differs from run to run.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// keyway::manual_seed(7);
/// let a = Tensor::rand(3)?;
/// keyway::manual_seed(7);
/// assert_eq!(a.to_vec::<f32>()?, Tensor::rand(3)?.to_vec::<f32>()?);
/// # Ok(()) }
/// ```
#[doc(alias = "set_seed")]
pub fn manual_seed(seed: u64) {
    let mut defaults = defaults();
    defaults.seed = seed;
    defaults.generators.values().for_each(|generator| generator.manual_seed(seed));
}

/// The seed that the default generators began with.
///
/// ```standalone_crate
/// keyway::manual_seed(7);
/// assert_eq!(keyway::rng::initial_seed(), 7);
/// ```
#[must_use]
pub fn initial_seed() -> u64 {
    defaults().seed
}

/// The default generator of a device.
///
/// ```standalone_crate
/// use keyway::{Device, rng};
/// keyway::manual_seed(7);
/// assert_eq!(rng::default_generator(Device::CPU).state(), rng::Generator::new(7).state());
/// ```
#[must_use]
pub fn default_generator(device: Device) -> Generator {
    defaults().of(device)
}

/// Runs `body` on this thread with `generator` instead of every device's default generator.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, rng};
/// let first = rng::with_generator(&rng::Generator::new(7), || Tensor::randn(3))?;
/// let again = rng::with_generator(&rng::Generator::new(7), || Tensor::randn(3))?;
/// assert_eq!(first.to_vec::<f32>()?, again.to_vec::<f32>()?);
/// # Ok(()) }
/// ```
pub fn with_generator<R>(generator: &Generator, body: impl FnOnce() -> R) -> R {
    drawing_from(Source::One(generator.clone()), body)
}

/// [`with_generator`] with the generator, if there is one.
pub(crate) fn with_some_generator<R>(generator: Option<&Generator>, body: impl FnOnce() -> R) -> R {
    match generator {
        Some(generator) => with_generator(generator, body),
        None => body(),
    }
}

fn drawing_from<R>(source: Source, body: impl FnOnce() -> R) -> R {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| current.borrow_mut().pop());
        }
    }
    CURRENT.with(|current| current.borrow_mut().push(source));
    let _restore = Restore;
    body()
}

/// The generator that a call on `device` draws from.
pub(crate) fn current(device: Device) -> Generator {
    match CURRENT.with(|current| current.borrow().last().cloned()) {
        None => default_generator(device),
        Some(Source::One(generator)) => generator,
        Some(Source::Each(own)) => own.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).of(device),
    }
}

/// A seed drawn from the generator that calls on the CPU draw from.
pub(crate) fn drawn_seed() -> u64 {
    let GeneratorState { seed, offset } = current(Device::CPU).reserve(1);
    let mut draws = Philox::with_stream(seed, offset);
    u64::from(draws.next_u32()) << 32 | u64::from(draws.next_u32())
}

/// The states of all generators that calls of this thread use.
pub(crate) struct Places(Source);

impl Places {
    /// The current states.
    pub(crate) fn now() -> Places {
        let each = |own: &Defaults| Source::Each(Arc::new(Mutex::new(own.copied())));
        Places(match CURRENT.with(|current| current.borrow().last().cloned()) {
            None => each(&defaults()),
            Some(Source::One(generator)) => Source::One(generator.copied()),
            Some(Source::Each(own)) => each(&own.lock().unwrap_or_else(|poisoned| poisoned.into_inner())),
        })
    }

    /// Runs `body` on this thread with private generators in these states: it repeats the random numbers that followed them, and
    /// no other generator advances.
    pub(crate) fn replay<R>(&self, body: impl FnOnce() -> R) -> R {
        let source = match &self.0 {
            Source::One(generator) => Source::One(generator.copied()),
            Source::Each(own) => {
                let own = own.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                Source::Each(Arc::new(Mutex::new(own.copied())))
            }
        };
        drawing_from(source, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_reserves_disjoint_blocks_and_returns_to_a_state() {
        let generator = Generator::new(5);
        assert_eq!(generator.reserve(3), GeneratorState { seed: 5, offset: 0 });
        let state = generator.state();
        assert_eq!(generator.clone().reserve(1).offset, 3);
        generator.set_state(state);
        assert_eq!(generator.reserve(1).offset, 3);
    }

    #[test]
    fn another_generator_stands_in_on_this_thread_only() {
        let own = Generator::new(9);
        with_generator(&own, || {
            assert_eq!(current(Device::CPU).state(), own.state());
            let elsewhere = std::thread::spawn(|| current(Device::CPU)).join();
            assert!(!Arc::ptr_eq(&elsewhere.unwrap().0, &own.0));
        });
        assert!(!Arc::ptr_eq(&current(Device::CPU).0, &own.0));
    }
}
