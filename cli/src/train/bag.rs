//! The bag-of-words network: each pixel with its value is a word, and an image is the bag of its words.

use keyway::nn::Module;
use keyway::{DType, Result, Tensor};

/// Maps images to words: `pixel * levels + value`, i64, for values that were divided by the highest level.
#[derive(Debug)]
pub struct Words {
    /// The number of values of a pixel.
    levels: usize,
    /// The first word of each pixel.
    firsts: Vec<i64>,
}

impl Words {
    /// Words for images of `pixels` pixels with `levels` values each.
    pub fn new(pixels: usize, levels: usize) -> Words {
        Words { levels, firsts: (0..pixels as i64).map(|pixel| pixel * levels as i64).collect() }
    }

    /// The number of words.
    pub fn count(pixels: usize, levels: usize) -> usize {
        pixels * levels
    }
}

impl Module for Words {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let highest = (self.levels - 1) as f64;
        let values = input.mul(highest)?.round()?.clamp(0.0, highest)?.to_dtype(DType::I64)?;
        values.add(&Tensor::new(&self.firsts)?.to_device(input.device())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_pixels_with_values() {
        let words = Words::new(3, 17);
        let images = Tensor::from_vec(vec![0.0f32, 0.5, 1.0, 1.0, 0.0625, 0.0], [2, 3]).unwrap();
        let made = words.forward(&images).unwrap();
        assert_eq!(made.to_vec::<i64>().unwrap(), [0, 17 + 8, 34 + 16, 16, 17 + 1, 34]);
        assert_eq!(Words::count(3, 17), 51);
    }
}
