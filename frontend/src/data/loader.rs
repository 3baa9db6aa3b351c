//! Batches of a data set.

use super::dataset::{Batch, Dataset};
use super::sampler::Sampler;
use crate::Result;
use crate::error::data::DataError;
use crate::rng::drawn_seed;
use std::sync::atomic::{AtomicU64, Ordering};

/// Iterates over a data set in batches, epoch by epoch.
///
/// The order of an epoch depends on the seed and the epoch's index alone, so a resumed run has the same orders as an
/// uninterrupted one.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{DataLoader, Digits};
/// let (train, _) = Digits::train_test()?;
/// let loader = DataLoader::new(train, 32)?.shuffle(0);
/// assert_eq!(loader.batches(), 45);
/// for _epoch in 0..2 {
///     for batch in &loader {
///         assert_eq!(batch?.inputs.dim(1)?, 64);
///     }
/// }
/// # Ok(()) }
/// ```
///
/// Each `for batch in &loader` is the next epoch, from 0. [`DataLoader::set_epoch`] sets the next one, as for a resumed
/// run; [`DataLoader::epoch`] is the epoch of an index.
#[derive(Debug)]
pub struct DataLoader<D> {
    dataset: D,
    sampler: Sampler,
    batch_size: usize,
    drop_last: bool,
    /// The epoch of the next `for batch in &loader`.
    next: AtomicU64,
}

impl<D: Clone> Clone for DataLoader<D> {
    fn clone(&self) -> DataLoader<D> {
        let next = self.next.load(Ordering::Relaxed).into();
        let DataLoader { sampler, batch_size, drop_last, .. } = *self;
        DataLoader { dataset: self.dataset.clone(), sampler, batch_size, drop_last, next }
    }
}

/// Whether the order of the samples is random: a seed, or `true` for a seed drawn from the default generator, `false` for the order
/// of the data set.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{DataLoader, Digits, Shuffle};
/// let (train, _) = Digits::train_test()?;
/// let loader = DataLoader::new(&train, 32)?.shuffle(Shuffle::from(7)).shuffle(true).shuffle(false);
/// assert_eq!(loader.epoch(0).next().unwrap()?.targets.to_vec::<i64>()?[..3], [0, 1, 2]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle(Option<u64>);

impl From<u64> for Shuffle {
    fn from(seed: u64) -> Shuffle {
        Shuffle(Some(seed))
    }
}

impl From<bool> for Shuffle {
    fn from(on: bool) -> Shuffle {
        Shuffle(on.then(drawn_seed))
    }
}

impl Shuffle {
    fn sampler(self, rows: usize) -> Sampler {
        match self.0 {
            Some(seed) => Sampler::shuffled(rows, seed),
            None => Sampler::sequential(rows),
        }
    }
}

impl<D: Dataset> DataLoader<D> {
    /// Batches of the rows in their own order; the last may be smaller.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::{DataLoader, TensorDataset}};
    /// let data = TensorDataset::new(Tensor::zeros((5, 2))?, Tensor::new([0i64, 1, 2, 3, 4])?)?;
    /// let loader = DataLoader::new(data, 2)?;
    /// let last = loader.epoch(0).last().unwrap()?;
    /// assert_eq!(last.targets.to_vec::<i64>()?, [4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A batch size of 0.
    pub fn new(dataset: D, batch_size: usize) -> Result<DataLoader<D>, DataError> {
        if batch_size == 0 {
            return Err(DataError::BatchSize);
        }
        let sampler = Sampler::sequential(dataset.len());
        Ok(DataLoader { dataset, sampler, batch_size, drop_last: false, next: AtomicU64::new(0) })
    }

    /// A loader that is set up step by step: batches of one sample in the order of the data set, unless stated otherwise.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{DataLoader, Digits};
    /// let (train, _) = Digits::train_test()?;
    /// let loader = DataLoader::builder(train).batch_size(64).shuffle(true).drop_last(true).build()?;
    /// assert_eq!(loader.len(), 22);
    /// # Ok(()) }
    /// ```
    pub fn builder(dataset: D) -> DataLoaderBuilder<D> {
        DataLoaderBuilder { dataset, batch_size: 1, shuffle: Shuffle(None), drop_last: false }
    }

    /// Shuffles the rows in each epoch: by a seed, or `true` for one from the default generator.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::{DataLoader, TensorDataset}};
    /// let data = TensorDataset::new(Tensor::zeros((5, 2))?, Tensor::new([0i64, 1, 2, 3, 4])?)?;
    /// let loader = DataLoader::new(data, 5)?.shuffle(0);
    /// let mut order = loader.epoch(3).next().unwrap()?.targets.to_vec::<i64>()?;
    /// assert_eq!(order, loader.epoch(3).next().unwrap()?.targets.to_vec::<i64>()?);
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    pub fn shuffle(mut self, seed: impl Into<Shuffle>) -> DataLoader<D> {
        self.sampler = seed.into().sampler(self.dataset.len());
        self
    }

    /// Sets whether a last batch that is smaller than the others is dropped.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{DataLoader, Digits};
    /// let (_, test) = Digits::train_test()?;
    /// assert_eq!(DataLoader::new(test, 100)?.drop_last(true).batches(), 3);
    /// # Ok(()) }
    /// ```
    pub fn drop_last(mut self, on: bool) -> DataLoader<D> {
        self.drop_last = on;
        self
    }

    /// Number of batches per epoch.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::{DataLoader, TensorDataset}};
    /// let data = TensorDataset::new(Tensor::zeros((5, 2))?, Tensor::zeros(5)?)?;
    /// assert_eq!(DataLoader::new(data, 2)?.batches(), 3);
    /// # Ok(()) }
    /// ```
    pub fn batches(&self) -> usize {
        let rows = self.sampler.rows();
        if self.drop_last { rows / self.batch_size } else { rows.div_ceil(self.batch_size) }
    }

    /// The number of batches of an epoch, as [`DataLoader::batches`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::{DataLoader, TensorDataset}};
    /// let data = TensorDataset::new(Tensor::zeros((5, 2))?, Tensor::zeros(5)?)?;
    /// assert_eq!(DataLoader::new(data, 2)?.len(), 3);
    /// # Ok(()) }
    /// ```
    pub fn len(&self) -> usize {
        self.batches()
    }

    /// Whether an epoch has no batches.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::{DataLoader, TensorDataset}};
    /// let data = TensorDataset::new(Tensor::zeros((5, 2))?, Tensor::zeros(5)?)?;
    /// assert!(!DataLoader::new(&data, 8)?.is_empty());
    /// assert!(DataLoader::new(&data, 8)?.drop_last(true).is_empty());
    /// # Ok(()) }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.batches() == 0
    }

    /// Sets the epoch that the next `for batch in &loader` is.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::{DataLoader, TensorDataset}};
    /// let data = TensorDataset::new(Tensor::zeros((50, 2))?, Tensor::arange(0, 50)?)?;
    /// let loader = DataLoader::new(data, 50)?.shuffle(7);
    /// let order = |loader: &DataLoader<_>| loader.iter().next().unwrap()?.targets.to_vec::<i64>();
    /// let (first, second) = (order(&loader)?, order(&loader)?);
    /// loader.set_epoch(1);
    /// assert!(first != second && order(&loader)? == second);
    /// # Ok(()) }
    /// ```
    pub fn set_epoch(&self, epoch: u64) {
        self.next.store(epoch, Ordering::Relaxed);
    }

    /// Iterates over the batches of the next epoch, as `for batch in &loader`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{DataLoader, Digits};
    /// let (_, test) = Digits::train_test()?;
    /// assert_eq!(DataLoader::new(test, 128)?.iter().count(), 3);
    /// # Ok(()) }
    /// ```
    pub fn iter(&self) -> Batches<'_, D> {
        self.epoch(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The data set.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::{DataLoader, TensorDataset}};
    /// let data = TensorDataset::new(Tensor::zeros((5, 2))?, Tensor::zeros(5)?)?;
    /// assert_eq!(DataLoader::new(data, 2)?.dataset().inputs().shape(), [5, 2]);
    /// # Ok(()) }
    /// ```
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// The batches of an epoch.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{DataLoader, Digits};
    /// let (_, test) = Digits::train_test()?;
    /// let sizes: keyway::Result<Vec<usize>> =
    ///     DataLoader::new(test, 128)?.epoch(0).map(|batch| batch?.inputs.dim(0)).collect();
    /// assert_eq!(sizes?, [128, 128, 104]);
    /// # Ok(()) }
    /// ```
    pub fn epoch(&self, epoch: u64) -> Batches<'_, D> {
        Batches { loader: self, order: self.sampler.order(epoch), batch: 0 }
    }
}

impl<'a, D: Dataset> IntoIterator for &'a DataLoader<D> {
    type Item = Result<Batch>;
    type IntoIter = Batches<'a, D>;

    fn into_iter(self) -> Batches<'a, D> {
        self.iter()
    }
}

/// The batches of one epoch, read lazily; see [`DataLoader::epoch`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{DataLoader, Digits};
/// let (_, test) = Digits::train_test()?;
/// let loader = DataLoader::new(test, 128)?;
/// assert_eq!(loader.epoch(0).len(), 3);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Batches<'a, D> {
    loader: &'a DataLoader<D>,
    order: Vec<usize>,
    batch: usize,
}

impl<D: Dataset> Iterator for Batches<'_, D> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.batch >= self.loader.batches() {
            return None;
        }
        let begin = self.batch * self.loader.batch_size;
        self.batch += 1;
        let end = (begin + self.loader.batch_size).min(self.order.len());
        Some(self.loader.dataset.batch(&self.order[begin..end]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.loader.batches().saturating_sub(self.batch);
        (left, Some(left))
    }
}

impl<D: Dataset> ExactSizeIterator for Batches<'_, D> {}

/// Builder of a [`DataLoader`], see [`DataLoader::builder`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{DataLoader, Digits};
/// let (train, _) = Digits::train_test()?;
/// assert!(DataLoader::builder(&train).batch_size(0).build().is_err());
/// assert_eq!(DataLoader::builder(&train).batch_size(32).shuffle(7).build()?.len(), 45);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct DataLoaderBuilder<D> {
    dataset: D,
    batch_size: usize,
    shuffle: Shuffle,
    drop_last: bool,
}

impl<D: Dataset> DataLoaderBuilder<D> {
    /// Sets the number of samples per batch.
    #[must_use]
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.batch_size = batch_size;
        self
    }

    /// Sets a random order in each epoch; see [`DataLoader::shuffle`].
    #[must_use]
    pub fn shuffle(mut self, seed: impl Into<Shuffle>) -> Self {
        self.shuffle = seed.into();
        self
    }

    /// Sets whether a last batch that is smaller than the others is dropped.
    #[must_use]
    pub fn drop_last(mut self, on: bool) -> Self {
        self.drop_last = on;
        self
    }

    /// The loader.
    ///
    /// # Errors
    /// A batch size of 0.
    pub fn build(self) -> Result<DataLoader<D>, DataError> {
        let DataLoaderBuilder { dataset, batch_size, shuffle, drop_last } = self;
        Ok(DataLoader::new(dataset, batch_size)?.shuffle(shuffle).drop_last(drop_last))
    }
}
