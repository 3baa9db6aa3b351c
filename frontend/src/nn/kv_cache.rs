//! The key-value cache of attention.

use super::ModuleError;
use crate::autograd::is_grad_enabled;
use crate::{DType, Device, Result, Tensor};

/// The cached keys and values of the positions that a [`MultiheadAttention`](super::MultiheadAttention) has processed, so that
/// the next token costs one row of attention instead of all rows. Use one cache per module and batch.
///
/// The capacity doubles when it is exceeded, so appending is amortized O(1) per position. A cache is for generation, inside
/// [`no_grad`](crate::no_grad): cached tensors have no gradient.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{KvCache, MultiheadAttention};
/// use keyway::{Tensor, no_grad};
/// let attention = MultiheadAttention::new(8, 2)?;
/// let (_off, mut cache) = (no_grad(), KvCache::new());
/// for place in 0..3 {
///     let x = Tensor::full((1, 1, 8), place as f32)?;
///     assert_eq!(attention.forward_cached(&x, &mut cache)?.shape(), [1, 1, 8]);
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
    /// An empty cache.
    ///
    /// ```
    /// use keyway::nn::KvCache;
    /// assert!(KvCache::new().is_empty());
    /// ```
    pub fn new() -> KvCache {
        KvCache::default()
    }

    /// The number of cached positions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{KvCache, MultiheadAttention};
    /// use keyway::{Tensor, no_grad};
    /// let (_off, mut cache) = (no_grad(), KvCache::new());
    /// MultiheadAttention::new(8, 2)?.forward_cached(&Tensor::ones((1, 3, 8))?, &mut cache)?;
    /// assert_eq!(cache.len(), 3);
    /// # Ok(()) }
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the cache is empty.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{KvCache, MultiheadAttention};
    /// use keyway::{Tensor, no_grad};
    /// let (_off, mut cache) = (no_grad(), KvCache::new());
    /// MultiheadAttention::new(8, 2)?.forward_cached(&Tensor::ones((1, 3, 8))?, &mut cache)?;
    /// assert!(!cache.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Truncates the cache to the first `len` positions and retains its memory. `truncate(0)` starts new sequences.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{KvCache, MultiheadAttention};
    /// use keyway::{Tensor, no_grad};
    /// let (_off, mut cache) = (no_grad(), KvCache::new());
    /// MultiheadAttention::new(8, 2)?.forward_cached(&Tensor::ones((1, 3, 8))?, &mut cache)?;
    /// cache.truncate(1);
    /// assert_eq!(cache.len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends keys and values of new positions, `[batch, heads, new, head width]` each, and returns those of all
    /// positions, `[batch, heads, len, head width]`: views of the cache's memory, valid until a call after
    /// [`KvCache::truncate`] overwrites their positions. For custom attention;
    /// [`MultiheadAttention::forward_cached`](super::MultiheadAttention::forward_cached) calls it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::nn::KvCache;
    /// let mut cache = KvCache::new();
    /// cache.append(&Tensor::ones((1, 2, 3, 4))?, &Tensor::ones((1, 2, 3, 8))?)?;
    /// let (keys, values) = cache.append(&Tensor::zeros((1, 2, 1, 4))?, &Tensor::zeros((1, 2, 1, 8))?)?;
    /// assert_eq!((keys.shape(), values.shape()), (&[1, 2, 4, 4][..], &[1, 2, 4, 8][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A shape, dtype or device that differs from the cache's, or between keys and values; tensors that autograd records.
    pub fn append(&mut self, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let (owner, new) = ("KvCache", [keys, values]);
        let refused = |expected: String, got: &Tensor| {
            Err(ModuleError::Input { owner, expected, got: got.shape().to_vec() }.into())
        };
        let &[batch, heads, count, _] = keys.shape() else {
            return refused("keys of shape [batch, heads, new, head width]".to_string(), keys);
        };
        if values.rank() != 4 || values.shape()[..3] != [batch, heads, count] {
            return refused(
                format!("values of shape [{batch}, {heads}, {count}, width], for those keys"),
                values,
            );
        }
        if is_grad_enabled() && new.iter().any(|t| t.requires_grad()) {
            let (option, expected) = ("call", "inside `no_grad`: a cache keeps no gradients");
            return Err(
                ModuleError::Option { owner, option, expected, got: "one that is recorded".into() }.into()
            );
        }
        let unlike = |room: &[Tensor; 2]| (0..2).find(|&i| like(&room[i]) != like(new[i]));
        let fits = |room: &[Tensor; 2]| unlike(room).is_none();
        let kept = self.room.as_ref().filter(|_| self.len > 0);
        if let Some((room, i)) = kept.and_then(|room| Some((room, unlike(room)?))) {
            let describe = |t: &Tensor| format!("{:?}", like(t));
            let expected = format!(
                "like those in the cache (batch, heads, width; dtype; device): {}",
                describe(&room[i])
            );
            let got = format!("{}; `truncate(0)` empties the cache", describe(new[i]));
            let (op, argument) = ("KvCache", ["the new keys", "the new values"][i]);
            return Err(keyway_dispatcher::Error::Value { op, argument, expected, got }.into());
        }
        let (begin, end) = (self.len, self.len.saturating_add(count));
        let capacity = |room: &[Tensor; 2]| room[0].shape()[2];
        // The cache is unchanged if this allocation fails.
        let room = match &self.room {
            Some(room) if fits(room) && capacity(room) >= end => room.clone(),
            old => {
                let grown = |(i, new): (usize, &Tensor)| -> Result<Tensor> {
                    let mut sizes = new.shape().to_vec();
                    sizes[2] = end.checked_next_power_of_two().unwrap_or(end);
                    let room = new.new_uninit(&sizes)?;
                    if let Some(old) = old.as_ref().filter(|_| begin > 0) {
                        room.narrow(2, 0, begin)?.copy_(&old[i].narrow(2, 0, begin)?)?;
                    }
                    Ok(room)
                };
                [grown((0, keys))?, grown((1, values))?]
            }
        };
        for (room, new) in std::iter::zip(&room, new) {
            room.narrow(2, begin, count)?.copy_(new)?;
        }
        let all = (room[0].narrow(2, 0, end)?, room[1].narrow(2, 0, end)?);
        (self.room, self.len) = (Some(room), end);
        Ok(all)
    }
}

/// Sizes (without the length), dtype and device that all cached positions share.
fn like(t: &Tensor) -> ([usize; 3], DType, Device) {
    let at = |dim: usize| t.shape().get(dim).copied().unwrap_or(0);
    ([at(0), at(1), at(3)], t.dtype(), t.device())
}
