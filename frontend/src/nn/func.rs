//! A function as a module.

use super::Module;
use crate::{Result, Tensor};
use std::fmt;

/// A module without parameters whose forward function is this function.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Func, Module}};
/// let mean = Func::new(|x| x.mean((2, 3)));
/// assert_eq!(mean.forward(&Tensor::ones((1, 8, 4, 4))?)?.shape(), [1, 8]);
/// # Ok(()) }
/// ```
#[doc(alias = "func")]
pub struct Func(Box<Forward>);

type Forward = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

impl Func {
    /// A module that calls this function.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Func, Module}};
    /// assert_eq!(Func::new(Tensor::neg).forward(&Tensor::new(2.0f32)?)?.item::<f32>()?, -2.0);
    /// # Ok(()) }
    /// ```
    pub fn new(function: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Func {
        Func(Box::new(function))
    }
}

impl Module for Func {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (self.0)(input)
    }
}

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Func")
    }
}
