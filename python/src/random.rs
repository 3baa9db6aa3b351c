//! Generators of random numbers.

use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::rng::{self, Generator, GeneratorState};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The state of random numbers: `generator=` of the functions that draw them.
#[pyclass(name = "Generator", module = "keyway", frozen)]
pub struct PyGenerator(Generator);

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device="cpu"))]
    fn new(device: &str) -> PyGenerator {
        // The numbers are the same on every device.
        let _ = device;
        PyGenerator(Generator::new(0))
    }

    /// Begins from a seed.
    fn manual_seed(slf: Bound<'_, Self>, seed: i64) -> Bound<'_, Self> {
        slf.get().0.manual_seed(seed as u64);
        slf
    }

    /// The seed that the numbers began from.
    fn initial_seed(&self) -> u64 {
        self.0.state().seed
    }

    /// Begins from a seed of the operating system's clock, and returns it.
    fn seed(&self) -> PyResult<u64> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanoseconds = since.map_err(|error| PyValueError::new_err(error.to_string()))?.as_nanos();
        // 63 bits, so that the seed is an int of other libraries too.
        let seed = (nanoseconds as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1;
        self.0.manual_seed(seed);
        Ok(seed)
    }

    /// The state as a tensor.
    fn get_state(&self, py: Python<'_>) -> PyResult<PyTensor> {
        runtime::start(py)?;
        self.0.state().to_tensor().or_raise().map(PyTensor)
    }

    /// Restores what `get_state` returned.
    fn set_state(&self, state: &Bound<'_, PyTensor>) -> PyResult<()> {
        self.0.set_state(GeneratorState::from_tensor(&state.get().0).or_raise()?);
        Ok(())
    }

    /// The device, which is that of the host: the numbers are the same on every device.
    #[getter]
    fn device(&self) -> &'static str {
        "cpu"
    }

    /// Calls a function whose random numbers come from here.
    #[pyo3(signature = (function, *args, **kwargs))]
    fn _call<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        rng::with_generator(&self.0, || function.call(args, kwargs))
    }
}

/// The state of the random numbers of functions without a generator, as a tensor.
#[pyfunction]
pub fn get_rng_state(py: Python<'_>) -> PyResult<PyTensor> {
    runtime::start(py)?;
    rng::default_generator(keyway::Device::CPU).state().to_tensor().or_raise().map(PyTensor)
}

/// Restores what `get_rng_state` returned.
#[pyfunction]
pub fn set_rng_state(py: Python<'_>, new_state: &Bound<'_, PyTensor>) -> PyResult<()> {
    runtime::start(py)?;
    let state = GeneratorState::from_tensor(&new_state.get().0).or_raise()?;
    rng::default_generator(keyway::Device::CPU).set_state(state);
    Ok(())
}

/// The seed of the random numbers of functions without a generator.
#[pyfunction]
pub fn initial_seed() -> u64 {
    rng::initial_seed()
}
