//! Checkpointing: computing a part of the network again in backward instead of keeping its tensors.

use super::custom::{Context, Function, apply};
use super::engine::{BackwardOptions, backward};
use super::modes::enable_grad;
use crate::Tensor;
use crate::error::Result;
use std::sync::Mutex;

struct Recompute<F> {
    run: F,
    wants: Vec<bool>,
    // The inputs are kept by the context; this serialises the passes over the function.
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
        (self.run)(inputs)
    }

    fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let _one = super::node::lock(&self.running);
        let _on = enable_grad();
        let inputs = context
            .saved()
            .iter()
            .zip(&self.wants)
            .map(|(t, &wants)| if wants { t.detach().set_requires_grad(true) } else { Ok(t.detach()) })
            .collect::<Result<Vec<_>>>()?;
        let outputs = (self.run)(&inputs)?;
        let (mut roots, mut starts) = (Vec::new(), Vec::new());
        for (output, grad) in outputs.into_iter().zip(grads) {
            if output.requires_grad() {
                roots.push(output);
                starts.push(grad.clone());
            }
        }
        backward(&roots, BackwardOptions { gradients: Some(starts), ..BackwardOptions::default() })?;
        Ok(inputs.iter().map(Tensor::grad).collect())
    }
}

/// Runs `function` on `inputs` without keeping what its derivative needs, and runs it again in backward.
/// Parameters that the function captures get their gradients too, in that second run.
///
/// # Errors
/// What the function reports.
pub fn checkpoint<F>(function: F, inputs: &[Tensor]) -> Result<Vec<Tensor>>
where
    F: Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
{
    let wants = inputs.iter().map(Tensor::requires_grad).collect();
    apply(Recompute { run: function, wants, running: Mutex::new(()) }, inputs)
}
