//! Parts of a data set, and several as one.

use super::dataset::{Batch, Dataset};
use crate::error::data::DataError;
use crate::rng::{Philox, drawn_seed};
use crate::{Result, Tensor};
use std::sync::Arc;

/// Some samples of a data set, in any order.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{Dataset, Subset, TensorDataset};
/// use keyway::Tensor;
/// let data = TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::new([0i64, 1, 2, 3])?)?;
/// let odd = Subset::new(&data, vec![3, 1])?;
/// assert_eq!((odd.len(), odd.get(0)?.1.item::<i64>()?), (2, 3));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Subset<D> {
    dataset: D,
    indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// The samples of these indices.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Dataset, Subset, TensorDataset};
    /// use keyway::Tensor;
    /// let data = TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::zeros(4)?)?;
    /// assert_eq!(Subset::new(&data, (0..3).collect())?.len(), 3);
    /// assert!(Subset::new(&data, vec![4]).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An index out of range.
    pub fn new(dataset: D, indices: Vec<usize>) -> Result<Subset<D>> {
        let rows = dataset.len();
        match indices.iter().find(|&&index| index >= rows) {
            Some(&got) => Err(DataError::Row { rows, got }.into()),
            None => Ok(Subset { dataset, indices }),
        }
    }

    /// The indices into the whole data set.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Subset, TensorDataset};
    /// use keyway::Tensor;
    /// let data = TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::zeros(4)?)?;
    /// assert_eq!(Subset::new(&data, vec![3, 1])?.indices(), [3, 1]);
    /// # Ok(()) }
    /// ```
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The index into the whole data set.
    fn whole(&self, index: usize) -> Result<usize> {
        let rows = self.indices.len();
        self.indices.get(index).copied().ok_or_else(|| DataError::Row { rows, got: index }.into())
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        self.dataset.get(self.whole(index)?)
    }

    fn batch(&self, indices: &[usize]) -> Result<Batch> {
        let whole = indices.iter().map(|&index| self.whole(index)).collect::<Result<Vec<_>>>()?;
        self.dataset.batch(&whole)
    }
}

/// The concatenation of several data sets.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{ConcatDataset, Dataset, TensorDataset};
/// use keyway::Tensor;
/// let first = TensorDataset::new(Tensor::zeros((2, 3))?, Tensor::new([0i64, 1])?)?;
/// let second = TensorDataset::new(Tensor::ones((1, 3))?, Tensor::new([2i64])?)?;
/// let both = ConcatDataset::new(vec![first, second]);
/// assert_eq!((both.len(), both.get(2)?.1.item::<i64>()?), (3, 2));
/// assert_eq!(both.batch(&[2, 0])?.targets.to_vec::<i64>()?, [2, 0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ConcatDataset<D> {
    parts: Vec<D>,
}

impl<D: Dataset> ConcatDataset<D> {
    /// These data sets in order; of different types as `Box<dyn Dataset>`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{ConcatDataset, Dataset, Digits};
    /// let (train, test) = Digits::train_test()?;
    /// let parts: Vec<Box<dyn Dataset>> = vec![Box::new(train), Box::new(test)];
    /// assert_eq!(ConcatDataset::new(parts).len(), 1_797);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn new(parts: Vec<D>) -> ConcatDataset<D> {
        ConcatDataset { parts }
    }

    /// The part that holds a sample, and the sample's index in it.
    fn part(&self, index: usize) -> Result<(usize, usize)> {
        let mut left = index;
        for (number, part) in self.parts.iter().enumerate() {
            match left.checked_sub(part.len()) {
                Some(rest) => left = rest,
                None => return Ok((number, left)),
            }
        }
        Err(DataError::Row { rows: self.len(), got: index }.into())
    }
}

impl<D: Dataset> Dataset for ConcatDataset<D> {
    fn len(&self) -> usize {
        self.parts.iter().map(Dataset::len).sum()
    }

    fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        let (part, own) = self.part(index)?;
        self.parts[part].get(own)
    }

    /// One batch of each run of samples of one part, joined.
    fn batch(&self, indices: &[usize]) -> Result<Batch> {
        let mut runs: Vec<(usize, Vec<usize>)> = Vec::new();
        for &index in indices {
            let (part, own) = self.part(index)?;
            match runs.last_mut() {
                Some((last, run)) if *last == part => run.push(own),
                _ => runs.push((part, vec![own])),
            }
        }
        let batches =
            runs.iter().map(|(part, run)| self.parts[*part].batch(run)).collect::<Result<Vec<_>>>()?;
        if let [one] = &batches[..] {
            return Ok(one.clone());
        }
        let (inputs, targets): (Vec<Tensor>, Vec<Tensor>) = batches.into_iter().map(Into::into).unzip();
        Ok(Batch { inputs: Tensor::cat(&inputs, 0)?, targets: Tensor::cat(&targets, 0)? })
    }
}

/// The sizes of a split: numbers of samples, `[800, 200]`, or fractions, `[0.8, 0.2]`.
///
/// ```
/// use keyway::data::SplitSizes;
/// assert_eq!([0.8, 0.2].sizes(11).unwrap(), [9, 2]);
/// assert_eq!([8, 3].sizes(11).unwrap(), [8, 3]);
/// assert!([8, 2].sizes(11).is_err());
/// ```
pub trait SplitSizes {
    /// The number of samples of each part of a data set of this length. Samples left by rounding go to the first parts, one to
    /// each.
    ///
    /// ```
    /// use keyway::data::SplitSizes;
    /// assert_eq!([0.5, 0.5].sizes(3).unwrap(), [2, 1]);
    /// ```
    ///
    /// # Errors
    /// Numbers that do not add up to the length; fractions that are negative or do not add up to 1.
    fn sizes(&self, length: usize) -> Result<Vec<usize>, DataError>;
}

impl SplitSizes for [usize] {
    fn sizes(&self, length: usize) -> Result<Vec<usize>, DataError> {
        match self.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) {
            Some(sum) if sum == length => Ok(self.to_vec()),
            _ => Err(DataError::Split { rows: length, got: format!("{self:?}") }),
        }
    }
}

impl SplitSizes for [f64] {
    fn sizes(&self, length: usize) -> Result<Vec<usize>, DataError> {
        let sum: f64 = self.iter().sum();
        if self.iter().any(|share| !(0.0..=1.0).contains(share)) || (sum - 1.0).abs() > 1e-6 {
            return Err(DataError::Split { rows: length, got: format!("{self:?}") });
        }
        let mut sizes: Vec<usize> = self.iter().map(|share| (share * length as f64) as usize).collect();
        let left = length.saturating_sub(sizes.iter().sum());
        let count = sizes.len();
        (0..left).for_each(|nth| sizes[nth % count] += 1);
        Ok(sizes)
    }
}

macro_rules! lists {
    ($($number:ty),*) => {$(
        impl<const N: usize> SplitSizes for [$number; N] {
            fn sizes(&self, length: usize) -> Result<Vec<usize>, DataError> {
                self[..].sizes(length)
            }
        }

        impl SplitSizes for Vec<$number> {
            fn sizes(&self, length: usize) -> Result<Vec<usize>, DataError> {
                self[..].sizes(length)
            }
        }
    )*};
}
lists!(usize, f64);

impl<S: SplitSizes + ?Sized> SplitSizes for &S {
    fn sizes(&self, length: usize) -> Result<Vec<usize>, DataError> {
        (**self).sizes(length)
    }
}

/// Splits a data set at random into parts that share it, by numbers of samples or by fractions. The order is drawn from the
/// default generator, which [`manual_seed`](crate::manual_seed) seeds.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{Dataset, Digits, random_split};
/// let data = Digits::embedded()?.dataset()?;
/// let [train, test]: [_; 2] = random_split(data, [0.8, 0.2])?.try_into().unwrap();
/// assert_eq!((train.len(), test.len()), (1_438, 359));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`SplitSizes::sizes`].
pub fn random_split<D: Dataset>(dataset: D, sizes: impl SplitSizes) -> Result<Vec<Subset<Arc<D>>>> {
    random_split_with(dataset, sizes, drawn_seed())
}

/// [`random_split`] in the order of this seed.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{TensorDataset, random_split_with};
/// use keyway::Tensor;
/// let data = TensorDataset::new(Tensor::zeros((10, 2))?, Tensor::zeros(10)?)?;
/// let [a, b] = [7, 7].map(|seed| random_split_with(&data, [6, 4], seed).unwrap());
/// assert_eq!(a[0].indices(), b[0].indices());
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`random_split`].
pub fn random_split_with<D: Dataset>(
    dataset: D,
    sizes: impl SplitSizes,
    seed: u64,
) -> Result<Vec<Subset<Arc<D>>>> {
    let sizes = sizes.sizes(dataset.len())?;
    let order = Philox::new(seed).permutation(dataset.len());
    let dataset = Arc::new(dataset);
    let mut begin = 0;
    let parts = sizes.into_iter().map(|size| {
        let indices = order[begin..begin + size].to_vec();
        begin += size;
        Subset { dataset: dataset.clone(), indices }
    });
    Ok(parts.collect())
}
