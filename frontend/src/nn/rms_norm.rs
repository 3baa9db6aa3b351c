//! Root mean square normalization.

use super::parameter::Parameter;
use super::{Module, ModuleVisitor, init};
use crate::error::called;
use crate::ops::norm::rms_norm;
use crate::tensor::{IntoShape, shape};
use crate::{Result, Tensor};

/// [`Tensor::rms_norm`] over the last dimensions, then a scale for each element.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Module, RmsNorm}};
/// let x = Tensor::new([1.0f32, -7.0])?;
/// assert_eq!(RmsNorm::new(2)?.eps(0.0).forward(&x)?.to_vec::<f32>()?, [0.2, -1.4]);
/// # Ok(()) }
/// ```
#[doc(alias = "RMSNorm")]
#[derive(Debug)]
pub struct RmsNorm {
    sizes: Vec<i64>,
    eps: Option<f64>,
    weight: Option<Parameter>,
}

impl RmsNorm {
    /// A module for inputs whose last dimensions have these sizes, with a weight of ones, and the machine epsilon of the
    /// compute dtype as `eps`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, RmsNorm};
    /// assert_eq!(RmsNorm::new((3, 4))?.num_parameters(), 12);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn new(normalized_shape: impl IntoShape) -> Result<RmsNorm> {
        called("RmsNorm", &["normalized_shape"], || {
            let sizes = normalized_shape.into_ints().to_vec();
            let weight = init::constant(&shape::sizes("RmsNorm", &sizes)?[..], 1.0)?;
            Ok(RmsNorm { sizes, eps: None, weight: Some(Parameter::new(weight)?) })
        })
    }

    /// Removes the weight.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, RmsNorm};
    /// assert_eq!(RmsNorm::new(8)?.without_affine().num_parameters(), 0);
    /// # Ok(()) }
    /// ```
    pub fn without_affine(self) -> RmsNorm {
        RmsNorm { weight: None, ..self }
    }

    /// Sets the value that is added to the mean square under the root.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, RmsNorm}};
    /// // The root of 1 + 3.
    /// let y = RmsNorm::new(2)?.eps(3.0).forward(&Tensor::new([1.0f32, -1.0])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.5, -0.5]);
    /// # Ok(()) }
    /// ```
    pub fn eps(mut self, eps: f64) -> RmsNorm {
        self.eps = Some(eps);
        self
    }
}

impl Module for RmsNorm {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        rms_norm::run(input, &self.sizes, self.weight.as_ref().map(Parameter::get).as_ref(), self.eps)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        if let Some(weight) = &self.weight {
            visitor.parameter("weight", weight);
        }
    }
}
