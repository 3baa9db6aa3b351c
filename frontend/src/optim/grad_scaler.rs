//! Losses scaled so that the gradients of f16 do not become 0.

use super::Optimizer;
use super::clip::held;
use super::group::refuse;
use crate::autograd::no_grad;
use crate::{DType, Result, Tensor};
use std::ops::RangeInclusive;

/// Options of a [`GradScaler`]; the defaults are PyTorch's.
///
/// ```
/// use keyway::optim::GradScalerOptions;
/// let options = GradScalerOptions { init_scale: 1024.0, ..GradScalerOptions::default() };
/// assert_eq!((options.init_scale, options.growth_interval), (1024.0, 2000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradScalerOptions {
    /// Initial loss scale.
    pub init_scale: f64,
    /// Factor of the scale after `growth_interval` steps without an infinity or NaN.
    pub growth_factor: f64,
    /// Factor of the scale after a gradient with an infinity or NaN.
    pub backoff_factor: f64,
    /// Steps in a row without an infinity or NaN after which the scale grows.
    pub growth_interval: u64,
}

impl Default for GradScalerOptions {
    fn default() -> GradScalerOptions {
        GradScalerOptions {
            init_scale: 65536.0,
            growth_factor: 2.0,
            backoff_factor: 0.5,
            growth_interval: 2000,
        }
    }
}

/// Valid scales of losses in f32.
const SCALES: RangeInclusive<f64> = f32::MIN_POSITIVE as f64..=f32::MAX as f64;
const SCALE: &str = "from 2^-126, the smallest normal f32, to the largest f32";

/// State of a [`GradScaler`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::{GradScaler, GradScalerOptions, GradScalerState};
/// let scaler = GradScaler::new(GradScalerOptions::default())?;
/// assert_eq!(scaler.state(), GradScalerState { scale: 65536.0, growth_tracker: 0 });
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradScalerState {
    /// The loss scale.
    pub scale: f64,
    /// Steps since the scale changed.
    pub growth_tracker: u64,
}

/// Trains in f16 with [`autocast`](crate::autocast()): multiplies the loss, so that small gradients are not 0 in f16,
/// divides the gradients by the same number before the step, and skips a step whose gradients are not finite (P.
/// Micikevicius and others, "Mixed precision training", 2018).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::autocast;
/// use keyway::optim::{GradScaler, GradScalerOptions, Optimizer, Sgd, SgdOptions};
/// use keyway::prelude::*;
/// let w = Tensor::ones((3, 1))?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.1, ..SgdOptions::default() })?;
/// let mut scaler = GradScaler::new(GradScalerOptions { init_scale: 1024.0, ..GradScalerOptions::default() })?;
/// for _ in 0..3 {
///     optimizer.zero_grad();
///     let loss = {
///         let _guard = autocast(DType::F16)?;
///         Tensor::ones((4, 3))?.mm(&w)?.mse_loss(&Tensor::zeros((4, 1))?)?
///     };
///     scaler.scale(&loss)?.backward()?;
///     assert!(scaler.step(&mut optimizer)?);
///     scaler.update();
/// }
/// assert!(w.to_vec::<f32>()?[0] < 0.5);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct GradScaler {
    options: GradScalerOptions,
    state: GradScalerState,
    /// The optimisers whose gradients were divided since the last update, each by its parameters.
    unscaled: Vec<Unscaled>,
}

#[derive(Debug)]
struct Unscaled {
    parameters: Vec<Tensor>,
    finite: bool,
    stepped: bool,
}

const OWNER: &str = "GradScaler";

impl GradScaler {
    /// A scaler that has not seen a step.
    ///
    /// ```
    /// use keyway::optim::{GradScaler, GradScalerOptions};
    /// assert!(GradScaler::new(GradScalerOptions::default()).is_ok());
    /// assert!(GradScaler::new(GradScalerOptions { growth_factor: 0.5, ..GradScalerOptions::default() }).is_err());
    /// ```
    ///
    /// # Errors
    /// An `init_scale` that is no normal f32 above 0, a `growth_factor` that is not above 1, a `backoff_factor` that is not
    /// between 0 and 1, a `growth_interval` of 0.
    pub fn new(options: GradScalerOptions) -> Result<GradScaler> {
        let GradScalerOptions { init_scale, growth_factor, backoff_factor, growth_interval } = options;
        if !SCALES.contains(&init_scale) {
            return Err(refuse(OWNER, "init_scale", SCALE, init_scale).into());
        }
        if !(growth_factor.is_finite() && growth_factor > 1.0) {
            return Err(refuse(OWNER, "growth_factor", "finite and above 1", growth_factor).into());
        }
        if !(backoff_factor > 0.0 && backoff_factor < 1.0) {
            return Err(refuse(OWNER, "backoff_factor", "above 0 and below 1", backoff_factor).into());
        }
        if growth_interval == 0 {
            return Err(refuse(OWNER, "growth_interval", "at least 1", growth_interval).into());
        }
        Ok(GradScaler::of(options))
    }

    /// A scaler of options that are in range.
    pub(super) fn of(options: GradScalerOptions) -> GradScaler {
        let state = GradScalerState { scale: options.init_scale, growth_tracker: 0 };
        GradScaler { options, state, unscaled: Vec::new() }
    }

    /// The loss times the scale.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, optim::{GradScaler, GradScalerOptions}};
    /// let scaler = GradScaler::new(GradScalerOptions { init_scale: 8.0, ..GradScalerOptions::default() })?;
    /// assert_eq!(scaler.scale(&Tensor::new(0.5f32)?)?.item::<f32>()?, 4.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        // The scale leaves the range of f16.
        let wide = if [DType::F16, DType::BF16].contains(&loss.dtype()) {
            loss.to_dtype(DType::F32)?
        } else {
            loss.clone()
        };
        wide.mul(self.state.scale)
    }

    /// Divides the gradients of an optimiser's parameters by the scale: for operations between `backward` and `step`, such as
    /// [`clip_grad_norm_`](super::clip_grad_norm_). Returns whether all of them are finite.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{GradScaler, GradScalerOptions, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w.clone()], SgdOptions::default())?;
    /// let mut scaler = GradScaler::new(GradScalerOptions { init_scale: 8.0, ..GradScalerOptions::default() })?;
    /// scaler.scale(&w.mul(3.0)?)?.backward()?;
    /// assert_eq!(w.grad().unwrap().item::<f32>()?, 24.0);
    /// assert!(scaler.unscale_(&optimizer)?);
    /// assert_eq!(w.grad().unwrap().item::<f32>()?, 3.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No gradient at all; gradients that were divided since the last [`GradScaler::update`]; gradients in f16, which may
    /// underflow when divided.
    pub fn unscale_(&mut self, optimizer: &dyn Optimizer) -> Result<bool> {
        let parameters = optimizer.parameters();
        if self.found(&parameters).is_some() {
            let expected =
                "called once for each optimiser between two calls of `update`, and not after its `step`";
            return Err(refuse(OWNER, "unscale_", expected, "another call").into());
        }
        let _off = no_grad();
        let grads: Vec<Tensor> = parameters.iter().filter_map(Tensor::grad).collect();
        if grads.is_empty() {
            let expected = "there: call `backward` on the result of `scale` first";
            return Err(refuse(OWNER, "the gradients of the optimiser", expected, "none").into());
        }
        if grads.iter().any(|grad| grad.dtype() == DType::F16) {
            let expected =
                "f32, f64 or bf16: keep the parameters in f32 and let `autocast` make the f16 of them";
            return Err(refuse(OWNER, "the gradients' dtype", expected, DType::F16).into());
        }
        let mut largest: Vec<Tensor> = Vec::new();
        for grad in &grads {
            for part in held(grad)? {
                part.mul_(self.state.scale.recip())?;
                if part.elem_count() > 0 {
                    // The largest size is NaN where one element is.
                    largest.push(part.norm_with(f64::INFINITY, .., false)?.to_dtype(DType::F64)?);
                }
            }
        }
        let mut finite = true;
        // One wait for each device.
        while let Some(device) = largest.last().map(Tensor::device) {
            let here: Vec<Tensor> = largest.extract_if(.., |t| t.device() == device).collect();
            let sizes = Tensor::stack(&here, 0)?.to_vec::<f64>()?;
            finite &= sizes.iter().all(|size| size.is_finite());
        }
        self.unscaled.push(Unscaled { parameters, finite, stepped: false });
        Ok(finite)
    }

    /// Makes the optimizer's step if all gradients are finite; returns whether it did. Divides the gradients by the scale
    /// first if [`GradScaler::unscale_`] has not.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{GradScaler, GradScalerOptions, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w.clone()], SgdOptions::default())?;
    /// let mut scaler = GradScaler::new(GradScalerOptions { init_scale: 8.0, ..GradScalerOptions::default() })?;
    /// scaler.scale(&w.mul(f32::INFINITY)?)?.backward()?;
    /// assert!(!scaler.step(&mut optimizer)?);
    /// assert_eq!(w.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A second step of the optimiser since the last [`GradScaler::update`]; as [`GradScaler::unscale_`]; the optimiser's own.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<bool> {
        let parameters = optimizer.parameters();
        if self.found(&parameters).is_none() {
            self.unscale_(optimizer)?;
        }
        // The entry that was just added, if there was none before.
        let Some(unscaled) = self.found(&parameters) else { return Ok(false) };
        if unscaled.stepped {
            let expected = "called once for each optimiser between two calls of `update`";
            return Err(refuse(OWNER, "step", expected, "another call").into());
        }
        unscaled.stepped = true;
        let finite = unscaled.finite;
        if finite {
            optimizer.step()?;
        }
        Ok(finite)
    }

    /// Updates the scale: decreases it after a gradient that was not finite, and increases it after `growth_interval` steps
    /// without one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{GradScaler, GradScalerOptions, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w.clone()], SgdOptions::default())?;
    /// let mut scaler = GradScaler::new(GradScalerOptions { init_scale: 8.0, ..GradScalerOptions::default() })?;
    /// scaler.scale(&w.mul(f32::INFINITY)?)?.backward()?;
    /// scaler.step(&mut optimizer)?;
    /// scaler.update();
    /// assert_eq!(scaler.state().scale, 4.0);
    /// # Ok(()) }
    /// ```
    pub fn update(&mut self) {
        let unscaled = std::mem::take(&mut self.unscaled);
        if unscaled.is_empty() {
            return;
        }
        let GradScalerState { scale, growth_tracker } = self.state;
        let GradScalerOptions { growth_factor, backoff_factor, growth_interval, .. } = self.options;
        let next = |scale: f64, growth_tracker| GradScalerState { scale, growth_tracker };
        self.state = if unscaled.iter().any(|u| !u.finite) {
            next((scale * backoff_factor).max(*SCALES.start()), 0)
        } else if growth_tracker + 1 < growth_interval {
            next(scale, growth_tracker + 1)
        } else {
            // Capped at the largest f32.
            next(if scale * growth_factor <= f64::from(f32::MAX) { scale * growth_factor } else { scale }, 0)
        };
    }

    /// The loss scale and the number of steps since it changed, to be saved.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{GradScaler, GradScalerOptions};
    /// let scaler = GradScaler::new(GradScalerOptions { init_scale: 8.0, ..GradScalerOptions::default() })?;
    /// assert_eq!((scaler.state().scale, scaler.state().growth_tracker), (8.0, 0));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "get_scale")]
    pub fn state(&self) -> GradScalerState {
        self.state
    }

    /// Restores the state that [`GradScaler::state`] returned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{GradScaler, GradScalerOptions, GradScalerState};
    /// let mut scaler = GradScaler::new(GradScalerOptions::default())?;
    /// scaler.set_state(GradScalerState { scale: 8.0, growth_tracker: 3 })?;
    /// assert_eq!(scaler.state().scale, 8.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A scale that is not a positive normal f32.
    pub fn set_state(&mut self, state: GradScalerState) -> Result<()> {
        if !SCALES.contains(&state.scale) {
            return Err(refuse(OWNER, "scale", SCALE, state.scale).into());
        }
        self.state = state;
        Ok(())
    }

    /// The optimiser of these parameters, if its gradients were divided.
    fn found(&mut self, parameters: &[Tensor]) -> Option<&mut Unscaled> {
        let same = |u: &&mut Unscaled| {
            u.parameters.len() == parameters.len()
                && std::iter::zip(&u.parameters, parameters).all(|(a, b)| a.ptr_eq(b))
        };
        self.unscaled.iter_mut().find(same)
    }
}
