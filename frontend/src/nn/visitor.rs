//! The registration of a module's parameters, buffers and submodules.

use super::Module;
use super::parameter::{Buffer, Parameter, TensorCell, TrainingMode};
use crate::rng::Generator;

/// The visitor to which a module registers its parts, with names from the root of the model: `0.weight`, `encoder.bias`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Linear, ModuleVisitor, Module};
/// use keyway::{Result, Tensor};
/// /// A layer whose input is added to its result.
/// struct Residual {
///     inner: Linear,
/// }
/// impl Module for Residual {
///     fn forward(&self, input: &Tensor) -> Result<Tensor> {
///         self.inner.forward(input)?.add(input)
///     }
///     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
///         visitor.child("inner", &self.inner);
///     }
/// }
/// let model = Residual { inner: Linear::new(3, 3)? };
/// assert!(model.state_dict().keys().eq(["inner.bias", "inner.weight"]));
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct ModuleVisitor<'a> {
    prefix: String,
    pub(super) parameters: Vec<(String, &'a TensorCell)>,
    pub(super) buffers: Vec<(String, &'a TensorCell)>,
    pub(super) modes: Vec<&'a TrainingMode>,
    pub(super) generators: Vec<(String, &'a Generator)>,
}

impl<'a> ModuleVisitor<'a> {
    /// Registers a learned tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ModuleVisitor, Parameter}};
    /// let weight = Parameter::new(Tensor::zeros(3)?)?;
    /// # struct Own(Parameter);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
    /// // In the `visit` of a module:
    /// visitor.parameter("weight", &self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// assert_eq!(Own(weight).named_parameters()[0].0, "weight");
    /// # Ok(()) }
    /// ```
    pub fn parameter(&mut self, name: &str, parameter: &'a Parameter) {
        self.parameters.push((format!("{}{name}", self.prefix), parameter.cell()));
    }

    /// Registers a tensor that is part of the state dict but not learned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ModuleVisitor, Buffer}};
    /// let mean = Buffer::new(Tensor::zeros(3)?);
    /// # struct Own(Buffer);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
    /// // In the `visit` of a module:
    /// visitor.buffer("running_mean", &self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// let module = Own(mean);
    /// assert_eq!(module.named_buffers()[0].0, "running_mean");
    /// assert!(module.parameters().is_empty());
    /// # Ok(()) }
    /// ```
    pub fn buffer(&mut self, name: &str, buffer: &'a Buffer) {
        self.buffers.push((format!("{}{name}", self.prefix), buffer.cell()));
    }

    /// Registers a submodule; its names are prefixed with `name` and a dot.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Linear, ModuleVisitor}};
    /// # struct Own(Linear);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
    /// // In the `visit` of a module:
    /// visitor.child("head", &self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// let module = Own(Linear::without_bias(3, 2)?);
    /// assert_eq!(module.named_parameters()[0].0, "head.weight");
    /// # Ok(()) }
    /// ```
    pub fn child<M: Module + ?Sized>(&mut self, name: &str, module: &'a M) {
        let outer = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        module.visit(self);
        self.prefix.truncate(outer);
    }

    /// Registers the mode that [`Module::train`] and [`Module::eval`] switch.
    ///
    /// ```
    /// use keyway::{Tensor, nn::{ModuleVisitor, TrainingMode}};
    /// # struct Own(TrainingMode);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
    /// // In the `visit` of a module:
    /// visitor.training_mode(&self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// let module = Own(TrainingMode::default());
    /// module.eval();
    /// assert!(!module.0.is_training());
    /// ```
    pub fn training_mode(&mut self, mode: &'a TrainingMode) {
        self.modes.push(mode);
    }

    /// Registers a generator that the forward function draws from. It is not part of the state dict.
    ///
    /// ```
    /// use keyway::{Tensor, nn::ModuleVisitor, rng::Generator};
    /// # struct Own(Generator);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
    /// // In the `visit` of a module:
    /// visitor.generator("noise", &self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// assert_eq!(Own(Generator::new(7)).named_generators()[0].0, "noise");
    /// ```
    pub fn generator(&mut self, name: &str, generator: &'a Generator) {
        self.generators.push((format!("{}{name}", self.prefix), generator));
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = &(String, &'a TensorCell)> {
        self.parameters.iter().chain(&self.buffers)
    }
}
