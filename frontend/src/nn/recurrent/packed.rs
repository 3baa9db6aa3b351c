//! Batches of sequences of several lengths.

use crate::error::called;
use crate::nn::ModuleError;
use crate::{Result, Tensor};
use std::borrow::Borrow;

/// Sequences of several lengths without padding, for recurrent layers. The rows of all sequences are sorted by time: first the
/// first step of every sequence, longest sequence first, then the second steps, and so on.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::PackedSequence};
/// let padded = Tensor::new([[[1.0f32], [2.0], [0.0]], [[3.0], [4.0], [5.0]]])?;
/// let packed = PackedSequence::from_padded(&padded, &[2, 3], true)?;
/// assert_eq!(packed.data().to_vec::<f32>()?, [3.0, 1.0, 4.0, 2.0, 5.0]);
/// assert_eq!(packed.batch_sizes(), [2, 2, 1]);
/// let (back, lengths) = packed.to_padded(true, 0.0)?;
/// assert_eq!((back.to_vec::<f32>()?, lengths), (padded.to_vec::<f32>()?, vec![2, 3]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PackedSequence {
    data: Tensor,
    batch_sizes: Vec<usize>,
    lengths: Vec<usize>,
    /// The sequences from the longest to the shortest.
    order: Vec<usize>,
}

impl PackedSequence {
    /// Packs padded sequences, `[length, batch, ..]` or with `batch_first` `[batch, length, ..]`. The sequences may be in any
    /// order.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PackedSequence};
    /// let packed = PackedSequence::from_padded(&Tensor::ones((4, 2, 3))?, &[4, 1], false)?;
    /// assert_eq!((packed.data().shape(), packed.batch_sizes()), (&[5, 3][..], &[2, 1, 1, 1][..]));
    /// assert!(PackedSequence::from_padded(&Tensor::ones((4, 2, 3))?, &[5, 1], false).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than two dimensions; a number of lengths other than the batch; a length of 0 or above that of the
    /// tensor.
    #[doc(alias = "pack_padded_sequence")]
    pub fn from_padded(padded: &Tensor, lengths: &[usize], batch_first: bool) -> Result<PackedSequence> {
        called("PackedSequence", &[], || {
            let owner = "PackedSequence";
            if padded.rank() < 2 {
                let expected = "2 or more dimensions".to_string();
                return Err(ModuleError::Input { owner, expected, got: padded.shape().to_vec() }.into());
            }
            let by_time = if batch_first { padded.transpose(0, 1)? } else { padded.clone() };
            let (length, batch) = (by_time.shape()[0], by_time.shape()[1]);
            if lengths.len() != batch || batch == 0 {
                let (expected, got) =
                    ("a length for each of one or more sequences", format!("{} for {batch}", lengths.len()));
                return Err(ModuleError::Option { owner, option: "lengths", expected, got }.into());
            }
            if let Some(wrong) = lengths.iter().find(|&&n| n == 0 || n > length) {
                let (expected, got) = (
                    "lengths from 1 to that of the tensor",
                    format!("{wrong} for a tensor of {length} steps"),
                );
                return Err(ModuleError::Option { owner, option: "lengths", expected, got }.into());
            }
            let mut order: Vec<usize> = (0..batch).collect();
            order.sort_by_key(|&sequence| std::cmp::Reverse(lengths[sequence]));
            let longest = lengths[order[0]];
            let active = |step: usize| order.iter().take_while(|&&sequence| lengths[sequence] > step).count();
            let batch_sizes: Vec<usize> = (0..longest).map(active).collect();
            let rows: Vec<i64> = batch_sizes
                .iter()
                .enumerate()
                .flat_map(|(step, &count)| order[..count].iter().map(move |i| (step * batch + i) as i64))
                .collect();
            let data = flattened(&by_time)?.index_select(0, &indices(&rows, padded)?)?;
            Ok(PackedSequence { data, batch_sizes, lengths: lengths.to_vec(), order })
        })
    }

    /// Packs sequences `[length, ..]` that differ in their length alone.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PackedSequence};
    /// let packed = PackedSequence::from_sequences(&[Tensor::new([1.0f32])?, Tensor::new([2.0f32, 3.0])?])?;
    /// assert_eq!(packed.data().to_vec::<f32>()?, [2.0, 1.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`pad_sequence`], and sequences of length 0.
    #[doc(alias = "pack_sequence")]
    pub fn from_sequences<T: Borrow<Tensor>>(sequences: &[T]) -> Result<PackedSequence> {
        let padded = pad_sequence(sequences, false, 0.0)?;
        let lengths: Vec<usize> = sequences.iter().map(|t| t.borrow().shape()[0]).collect();
        PackedSequence::from_padded(&padded, &lengths, false)
    }

    /// The padded sequences, `[length, batch, ..]` or with `batch_first` `[batch, length, ..]`, and their lengths.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PackedSequence};
    /// let packed = PackedSequence::from_sequences(&[Tensor::new([1.0f32])?, Tensor::new([2.0f32, 3.0])?])?;
    /// let (padded, lengths) = packed.to_padded(true, -1.0)?;
    /// assert_eq!((padded.to_vec::<f32>()?, lengths), (vec![1.0, -1.0, 2.0, 3.0], vec![1, 2]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "pad_packed_sequence")]
    pub fn to_padded(&self, batch_first: bool, padding_value: f64) -> Result<(Tensor, Vec<usize>)> {
        let (steps, batch) = (self.batch_sizes.len(), self.lengths.len());
        let (mut rows, mut padding, mut offset) = (vec![0; steps * batch], vec![true; steps * batch], 0);
        for (step, &count) in self.batch_sizes.iter().enumerate() {
            for (rank, &sequence) in self.order[..count].iter().enumerate() {
                rows[step * batch + sequence] = (offset + rank) as i64;
                padding[step * batch + sequence] = false;
            }
            offset += count;
        }
        let rest = &self.data.shape()[1..];
        let filled = self.data.index_select(0, &indices(&rows, &self.data)?)?;
        let mut mask = vec![1; filled.rank()];
        mask[0] = padding.len();
        let padding = Tensor::from_vec(padding, &mask[..])?.to_device(self.data.device())?;
        let filled = filled.masked_fill(&padding, padding_value)?;
        let padded = filled.reshape_as_sizes(&[&[steps, batch], rest].concat())?;
        Ok((if batch_first { padded.transpose(0, 1)? } else { padded }, self.lengths.clone()))
    }

    /// The rows of all sequences in order of time, `[sum of the lengths, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PackedSequence};
    /// let packed = PackedSequence::from_sequences(&[Tensor::ones((2, 3))?])?;
    /// assert_eq!(packed.data().shape(), [2, 3]);
    /// # Ok(()) }
    /// ```
    pub fn data(&self) -> &Tensor {
        &self.data
    }

    /// The number of sequences that have each step.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PackedSequence};
    /// let packed = PackedSequence::from_padded(&Tensor::ones((2, 2, 1))?, &[1, 2], false)?;
    /// assert_eq!(packed.batch_sizes(), [2, 1]);
    /// # Ok(()) }
    /// ```
    pub fn batch_sizes(&self) -> &[usize] {
        &self.batch_sizes
    }

    /// The number of sequences, at least 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PackedSequence};
    /// assert_eq!(PackedSequence::from_padded(&Tensor::ones((2, 3, 1))?, &[1, 2, 2], false)?.len(), 3);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// The same sequences with other rows.
    #[doc(hidden)]
    pub fn with_data(&self, data: Tensor) -> PackedSequence {
        PackedSequence { data, ..self.clone() }
    }

    /// The sequences from the longest to the shortest, as indices.
    #[doc(hidden)]
    pub fn sorted(&self) -> Result<Tensor> {
        let order: Vec<i64> = self.order.iter().map(|&i| i as i64).collect();
        indices(&order, &self.data)
    }

    /// The rank of each sequence by length, as indices.
    #[doc(hidden)]
    pub fn unsorted(&self) -> Result<Tensor> {
        let mut ranks = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(rank, &sequence)| ranks[sequence] = rank as i64);
        indices(&ranks, &self.data)
    }
}

/// Stacks sequences `[length, ..]` that differ in their length alone: `[longest, batch, ..]`, or with `batch_first`
/// `[batch, longest, ..]`. Shorter ones end with the padding value.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::pad_sequence};
/// let padded = pad_sequence(&[Tensor::new([1.0f32])?, Tensor::new([2.0f32, 3.0])?], true, 0.0)?;
/// assert_eq!((padded.shape(), padded.to_vec::<f32>()?), (&[2, 2][..], vec![1.0, 0.0, 2.0, 3.0]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// An empty list; tensors without dimensions, or whose other dimensions differ.
pub fn pad_sequence<T: Borrow<Tensor>>(
    sequences: &[T],
    batch_first: bool,
    padding_value: f64,
) -> Result<Tensor> {
    called("pad_sequence", &["sequences"], || {
        let longest = sequences.iter().map(|t| t.borrow().shape().first().copied().unwrap_or(0)).max();
        let padded = sequences.iter().map(|t| {
            let t = t.borrow();
            let Some((&length, rest)) = t.shape().split_first() else {
                let (owner, expected) = ("pad_sequence", "one dimension or more".to_string());
                return Err(ModuleError::Input { owner, expected, got: Vec::new() }.into());
            };
            let missing = longest.unwrap_or(0) - length;
            if missing == 0 {
                return Ok(t.clone());
            }
            let padding = t.new_full([&[missing], rest].concat(), padding_value)?;
            Tensor::cat(&[t, &padding], 0)
        });
        Tensor::stack(&padded.collect::<Result<Vec<_>>>()?, if batch_first { 0 } else { 1 })
    })
}

/// The first two dimensions as one.
fn flattened(t: &Tensor) -> Result<Tensor> {
    let shape = t.shape();
    t.reshape_as_sizes(&[&[shape[0] * shape[1]], &shape[2..]].concat())
}

/// Indices on the device of a tensor.
fn indices(values: &[i64], like: &Tensor) -> Result<Tensor> {
    Tensor::from_slice(values, values.len())?.to_device(like.device())
}
