//! Data sets as tensors.

use super::{Cifar, Digits, cifar, digits};
use crate::autograd::no_grad;
use crate::error::data::DataError;
use crate::{Device, Result, Tensor};
use keyway_dispatcher::memory::copy_bytes;
use std::sync::Arc;

/// Some rows of a data set.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{Dataset, TensorDataset};
/// use keyway::Tensor;
/// let data = TensorDataset::new(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?, Tensor::new([5i64, 6])?)?;
/// let batch = data.batch(&[1, 0])?;
/// assert_eq!(batch.inputs.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0]);
/// assert_eq!(batch.targets.to_vec::<i64>()?, [6, 5]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    /// Inputs of a model, one row per sample.
    pub inputs: Tensor,
    /// Expected outputs, one row per sample.
    pub targets: Tensor,
}

/// Converts a batch to the inputs and the targets, `let (inputs, targets) = batch.into();`.
impl From<Batch> for (Tensor, Tensor) {
    fn from(batch: Batch) -> (Tensor, Tensor) {
        (batch.inputs, batch.targets)
    }
}

/// Samples with random access by index, one at a time or as a batch.
///
/// An implementation provides its length and single samples; the loader stacks them. An implementation that can read
/// several samples together also implements [`Dataset::batch`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{DataLoader, Dataset};
/// use keyway::{Result, Tensor};
///
/// /// The squares of the first numbers, computed when asked for.
/// struct Squares(usize);
///
/// impl Dataset for Squares {
///     fn len(&self) -> usize {
///         self.0
///     }
///     fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
///         let number = Tensor::new(index as f32)?;
///         Ok((number.clone(), number.square()?))
///     }
/// }
///
/// let loader = DataLoader::new(Squares(5), 2)?;
/// let last = loader.epoch(0).last().unwrap()?;
/// assert_eq!(last.targets.to_vec::<f32>()?, [16.0]);
/// # Ok(()) }
/// ```
pub trait Dataset {
    /// The number of samples.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Dataset, TensorDataset};
    /// use keyway::Tensor;
    /// let data = TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::zeros(4)?)?;
    /// assert_eq!(data.len(), 4);
    /// # Ok(()) }
    /// ```
    fn len(&self) -> usize;

    /// The input and the target of one sample.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Dataset, TensorDataset};
    /// use keyway::Tensor;
    /// let data = TensorDataset::new(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?, Tensor::new([5i64, 6])?)?;
    /// let (input, target) = data.get(1)?;
    /// assert_eq!((input.to_vec::<f32>()?, target.item::<i64>()?), (vec![3.0, 4.0], 6));
    /// assert!(data.get(2).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An index out of range; errors of the source of the samples.
    fn get(&self, index: usize) -> Result<(Tensor, Tensor)>;

    /// The samples of these indices, in this order, stacked along a new first dimension.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Dataset, TensorDataset};
    /// use keyway::Tensor;
    /// let data = TensorDataset::new(Tensor::new([1.0f32, 2.0, 3.0])?, Tensor::new([5i64, 6, 7])?)?;
    /// assert_eq!(data.batch(&[2, 2, 0])?.targets.to_vec::<i64>()?, [7, 7, 5]);
    /// assert!(data.batch(&[3]).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::get`]; samples of different shapes. Override this to pad them. Samples of different dtypes are promoted.
    fn batch(&self, indices: &[usize]) -> Result<Batch> {
        let samples = indices.iter().map(|&index| self.get(index)).collect::<Result<Vec<_>>>()?;
        let (inputs, targets): (Vec<Tensor>, Vec<Tensor>) = samples.into_iter().unzip();
        let _off = no_grad();
        Ok(Batch { inputs: Tensor::stack(&inputs, 0)?, targets: Tensor::stack(&targets, 0)? })
    }

    /// Whether there are no samples.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Dataset, TensorDataset};
    /// use keyway::Tensor;
    /// assert!(TensorDataset::new(Tensor::zeros((0, 2))?, Tensor::zeros(0)?)?.is_empty());
    /// # Ok(()) }
    /// ```
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of samples, as [`Dataset::len`].
    #[doc(hidden)]
    #[deprecated(note = "the number of samples is `len()`")]
    fn rows(&self) -> usize {
        self.len()
    }
}

/// The sample in a batch of a single index.
pub(super) fn only(batch: &Batch) -> Result<(Tensor, Tensor)> {
    Ok((batch.inputs.select(0, 0)?, batch.targets.select(0, 0)?))
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<D: Dataset + ?Sized> Dataset for $type {
            fn len(&self) -> usize {
                (**self).len()
            }

            fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
                (**self).get(index)
            }

            fn batch(&self, indices: &[usize]) -> Result<Batch> {
                (**self).batch(indices)
            }
        }
    )*};
}
through!(&D, Box<D>, Arc<D>);

/// A data set of two tensors with the same number of rows.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, data::{Dataset, TensorDataset}};
/// let inputs = Tensor::from_vec(vec![0.0f32, 1.0, 2.0, 3.0], (2, 2))?;
/// let data = TensorDataset::new(inputs, Tensor::new([7i64, 8])?)?;
/// let batch = data.batch(&[1])?;
/// assert_eq!(batch.inputs.to_vec::<f32>()?, [2.0, 3.0]);
/// assert_eq!(batch.targets.to_vec::<i64>()?, [8]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct TensorDataset {
    inputs: Tensor,
    targets: Tensor,
}

impl TensorDataset {
    /// A data set of inputs and targets.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::TensorDataset};
    /// assert!(TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::zeros(4)?).is_ok());
    /// assert!(TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::zeros(3)?).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors of different numbers of rows.
    pub fn new(inputs: Tensor, targets: Tensor) -> Result<TensorDataset> {
        let count = |tensor: &Tensor| tensor.shape().first().copied();
        if count(&inputs).is_none() || count(&inputs) != count(&targets) {
            let (inputs, targets) = (inputs.shape().to_vec(), targets.shape().to_vec());
            return Err(DataError::Rows { inputs, targets }.into());
        }
        Ok(TensorDataset { inputs, targets })
    }

    /// All inputs.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::TensorDataset};
    /// let data = TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::zeros(4)?)?;
    /// assert_eq!(data.inputs().shape(), [4, 2]);
    /// # Ok(()) }
    /// ```
    pub fn inputs(&self) -> &Tensor {
        &self.inputs
    }

    /// All targets.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, data::TensorDataset};
    /// let data = TensorDataset::new(Tensor::zeros((4, 2))?, Tensor::zeros(4)?)?;
    /// assert_eq!(data.targets().shape(), [4]);
    /// # Ok(()) }
    /// ```
    pub fn targets(&self) -> &Tensor {
        &self.targets
    }
}

impl Dataset for TensorDataset {
    fn len(&self) -> usize {
        self.targets.shape().first().copied().unwrap_or(0)
    }

    fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        only(&self.batch(&[index])?)
    }

    fn batch(&self, rows: &[usize]) -> Result<Batch> {
        let count = self.len();
        if let Some(&row) = rows.iter().find(|&&row| row >= count) {
            return Err(DataError::Row { rows: count, got: row }.into());
        }
        let _off = no_grad();
        Ok(Batch { inputs: rows_of(&self.inputs, rows)?, targets: rows_of(&self.targets, rows)? })
    }
}

/// Gathers rows of a tensor. The host copies from its own memory, so that a program which trains on another device needs no
/// backend for the CPU.
fn rows_of(t: &Tensor, rows: &[usize]) -> Result<Tensor> {
    let (&[count, ref row @ ..], true) = (t.shape(), t.is_contiguous() && t.device() == Device::CPU) else {
        let index: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        return t.index_select(0, &Tensor::new(&index)?.to_device(t.device())?);
    };
    let made = Tensor::uninit([&[rows.len()], row].concat(), t.dtype())?;
    let size = t.dtype().size();
    let bytes = t.elem_count() / count.max(1) * size;
    if let (Some(to), Some(from)) = (made.as_ref().storage(), t.as_ref().storage()) {
        let first = t.storage_offset() * size;
        for (place, row) in rows.iter().enumerate() {
            copy_bytes(to, place * bytes, from, first + row * bytes, bytes)?;
        }
    }
    Ok(made)
}

impl Digits {
    /// The images as `[rows, 64]` in f32, scaled to 0..=1, and the labels as `[rows]` in i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Dataset, Digits};
    /// let data = Digits::embedded()?.dataset()?;
    /// assert_eq!(data.inputs().shape(), [1_797, 64]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None today; a result for symmetry with other data sets.
    pub fn dataset(&self) -> Result<TensorDataset> {
        images(&self.pixels, f32::from(digits::BRIGHTEST), &[self.rows(), digits::PIXELS], &self.labels)
    }

    /// The embedded set: the first 1,437 images for training, the 360 after them for testing.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{Dataset, Digits};
    /// let (train, test) = Digits::train_test()?;
    /// assert_eq!((train.len(), test.len()), (1_437, 360));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Digits::embedded`].
    pub fn train_test() -> Result<(TensorDataset, TensorDataset)> {
        let (train, test) = Digits::embedded()?.split_at(digits::TRAIN_ROWS);
        Ok((train.dataset()?, test.dataset()?))
    }
}

impl Cifar {
    /// The images as `[rows, 3, 32, 32]` in f32, scaled to 0..=1, and the labels as `[rows]` in i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::Cifar;
    /// let file = vec![3u8; 2 * (1 + 3_072)];
    /// let data = Cifar::parse(&file, "an example")?.dataset()?;
    /// assert_eq!(data.inputs().shape(), [2, 3, 32, 32]);
    /// assert_eq!(data.targets().to_vec::<i64>()?, [3, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// None today; a result for symmetry with other data sets.
    pub fn dataset(&self) -> Result<TensorDataset> {
        let [colours, height, width] = cifar::SHAPE;
        let sizes = [self.rows(), colours, height, width];
        images(&self.pixels, f32::from(u8::MAX), &sizes, &self.labels)
    }
}

fn images(pixels: &[u8], brightest: f32, sizes: &[usize], labels: &[u8]) -> Result<TensorDataset> {
    let values: Vec<f32> = pixels.iter().map(|&pixel| f32::from(pixel) / brightest).collect();
    let labels: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
    TensorDataset::new(Tensor::from_vec(values, sizes)?, Tensor::new(&labels)?)
}
