//! The extension module `keyway._keyway`: the class `Tensor`, constructors, files, autograd, and calls of any op by its name.
//!
//! The package's Python files add the methods and functions of the ops, from the table that [`ops::op_table`] returns. Pointers
//! are used in `arrow`, `buffer`, `dlpack` and `exchange` alone.

mod arg;
mod arrow;
mod autograd;
mod buffer;
mod checks;
mod composite;
mod create;
mod data;
mod dlpack;
mod dtype;
mod error;
mod exchange;
mod fft;
mod function;
mod functional;
mod handle;
mod hooks;
mod index;
mod init;
mod io;
mod linalg;
mod modes;
mod node;
mod operators;
mod ops;
mod optimizer;
mod packed;
mod profiler;
mod promotion;
mod random;
mod runtime;
mod samples;
mod schedule;
#[cfg(target_os = "linux")]
mod shared;
mod sparse;
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
    module.add_class::<hooks::PyHook>()?;
    module.add_class::<io::PyMappedFile>()?;
    module.add_class::<node::PyNode>()?;
    module.add_class::<optimizer::PyOptimizer>()?;
    module.add_class::<packed::PyPacked>()?;
    module.add_class::<profiler::PyMemory>()?;
    module.add_class::<profiler::PyTrace>()?;
    module.add_class::<random::PyGenerator>()?;
    module.add_class::<schedule::PyGradScaler>()?;
    module.add_class::<schedule::PyPlateau>()?;
    module.add_class::<schedule::PySchedule>()?;
    for (dtype, name, _) in dtype::DTYPES {
        module.add(name, dtype::PyDType(dtype))?;
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    add!(module: autograd::_backward, autograd::grad, autograd::is_grad_enabled, checks::_checkpoint, checks::_gradcheck, composite::broadcast_shapes, composite::broadcast_tensors, composite::hstack, composite::meshgrid, composite::vstack, create::arange, create::block_diag, create::dstack, create::empty, create::empty_like, create::eye, create::full, create::full_like, create::linspace, create::logspace, create::manual_seed, create::normal, create::ones, create::ones_like, create::rand, create::rand_like, create::randint, create::randn, create::randn_like, create::randperm, create::tril_indices, create::triu_indices, create::zeros, create::zeros_like, data::asarray, data::from_arrow, data::from_dlpack, data::get_default_dtype, data::set_default_dtype, data::tensor, dtype::_dtype, function::_apply_function, init::_init_kaiming, init::_init_orthogonal, init::_init_sparse, init::_init_trunc_normal, init::_init_xavier, io::load, io::save, modes::_enter_anomaly, modes::_enter_autocast, modes::_enter_grad, modes::_enter_inference, modes::_enter_scope, modes::_leave, modes::_let_last, modes::autocast_dtype, modes::is_inference_mode_enabled, ops::call_op, ops::op_table, optimizer::_clip_grad_norm, optimizer::_clip_grad_value, packed::_pack_padded, packed::_pad_packed, packed::pad_sequence, profiler::_enter_memory_profile, profiler::_enter_profile, profiler::_memory_snapshot, profiler::_profile_trace, promotion::can_cast, promotion::promote_types, promotion::result_type, random::get_rng_state, random::initial_seed, random::set_rng_state, runtime::_count_devices, runtime::backends, runtime::devices, runtime::get_num_threads, runtime::set_num_threads, samples::_digits, samples::_shuffled, samples::_with_seed, sparse::sparse_coo_tensor, sparse::sparse_csr_tensor, tensor::_rebuild, tensor::set_printoptions);
    #[cfg(target_os = "linux")]
    add!(module: shared::_from_shared_parts, shared::_zeros_shared, shared::from_file, shared::open_shared);
    module.add_wrapped(wrap_pymodule!(fft::fourier))?;
    module.add_wrapped(wrap_pymodule!(linalg::matrices))?;
    module.add_wrapped(wrap_pymodule!(functional::composed))?;
    module.add_wrapped(wrap_pymodule!(functional::tensors::tensors))?;
    Ok(())
}
