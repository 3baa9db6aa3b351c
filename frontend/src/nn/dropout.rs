//! Elements left out at random.

use super::slot::Mode;
use super::{Members, Module, ModuleError};
use crate::rng::Philox;
use crate::{Result, Tensor};
use std::sync::atomic::{AtomicU64, Ordering};

/// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`; in use, lets everything
/// through (N. Srivastava and others, "Dropout: a simple way to prevent neural networks from overfitting", 2014).
///
/// Call `n` of a module draws from stream `n` of its seed, so a run gives the same result again.
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
    seed: u64,
    calls: AtomicU64,
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
        Ok(Dropout { p, seed, calls: AtomicU64::new(0), mode: Mode::default() })
    }
}

impl Module for Dropout {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        if !self.mode.is_training() || self.p == 0.0 {
            return Ok(input.clone());
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut rng = Philox::with_stream(self.seed, call);
        input.mul(&mask(input, self.p, &mut rng)?)
    }

    fn members<'a>(&'a self, members: &mut Members<'a>) {
        members.mode(&self.mode);
    }
}

/// 0 with probability `p`, else `1 / (1 - p)`.
fn mask(input: &Tensor, p: f64, rng: &mut Philox) -> Result<Tensor> {
    let kept = if p < 1.0 { (1.0 / (1.0 - p)) as f32 } else { 0.0 };
    let draw = |_| if f64::from(rng.uniform_f32()) < p { 0.0 } else { kept };
    let mask = Tensor::from_vec((0..input.numel()).map(draw).collect(), input.sizes())?;
    mask.to_dtype(input.dtype())?.to_device(input.device())
}
