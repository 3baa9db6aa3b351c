//! Accessors of the parameters and buffers of layers, with PyTorch's names: `layer.weight()`, `norm.running_mean()`.

use super::{
    BatchNorm1d, BatchNorm2d, BatchNorm3d, Embedding, EmbeddingBag, GroupNorm, InstanceNorm1d,
    InstanceNorm2d, InstanceNorm3d, LayerNorm, Module, MultiheadAttention, Prelu, RmsNorm,
};
use crate::Tensor;

/// The buffer of this name.
fn buffer(module: &impl Module, name: &str) -> Option<Tensor> {
    module.named_buffers().into_iter().find_map(|(own, tensor)| (own == name).then_some(tensor))
}

/// Methods that return a parameter or buffer, `None` if the layer has none of that name.
macro_rules! parts {
    ($($name:ident [$new:literal] { $($part:ident $sizes:literal, $of:literal;)* } [$($buffer:ident $begin:literal, $of_buffer:literal;)*])*) => {$(
        impl $name {
            $(
                #[doc = concat!("The ", $of, "; `None` without it.")]
                ///
                #[doc = concat!(
                    "```\n# fn main() -> keyway::Result<()> {\n",
                    "let layer = keyway::nn::", stringify!($name), $new, ";\n",
                    "assert_eq!(layer.", stringify!($part), "().unwrap().shape(), ", $sizes, ");\n",
                    "# Ok(()) }\n```",
                )]
                pub fn $part(&self) -> Option<Tensor> {
                    self.get_parameter(stringify!($part)).ok()
                }
            )*
            $(
                #[doc = concat!("The ", $of_buffer, "; `None` without it.")]
                ///
                #[doc = concat!(
                    "```\n# fn main() -> keyway::Result<()> {\n",
                    "let layer = keyway::nn::", stringify!($name), $new, ";\n",
                    "assert_eq!(layer.", stringify!($buffer), "().unwrap().to_vec_f64()?, ", $begin, ");\n",
                    "# Ok(()) }\n```",
                )]
                pub fn $buffer(&self) -> Option<Tensor> {
                    buffer(self, stringify!($buffer))
                }
            )*
        }
    )*};
}

parts! {
    LayerNorm ["::new(3)?"] { weight "[3]", "weight, of the normalised shape"; bias "[3]", "bias, of the normalised shape"; } []
    RmsNorm ["::new(3)?"] { weight "[3]", "weight, of the normalised shape"; } []
    GroupNorm ["::new(3, 3)?"] { weight "[3]", "weight, `[channels]`"; bias "[3]", "bias, `[channels]`"; } []
    BatchNorm1d ["::new(2)?"] {
        weight "[2]", "weight, `[features]`";
        bias "[2]", "bias, `[features]`";
    } [
        running_mean "[0.0, 0.0]", "running mean, `[features]`";
        running_var "[1.0, 1.0]", "running variance, `[features]`";
        num_batches_tracked "[0.0]", "number of batches seen, a scalar";
    ]
    BatchNorm2d ["::new(2)?"] {
        weight "[2]", "weight, `[features]`";
        bias "[2]", "bias, `[features]`";
    } [
        running_mean "[0.0, 0.0]", "running mean, `[features]`";
        running_var "[1.0, 1.0]", "running variance, `[features]`";
        num_batches_tracked "[0.0]", "number of batches seen, a scalar";
    ]
    BatchNorm3d ["::new(2)?"] {
        weight "[2]", "weight, `[features]`";
        bias "[2]", "bias, `[features]`";
    } [
        running_mean "[0.0, 0.0]", "running mean, `[features]`";
        running_var "[1.0, 1.0]", "running variance, `[features]`";
        num_batches_tracked "[0.0]", "number of batches seen, a scalar";
    ]
    InstanceNorm1d ["::new(2).with_affine()?.with_running_stats()?"] {
        weight "[2]", "weight, `[features]`";
        bias "[2]", "bias, `[features]`";
    } [
        running_mean "[0.0, 0.0]", "running mean, `[features]`";
        running_var "[1.0, 1.0]", "running variance, `[features]`";
        num_batches_tracked "[0.0]", "number of batches seen, a scalar";
    ]
    InstanceNorm2d ["::new(2).with_affine()?.with_running_stats()?"] {
        weight "[2]", "weight, `[features]`";
        bias "[2]", "bias, `[features]`";
    } [
        running_mean "[0.0, 0.0]", "running mean, `[features]`";
        running_var "[1.0, 1.0]", "running variance, `[features]`";
        num_batches_tracked "[0.0]", "number of batches seen, a scalar";
    ]
    InstanceNorm3d ["::new(2).with_affine()?.with_running_stats()?"] {
        weight "[2]", "weight, `[features]`";
        bias "[2]", "bias, `[features]`";
    } [
        running_mean "[0.0, 0.0]", "running mean, `[features]`";
        running_var "[1.0, 1.0]", "running variance, `[features]`";
        num_batches_tracked "[0.0]", "number of batches seen, a scalar";
    ]
    MultiheadAttention ["::new(4, 2)?"] {
        in_proj_weight "[12, 4]", "weight of the projections to query, key and value, `[3 * width, width]`";
        in_proj_bias "[12]", "bias of the projections to query, key and value, `[3 * width]`";
    } []
}

/// Methods that return a parameter which the layer always has.
macro_rules! weights {
    ($($name:ident [$new:literal] $sizes:literal, $of:literal;)*) => {$(
        impl $name {
            #[doc = concat!("The weight, ", $of, ".")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let layer = keyway::nn::", stringify!($name), $new, ";\n",
                "assert_eq!(layer.weight().shape(), ", $sizes, ");\n",
                "# Ok(()) }\n```",
            )]
            pub fn weight(&self) -> Tensor {
                self.weight.get()
            }
        }
    )*};
}

weights! {
    Embedding ["::new(10, 3)?"] "[10, 3]", "`[rows, columns]`";
    EmbeddingBag ["::new(10, 3)?"] "[10, 3]", "`[rows, columns]`";
    Prelu ["::new()?"] "[1]", "`[1]` or `[channels]`";
}
