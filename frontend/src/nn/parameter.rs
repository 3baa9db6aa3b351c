//! The state of a module: parameters, buffers and the training mode.

use crate::{Result, Tensor};
use std::fmt;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A tensor that can be replaced through a shared reference, as [`Module::to_dtype`](super::Module::to_dtype) does.
pub(crate) struct TensorCell(RwLock<Tensor>);

impl TensorCell {
    pub(crate) fn get(&self) -> Tensor {
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub(crate) fn set(&self, tensor: Tensor) {
        *self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = tensor;
    }
}

/// Prints dtype and shape, not values, so that a network prints as its structure.
impl fmt::Debug for TensorCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensor = self.get();
        write!(f, "{} {:?}", tensor.dtype(), tensor.shape())
    }
}

/// A learned tensor of a module, which requires gradients. It can be replaced through a shared reference, as
/// [`Module::to_dtype`](super::Module::to_dtype) does.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::Parameter};
/// let weight = Parameter::new(Tensor::new([1.0f32])?)?;
/// assert!(weight.get().requires_grad());
/// # Ok(()) }
/// ```
pub struct Parameter(TensorCell);

impl Parameter {
    /// A parameter of this tensor, which is set to require gradients.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Parameter};
    /// assert!(Parameter::new(Tensor::new([1.0f32])?)?.get().requires_grad());
    /// assert!(Parameter::new(Tensor::new([1i64])?).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that cannot require gradients.
    #[doc(alias = "get_with_hints")]
    pub fn new(tensor: Tensor) -> Result<Parameter> {
        Ok(Parameter(TensorCell(RwLock::new(tensor.requires_grad_(true)?))))
    }

    /// The current tensor; the returned handle shares its memory and gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Parameter};
    /// let weight = Parameter::new(Tensor::new([1.0f32])?)?;
    /// weight.get().detach().add_(1.0)?;
    /// assert_eq!(weight.get().to_vec::<f32>()?, [2.0]);
    /// # Ok(()) }
    /// ```
    pub fn get(&self) -> Tensor {
        self.0.get()
    }

    /// Replaces the tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Parameter};
    /// let weight = Parameter::new(Tensor::new([0.0f32])?)?;
    /// weight.set(Tensor::new([1.0f32])?);
    /// assert_eq!(weight.get().to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    pub fn set(&self, tensor: Tensor) {
        self.0.set(tensor);
    }

    pub(super) fn cell(&self) -> &TensorCell {
        &self.0
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A tensor of a module that is part of the state dict but not learned. It can be replaced through a shared reference, as
/// [`Module::to_dtype`](super::Module::to_dtype) does.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::Buffer};
/// let running_mean = Buffer::new(Tensor::new([0.0f32])?);
/// assert!(!running_mean.get().requires_grad());
/// # Ok(()) }
/// ```
pub struct Buffer(TensorCell);

impl Buffer {
    /// A buffer of this tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Buffer};
    /// assert_eq!(Buffer::new(Tensor::new(0i64)?).get().item::<i64>()?, 0);
    /// # Ok(()) }
    /// ```
    pub fn new(tensor: Tensor) -> Buffer {
        Buffer(TensorCell(RwLock::new(tensor)))
    }

    /// The current tensor; the returned handle shares its memory and gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Buffer};
    /// let running_mean = Buffer::new(Tensor::new([1.0f32])?);
    /// running_mean.get().add_(1.0)?;
    /// assert_eq!(running_mean.get().to_vec::<f32>()?, [2.0]);
    /// # Ok(()) }
    /// ```
    pub fn get(&self) -> Tensor {
        self.0.get()
    }

    /// Replaces the tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Buffer};
    /// let running_mean = Buffer::new(Tensor::new([0.0f32])?);
    /// running_mean.set(Tensor::new([1.0f32])?);
    /// assert_eq!(running_mean.get().to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    pub fn set(&self, tensor: Tensor) {
        self.0.set(tensor);
    }

    pub(super) fn cell(&self) -> &TensorCell {
        &self.0
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a module is in training or evaluation mode.
///
/// ```
/// let mode = keyway::nn::TrainingMode::default();
/// assert!(mode.is_training());
/// mode.set_training(false);
/// assert!(!mode.is_training());
/// ```
#[derive(Debug)]
pub struct TrainingMode(AtomicBool);

impl Default for TrainingMode {
    fn default() -> TrainingMode {
        TrainingMode(AtomicBool::new(true))
    }
}

impl TrainingMode {
    /// Whether the module is in training mode, the initial mode.
    ///
    /// ```
    /// use keyway::nn::TrainingMode;
    /// assert!(TrainingMode::default().is_training());
    /// ```
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches the mode.
    ///
    /// ```
    /// use keyway::nn::TrainingMode;
    /// let mode = TrainingMode::default();
    /// mode.set_training(false);
    /// assert!(!mode.is_training());
    /// ```
    pub fn set_training(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}
