//! The pooling methods of [`Tensor`](crate::Tensor), one per number of spatial dimensions.

use super::options::{AvgPoolOptions, LpPoolOptions, MaxPoolOptions};
use super::{avg_pool, lp_pool, max_pool, max_pool_values};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::whole;
use crate::ops::conv::{batched, unbatched};
use keyway_dispatcher::op::Arg;

macro_rules! pools {
    ($(
        $rank:literal
        $(#[$of_max:meta])* $max:ident $with_indices:ident
        $(#[$of_avg:meta])* $avg:ident $lp:ident
        [$images:literal]
        $shape:literal $window:literal;
    )+) => {
        impl Tensor {$(
            #[doc = concat!("Max pooling of `", $images, "`, or of an input without a batch: the largest element at each window position. ")]
            /// Each spatial dimension has `(size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1` positions, rounded
            /// down, or with `ceil_mode` up, except for a last window that would start after the elements. NaN counts as the
            /// largest element.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "let y = x.", stringify!($max), "(", $window, ")?;\n",
                "assert_eq!(y.to_vec::<f32>()?, [4.0, 3.0]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Another rank, bool or complex elements; a window or a stride of 0, a window larger than the padded input (with
            /// `ceil_mode`, by a stride or more), or one without an element at some output position; a padding of more than
            /// half the window.
            $(#[$of_max])*
            pub fn $max(&self, options: impl Into<MaxPoolOptions<$rank>>) -> Result<Tensor> {
                let run = |args: &[Arg<'_>]| Ok([max_pool_values::DEF.run(args)?]);
                let [values] = largest(stringify!($max), self, options.into(), run)?;
                Ok(values)
            }

            #[doc = concat!("[`Tensor::", stringify!($max), "`], and the index of each element in its channel, flattened over the ")]
            /// spatial dimensions; the first of equal elements, the last NaN.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "let (_, indices) = x.", stringify!($with_indices), "(", $window, ")?;\n",
                "assert_eq!(indices.to_vec::<i64>()?, [1, 2]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            #[doc = concat!("As [`Tensor::", stringify!($max), "`].")]
            pub fn $with_indices(&self, options: impl Into<MaxPoolOptions<$rank>>) -> Result<(Tensor, Tensor)> {
                let run = |args: &[Arg<'_>]| Ok(max_pool::DEF.run_pair(args)?.into());
                Ok(largest(stringify!($with_indices), self, options.into(), run)?.into())
            }

            #[doc = concat!("Average pooling of `", $images, "`, or of an input without a batch: the mean at each window position. ")]
            #[doc = concat!("The window positions are those of [`Tensor::", stringify!($max), "`].")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "let y = x.", stringify!($avg), "(", $window, ")?;\n",
                "assert_eq!(y.to_vec::<f32>()?, [2.5, 2.5]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Another rank, a dtype that is not a float; a window or a stride of 0, a window larger than the padded input
            /// (with `ceil_mode`, by a stride or more); a padding of more than half the window; a divisor of 0.
            $(#[$of_avg])*
            pub fn $avg(&self, options: impl Into<AvgPoolOptions<$rank>>) -> Result<Tensor> {
                mean(stringify!($avg), self, options.into())
            }

            #[doc = concat!("Power-average pooling, `(Σ x^p)^(1/p)` at each window position of `", $images, "`, or of an input ")]
            #[doc = concat!("without a batch; the window positions are those of [`Tensor::", stringify!($max), "`]. Where a ")]
            /// window exceeds the input, the sum is that of a full window with the same mean, as in PyTorch.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::LpPoolOptions;\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "let y = x.", stringify!($lp), "(LpPoolOptions::new(1.0, ", $window, "))?;\n",
                "assert_eq!(y.to_vec::<f32>()?, [5.0, 5.0]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            #[doc = concat!("As [`Tensor::", stringify!($max), "`]; an exponent of 0.")]
            pub fn $lp(&self, options: LpPoolOptions<$rank>) -> Result<Tensor> {
                power_mean(stringify!($lp), self, options)
            }
        )+}
    };
}

pools! {
    1 max_pool1d max_pool1d_with_indices avg_pool1d lp_pool1d ["[batch, channels, length]"]
    "(1, 1, 4)" "2";
    2
    #[doc(alias = "max_pool2d_with_stride")]
    max_pool2d max_pool2d_with_indices
    #[doc(alias = "avg_pool2d_with_stride")]
    avg_pool2d lp_pool2d
    ["[batch, channels, height, width]"]
    "(1, 1, 1, 4)" "[1, 2]";
    3 max_pool3d max_pool3d_with_indices avg_pool3d lp_pool3d ["[batch, channels, depth, height, width]"]
    "(1, 1, 1, 1, 4)" "[1, 1, 2]";
}

/// Batches the images, calls `run` with the arguments of `max_pool`, and removes the batch dimension again.
fn largest<const N: usize, const RESULTS: usize>(
    op: &'static str,
    input: &Tensor,
    options: MaxPoolOptions<N>,
    run: impl FnOnce(&[Arg<'_>]) -> Result<[Tensor; RESULTS]>,
) -> Result<[Tensor; RESULTS]> {
    called(op, &["self", "kernel_size", "stride", "padding", "dilation"], || {
        let (x, had_batch) = batched(op, input, N)?;
        let MaxPoolOptions { kernel, stride, padding, dilation, ceil_mode } = options;
        let [kernel, stride, padding, dilation] = [kernel, stride, padding, dilation].map(|list| list.ints());
        let mut made = run(&[
            (&x).into(),
            Arg::Ints(&kernel),
            Arg::Ints(&stride),
            Arg::Ints(&padding),
            Arg::Ints(&dilation),
            Arg::Bool(ceil_mode),
        ])?;
        for result in &mut made {
            *result = unbatched(result.clone(), had_batch)?;
        }
        Ok(made)
    })
}

fn mean<const N: usize>(op: &'static str, input: &Tensor, options: AvgPoolOptions<N>) -> Result<Tensor> {
    called(op, &["self", "kernel_size", "stride", "padding", "divisor_override"], || {
        let (x, had_batch) = batched(op, input, N)?;
        let AvgPoolOptions { kernel, stride, padding, ceil_mode, count_include_pad, divisor_override } =
            options;
        let [kernel, stride, padding] = [kernel, stride, padding].map(|list| list.ints());
        let made = avg_pool::DEF.run(&[
            (&x).into(),
            Arg::Ints(&kernel),
            Arg::Ints(&stride),
            Arg::Ints(&padding),
            Arg::Bool(ceil_mode),
            Arg::Bool(count_include_pad),
            divisor_override.map_or(Arg::None, whole),
        ])?;
        unbatched(made, had_batch)
    })
}

fn power_mean<const N: usize>(op: &'static str, input: &Tensor, options: LpPoolOptions<N>) -> Result<Tensor> {
    called(op, &["self", "kernel_size", "stride", "norm_type"], || {
        let (x, had_batch) = batched(op, input, N)?;
        let [kernel, stride] = [options.kernel, options.stride].map(|list| list.ints());
        let made = lp_pool::DEF.run(&[
            (&x).into(),
            Arg::Float(options.norm_type),
            Arg::Ints(&kernel),
            Arg::Ints(&stride),
            Arg::Ints(&[0; N]),
            Arg::Bool(options.ceil_mode),
        ])?;
        unbatched(made, had_batch)
    })
}
