//! State shared by batch and instance normalization: weight, bias, running statistics and the mode.

use super::parameter::{Buffer, Parameter, TrainingMode};
use super::{ModuleError, ModuleVisitor, init};
use crate::autograd::no_grad;
use crate::error::called;
use crate::ops::composite::widened;
use crate::{Result, Tensor};

/// Parameters, buffers and options; inputs are `[batch, features, ..]`.
#[derive(Debug)]
pub(super) struct ChannelNorm {
    owner: &'static str,
    features: usize,
    weight: Option<Parameter>,
    bias: Option<Parameter>,
    running: Option<Running>,
    mode: TrainingMode,
    /// Added to the variance under the root.
    pub eps: f64,
    /// The weight of a new batch in the running statistics; `None` computes a cumulative average.
    pub momentum: Option<f64>,
}

/// The option methods of each such module, which wraps a [`ChannelNorm`].
macro_rules! options {
    ($name:ident, $new:literal, $running:literal, $pair:literal) => {
        impl $name {
            /// Sets the value that is added to the variance under the root.
            ///
            #[doc = concat!(
                                "```\n# fn main() -> keyway::Result<()> {\n",
                                "use keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                                "let norm = ", stringify!($name), $new, ".eps(3.0);\n",
                                "// The variance is 1, so the elements are divided by 2.\n",
                                "let x = Tensor::new([1.0f32, 3.0])?.reshape(", $pair, ")?;\n",
                                "assert_eq!(norm.forward(&x)?.to_vec::<f32>()?, [-0.5, 0.5]);\n",
                                "# Ok(()) }\n```",
                            )]
            pub fn eps(mut self, eps: f64) -> $name {
                self.0.eps = eps;
                self
            }

            /// Sets the weight of a new batch in the running statistics; `None` computes a cumulative average over all batches.
            ///
            #[doc = concat!(
                                "```\n# fn main() -> keyway::Result<()> {\n",
                                "use keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                                "let norm = ", stringify!($name), $running, ".momentum(Some(0.5));\n",
                                "norm.forward(&Tensor::new([1.0f32, 3.0])?.reshape(", $pair, ")?)?;\n",
                                "assert_eq!(norm.state_dict()[\"running_mean\"].to_vec::<f32>()?, [1.0]);\n",
                                "# Ok(()) }\n```",
                            )]
            pub fn momentum(mut self, momentum: Option<f64>) -> $name {
                self.0.momentum = momentum;
                self
            }
        }
    };
}
pub(super) use options;

#[derive(Debug)]
struct Running {
    mean: Buffer,
    var: Buffer,
    batches: Buffer,
}

impl ChannelNorm {
    pub(super) fn plain(owner: &'static str, features: usize) -> ChannelNorm {
        ChannelNorm {
            owner,
            features,
            weight: None,
            bias: None,
            running: None,
            mode: TrainingMode::default(),
            eps: 1e-5,
            momentum: Some(0.1),
        }
    }

    /// Adds a weight of ones and a bias of zeros.
    pub(super) fn with_affine(mut self) -> Result<ChannelNorm> {
        called(self.owner, &["features"], || {
            let part = |value| Parameter::new(init::constant(self.features, value)?);
            (self.weight, self.bias) = (Some(part(1.0)?), Some(part(0.0)?));
            Ok(self)
        })
    }

    /// Adds running statistics, initially of mean 0 and variance 1.
    pub(super) fn with_running(mut self) -> Result<ChannelNorm> {
        called(self.owner, &["features"], || {
            self.running = Some(Running {
                mean: Buffer::new(init::constant(self.features, 0.0)?),
                var: Buffer::new(init::constant(self.features, 1.0)?),
                batches: Buffer::new(Tensor::new(0i64)?),
            });
            Ok(self)
        })
    }

    pub(super) fn without_affine(self) -> ChannelNorm {
        ChannelNorm { weight: None, bias: None, ..self }
    }

    pub(super) fn without_running(self) -> ChannelNorm {
        ChannelNorm { running: None, ..self }
    }

    /// Refuses inputs of another rank or number of features.
    pub(super) fn check(&self, input: &Tensor, dims: &[usize]) -> Result<()> {
        let expected = if !dims.contains(&input.rank()) {
            let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
            format!("of {} dimensions, [batch, {}, ..]", dims.join(" or "), self.features)
        } else if input.shape()[1] != self.features {
            format!("of {0} channels, [batch, {0}, ..]", self.features)
        } else {
            return Ok(());
        };
        Err(ModuleError::Input { owner: self.owner, expected, got: input.shape().to_vec() }.into())
    }

    /// Calls the op with: running statistics, weight, bias, whether to use the input's statistics, momentum and eps.
    pub(super) fn forward(
        &self,
        op: impl FnOnce(Option<(&Tensor, &Tensor)>, [Option<&Tensor>; 2], bool, f64, f64) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let training = self.mode.is_training();
        let momentum = if training { self.count_batch()? } else { 0.0 };
        let running = self.running.as_ref().map(|r| (r.mean.get(), r.var.get()));
        let running = running.as_ref().map(|(mean, var)| (mean, var));
        let [weight, bias] = [&self.weight, &self.bias].map(|tensor| tensor.as_ref().map(Parameter::get));
        op(running, [weight.as_ref(), bias.as_ref()], training || running.is_none(), momentum, self.eps)
    }

    /// The per-channel `[scale, shift]` that the module applies in evaluation mode, `[channels]` each, in f32 at least.
    pub(super) fn scale_and_shift(&self, channels: usize) -> Result<[Tensor; 2]> {
        let wrong = |option, expected, got: String| {
            Err(ModuleError::Option { owner: self.owner, option, expected, got }.into())
        };
        let Some(running) = &self.running else {
            return wrong("running_stats", "present, to fold the norm", "none".to_string());
        };
        if channels != self.features {
            let got = format!("{} for {channels} channels", self.features);
            return wrong("features", "those of the convolution before the norm", got);
        }
        let [mean, var] = [&running.mean, &running.var].map(|tensor| widened(&tensor.get()));
        let mut scale = var?.add(self.eps)?.rsqrt()?;
        if let Some(weight) = &self.weight {
            scale = scale.mul(&widened(&weight.get())?)?;
        }
        let moved = mean?.mul(&scale)?.neg()?;
        let shift = match &self.bias {
            Some(bias) => moved.add(&widened(&bias.get())?)?,
            None => moved,
        };
        Ok([scale, shift])
    }

    /// Increments the batch count and returns the momentum for this batch.
    fn count_batch(&self) -> Result<f64> {
        let Some(running) = &self.running else { return Ok(0.0) };
        let _off = no_grad();
        let batches = running.batches.get().add_(1)?;
        match self.momentum {
            Some(momentum) => Ok(momentum),
            None => Ok(1.0 / batches.item::<i64>()? as f64),
        }
    }

    pub(super) fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (name, tensor) in [("weight", &self.weight), ("bias", &self.bias)] {
            if let Some(tensor) = tensor {
                visitor.parameter(name, tensor);
            }
        }
        if let Some(running) = &self.running {
            visitor.buffer("running_mean", &running.mean);
            visitor.buffer("running_var", &running.var);
            visitor.buffer("num_batches_tracked", &running.batches);
        }
        visitor.training_mode(&self.mode);
    }
}
