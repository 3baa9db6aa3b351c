//! The extension module `keyway._keyway`: the class `Tensor`, constructors, files, autograd, and calls of any op by its name.
//!
//! The package's Python files add the methods and functions of the ops, from the table that [`ops::op_table`] returns. Pointers
//! are used in `buffer` and `dlpack` alone.

mod arg;
mod autograd;
mod buffer;
mod create;
mod data;
mod dlpack;
mod dtype;
mod error;
mod handle;
mod index;
mod io;
mod operators;
mod ops;
mod runtime;
mod tensor;

use pyo3::prelude::*;

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
    module.add_function(wrap_pyfunction!(tensor::_rebuild, module)?)?;
    module.add_function(wrap_pyfunction!(dtype::_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(data::tensor, module)?)?;
    module.add_function(wrap_pyfunction!(data::asarray, module)?)?;
    module.add_function(wrap_pyfunction!(data::get_default_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(data::set_default_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(data::from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(create::zeros, module)?)?;
    module.add_function(wrap_pyfunction!(create::ones, module)?)?;
    module.add_function(wrap_pyfunction!(create::empty, module)?)?;
    module.add_function(wrap_pyfunction!(create::full, module)?)?;
    module.add_function(wrap_pyfunction!(create::arange, module)?)?;
    module.add_function(wrap_pyfunction!(create::linspace, module)?)?;
    module.add_function(wrap_pyfunction!(create::eye, module)?)?;
    module.add_function(wrap_pyfunction!(create::rand, module)?)?;
    module.add_function(wrap_pyfunction!(create::randn, module)?)?;
    module.add_function(wrap_pyfunction!(create::randint, module)?)?;
    module.add_function(wrap_pyfunction!(create::randperm, module)?)?;
    module.add_function(wrap_pyfunction!(create::manual_seed, module)?)?;
    module.add_function(wrap_pyfunction!(autograd::grad, module)?)?;
    module.add_function(wrap_pyfunction!(autograd::is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(autograd::_set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(ops::call_op, module)?)?;
    module.add_function(wrap_pyfunction!(ops::op_table, module)?)?;
    module.add_function(wrap_pyfunction!(io::save, module)?)?;
    module.add_function(wrap_pyfunction!(io::load, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::backends, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::set_num_threads, module)?)?;
    Ok(())
}
