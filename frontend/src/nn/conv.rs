//! Convolution layers.

use super::parameter::Parameter;
use super::{Module, ModuleError, ModuleVisitor, init};
use crate::error::called;
use crate::ops::conv::{ConvOptions, ConvTransposeOptions, PerDim};
use crate::{Result, Tensor};

/// A weight `[first, second / groups, ..]` with PyTorch's initial values: uniform in `±1 / sqrt(fan_in)`, where `fan_in` is
/// `second / groups` times the number of kernel taps.
fn kernel(
    owner: &'static str,
    [first, second]: [usize; 2],
    groups: usize,
    sizes: &[usize],
) -> Result<Parameter> {
    if groups == 0 || !first.is_multiple_of(groups) || !second.is_multiple_of(groups) {
        let got = format!("{groups} for {first} and {second} channels");
        let expected = "1 or more, and to divide the channels of input and output";
        return Err(ModuleError::Option { owner, option: "groups", expected, got }.into());
    }
    let sizes: Vec<usize> = [first, second / groups].iter().chain(sizes).copied().collect();
    // This slope results in the bound `1 / sqrt(fan_in)`.
    Parameter::new(init::kaiming_uniform_with(&sizes, 5f64.sqrt(), init::Fan::In)?)
}

/// A bias for that weight, with the same bound.
fn bias(weight: &Parameter, outputs: usize) -> Result<Parameter> {
    let fan_in: usize = weight.get().shape()[1..].iter().product();
    let bound = if fan_in > 0 { 1.0 / (fan_in as f64).sqrt() } else { 0.0 };
    Parameter::new(init::uniform(outputs, bound)?)
}

/// Convolution modules; the brackets contain the index of the input (0) or output (1) channels in dimensions 0 and 1 of the
/// weight.
macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident $rank:literal $options:ident $with:ident [$first:literal, $second:literal] $shape:literal $dims:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            weight: Parameter,
            bias: Option<Parameter>,
            pub(super) options: $options<$rank>,
        }

        impl $name {
            /// A module with these channels and kernel sizes, a bias, stride 1 and no padding, in f32. The initial values are
            /// PyTorch's: weight and bias uniform in `±1 / sqrt(fan_in)`.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{", stringify!($name), ", Module};\n",
                "assert_eq!(", stringify!($name), "::new(2, 4, 1)?.num_parameters(), 2 * 4 + 4);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Sizes whose product overflows.
            pub fn new(inputs: usize, outputs: usize, kernel: impl Into<PerDim<$rank>>) -> Result<$name> {
                $name::new_with(inputs, outputs, kernel, $options::default())
            }

            #[doc = concat!("[`", stringify!($name), "::new`] with stride, padding, dilation and groups.")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{", stringify!($name), ", ", stringify!($options), ", Module};\n",
                "let conv = ", stringify!($name), "::new_with(2, 4, 1, ", stringify!($options), "::default().groups(2))?;\n",
                "assert_eq!(conv.num_parameters(), 4 + 4);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Groups that do not divide the channels; sizes whose product overflows.
            pub fn new_with(
                inputs: usize,
                outputs: usize,
                kernel: impl Into<PerDim<$rank>>,
                options: $options<$rank>
            ) -> Result<$name> {
                called(stringify!($name), &["inputs", "outputs", "kernel"], || {
                    let mut module = $name::without_bias(inputs, outputs, kernel, options)?;
                    module.bias = Some(bias(&module.weight, outputs)?);
                    Ok(module)
                })
            }

            /// [`Self::new_with`] without a bias, as in most networks in which a norm follows.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{", stringify!($name), ", ", stringify!($options), ", Module};\n",
                "let conv = ", stringify!($name), "::without_bias(2, 4, 1, ", stringify!($options), "::default())?;\n",
                "assert_eq!((conv.bias().is_none(), conv.num_parameters()), (true, 2 * 4));\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            #[doc(alias = "conv1d_no_bias")]
            #[doc(alias = "conv2d_no_bias")]
            #[doc = concat!("As [`", stringify!($name), "::new_with`].")]
            pub fn without_bias(
                inputs: usize,
                outputs: usize,
                kernel: impl Into<PerDim<$rank>>,
                options: $options<$rank>
            ) -> Result<$name> {
                called(stringify!($name), &["inputs", "outputs", "kernel"], || {
                    let channels = [[inputs, outputs][$first], [inputs, outputs][$second]];
                    let weight = self::kernel(stringify!($name), channels, options.groups, &kernel.into().0)?;
                    Ok($name { weight, bias: None, options })
                })
            }

            #[doc = concat!("A module of these tensors: the weight `", $shape, "`, the bias `[out]`.")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{", stringify!($name), ", ", stringify!($options), ", Module};\n",
                "use keyway::Tensor;\n",
                "let (weight, bias) = (Tensor::new([3.0f32])?.reshape(", $dims, ")?, Tensor::new([1.0f32])?);\n",
                "let conv = ", stringify!($name), "::from_tensors(weight, Some(bias), ", stringify!($options), "::default())?;\n",
                "assert_eq!(conv.forward(&Tensor::ones(", $dims, ")?)?.item::<f32>()?, 4.0);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// A dtype that cannot require gradients.
            pub fn from_tensors(
                weight: Tensor,
                bias: Option<Tensor>,
                options: $options<$rank>,
            ) -> Result<$name> {
                called(stringify!($name), &["weight", "bias"], || {
                    let bias = bias.map(Parameter::new).transpose()?;
                    Ok($name { weight: Parameter::new(weight)?, bias, options })
                })
            }

            #[doc = concat!("The weight, `", $shape, "`.")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let conv = keyway::nn::", stringify!($name), "::new(1, 1, 1)?;\n",
                "assert_eq!(conv.weight().shape(), keyway::Tensor::zeros(", $dims, ")?.shape());\n",
                "# Ok(()) }\n```",
            )]
            pub fn weight(&self) -> Tensor {
                self.weight.get()
            }

            /// The bias, `[out]`.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let conv = keyway::nn::", stringify!($name), "::new(2, 4, 1)?;\n",
                "assert_eq!(conv.bias().unwrap().shape(), [4]);\n",
                "# Ok(()) }\n```",
            )]
            pub fn bias(&self) -> Option<Tensor> {
                self.bias.as_ref().map(Parameter::get)
            }
        }

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$with(&self.weight.get(), self.bias().as_ref(), self.options)
            }

            fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
                visitor.parameter("weight", &self.weight);
                if let Some(bias) = &self.bias {
                    visitor.parameter("bias", bias);
                }
            }
        }
    )+};
}

convolutions! {
    /// [`Tensor::conv1d`] with a learned weight: `[batch, in, length]` to `[batch, out, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Conv1d, ConvOptions, Module}};
    /// let conv = Conv1d::new_with(2, 4, 3, ConvOptions::default().padding(1))?;
    /// let x = Tensor::ones((1, 2, 8))?;
    /// assert_eq!(conv.forward(&x)?.shape(), [1, 4, 8]);
    /// # Ok(()) }
    /// ```
    Conv1d 1 ConvOptions conv1d_with [1, 0] "[out, in / groups, length]" "(1, 1, 1)";

    /// [`Tensor::conv2d`] with a learned weight: `[batch, in, height, width]` to `[batch, out, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Conv2d, ConvOptions, Module}};
    /// let conv = Conv2d::new_with(2, 4, [3, 1], ConvOptions::default().stride(2))?;
    /// let x = Tensor::ones((1, 2, 9, 9))?;
    /// assert_eq!(conv.forward(&x)?.shape(), [1, 4, 4, 5]);
    /// assert_eq!(conv.num_parameters(), 4 * 2 * 3 + 4);
    /// # Ok(()) }
    /// ```
    Conv2d 2 ConvOptions conv2d_with [1, 0] "[out, in / groups, height, width]" "(1, 1, 1, 1)";

    /// [`Tensor::conv3d`] with a learned weight: `[batch, in, depth, height, width]` to `[batch, out, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Conv3d, ConvOptions, Module}};
    /// let conv = Conv3d::without_bias(2, 2, 2, ConvOptions::default().groups(2))?;
    /// let x = Tensor::ones((1, 2, 3, 3, 3))?;
    /// assert_eq!(conv.forward(&x)?.shape(), [1, 2, 2, 2, 2]);
    /// # Ok(()) }
    /// ```
    Conv3d 3 ConvOptions conv3d_with [1, 0] "[out, in / groups, depth, height, width]" "(1, 1, 1, 1, 1)";

    /// [`Tensor::conv_transpose1d`] with a learned weight: `[batch, in, length]` to `[batch, out, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ConvTranspose1d, ConvTransposeOptions, Module}};
    /// let conv = ConvTranspose1d::new_with(2, 4, 2, ConvTransposeOptions::default().stride(2))?;
    /// let x = Tensor::ones((1, 2, 3))?;
    /// assert_eq!(conv.forward(&x)?.shape(), [1, 4, 6]);
    /// # Ok(()) }
    /// ```
    ConvTranspose1d 1 ConvTransposeOptions conv_transpose1d_with [0, 1] "[in, out / groups, length]" "(1, 1, 1)";

    /// [`Tensor::conv_transpose2d`] with a learned weight: `[batch, in, height, width]` to `[batch, out, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ConvTranspose2d, ConvTransposeOptions, Module}};
    /// let doubled = ConvTransposeOptions::default().stride(2).padding(1).output_padding(1);
    /// let conv = ConvTranspose2d::new_with(2, 4, 3, doubled)?;
    /// let x = Tensor::ones((1, 2, 3, 5))?;
    /// assert_eq!(conv.forward(&x)?.shape(), [1, 4, 6, 10]);
    /// # Ok(()) }
    /// ```
    ConvTranspose2d 2 ConvTransposeOptions conv_transpose2d_with [0, 1] "[in, out / groups, height, width]" "(1, 1, 1, 1)";

    /// [`Tensor::conv_transpose3d`] with a learned weight: `[batch, in, depth, height, width]` to `[batch, out, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ConvTranspose3d, ConvTransposeOptions, Module}};
    /// let conv = ConvTranspose3d::new(1, 1, 2)?;
    /// let x = Tensor::ones((1, 1, 2, 2, 2))?;
    /// assert_eq!(conv.forward(&x)?.shape(), [1, 1, 3, 3, 3]);
    /// # Ok(()) }
    /// ```
    ConvTranspose3d 3 ConvTransposeOptions conv_transpose3d_with [0, 1]
        "[in, out / groups, depth, height, width]" "(1, 1, 1, 1, 1)";
}
