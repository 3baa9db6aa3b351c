//! Group normalization.

use super::parameter::Parameter;
use super::{Module, ModuleError, ModuleVisitor, init};
use crate::error::called;
use crate::{Result, Tensor};

/// [`Tensor::group_norm`] of inputs `[batch, channels, ..]`, then a scale and a shift for each channel.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{GroupNorm, Module}};
/// let x = Tensor::from_vec(vec![1.0f32, 3.0, 10.0, 30.0], (1, 4))?;
/// assert_eq!(GroupNorm::new(2, 4)?.eps(0.0).forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct GroupNorm {
    groups: usize,
    eps: f64,
    weight: Option<Parameter>,
    bias: Option<Parameter>,
}

impl GroupNorm {
    /// A module with `groups` groups of consecutive channels, a weight of ones, a bias of zeros and an `eps` of 1e-5.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{GroupNorm, Module};
    /// assert_eq!(GroupNorm::new(2, 4)?.num_parameters(), 8);
    /// assert!(GroupNorm::new(3, 4).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A number of groups that does not divide the channels.
    pub fn new(groups: usize, channels: usize) -> Result<GroupNorm> {
        called("GroupNorm", &["groups", "channels"], || {
            if groups == 0 || !channels.is_multiple_of(groups) {
                let got = format!("{groups} for {channels} channels");
                let expected = "a divisor of the number of channels";
                return Err(
                    ModuleError::Option { owner: "GroupNorm", option: "groups", expected, got }.into()
                );
            }
            let full = |value: f64| Parameter::new(init::constant(channels, value)?);
            Ok(GroupNorm { groups, eps: 1e-5, weight: Some(full(1.0)?), bias: Some(full(0.0)?) })
        })
    }

    /// Removes weight and bias.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{GroupNorm, Module};
    /// assert_eq!(GroupNorm::new(2, 4)?.without_affine().num_parameters(), 0);
    /// # Ok(()) }
    /// ```
    pub fn without_affine(self) -> GroupNorm {
        GroupNorm { weight: None, bias: None, ..self }
    }

    /// Sets the value that is added to the variance under the root.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{GroupNorm, Module}};
    /// // The variance is 1, so the elements are divided by 2.
    /// let y = GroupNorm::new(1, 2)?.eps(3.0).forward(&Tensor::new([[1.0f32, 3.0]])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    pub fn eps(mut self, eps: f64) -> GroupNorm {
        self.eps = eps;
        self
    }
}

impl Module for GroupNorm {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let [weight, bias] =
            [&self.weight, &self.bias].map(|parameter| parameter.as_ref().map(Parameter::get));
        input.group_norm_with(self.groups, weight.as_ref(), bias.as_ref(), self.eps)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (name, parameter) in [("weight", &self.weight), ("bias", &self.bias)] {
            if let Some(parameter) = parameter {
                visitor.parameter(name, parameter);
            }
        }
    }
}
