//! `new` of the modules that are plain values: `Relu::new()` in addition to `Relu`, `LeakyRelu::new(0.2)` in addition to
//! the struct literal. None of them returns a `Result`, since none can fail.

use super::{
    BceLoss, BceWithLogitsLoss, Celu, ChannelShuffle, CosineEmbeddingLoss, CrossEntropyLoss, Elu, Flatten,
    Fold, GaussianNllLoss, Gelu, Glu, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, HingeEmbeddingLoss,
    HuberLoss, Identity, KlDivLoss, L1Loss, LeakyRelu, LogSigmoid, LogSoftmax, MarginRankingLoss, Mish,
    MseLoss, MultiMarginLoss, NllLoss, PixelShuffle, PixelUnshuffle, PoissonNllLoss, Relu, Relu6, Selu,
    Sigmoid, Silu, SmoothL1Loss, SoftMarginLoss, Softmax, Softplus, Softshrink, Softsign, Tanh, Tanhshrink,
    Threshold, TripletMarginLoss, Unfold, Upsample,
};
use crate::ops::conv::PerDim;
use crate::ops::image::{InterpolateOptions, UnfoldOptions};

/// Modules whose `new` returns the default.
macro_rules! of_default {
    ($($name:ident)*) => {$(
        impl $name {
            /// The module with its default options.
            ///
            #[doc = concat!(
                "```\nuse keyway::nn::", stringify!($name), ";\n",
                "assert_eq!(format!(\"{:?}\", ", stringify!($name), "::new()), format!(\"{:?}\", ", stringify!($name),
                "::default()));\n```",
            )]
            #[must_use]
            pub fn new() -> $name {
                $name::default()
            }
        }
    )*};
}

of_default! {
    Relu Silu Sigmoid Tanh Hardswish Relu6 Hardsigmoid LogSigmoid Softsign Tanhshrink Identity Mish Selu
    Gelu Flatten
    MseLoss L1Loss SmoothL1Loss HuberLoss BceLoss BceWithLogitsLoss NllLoss CrossEntropyLoss KlDivLoss
    HingeEmbeddingLoss SoftMarginLoss MultiMarginLoss PoissonNllLoss
    TripletMarginLoss CosineEmbeddingLoss MarginRankingLoss GaussianNllLoss
}

/// Modules whose `new` takes their fields as arguments.
macro_rules! of_fields {
    ($($(#[$doc:meta])* $name:ident($($field:ident: $type:ty),+) $example:literal;)*) => {$(
        impl $name {
            $(#[$doc])*
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\nuse keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                "let module = ", stringify!($name), "::new(", $example, ");\n",
                "assert_eq!(module.forward(&Tensor::ones((2, 4))?)?.dim(0)?, 2);\n# Ok(()) }\n```",
            )]
            #[must_use]
            pub const fn new($($field: $type),+) -> $name {
                $name { $($field),+ }
            }
        }
    )*};
}

of_fields! {
    /// A module with this slope below 0.
    LeakyRelu(slope: f64) "0.5";
    /// A module with this `alpha`, the negated limit at minus infinity.
    Elu(alpha: f64) "0.5";
    /// A module with this `alpha`, the negated limit at minus infinity.
    Celu(alpha: f64) "0.5";
    /// A module with this shift towards 0.
    Softshrink(lambd: f64) "0.25";
    /// A module with this threshold of `|x|`.
    Hardshrink(lambd: f64) "0.25";
    /// A module with these bounds.
    Hardtanh(min_val: f64, max_val: f64) "0.0, 2.0";
    /// A module with this threshold and this replacement of elements at or below it.
    Threshold(threshold: f64, value: f64) "1.0, -9.0";
    /// A module that splits this dimension into halves.
    Glu(dim: i64) "-1";
    /// A module with this sharpness and this threshold of the linear part.
    Softplus(beta: f64, threshold: f64) "2.0, 20.0";
    /// A module over this dimension.
    Softmax(dim: i64) "1";
    /// A module over this dimension.
    LogSoftmax(dim: i64) "1";
}

/// Modules that rearrange channels and pixels by a factor.
macro_rules! of_factor {
    ($($name:ident $shape:literal;)*) => {$(
        impl $name {
            /// A module with this factor.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\nuse keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                "let x = Tensor::ones((1, 4, 2, 2))?;\n",
                "assert_eq!(", stringify!($name), "::new(2).forward(&x)?.shape(), ", $shape, ");\n# Ok(()) }\n```",
            )]
            #[must_use]
            pub const fn new(factor: usize) -> $name {
                $name(factor)
            }
        }
    )*};
}

of_factor! {
    PixelShuffle "[1, 1, 4, 4]";
    PixelUnshuffle "[1, 16, 1, 1]";
    ChannelShuffle "[1, 4, 2, 2]";
}

impl Upsample {
    /// A module with these options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{InterpolateOptions, Module, Upsample}};
    /// let doubled = Upsample::new(InterpolateOptions::scale(2.0));
    /// assert_eq!(doubled.forward(&Tensor::ones((1, 3, 4, 5))?)?.shape(), [1, 3, 8, 10]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn new(options: InterpolateOptions) -> Upsample {
        Upsample(options)
    }
}

impl Unfold {
    /// A module with these options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Unfold, UnfoldOptions}};
    /// assert_eq!(Unfold::new(UnfoldOptions::new(2)).forward(&Tensor::ones((1, 2, 4, 4))?)?.shape(), [1, 8, 9]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn new(options: UnfoldOptions) -> Unfold {
        Unfold(options)
    }
}

impl Fold {
    /// A module with this output height and width and these options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Fold, Module, UnfoldOptions}};
    /// let fold = Fold::new([1, 3], UnfoldOptions::new([1, 2]));
    /// assert_eq!(fold.forward(&Tensor::ones((1, 2, 2))?)?.to_vec::<f32>()?, [1.0, 2.0, 1.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn new(output_size: impl Into<PerDim<2>>, options: UnfoldOptions) -> Fold {
        Fold { output_size: output_size.into(), options }
    }
}
