//! The trait of modules.

use super::parameter::TensorCell;
use super::state::{Expected, LoadReport, fill, generator_states};
use super::{ModuleError, ModuleVisitor};
use crate::autograd::no_grad;
use crate::io::safetensors;
use crate::io::state_dict::StateDict;
use crate::rng::{Generator, GeneratorState};
use crate::tensor::{IntoOptions, TensorOptions};
use crate::{DType, Device, MemoryFormat, Result, Tensor};
use std::path::Path;

/// A function of a tensor that may have parameters.
///
/// A custom module implements the forward function and registers its parts:
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{ModuleVisitor, Module, Parameter};
/// use keyway::{Result, Tensor};
///
/// struct Scale {
///     factor: Parameter,
/// }
///
/// impl Module for Scale {
///     fn forward(&self, input: &Tensor) -> Result<Tensor> {
///         input.mul(&self.factor.get())
///     }
///     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
///         visitor.parameter("factor", &self.factor);
///     }
/// }
///
/// let scale = Scale { factor: Parameter::new(Tensor::new(3.0f32)?)? };
/// let y = scale.forward(&Tensor::new(2.0f32)?)?;
/// y.backward()?;
/// assert_eq!(y.item::<f32>()?, 6.0);
/// assert_eq!(scale.parameters()[0].grad().unwrap().item::<f32>()?, 2.0);
/// # Ok(()) }
/// ```
#[doc(alias = "ModuleT")]
pub trait Module: Send + Sync {
    /// Computes the output of the module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Relu}};
    /// assert_eq!(Relu.forward(&Tensor::new([-1.0f32, 2.0])?)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input of an unsupported shape; errors of the backend.
    #[doc(alias = "apply")]
    fn forward(&self, input: &Tensor) -> Result<Tensor>;

    /// Registers the parts: parameters, buffers, submodules, the mode and generators. The default registers none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, ModuleVisitor, Module};
    /// let layer = Linear::new(3, 2)?;
    /// layer.visit(&mut ModuleVisitor::default());
    /// assert_eq!(layer.named_parameters().len(), 2);
    /// # Ok(()) }
    /// ```
    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        let _ = visitor;
    }

    /// The name of the type, such as `Conv2d`, for messages.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// assert_eq!(Linear::new(3, 2)?.type_name(), "Linear");
    /// # Ok(()) }
    /// ```
    fn type_name(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let name = name.split_once('<').map_or(name, |(name, _)| name);
        name.rsplit_once("::").map_or(name, |(_, last)| last)
    }

    /// The parameters with their names; a tensor shared by two modules occurs once.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{nn::{Linear, Module}};
    /// let layer = Linear::new(3, 2)?;
    /// let names: Vec<String> = layer.named_parameters().into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["weight", "bias"]);
    /// # Ok(()) }
    /// ```
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut found: Vec<(String, Tensor)> = Vec::new();
        for (name, cell) in visited(self).parameters {
            let tensor = cell.get();
            if !found.iter().any(|(_, earlier)| earlier.ptr_eq(&tensor)) {
                found.push((name, tensor));
            }
        }
        found
    }

    /// The parameter of this name: the tensor that optimizers update and gradients accumulate in.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// let layer = Linear::new(3, 2)?;
    /// assert!(layer.get_parameter("weight")?.requires_grad());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A name without a parameter.
    fn get_parameter(&self, name: &str) -> Result<Tensor> {
        let all = visited(self).parameters;
        match all.iter().find(|(own, _)| own == name) {
            Some((_, cell)) => Ok(cell.get()),
            None => Err(ModuleError::Name {
                owner: self.type_name(),
                expected: all.into_iter().map(|(own, _)| own).collect(),
                got: name.to_string(),
            }
            .into()),
        }
    }

    /// The buffers with their names.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{BatchNorm1d, Module};
    /// let names: Vec<String> = BatchNorm1d::new(3)?.named_buffers().into_iter().map(|(name, _)| name).collect();
    /// assert!(names.contains(&"running_mean".to_string()) && names.len() == 3);
    /// # Ok(()) }
    /// ```
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        visited(self).buffers.into_iter().map(|(name, cell)| (name, cell.get())).collect()
    }

    /// The parameters, as an optimizer takes them.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// let shapes: Vec<_> = Linear::new(3, 2)?.parameters().iter().map(|p| p.shape().to_vec()).collect();
    /// assert_eq!(shapes, [vec![2, 3], vec![2]]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "all_vars")]
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The total number of elements of the parameters.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// assert_eq!(Linear::new(3, 2)?.num_parameters(), 8);
    /// # Ok(()) }
    /// ```
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(Tensor::elem_count).sum()
    }

    /// Switches the module and its submodules to training mode, the initial mode.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Dropout, Module}};
    /// let dropout = Dropout::new(1.0)?;
    /// dropout.eval();
    /// dropout.train();
    /// assert_eq!(dropout.forward(&Tensor::ones(2)?)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    fn train(&self) {
        visited(self).modes.into_iter().for_each(|mode| mode.set_training(true));
    }

    /// Switches the module and its submodules to evaluation mode: dropout is the identity.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Dropout, Module}};
    /// let dropout = Dropout::new(0.5)?;
    /// dropout.eval();
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    fn eval(&self) {
        visited(self).modes.into_iter().for_each(|mode| mode.set_training(false));
    }

    /// The parameters and buffers by name, detached: they share the module's memory, so training changes them, but accumulate
    /// no gradients. [`Module::get_parameter`] returns the tensor that does.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{nn::{Linear, Module}};
    /// let layer = Linear::new(3, 2)?;
    /// assert_eq!(layer.state_dict()["weight"].shape(), [2, 3]);
    /// # Ok(()) }
    /// ```
    fn state_dict(&self) -> StateDict {
        visited(self).tensors().map(|(name, cell)| (name.clone(), cell.get().detach())).collect()
    }

    /// Copies a state dict into the parameters and buffers, cast and moved as needed.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{nn::{Linear, Module}};
    /// let (a, b) = (Linear::new(3, 2)?, Linear::new(3, 2)?);
    /// b.load_state_dict(&a.state_dict())?;
    /// let wrong = Linear::new(4, 2)?;
    /// let error = b.load_state_dict(&wrong.state_dict()).unwrap_err();
    /// assert!(error.to_string().contains("weight (expected [2, 3], got [2, 4])"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Missing or unexpected names and other shapes, all of them in one error; nothing is overwritten then.
    #[doc(alias = "VarBuilder")]
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        fill(&expected(self, "load_state_dict"), state, true).map(|_| ())
    }

    /// Loads as [`Module::load_state_dict`] the names that match; the report lists those that were omitted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{nn::{Linear, Module}};
    /// let layer = Linear::new(3, 2)?;
    /// let mut state = layer.state_dict();
    /// state.remove("bias");
    /// assert_eq!(layer.load_matching(&state)?.missing, ["bias"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Other shapes; nothing is overwritten then.
    #[doc(alias = "load_state_dict")]
    fn load_matching(&self, state: &StateDict) -> Result<LoadReport> {
        fill(&expected(self, "load_matching"), state, false)
    }

    /// The generators with their names, such as that of a dropout module. They are shared with the module, not copied.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{nn::{Dropout, Module}, rng::Generator};
    /// let dropout = Dropout::new(0.5)?.generator(Generator::new(7));
    /// let (name, generator) = dropout.named_generators().remove(0);
    /// assert_eq!((name.as_str(), generator.state().seed), ("generator", 7));
    /// # Ok(()) }
    /// ```
    fn named_generators(&self) -> Vec<(String, Generator)> {
        visited(self).generators.into_iter().map(|(name, own)| (name, own.clone())).collect()
    }

    /// The states of the generators by name, as [`GeneratorState::to_tensor`] encodes them. With the state dicts of the module
    /// and the optimizer, this resumes training bit for bit.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Dropout, Module}, rng::Generator};
    /// let dropout = Dropout::new(0.5)?.generator(Generator::new(7));
    /// let x = Tensor::from_vec(vec![1.0f32; 100], 100)?;
    /// let state = dropout.generator_state_dict()?;
    /// let first = dropout.forward(&x)?.to_vec::<f32>()?;
    /// assert_ne!(dropout.forward(&x)?.to_vec::<f32>()?, first);
    /// dropout.load_generator_state_dict(&state)?;
    /// assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, first);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory.
    fn generator_state_dict(&self) -> Result<StateDict> {
        let state = |(name, own): (String, &Generator)| Ok((name, own.state().to_tensor()?));
        visited(self).generators.into_iter().map(state).collect()
    }

    /// Restores every generator from the states of [`Module::generator_state_dict`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{nn::{Dropout, Module}, rng::Generator};
    /// let dropout = Dropout::new(0.5)?.generator(Generator::new(7));
    /// let other = Dropout::new(0.5)?.generator(Generator::new(8));
    /// other.load_generator_state_dict(&dropout.generator_state_dict()?)?;
    /// assert_eq!(other.named_generators()[0].1.state().seed, 7);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Missing or unexpected names, and tensors that encode no state; nothing is changed then.
    fn load_generator_state_dict(&self, state: &StateDict) -> Result<()> {
        let generators = visited(self).generators;
        let names: Vec<&String> = generators.iter().map(|(name, _)| name).collect();
        let states: Vec<GeneratorState> = generator_states("load_generator_state_dict", &names, state)?;
        generators.iter().zip(states).for_each(|((_, own), state)| own.set_state(state));
        Ok(())
    }

    /// Casts the floating-point parameters and buffers. The parameters are new tensors afterwards: create the optimizer after
    /// this call.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, nn::{Linear, Module}};
    /// let layer = Linear::new(3, 2)?;
    /// layer.to_dtype(DType::F64)?;
    /// assert_eq!(layer.parameters()[0].dtype(), DType::F64);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype without a cast kernel, or that cannot require gradients; nothing is changed then.
    #[doc(alias = "half")]
    fn to_dtype(&self, dtype: DType) -> Result<()> {
        convert(
            self,
            |tensor| if tensor.dtype().is_float() { tensor.to_dtype(dtype) } else { Ok(tensor.clone()) },
        )
    }

    /// Moves the parameters and buffers. The parameters are new tensors afterwards: create the optimizer after this call.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, nn::{Linear, Module}};
    /// let layer = Linear::new(3, 2)?;
    /// layer.to_device(Device::CPU)?;
    /// assert_eq!(layer.parameters()[0].device(), Device::CPU);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An unavailable device, out of memory; nothing is changed then.
    fn to_device(&self, device: Device) -> Result<()> {
        convert(self, |tensor| tensor.to_device(device))
    }

    /// Converts the parameters and buffers of 3 to 5 dimensions, the weights of convolutions, to a memory format: a convolution
    /// with a channels_last input or weight returns a channels_last result. The parameters are new tensors afterwards: create
    /// the optimizer after this call.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{MemoryFormat, nn::{Conv2d, Module}};
    /// let layer = Conv2d::new(3, 8, 3)?;
    /// layer.to_memory_format(MemoryFormat::ChannelsLast)?;
    /// assert!(layer.parameters()[0].is_contiguous_in(MemoryFormat::ChannelsLast));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend; nothing is changed then.
    fn to_memory_format(&self, format: MemoryFormat) -> Result<()> {
        convert(self, |tensor| match tensor.rank() {
            3..=5 => tensor.to(format),
            _ => Ok(tensor.clone()),
        })
    }

    /// Casts, moves and converts the parameters and buffers according to the options: a dtype as in [`Module::to_dtype`], a
    /// device as in [`Module::to_device`], a memory format as in [`Module::to_memory_format`]. The parameters are new
    /// tensors afterwards: create the optimizer after this call.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, nn::{Linear, Module}};
    /// let layer = Linear::new(3, 2)?;
    /// layer.to((DType::F64, "cpu"))?;
    /// assert_eq!(layer.weight().dtype(), DType::F64);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of the three methods; a text that is not a device.
    fn to(&self, options: impl IntoOptions) -> Result<()>
    where
        Self: Sized,
    {
        let TensorOptions { dtype, device, format } = options.into_options()?;
        convert(self, |tensor| {
            let format = format.filter(|_| (3..=5).contains(&tensor.rank()));
            tensor.to(TensorOptions { dtype: dtype.filter(|_| tensor.dtype().is_float()), device, format })
        })
    }

    /// Sets `requires_grad` of every parameter; `false` freezes the module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// let layer = Linear::new(3, 2)?;
    /// layer.requires_grad_(false)?;
    /// assert!(!layer.weight().requires_grad());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::requires_grad_`].
    fn requires_grad_(&self, on: bool) -> Result<()> {
        self.parameters().iter().try_for_each(|parameter| parameter.requires_grad_(on).map(|_| ()))
    }

    /// Saves the parameters and buffers in a safetensors file, which [`Module::load`] reads. An existing file is replaced as a
    /// whole, and is unchanged if the save fails.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("layer.safetensors");
    /// let (layer, other) = (Linear::new(3, 2)?, Linear::new(3, 2)?);
    /// layer.save(&path)?;
    /// other.load(&path)?;
    /// assert_eq!(layer.weight().to_vec::<f32>()?, other.weight().to_vec::<f32>()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`safetensors::save`]; a module without parameters and buffers, such as one that does not register its parts in
    /// [`Module::visit`].
    fn save<P: AsRef<Path>>(&self, path: P) -> Result<()>
    where
        Self: Sized,
    {
        let state = self.state_dict();
        if state.is_empty() {
            return Err(ModuleError::Option {
                owner: "Module::save",
                option: "self",
                expected: "a module with parameters or buffers; `Module::visit` names those of a module of your own",
                got: "none".to_string(),
            }
            .into());
        }
        safetensors::save(path, &state)
    }

    /// Loads the parameters and buffers from a safetensors file; see [`Module::save`] and [`Module::load_state_dict`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("layer.safetensors");
    /// Linear::new(3, 2)?.save(&path)?;
    /// assert!(Linear::new(4, 2)?.load(&path).is_err(), "of another shape");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`safetensors::load`] and [`Module::load_state_dict`].
    fn load<P: AsRef<Path>>(&self, path: P) -> Result<()>
    where
        Self: Sized,
    {
        self.load_state_dict(&safetensors::load(path)?)
    }

    /// Casts to f32, as in PyTorch.
    ///
    /// # Errors
    /// Those of [`Module::to_dtype`].
    #[doc(hidden)]
    #[deprecated(note = "write `to_dtype(DType::F32)`")]
    fn float(&self) -> Result<()> {
        self.to_dtype(DType::F32)
    }

    /// Casts to f64, as in PyTorch.
    ///
    /// # Errors
    /// Those of [`Module::to_dtype`].
    #[doc(hidden)]
    #[deprecated(note = "write `to_dtype(DType::F64)`")]
    fn double(&self) -> Result<()> {
        self.to_dtype(DType::F64)
    }

    /// Casts to f16, as in PyTorch.
    ///
    /// # Errors
    /// Those of [`Module::to_dtype`].
    #[doc(hidden)]
    #[deprecated(note = "write `to_dtype(DType::F16)`")]
    fn half(&self) -> Result<()> {
        self.to_dtype(DType::F16)
    }

    /// Clears the gradients of all parameters.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Linear, Module}};
    /// let layer = Linear::new(3, 1)?;
    /// layer.forward(&Tensor::ones(3)?)?.sum_all()?.backward()?;
    /// layer.zero_grad();
    /// assert!(layer.parameters().iter().all(|parameter| parameter.grad().is_none()));
    /// # Ok(()) }
    /// ```
    fn zero_grad(&self) {
        self.parameters().iter().for_each(|parameter| parameter.zero_grad());
    }
}

pub(super) fn visited<M: Module + ?Sized>(module: &M) -> ModuleVisitor<'_> {
    let mut visitor = ModuleVisitor::default();
    module.visit(&mut visitor);
    visitor
}

fn expected<M: Module + ?Sized>(module: &M, owner: &'static str) -> Expected {
    let targets = visited(module).tensors().map(|(name, cell)| (name.clone(), cell.get())).collect();
    Expected { owner, targets }
}

/// Replaces every tensor. A tensor that two parameters or buffers share stays shared.
fn convert<M: Module + ?Sized>(module: &M, change: impl Fn(&Tensor) -> Result<Tensor>) -> Result<()> {
    convert_named(module, |_, tensor| change(tensor))
}

/// [`convert`] with names; a tensor that two of them share has the first name.
pub(crate) fn convert_named<M: Module + ?Sized>(
    module: &M,
    change: impl Fn(&str, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let visitor = visited(module);
    let mut made: Vec<(&TensorCell, Tensor, Tensor)> = Vec::new();
    for (name, cell) in visitor.tensors() {
        let old = cell.get();
        let fresh = match made.iter().find(|(_, earlier, _)| earlier.ptr_eq(&old)) {
            Some((_, _, fresh)) => fresh.clone(),
            None => {
                let _off = no_grad();
                let fresh = change(name, &old)?;
                if fresh.ptr_eq(&old) { fresh } else { fresh.requires_grad_(old.requires_grad())? }
            }
        };
        made.push((cell, old, fresh));
    }
    for (cell, _, fresh) in made {
        cell.set(fresh);
    }
    Ok(())
}
