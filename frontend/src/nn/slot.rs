//! The state of a module: replaceable tensors, and the mode.

use crate::{Result, Tensor};
use std::fmt;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cell for one tensor of a module. The tensor can be replaced through a shared reference, as
/// [`Module::to_dtype`](super::Module::to_dtype) does.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::Slot};
/// let weight = Slot::parameter(Tensor::new([1.0f32])?)?;
/// assert!(weight.get().requires_grad());
/// # Ok(()) }
/// ```
pub struct Slot(RwLock<Tensor>);

impl Slot {
    /// A slot of a learned tensor, which is set to require gradients.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Slot};
    /// assert!(Slot::parameter(Tensor::new([1.0f32])?)?.get().requires_grad());
    /// assert!(Slot::parameter(Tensor::new([1i64])?).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that cannot require gradients.
    #[doc(alias = "Parameter")]
    #[doc(alias = "get_with_hints")]
    pub fn parameter(tensor: Tensor) -> Result<Slot> {
        Ok(Slot(RwLock::new(tensor.requires_grad_(true)?)))
    }

    /// A slot of a tensor that is part of the state dict but not learned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Slot};
    /// let running_mean = Slot::buffer(Tensor::new([0.0f32])?);
    /// assert!(!running_mean.get().requires_grad());
    /// # Ok(()) }
    /// ```
    #[doc(alias = "Buffer")]
    pub fn buffer(tensor: Tensor) -> Slot {
        Slot(RwLock::new(tensor))
    }

    /// The tensor; the returned handle shares its memory and gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Slot};
    /// let slot = Slot::buffer(Tensor::new([1.0f32])?);
    /// slot.get().add_(1.0)?;
    /// assert_eq!(slot.get().to_vec::<f32>()?, [2.0]);
    /// # Ok(()) }
    /// ```
    pub fn get(&self) -> Tensor {
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Replaces the tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Slot};
    /// let slot = Slot::buffer(Tensor::new([0.0f32])?);
    /// slot.set(Tensor::new([1.0f32])?);
    /// assert_eq!(slot.get().to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    pub fn set(&self, tensor: Tensor) {
        *self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = tensor;
    }
}

/// Prints dtype and shape, not values, so that a network prints as its structure.
impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensor = self.get();
        write!(f, "{} {:?}", tensor.dtype(), tensor.shape())
    }
}

/// Whether a module is in training or evaluation mode.
///
/// ```
/// let mode = keyway::nn::Mode::default();
/// assert!(mode.is_training());
/// mode.set_training(false);
/// assert!(!mode.is_training());
/// ```
#[derive(Debug)]
pub struct Mode(AtomicBool);

impl Default for Mode {
    fn default() -> Mode {
        Mode(AtomicBool::new(true))
    }
}

impl Mode {
    /// Whether the module is in training mode, the initial mode.
    ///
    /// ```
    /// use keyway::nn::Mode;
    /// assert!(Mode::default().is_training());
    /// ```
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches the mode.
    ///
    /// ```
    /// use keyway::nn::Mode;
    /// let mode = Mode::default();
    /// mode.set_training(false);
    /// assert!(!mode.is_training());
    /// ```
    pub fn set_training(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}
