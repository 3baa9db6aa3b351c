//! Schedules of learning rates, and the scaling of losses.

use crate::autograd::tensors;
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::optimizer::Foreign;
use keyway::optim::lr_scheduler::{
    Anneal, CosineAnnealingLr, CosineAnnealingWarmRestarts, ExponentialLr, LinearLr, LrScheduler,
    MultiStepLr, OneCycleLr, OneCycleLrOptions, PlateauMode, PlateauState, PolynomialLr, ReduceLrOnPlateau,
    ReduceLrOnPlateauOptions, StepLr, Threshold,
};
use keyway::optim::{GradScaler, GradScalerOptions, GradScalerState, Optimizer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};

/// A schedule: the rates of an epoch, from the rates that it begins from.
#[pyclass(name = "_Schedule", module = "keyway._keyway", frozen)]
pub struct PySchedule(Mutex<Box<dyn LrScheduler + Send>>);

fn of_kind(
    kind: &str,
    rates: Vec<f64>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Box<dyn LrScheduler + Send>> {
    let mut own = Foreign::of_rates(rates, None);
    let count = |name: &str| -> PyResult<u64> { int(options, name) };
    let number = |name: &str| -> PyResult<f64> { float(options, name) };
    Ok(match kind {
        "StepLR" => Box::new(StepLr::new(&own, count("step_size")?, number("gamma")?).or_raise()?),
        "MultiStepLR" => {
            let milestones: Vec<u64> = item(options, "milestones")?.extract()?;
            Box::new(MultiStepLr::new(&own, &milestones, number("gamma")?).or_raise()?)
        }
        "ExponentialLR" => Box::new(ExponentialLr::new(&own, number("gamma")?).or_raise()?),
        "LinearLR" => {
            let (start, end) = (number("start_factor")?, number("end_factor")?);
            Box::new(LinearLr::new(&mut own, start, end, count("total_iters")?).or_raise()?)
        }
        "PolynomialLR" => {
            Box::new(PolynomialLr::new(&own, count("total_iters")?, number("power")?).or_raise()?)
        }
        "CosineAnnealingLR" => {
            Box::new(CosineAnnealingLr::new_with(&own, count("T_max")?, number("eta_min")?).or_raise()?)
        }
        "CosineAnnealingWarmRestarts" => {
            let (t_0, t_mult, eta_min) = (count("T_0")?, count("T_mult")?, number("eta_min")?);
            Box::new(CosineAnnealingWarmRestarts::new_with(&own, t_0, t_mult, eta_min).or_raise()?)
        }
        "OneCycleLR" => {
            let anneal = match item(options, "anneal_strategy")?.extract::<String>()?.as_str() {
                "cos" => Anneal::Cos,
                "linear" => Anneal::Linear,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "OneCycleLR: expected `anneal_strategy` to be cos or linear, got {other}"
                    )));
                }
            };
            let line = OneCycleLrOptions {
                pct_start: number("pct_start")?,
                anneal,
                div_factor: number("div_factor")?,
                final_div_factor: number("final_div_factor")?,
                three_phase: item(options, "three_phase")?.extract()?,
            };
            let (max_lr, steps) = (number("max_lr")?, count("total_steps")?);
            Box::new(OneCycleLr::new(&mut own, max_lr, steps, line).or_raise()?)
        }
        _ => return Err(PyValueError::new_err(format!("there is no schedule `{kind}`"))),
    })
}

fn item<'py>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    options.get_item(name)?.ok_or_else(|| PyTypeError::new_err(format!("missing option `{name}`")))
}

fn int(options: &Bound<'_, PyDict>, name: &str) -> PyResult<u64> {
    let found = item(options, name)?;
    let wrong = || PyValueError::new_err(format!("expected `{name}` to be an int of 0 or more, got {found}"));
    found.extract().map_err(|_| wrong())
}

fn float(options: &Bound<'_, PyDict>, name: &str) -> PyResult<f64> {
    let found = item(options, name)?;
    found
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("expected `{name}` to be a number, got {found}")))
}

#[pymethods]
impl PySchedule {
    /// A schedule of a kind from these rates, one for each group.
    #[new]
    fn new(kind: &str, rates: Vec<f64>, options: &Bound<'_, PyDict>) -> PyResult<PySchedule> {
        of_kind(kind, rates, options).map(|made| PySchedule(Mutex::new(made)))
    }

    /// The rates of an epoch.
    fn rates(&self, epoch: u64) -> PyResult<Vec<f64>> {
        let mut own = Foreign::of_rates(Vec::new(), None);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seek(epoch, &mut own).or_raise()?;
        Ok(own.learning_rates())
    }
}

/// A schedule that reduces the rates when a metric stops improving.
#[pyclass(name = "_Plateau", module = "keyway._keyway", frozen)]
pub struct PyPlateau(Mutex<ReduceLrOnPlateau>);

#[pymethods]
impl PyPlateau {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        mode: &str,
        factor: f64,
        patience: u64,
        threshold: f64,
        threshold_mode: &str,
        cooldown: u64,
        min_lr: f64,
        eps: f64,
    ) -> PyResult<PyPlateau> {
        let mode = match mode {
            "min" => PlateauMode::Min,
            "max" => PlateauMode::Max,
            _ => return Err(PyValueError::new_err(format!("expected `mode` to be min or max, got {mode}"))),
        };
        let threshold = match threshold_mode {
            "rel" => Threshold::Relative(threshold),
            "abs" => Threshold::Absolute(threshold),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "expected `threshold_mode` to be rel or abs, got {threshold_mode}"
                )));
            }
        };
        let options = ReduceLrOnPlateauOptions { mode, factor, patience, threshold, cooldown, min_lr, eps };
        Ok(PyPlateau(Mutex::new(ReduceLrOnPlateau::new(options).or_raise()?)))
    }

    /// The rates after an epoch with this metric.
    fn step(&self, metric: f64, rates: Vec<f64>) -> PyResult<Vec<f64>> {
        let mut own = Foreign::of_rates(rates, None);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).step(metric, &mut own).or_raise()?;
        Ok(own.learning_rates())
    }

    /// The best metric, the epochs since it, and the epochs of the cooldown that are left.
    fn state(&self) -> (f64, u64, u64) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner).state();
        (state.best, state.bad_epochs, state.cooldown)
    }

    /// Restores what `state` returned.
    fn set_state(&self, best: f64, bad_epochs: u64, cooldown: u64) {
        let state = PlateauState { best, bad_epochs, cooldown };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).set_state(state);
    }
}

/// Losses scaled so that the gradients of float16 do not become 0.
#[pyclass(name = "_GradScaler", module = "keyway._keyway", frozen)]
pub struct PyGradScaler(Mutex<GradScaler>);

#[pymethods]
impl PyGradScaler {
    #[new]
    fn new(
        init_scale: f64,
        growth_factor: f64,
        backoff_factor: f64,
        growth_interval: u64,
    ) -> PyResult<PyGradScaler> {
        let options = GradScalerOptions { init_scale, growth_factor, backoff_factor, growth_interval };
        Ok(PyGradScaler(Mutex::new(GradScaler::new(options).or_raise()?)))
    }

    /// The loss times the scale.
    fn scale(&self, loss: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        self.lock().scale(&loss.get().0).or_raise().map(PyTensor)
    }

    /// Divides the gradients of parameters by the scale.
    fn unscale(&self, parameters: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.lock().unscale_(&Foreign::of_parameters(tensors(parameters)?)).or_raise()
    }

    /// Whether the gradients of the parameters are finite, so that the caller may make the optimiser's step.
    fn step(&self, parameters: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.lock().step(&mut Foreign::of_parameters(tensors(parameters)?)).or_raise()
    }

    /// Changes the scale by what the steps since the last update found.
    fn update(&self) {
        self.lock().update();
    }

    /// The scale, and the steps since it changed.
    fn state(&self) -> (f64, u64) {
        let state = self.lock().state();
        (state.scale, state.growth_tracker)
    }

    /// Restores what `state` returned.
    fn set_state(&self, scale: f64, growth_tracker: u64) -> PyResult<()> {
        self.lock().set_state(GradScalerState { scale, growth_tracker }).or_raise()
    }
}

impl PyGradScaler {
    fn lock(&self) -> std::sync::MutexGuard<'_, GradScaler> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
