//! The registration of a module's parameters, buffers and submodules.

use super::Module;
use super::slot::{Mode, Slot};
use crate::rng::Generator;

/// The visitor to which a module registers its parts, with names from the root of the model: `0.weight`, `encoder.bias`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Linear, Members, Module};
/// use keyway::{Result, Tensor};
/// /// A layer whose input is added to its result.
/// struct Residual {
///     inner: Linear,
/// }
/// impl Module for Residual {
///     fn forward(&self, input: &Tensor) -> Result<Tensor> {
///         self.inner.forward(input)?.add(input)
///     }
///     fn members<'a>(&'a self, members: &mut Members<'a>) {
///         members.child("inner", &self.inner);
///     }
/// }
/// let model = Residual { inner: Linear::new(3, 3)? };
/// assert!(model.state_dict().keys().eq(["inner.bias", "inner.weight"]));
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Members<'a> {
    prefix: String,
    pub(super) parameters: Vec<(String, &'a Slot)>,
    pub(super) buffers: Vec<(String, &'a Slot)>,
    pub(super) modes: Vec<&'a Mode>,
    pub(super) generators: Vec<(String, &'a Generator)>,
}

impl<'a> Members<'a> {
    /// Registers a learned tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Members, Slot}};
    /// let weight = Slot::parameter(Tensor::zeros(3)?)?;
    /// # struct Own(Slot);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn members<'a>(&'a self, members: &mut Members<'a>) {
    /// // In the `members` of a module:
    /// members.parameter("weight", &self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// assert_eq!(Own(weight).named_parameters()[0].0, "weight");
    /// # Ok(()) }
    /// ```
    pub fn parameter(&mut self, name: &str, slot: &'a Slot) {
        self.parameters.push((format!("{}{name}", self.prefix), slot));
    }

    /// Registers a tensor that is part of the state dict but not learned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Members, Slot}};
    /// let mean = Slot::buffer(Tensor::zeros(3)?);
    /// # struct Own(Slot);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn members<'a>(&'a self, members: &mut Members<'a>) {
    /// // In the `members` of a module:
    /// members.buffer("running_mean", &self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// let module = Own(mean);
    /// assert_eq!(module.named_buffers()[0].0, "running_mean");
    /// assert!(module.parameters().is_empty());
    /// # Ok(()) }
    /// ```
    pub fn buffer(&mut self, name: &str, slot: &'a Slot) {
        self.buffers.push((format!("{}{name}", self.prefix), slot));
    }

    /// Registers a submodule; its names are prefixed with `name` and a dot.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Linear, Members}};
    /// # struct Own(Linear);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn members<'a>(&'a self, members: &mut Members<'a>) {
    /// // In the `members` of a module:
    /// members.child("head", &self.0);
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
        module.members(self);
        self.prefix.truncate(outer);
    }

    /// Registers the mode that [`Module::train`] and [`Module::eval`] switch.
    ///
    /// ```
    /// use keyway::{Tensor, nn::{Members, Mode}};
    /// # struct Own(Mode);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn members<'a>(&'a self, members: &mut Members<'a>) {
    /// // In the `members` of a module:
    /// members.mode(&self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// let module = Own(Mode::default());
    /// module.eval();
    /// assert!(!module.0.is_training());
    /// ```
    pub fn mode(&mut self, mode: &'a Mode) {
        self.modes.push(mode);
    }

    /// Registers a generator that the forward function draws from. It is not part of the state dict.
    ///
    /// ```
    /// use keyway::{Tensor, nn::Members, rng::Generator};
    /// # struct Own(Generator);
    /// # impl keyway::nn::Module for Own {
    /// #     fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> { Ok(input.clone()) }
    /// #     fn members<'a>(&'a self, members: &mut Members<'a>) {
    /// // In the `members` of a module:
    /// members.generator("noise", &self.0);
    /// #     }
    /// # }
    /// # use keyway::nn::Module;
    /// assert_eq!(Own(Generator::new(7)).named_generators()[0].0, "noise");
    /// ```
    pub fn generator(&mut self, name: &str, generator: &'a Generator) {
        self.generators.push((format!("{}{name}", self.prefix), generator));
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &(String, &'a Slot)> {
        self.parameters.iter().chain(&self.buffers)
    }
}
