//! The parametric rectifier.

use super::parameter::Parameter;
use super::{Module, ModuleError, ModuleVisitor};
use crate::error::called;
use crate::{Result, Tensor};

/// [`Tensor::prelu`] with a learned slope below 0, one for all elements or one per channel.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Module, Prelu}};
/// let x = Tensor::new([-4.0f32, 4.0])?;
/// assert_eq!(Prelu::new()?.forward(&x)?.to_vec::<f32>()?, [-1.0, 4.0]);
/// # Ok(()) }
/// ```
#[doc(alias = "PReLU")]
#[derive(Debug)]
pub struct Prelu {
    pub(super) weight: Parameter,
}

impl Prelu {
    /// A module with one slope, initially 0.25.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, Prelu};
    /// assert_eq!(Prelu::new()?.parameters()[0].to_vec::<f32>()?, [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new() -> Result<Prelu> {
        Prelu::new_with(1, 0.25)
    }

    /// A module with `num_parameters` slopes (1 or the number of channels), initially `init`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, Prelu};
    /// assert_eq!(Prelu::new_with(3, 0.25)?.parameters()[0].to_vec::<f32>()?, [0.25; 3]);
    /// assert!(Prelu::new_with(0, 0.25).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `num_parameters` of 0.
    pub fn new_with(num_parameters: usize, init: f64) -> Result<Prelu> {
        called("Prelu", &["num_parameters"], || {
            if num_parameters == 0 {
                let (expected, got) = ("1, or the number of channels", num_parameters.to_string());
                return Err(
                    ModuleError::Option { owner: "Prelu", option: "num_parameters", expected, got }.into()
                );
            }
            let weight = super::init::constant(num_parameters, init)?;
            Ok(Prelu { weight: Parameter::new(weight)? })
        })
    }
}

impl Module for Prelu {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.prelu(&self.weight.get())
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.parameter("weight", &self.weight);
    }
}
