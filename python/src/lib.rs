//! The extension module `keyway._keyway`: the class `Tensor`, constructors, files, autograd, and calls of any op by its name.
//!
//! The package's Python files add the methods and functions of the ops, from the table that [`ops::op_table`] returns. Pointers
//! are used in `buffer`, `dlpack` and `exchange` alone.

mod arg;
mod autograd;
mod buffer;
mod composite;
mod create;
mod data;
mod dlpack;
mod dtype;
mod error;
mod exchange;
mod fft;
mod handle;
mod index;
mod io;
mod operators;
mod ops;
mod runtime;
mod samples;
#[cfg(target_os = "linux")]
mod shared;
mod tensor;

use pyo3::prelude::*;
use pyo3::wrap_pymodule;

/// Adds functions to a module.
macro_rules! add {
    ($module:ident: $($function:path),* $(,)?) => {
        $($module.add_function(wrap_pyfunction!($function, $module)?)?;)*
    };
}

/// The module.
#[pymodule]
fn _keyway(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<handle::PyTensor>()?;
    module.add_class::<dtype::PyDType>()?;
    module.add_class::<tensor::PyHook>()?;
    for (dtype, name, _) in dtype::DTYPES {
        module.add(name, dtype::PyDType(dtype))?;
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    add!(module: autograd::_set_grad_enabled, autograd::grad, autograd::is_grad_enabled, composite::hstack, composite::meshgrid, composite::vstack, create::arange, create::empty, create::empty_like, create::eye, create::full, create::full_like, create::linspace, create::manual_seed, create::ones, create::ones_like, create::rand, create::rand_like, create::randint, create::randn, create::randn_like, create::randperm, create::zeros, create::zeros_like, data::asarray, data::from_dlpack, data::get_default_dtype, data::set_default_dtype, data::tensor, dtype::_dtype, io::load, io::save, ops::call_op, ops::op_table, runtime::backends, runtime::get_num_threads, runtime::set_num_threads, samples::_digits, samples::_shuffled, samples::_with_seed, tensor::_rebuild);
    #[cfg(target_os = "linux")]
    add!(module: shared::_from_shared_parts, shared::_zeros_shared, shared::from_file, shared::open_shared);
    module.add_wrapped(wrap_pymodule!(fft::fourier))?;
    Ok(())
}
