//! Optimisers, schedules of learning rates, and scaled losses. Python has the groups of parameters; the rules are those of the
//! Rust side.

use crate::autograd::tensors;
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::Tensor;
use keyway::nn::StateDict;
use keyway::optim::{self, Group, Optimizer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// An optimiser of the Rust side.
#[pyclass(name = "_Optimizer", module = "keyway._keyway", frozen)]
pub struct PyOptimizer(Mutex<Box<dyn Optimizer + Send>>);

/// An optimiser of a kind, with the default options.
fn of_kind(kind: &str, parameters: Vec<Vec<Tensor>>) -> PyResult<Box<dyn Optimizer + Send>> {
    fn groups<O: Default>(parameters: Vec<Vec<Tensor>>) -> Vec<Group<O>> {
        let group = |parameters| Group { parameters, options: O::default() };
        parameters.into_iter().map(group).collect()
    }
    Ok(match kind {
        "Adagrad" => Box::new(optim::Adagrad::with_groups(groups(parameters)).or_raise()?),
        "Adam" => Box::new(optim::Adam::with_groups(groups(parameters)).or_raise()?),
        "AdamW" => Box::new(optim::AdamW::with_groups(groups(parameters)).or_raise()?),
        "RMSprop" => Box::new(optim::RmsProp::with_groups(groups(parameters)).or_raise()?),
        "SGD" => Box::new(optim::Sgd::with_groups(groups(parameters)).or_raise()?),
        "SparseAdam" => Box::new(optim::SparseAdam::with_groups(groups(parameters)).or_raise()?),
        _ => return Err(PyValueError::new_err(format!("there is no optimiser `{kind}`"))),
    })
}

#[pymethods]
impl PyOptimizer {
    /// An optimiser of groups of parameters, each with options by name.
    #[new]
    fn new(
        py: Python<'_>,
        kind: &str,
        parameters: Vec<Bound<'_, PyAny>>,
        options: Vec<BTreeMap<String, f64>>,
    ) -> PyResult<PyOptimizer> {
        runtime::start(py)?;
        let parameters = parameters.iter().map(tensors).collect::<PyResult<Vec<_>>>()?;
        // The Rust side takes trained parameters alone; a frozen one has no gradient, and may be trained later.
        let frozen = |tensor: &&Tensor| !tensor.requires_grad() && tensor.is_leaf();
        let frozen: Vec<Tensor> = parameters.iter().flatten().filter(frozen).cloned().collect();
        frozen.iter().try_for_each(|tensor| tensor.requires_grad_(true).map(drop)).or_raise()?;
        let made = of_kind(kind, parameters);
        frozen.iter().try_for_each(|tensor| tensor.requires_grad_(false).map(drop)).or_raise()?;
        let made = PyOptimizer(Mutex::new(made?));
        for (group, options) in options.into_iter().enumerate() {
            made.set_options(group, options)?;
        }
        Ok(made)
    }

    /// Sets options of a group by name.
    fn set_options(&self, group: usize, options: BTreeMap<String, f64>) -> PyResult<()> {
        let options: Vec<(&str, f64)> = options.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        self.with(|own| own.set_options(group, &options)).or_raise()
    }

    /// Changes each parameter that has a gradient.
    fn step(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.with(|own| own.step())).or_raise()
    }

    /// The options and the state by name, copied.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.with(|own| own.state_dict()).or_raise()?;
        let dict = PyDict::new(py);
        for (name, tensor) in state {
            dict.set_item(name, Bound::new(py, PyTensor(tensor))?)?;
        }
        Ok(dict)
    }

    /// Restores what `state` returned.
    fn load_state(&self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut own = StateDict::new();
        for (name, tensor) in state {
            own.insert(name.extract()?, tensor.cast::<PyTensor>()?.get().0.clone());
        }
        self.with(|optimizer| optimizer.load_state_dict(&own)).or_raise()
    }
}

impl PyOptimizer {
    fn with<R>(&self, run: impl FnOnce(&mut (dyn Optimizer + Send)) -> R) -> R {
        run(&mut **self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An optimiser that Python has: its parameters, or the learning rates of its groups.
pub struct Foreign {
    parameters: Vec<Tensor>,
    rates: Vec<f64>,
    initial: Option<Vec<f64>>,
}

impl Foreign {
    /// An optimiser with learning rates and those that schedules begin from.
    pub fn of_rates(rates: Vec<f64>, initial: Option<Vec<f64>>) -> Foreign {
        Foreign { parameters: Vec::new(), rates, initial }
    }

    /// An optimiser with parameters, whose step the caller makes.
    pub fn of_parameters(parameters: Vec<Tensor>) -> Foreign {
        Foreign { parameters, rates: Vec::new(), initial: None }
    }
}

impl Optimizer for Foreign {
    fn step(&mut self) -> keyway::Result<()> {
        Ok(())
    }

    fn parameters(&self) -> Vec<Tensor> {
        self.parameters.clone()
    }

    fn learning_rates(&self) -> Vec<f64> {
        self.rates.clone()
    }

    fn set_learning_rates(&mut self, rates: &[f64]) -> keyway::Result<()> {
        self.rates = rates.to_vec();
        Ok(())
    }

    fn initial_learning_rates(&self) -> Option<Vec<f64>> {
        self.initial.clone()
    }

    fn set_initial_learning_rates(&mut self, rates: Option<&[f64]>) -> keyway::Result<()> {
        self.initial = rates.map(<[f64]>::to_vec);
        Ok(())
    }

    fn state_dict(&self) -> keyway::Result<StateDict> {
        Ok(StateDict::new())
    }

    fn load_state_dict(&mut self, _state: &StateDict) -> keyway::Result<()> {
        Ok(())
    }
}

/// Scales the gradients of parameters such that their norm is at most `max_norm`, and returns the norm before.
#[pyfunction]
pub fn _clip_grad_norm(py: Python<'_>, parameters: &Bound<'_, PyAny>, max_norm: f64) -> PyResult<PyTensor> {
    let parameters = tensors(parameters)?;
    py.detach(|| optim::clip_grad_norm_(&parameters, max_norm)).or_raise().map(PyTensor)
}

/// Sets the elements of gradients beyond `clip_value` to it.
#[pyfunction]
pub fn _clip_grad_value(py: Python<'_>, parameters: &Bound<'_, PyAny>, clip_value: f64) -> PyResult<()> {
    let parameters = tensors(parameters)?;
    py.detach(|| optim::clip_grad_value_(&parameters, clip_value)).or_raise()
}
