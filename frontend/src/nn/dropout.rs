//! Elements left out at random.

use super::slot::Mode;
use super::{Members, Module, ModuleError};
use crate::rng::{self, Generator};
use crate::{Result, Tensor};

/// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`; in use, lets everything
/// through (N. Srivastava and others, "Dropout: a simple way to prevent neural networks from overfitting", 2014).
///
/// Each module has a generator of its own, so a run of the same seed gives the same result again.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Dropout, Module}};
/// let dropout = Dropout::new(0.5, 0)?;
/// let x = Tensor::from_vec(vec![1.0f32; 1000], &[1000])?;
/// let kept = dropout.forward(&x)?.to_vec::<f32>()?.iter().filter(|&&v| v == 2.0).count();
/// assert!((400..600).contains(&kept));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Dropout {
    p: f64,
    generator: Generator,
    mode: Mode,
}

impl Dropout {
    /// A module that leaves out this share.
    ///
    /// # Errors
    /// A share that is not in 0..=1.
    pub fn new(p: f64, seed: u64) -> Result<Dropout> {
        if !(0.0..=1.0).contains(&p) {
            let got = p.to_string();
            return Err(
                ModuleError::Option { owner: "Dropout", option: "p", expected: "within 0..=1", got }.into()
            );
        }
        Ok(Dropout { p, generator: Generator::new(seed), mode: Mode::default() })
    }
}

impl Module for Dropout {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        if !self.mode.is_training() || self.p == 0.0 {
            return Ok(input.clone());
        }
        rng::using(&self.generator, || input.dropout(self.p, true))
    }

    fn members<'a>(&'a self, members: &mut Members<'a>) {
        members.mode(&self.mode);
    }
}
