//! Images stored as bytes and converted to floats batch by batch.

use super::dataset::only;
use super::{Batch, Dataset};
use crate::error::data::DataError;
use crate::{Result, Tensor};

/// Values of a byte.
const LEVELS: usize = 256;

/// Mean and standard deviation of each channel over all pixels of some images, in bytes.
///
/// ```
/// use keyway::data::ChannelStats;
/// let stats = ChannelStats::of(&[1, 3, 7, 9], [1, 2, 2]);
/// assert_eq!((stats.mean, stats.std), (vec![5.0], vec![10f64.sqrt()]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelStats {
    /// The means.
    pub mean: Vec<f64>,
    /// The deviations, as of a whole population; 1 for a channel whose pixels are all the same.
    pub std: Vec<f64>,
}

impl ChannelStats {
    /// The statistics of images with these channels, rows and columns, whose bytes are contiguous in this order. Without images,
    /// mean 0 and standard deviation 1.
    ///
    /// ```
    /// use keyway::data::ChannelStats;
    /// let stats = ChannelStats::of(&[1, 3, 7, 7], [2, 1, 2]);
    /// assert_eq!((stats.mean, stats.std), (vec![2.0, 7.0], vec![1.0, 1.0]));
    /// ```
    #[must_use]
    pub fn of(pixels: &[u8], [channels, rows, columns]: [usize; 3]) -> ChannelStats {
        let mut counts = vec![[0u64; LEVELS]; channels];
        for (place, pixel) in pixels.chunks((rows * columns).max(1)).enumerate() {
            let counts = &mut counts[place % channels.max(1)];
            pixel.iter().for_each(|&value| counts[usize::from(value)] += 1);
        }
        let (mut mean, mut std) = (Vec::new(), Vec::new());
        for counts in counts {
            let all = counts.iter().sum::<u64>().max(1) as f64;
            let weighted = |of: &dyn Fn(f64) -> f64| {
                counts.iter().enumerate().map(|(value, &count)| of(value as f64) * count as f64).sum::<f64>()
                    / all
            };
            let center = weighted(&|value| value);
            let variance = weighted(&|value| (value - center).powi(2));
            mean.push(center);
            std.push(if variance > 0.0 { variance.sqrt() } else { 1.0 });
        }
        ChannelStats { mean, std }
    }
}

/// Images whose pixels are stored as bytes, a quarter of their size in f32. A batch has them as `[rows, channels, height, width]`
/// in f32, each `(byte - mean) / std` of its channel, and the labels as `[rows]` in i64.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::data::{ChannelStats, Dataset, ImageDataset};
/// let stats = ChannelStats { mean: vec![1.0], std: vec![2.0] };
/// let data = ImageDataset::new(vec![1, 3, 5, 7], vec![0, 1], [1, 1, 2], &stats)?;
/// let batch = data.batch(&[1])?;
/// assert_eq!(batch.inputs.shape(), [1, 1, 1, 2]);
/// assert_eq!(batch.inputs.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ImageDataset {
    pixels: Vec<u8>,
    labels: Vec<u8>,
    shape: [usize; 3],
    /// Lookup table of normalised values, per channel.
    values: Vec<[f32; LEVELS]>,
}

impl ImageDataset {
    /// Creates a data set of consecutive images of this number of channels, rows and columns, with a label for each.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{ChannelStats, Dataset, ImageDataset};
    /// let stats = ChannelStats { mean: vec![0.0], std: vec![1.0] };
    /// let data = ImageDataset::new(vec![1, 2, 3, 4], vec![0, 1], [1, 1, 2], &stats)?;
    /// assert_eq!(data.len(), 2);
    /// assert!(ImageDataset::new(vec![1, 2, 3], vec![0, 1], [1, 1, 2], &stats).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`DataError::Images`] for pixels or statistics that do not fit.
    pub fn new(
        pixels: Vec<u8>,
        labels: Vec<u8>,
        shape: [usize; 3],
        stats: &ChannelStats,
    ) -> Result<ImageDataset, DataError> {
        let fits = |what, expected, got| {
            if got == expected { Ok(()) } else { Err(DataError::Images { what, shape, expected, got }) }
        };
        fits("bytes of pixels", labels.len() * shape.iter().product::<usize>(), pixels.len())?;
        fits("means", shape[0], stats.mean.len())?;
        fits("deviations", shape[0], stats.std.len())?;
        let of =
            |(&mean, &std): (&f64, &f64)| std::array::from_fn(|value| ((value as f64 - mean) / std) as f32);
        let values = stats.mean.iter().zip(&stats.std).map(of).collect();
        Ok(ImageDataset { pixels, labels, shape, values })
    }
}

impl Dataset for ImageDataset {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        only(&self.batch(&[index])?)
    }

    fn batch(&self, rows: &[usize]) -> Result<Batch> {
        let [channels, height, width] = self.shape;
        let image = channels * height * width;
        let mut inputs = Vec::with_capacity(rows.len() * image);
        let mut targets = Vec::with_capacity(rows.len());
        for &row in rows {
            let Some(&label) = self.labels.get(row) else {
                return Err(DataError::Row { rows: self.len(), got: row }.into());
            };
            let pixels = &self.pixels[row * image..(row + 1) * image];
            for (channel, values) in pixels.chunks((height * width).max(1)).zip(&self.values) {
                inputs.extend(channel.iter().map(|&byte| values[usize::from(byte)]));
            }
            targets.push(i64::from(label));
        }
        let inputs = Tensor::from_vec(inputs, [rows.len(), channels, height, width])?;
        Ok(Batch { inputs, targets: Tensor::new(&targets)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let stats = ChannelStats { mean: vec![0.0; 2], std: vec![1.0; 2] };
        let new =
            |bytes, channels, stats| ImageDataset::new(vec![0; bytes], vec![0; 3], [channels, 2, 2], stats);
        assert_eq!(new(24, 2, &stats).expect("images").len(), 3);
        let message = new(23, 2, &stats).expect_err("a fault").to_string();
        assert!(message.contains("expected 24 bytes of pixels") && message.contains("got 23"), "{message}");
        let message = new(12, 1, &stats).expect_err("a fault").to_string();
        assert!(message.contains("expected 1 means") && message.contains("got 2"), "{message}");
    }

    #[test]
    fn statistics_are_those_of_each_channel() {
        let pixels: Vec<u8> = (0..2 * 3 * 4).map(|i| (i * 37 % 251) as u8).collect();
        let stats = ChannelStats::of(&pixels, [3, 2, 2]);
        for channel in 0..3 {
            let own = |image: usize| &pixels[image * 12 + channel * 4..][..4];
            let values: Vec<f64> = own(0).iter().chain(own(1)).map(|&value| f64::from(value)).collect();
            let mean = values.iter().sum::<f64>() / 8.0;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 8.0;
            assert!((stats.mean[channel] - mean).abs() < 1e-9);
            assert!((stats.std[channel] - variance.sqrt()).abs() < 1e-9);
        }
        for shape in [[2, 0, 3], [0, 1, 1], [1, 1, 1]] {
            let nothing = ChannelStats::of(&[], shape);
            assert_eq!((nothing.mean, nothing.std), (vec![0.0; shape[0]], vec![1.0; shape[0]]));
        }
    }
}
