//! Checkpointing: computing a part of the network again in backward instead of keeping its tensors.

use super::custom::{Context, Function, apply};
use super::engine::{BackwardOptions, backward};
use super::modes::{enable_grad, is_grad_enabled};
use super::watch;
use crate::autocast_mode::{autocast_dtype, restored};
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::rng::generator::Places;
use crate::{DType, Tensor};
use keyway_dispatcher::key::{KeyGuard, KeySet};
use std::sync::Mutex;

struct Recompute<F> {
    run: F,
    wants: Vec<bool>,
    /// State of the generators at the first run.
    places: Places,
    /// The dtype of mixed precision at the first run.
    autocast: Option<DType>,
    /// Outputs of the first run, if it had to run ahead.
    made: Mutex<Option<Vec<Tensor>>>,
    // The context saves the inputs; this serialises the passes over the function.
    running: Mutex<()>,
}

impl<F> Function for Recompute<F>
where
    F: Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        context.save(&inputs.iter().collect::<Vec<_>>());
        match super::node::lock(&self.made).take() {
            Some(made) => Ok(made),
            None => (self.run)(inputs),
        }
    }

    fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        if is_grad_enabled() {
            let reason = "the recomputation of a checkpoint records no graph of its gradients (`create_graph`), so call the \
                          function without it";
            return Err(AutogradError::Missing { op: "checkpoint".into(), reason: reason.into() }.into());
        }
        let _one = super::node::lock(&self.running);
        let _on = enable_grad();
        // Interceptors, which a backward pass excludes, act as in the first run.
        let _with = KeyGuard::clear(KeySet::PROGRAM);
        let mut inputs = context
            .saved()
            .iter()
            .zip(&self.wants)
            .map(|(t, &wants)| if wants { t.detach().requires_grad_(true) } else { Ok(t.detach()) })
            .collect::<Result<Vec<_>>>()?;
        let outputs = restored(self.autocast, || self.places.replay(|| (self.run)(&inputs)))?;
        let (mut roots, mut starts) = (Vec::new(), Vec::new());
        for (output, grad) in outputs.into_iter().zip(grads) {
            if output.requires_grad() {
                roots.push(output);
                starts.push(grad.clone());
            }
        }
        backward(&roots, BackwardOptions { gradients: Some(starts), ..BackwardOptions::default() })?;
        let mut grads: Vec<_> = inputs.drain(..).map(|input| input.grad()).collect();
        grads.resize(context.saved().len(), None);
        Ok(grads)
    }
}

/// Runs `function` on `inputs` without saving tensors for backward, and runs it again in backward. Parameters that the function
/// captures get their gradients too, in that second run, also where no input needs one.
///
/// The second run has the mixed precision ([`autocast`](crate::autocast())) of the first, draws the same random numbers, on
/// every device, and leaves the generators unchanged; a generator that the function itself installs with
/// [`rng::with_generator`](crate::rng::with_generator) advances instead.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd};
/// let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
/// let cubes = |inputs: &[Tensor]| Ok(vec![inputs[0].square()?.mul(&inputs[0])?]);
/// let y = autograd::checkpoint(cubes, &[x.clone()])?.remove(0);
/// y.sum_all()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [3.0, 12.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Errors of the function. In backward, `create_graph`.
pub fn checkpoint<F>(function: F, inputs: &[Tensor]) -> Result<Vec<Tensor>>
where
    F: Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
{
    if !is_grad_enabled() {
        return function(inputs);
    }
    let places = Places::now();
    let wants: Vec<bool> = inputs.iter().map(Tensor::requires_grad).collect();
    let (mut made, mut inputs) = (None, inputs.to_vec());
    if !wants.contains(&true) {
        let (outputs, wanted) = watch::run(|| function(&inputs));
        if !wanted {
            return outputs;
        }
        made = Some(outputs?);
        // An input to attach the node to, since only nodes that lead to a leaf are run.
        inputs.push(Tensor::new(0.0f32)?.requires_grad_(true)?);
    }
    apply(
        Recompute {
            run: function,
            wants,
            places,
            autocast: autocast_dtype(),
            made: Mutex::new(made),
            running: Mutex::new(()),
        },
        &inputs,
    )
}
