//! Keys and values of the places that attention has seen.

use super::ModuleError;
use crate::autograd::is_grad_enabled;
use crate::{DType, Device, Result, Tensor};

/// The keys and values of the places that a [`MultiheadAttention`](super::MultiheadAttention) has seen, so that the next place of a
/// text costs one row of attention and not all of them again. One cache for each module and batch.
///
/// Memory grows by doubling, so what is appended is copied twice on average. It is for generation, inside
/// [`no_grad`](crate::no_grad): what is in the cache has no gradient.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{KvCache, MultiheadAttention};
/// use keyway::{Tensor, no_grad};
/// let attention = MultiheadAttention::new(8, 2)?;
/// let (_off, mut cache) = (no_grad(), KvCache::new());
/// for place in 0..3 {
///     let x = Tensor::full((1, 1, 8), place as f32)?;
///     assert_eq!(attention.attend_cached(&x, &mut cache)?.shape(), [1, 1, 8]);
/// }
/// assert_eq!(cache.len(), 3);
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct KvCache {
    /// Keys and values, `[batch, heads, capacity, head width]`.
    room: Option<[Tensor; 2]>,
    len: usize,
}

impl KvCache {
    /// With no place in it.
    ///
    /// ```
    /// use keyway::nn::KvCache;
    /// assert!(KvCache::new().is_empty());
    /// ```
    pub fn new() -> KvCache {
        KvCache::default()
    }

    /// How many places it holds.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{KvCache, MultiheadAttention};
    /// use keyway::{Tensor, no_grad};
    /// let (_off, mut cache) = (no_grad(), KvCache::new());
    /// MultiheadAttention::new(8, 2)?.attend_cached(&Tensor::ones((1, 3, 8))?, &mut cache)?;
    /// assert_eq!(cache.len(), 3);
    /// # Ok(()) }
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{KvCache, MultiheadAttention};
    /// use keyway::{Tensor, no_grad};
    /// let (_off, mut cache) = (no_grad(), KvCache::new());
    /// MultiheadAttention::new(8, 2)?.attend_cached(&Tensor::ones((1, 3, 8))?, &mut cache)?;
    /// assert!(!cache.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps the first places alone; the memory stays. `truncate(0)` begins another text of the same batch.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{KvCache, MultiheadAttention};
    /// use keyway::{Tensor, no_grad};
    /// let (_off, mut cache) = (no_grad(), KvCache::new());
    /// MultiheadAttention::new(8, 2)?.attend_cached(&Tensor::ones((1, 3, 8))?, &mut cache)?;
    /// cache.truncate(1);
    /// assert_eq!(cache.len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends keys and values of new places, `[batch, heads, new, head width]`, and gives those of all places.
    pub(super) fn append(&mut self, new: [Tensor; 2]) -> Result<[Tensor; 2]> {
        let owner = "KvCache";
        if is_grad_enabled() && new.iter().any(Tensor::requires_grad) {
            let (option, expected) = ("call", "inside `no_grad`: a cache keeps no gradients");
            return Err(
                ModuleError::Option { owner, option, expected, got: "one that is recorded".into() }.into()
            );
        }
        let [.., count, _] = *new[0].shape() else { return Ok(new) };
        let fits = |room: &[Tensor; 2]| std::iter::zip(room, &new).all(|(room, new)| like(room) == like(new));
        if let Some(room) = self.room.as_ref().filter(|room| self.len > 0 && !fits(room)) {
            let describe = |t: &Tensor| format!("{:?}", like(t));
            let expected = format!(
                "like those in the cache (batch, heads, width; dtype; device): {}",
                describe(&room[0])
            );
            let got = format!("{}; `truncate(0)` empties the cache", describe(&new[0]));
            let (op, argument) = ("attend_cached", "the keys of the input");
            return Err(keyway_dispatcher::Error::Value { op, argument, expected, got }.into());
        }
        let (begin, end) = (self.len, self.len + count);
        let capacity = |room: &[Tensor; 2]| room[0].shape()[2];
        // What is there stays as it is should memory not suffice.
        let room = match &self.room {
            Some(room) if fits(room) && capacity(room) >= end => room.clone(),
            old => {
                let grown = |(i, new): (usize, &Tensor)| -> Result<Tensor> {
                    let mut sizes = new.shape().to_vec();
                    sizes[2] = end.next_power_of_two();
                    let room = new.new_empty(&sizes)?;
                    if let Some(old) = old.as_ref().filter(|_| begin > 0) {
                        room.narrow(2, 0, begin)?.copy_(&old[i].narrow(2, 0, begin)?)?;
                    }
                    Ok(room)
                };
                [grown((0, &new[0]))?, grown((1, &new[1]))?]
            }
        };
        for (room, new) in std::iter::zip(&room, &new) {
            room.narrow(2, begin, count)?.copy_(new)?;
        }
        let all = [room[0].narrow(2, 0, end)?, room[1].narrow(2, 0, end)?];
        (self.room, self.len) = (Some(room), end);
        Ok(all)
    }
}

/// What all places of a cache have in common.
fn like(t: &Tensor) -> ([usize; 3], DType, Device) {
    let at = |dim: usize| t.shape().get(dim).copied().unwrap_or(0);
    ([at(0), at(1), at(3)], t.dtype(), t.device())
}
