//! The fully connected layer.

use super::parameter::Parameter;
use super::{Module, ModuleVisitor, init};
use crate::error::called;
use crate::{Result, Tensor};

/// `input @ weight.T + bias` over the last dimension: `[…, in]` to `[…, out]`.
///
/// The initial values are PyTorch's: weight and bias uniform in `±1 / sqrt(in)`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Linear, Module}};
/// let layer = Linear::new(3, 2)?;
/// let x = Tensor::from_vec(vec![1.0f32; 12], (4, 3))?;
/// assert_eq!(layer.forward(&x)?.shape(), [4, 2]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
}

impl Linear {
    /// A layer with a bias, in f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// let layer = Linear::new(4, 3)?;
    /// assert_eq!(layer.num_parameters(), 3 * 4 + 3);
    /// assert!(layer.weight().abs()?.max_all()?.item::<f32>()? <= 0.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn new(inputs: usize, outputs: usize) -> Result<Linear> {
        called("Linear", &["inputs", "outputs"], || {
            let mut layer = Linear::without_bias(inputs, outputs)?;
            let bound = if inputs > 0 { 1.0 / (inputs as f64).sqrt() } else { 0.0 };
            layer.bias = Some(Parameter::new(init::uniform(outputs, bound)?)?);
            Ok(layer)
        })
    }

    /// A layer without a bias, in f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{nn::{Linear, Module}};
    /// assert_eq!(Linear::without_bias(3, 2)?.num_parameters(), 6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    #[doc(alias = "linear_no_bias")]
    pub fn without_bias(inputs: usize, outputs: usize) -> Result<Linear> {
        called("Linear", &["inputs", "outputs"], || {
            // This slope results in the bound `1 / sqrt(inputs)`.
            let weight = init::kaiming_uniform_with((outputs, inputs), 5f64.sqrt(), init::Fan::In)?;
            Ok(Linear { weight: Parameter::new(weight)?, bias: None })
        })
    }

    /// A layer of these tensors: the weight `[out, in]`, the bias `[out]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Linear, Module}};
    /// let layer = Linear::from_tensors(Tensor::from_vec(vec![2.0f32, 3.0], (1, 2))?, None)?;
    /// assert_eq!(layer.forward(&Tensor::from_vec(vec![10.0f32, 1.0], (1, 2))?)?.item::<f32>()?, 23.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that cannot require gradients.
    pub fn from_tensors(weight: Tensor, bias: Option<Tensor>) -> Result<Linear> {
        called("Linear", &["weight", "bias"], || {
            Ok(Linear { weight: Parameter::new(weight)?, bias: bias.map(Parameter::new).transpose()? })
        })
    }

    /// The weight, `[out, in]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::Linear;
    /// assert_eq!(Linear::new(4, 3)?.weight().shape(), [3, 4]);
    /// # Ok(()) }
    /// ```
    pub fn weight(&self) -> Tensor {
        self.weight.get()
    }

    /// The bias, `[out]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::Linear;
    /// assert_eq!(Linear::new(4, 3)?.bias().unwrap().shape(), [3]);
    /// assert!(Linear::without_bias(4, 3)?.bias().is_none());
    /// # Ok(()) }
    /// ```
    pub fn bias(&self) -> Option<Tensor> {
        self.bias.as_ref().map(Parameter::get)
    }
}

impl Module for Linear {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.linear(&self.weight.get(), self.bias().as_ref())
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.parameter("weight", &self.weight);
        if let Some(bias) = &self.bias {
            visitor.parameter("bias", bias);
        }
    }
}
