//! Inference convolutions with a fused norm and activation.

use super::parameter::Buffer;
use super::{BatchNorm1d, BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d, Module, ModuleVisitor};
use crate::autograd::no_grad;
use crate::error::called;
use crate::ops::composite::{cast, widened};
use crate::ops::conv::{Activation, ConvOptions};
use crate::{Result, Tensor};

/// The weight and bias of a convolution with a following per-channel `[scale, shift]` folded in, rounded once to the dtype of
/// the weight.
fn folded(weight: &Tensor, bias: Option<&Tensor>, [scale, shift]: [Tensor; 2]) -> Result<[Tensor; 2]> {
    let mut along = vec![1; weight.rank()];
    along[0] = scale.elem_count();
    let kernels = widened(weight)?.mul(&scale.reshape_as_sizes(&along)?)?;
    let added = match bias {
        Some(bias) => widened(bias)?.mul(&scale)?.add(&shift)?,
        None => shift,
    };
    Ok([cast(kernels, weight.dtype())?, cast(added, weight.dtype())?])
}

macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident $rank:literal $conv:ident $norm:ident $call:ident $dims:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            weight: Buffer,
            bias: Option<Buffer>,
            activation: Activation,
            options: ConvOptions<$rank>,
        }

        impl $name {
            /// A module of these tensors as buffers: part of the state dict, but not learned.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{Activation, ", stringify!($name), ", ConvOptions, Module};\n",
                "use keyway::Tensor;\n",
                "let weight = Tensor::new([-3.0f32])?.reshape(", $dims, ")?;\n",
                "let conv = ", stringify!($name), "::from_tensors(&weight, None, Activation::Relu, ConvOptions::default());\n",
                "assert_eq!(conv.forward(&Tensor::ones(", $dims, ")?)?.item::<f32>()?, 0.0);\n",
                "assert!(conv.parameters().is_empty());\n",
                "# Ok(()) }\n```",
            )]
            pub fn from_tensors(
                weight: &Tensor,
                bias: Option<&Tensor>,
                activation: Activation,
                options: ConvOptions<$rank>,
            ) -> $name {
                let bias = bias.map(|bias| Buffer::new(bias.detach()));
                $name { weight: Buffer::new(weight.detach()), bias, activation, options }
            }

            #[doc = concat!("What a [`", stringify!($conv), "`], a [`", stringify!($norm), "`] behind it and an activation \
                compute in use: the norm's factors become the weight's, what it adds the bias. Later changes of the two \
                modules change nothing here.")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{Activation, ", stringify!($norm), ", ", stringify!($conv), ", ", stringify!($name), ", ConvOptions, Module};\n",
                "use keyway::Tensor;\n",
                "let weight = Tensor::new([3.0f32])?.reshape(", $dims, ")?;\n",
                "let conv = ", stringify!($conv), "::from_tensors(weight, None, ConvOptions::default())?;\n",
                "// The running mean is 0 and the variance 1, so the norm changes nothing yet.\n",
                "let fused = ", stringify!($name), "::fused(&conv, &", stringify!($norm), "::new(1)?.eps(0.0), Activation::None)?;\n",
                "assert_eq!(fused.forward(&Tensor::ones(", $dims, ")?)?.item::<f32>()?, 3.0);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// A norm without running statistics or with another number of channels.
            #[doc(alias = "fuse_conv_bn_eval")]
            pub fn fused(conv: &$conv, norm: &$norm, activation: Activation) -> Result<$name> {
                called(stringify!($name), &["conv", "norm"], || {
                    let _off = no_grad();
                    let outputs = conv.weight().shape()[0];
                    let [weight, bias] =
                        folded(&conv.weight(), conv.bias().as_ref(), norm.0.scale_and_shift(outputs)?)?;
                    Ok($name::from_tensors(&weight, Some(&bias), activation, conv.options))
                })
            }

            #[doc = concat!("[`Tensor::", stringify!($call), "`], to whose sums `add` is added.")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{Activation, ", stringify!($name), ", ConvOptions};\n",
                "use keyway::Tensor;\n",
                "let (weight, x) = (Tensor::new([-3.0f32])?.reshape(", $dims, ")?, Tensor::ones(", $dims, ")?);\n",
                "let conv = ", stringify!($name), "::from_tensors(&weight, None, Activation::Relu, ConvOptions::default());\n",
                "assert_eq!(conv.forward_add(&x, Some(&x.mul(5.0)?))?.item::<f32>()?, 2.0);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// The errors of the op; errors of the backend.
            pub fn forward_add(&self, input: &Tensor, add: Option<&Tensor>) -> Result<Tensor> {
                let bias = self.bias.as_ref().map(Buffer::get);
                input.$call(&self.weight.get(), bias.as_ref(), add, self.activation, self.options)
            }
        }

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                self.forward_add(input, None)
            }

            fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
                visitor.buffer("weight", &self.weight);
                if let Some(bias) = &self.bias {
                    visitor.buffer("bias", bias);
                }
            }
        }
    )+};
}

convolutions! {
    /// [`Tensor::conv1d_act`] with fixed tensors; see [`ConvAct2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Activation, BatchNorm1d, Conv1d, ConvAct1d, ConvOptions, Module};
    /// let conv = Conv1d::new(2, 4, 3)?;
    /// let fused = ConvAct1d::fused(&conv, &BatchNorm1d::new(4)?, Activation::Relu)?;
    /// let y = fused.forward(&keyway::Tensor::ones((1, 2, 8))?)?;
    /// assert!(y.shape() == [1, 4, 6] && y.min_all()?.item::<f32>()? >= 0.0);
    /// # Ok(()) }
    /// ```
    ConvAct1d 1 Conv1d BatchNorm1d conv1d_act "(1, 1, 1)";

    /// [`Tensor::conv2d_act`] with fixed tensors: an inference convolution with the following norm and activation fused.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Activation, BatchNorm2d, Conv2d, ConvAct2d, ConvOptions, Module};
    /// use keyway::Tensor;
    /// let conv = Conv2d::new(1, 2, 3)?;
    /// let norm = BatchNorm2d::new(2)?;
    /// norm.eval();
    /// let fused = ConvAct2d::fused(&conv, &norm, Activation::Relu)?;
    /// let x = Tensor::ones((1, 1, 3, 3))?;
    /// let (steps, once) = (norm.forward(&conv.forward(&x)?)?.relu()?, fused.forward(&x)?);
    /// assert!(steps.sub(&once)?.abs()?.max_all()?.item::<f32>()? < 1e-5);
    /// # Ok(()) }
    /// ```
    ConvAct2d 2 Conv2d BatchNorm2d conv2d_act "(1, 1, 1, 1)";

    /// [`Tensor::conv3d_act`] with fixed tensors; see [`ConvAct2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Activation, BatchNorm3d, Conv3d, ConvAct3d, ConvOptions, Module};
    /// let conv = Conv3d::new(2, 4, 3)?;
    /// let fused = ConvAct3d::fused(&conv, &BatchNorm3d::new(4)?, Activation::Relu)?;
    /// let y = fused.forward(&keyway::Tensor::ones((1, 2, 3, 4, 5))?)?;
    /// assert!(y.shape() == [1, 4, 1, 2, 3] && y.min_all()?.item::<f32>()? >= 0.0);
    /// # Ok(()) }
    /// ```
    ConvAct3d 3 Conv3d BatchNorm3d conv3d_act "(1, 1, 1, 1, 1)";
}
