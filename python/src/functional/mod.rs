//! Functions of layers and losses that are combinations of ops, and thus are not in the table of ops: the submodule
//! `keyway._keyway.composed`. Names and arguments are those of `torch.nn.functional`.

mod activations;
mod indexed;
mod losses;
mod noise;
mod spatial;
pub mod tensors;

use crate::handle::PyTensor;
use crate::{ops, runtime};
use keyway::Tensor;
use keyway::nn::Reduction;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The result of a call on tensors of the size of `input`.
pub fn called(
    input: &Bound<'_, PyTensor>,
    run: impl FnOnce(&Tensor) -> keyway::Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    let py = input.py();
    runtime::start(py)?;
    let input = &input.get().0;
    ops::released(py, input.elem_count(), || run(input)).map(PyTensor)
}

/// A reduction by its name.
fn reduction(name: &str) -> PyResult<Reduction> {
    let all = [Reduction::Mean, Reduction::Sum, Reduction::None, Reduction::BatchMean];
    all.into_iter().find(|reduction| reduction.name() == name).ok_or_else(|| {
        PyValueError::new_err(format!("expected `reduction` to be mean, sum or none, got {name}"))
    })
}

/// Adds the functions to a module.
macro_rules! add {
    ($module:ident: $($path:ident::{$($function:ident),* $(,)?}),* $(,)?) => {
        $($($module.add_function(wrap_pyfunction!($path::$function, $module)?)?;)*)*
    };
}

/// The submodule.
#[pymodule]
pub fn composed(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add!(module:
        activations::{hardshrink, hardsigmoid, hardtanh, logsigmoid, relu6, softsign, tanhshrink, threshold},
        losses::{
            cosine_embedding_loss, ctc_loss, gaussian_nll_loss, hinge_embedding_loss, huber_loss, margin_ranking_loss, multi_margin_loss,
            poisson_nll_loss, soft_margin_loss, triplet_margin_loss,
        },
        noise::{
            alpha_dropout, bernoulli, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, gumbel_softmax, multinomial,
            poisson,
        },
        spatial::{
            adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
            adaptive_max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d,
            conv_transpose3d, fold, interpolate, lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d, max_pool2d, max_pool3d, max_unpool1d,
            max_unpool2d, max_unpool3d, unfold,
        },
    );
    Ok(())
}
