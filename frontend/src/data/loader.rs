//! Batches of a data set.

use super::dataset::{Batch, Dataset};
use super::error::DataError;
use super::sampler::Sampler;
use crate::Result;

/// Gives a data set in batches, epoch by epoch.
///
/// The order of an epoch depends on the seed and the epoch's number alone, so a run that is taken up again goes on with the
/// orders that it would have had.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{DataLoader, Digits};
/// let (train, _) = Digits::train_test()?;
/// let loader = DataLoader::new(train, 32)?.shuffle(0);
/// assert_eq!(loader.batches(), 45);
/// for batch in loader.epoch(0).take(2) {
///     assert_eq!(batch?.inputs.shape(), [32, 64]);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct DataLoader<D> {
    dataset: D,
    sampler: Sampler,
    batch_size: usize,
    drop_last: bool,
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
        let sampler = Sampler::sequential(dataset.rows());
        Ok(DataLoader { dataset, sampler, batch_size, drop_last: false })
    }

    /// With the rows in another random order in each epoch.
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
    pub fn shuffle(mut self, seed: u64) -> DataLoader<D> {
        self.sampler = Sampler::shuffled(self.dataset.rows(), seed);
        self
    }

    /// With or without a last batch that is smaller than the others.
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

    /// How many batches an epoch has.
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
    pub fn epoch(&self, epoch: u64) -> impl Iterator<Item = Result<Batch>> + '_ {
        let order = self.sampler.order(epoch);
        let size = self.batch_size;
        (0..self.batches()).map(move |batch| {
            let end = ((batch + 1) * size).min(order.len());
            self.dataset.batch(&order[batch * size..end])
        })
    }
}
