//! The adaptive pooling methods of [`Tensor`](crate::Tensor), whose windows are derived from the output size.

use super::options::OutputSize;
use super::{adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::conv::{PerDim, batched, unbatched};
use keyway_dispatcher::op::Arg;

macro_rules! pools {
    ($($rank:literal $avg:ident $max:ident $with_indices:ident [$images:literal] $shape:literal $size:literal;)+) => {
        impl Tensor {$(
            #[doc = concat!("Adaptive average pooling of `", $images, "`, or of an input without a batch. Window `i` of ")]
            /// a dimension is `⌊i * input / output⌋ .. ⌈(i + 1) * input / output⌉`.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "assert_eq!(x.", stringify!($avg), "(", $size, ")?.to_vec::<f32>()?, [2.5, 2.5]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Another rank, a dtype that is not a float; an input size of 0.
            pub fn $avg(&self, output_size: impl Into<OutputSize<$rank>>) -> Result<Tensor> {
                mean(stringify!($avg), self, output_size.into())
            }

            #[doc = concat!("Adaptive max pooling over the windows of [`Tensor::", stringify!($avg), "`]; NaN counts as the ")]
            /// largest element.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "assert_eq!(x.", stringify!($max), "(", $size, ")?.to_vec::<f32>()?, [4.0, 3.0]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            #[doc = concat!("As [`Tensor::", stringify!($avg), "`]; integers are taken, bool is not.")]
            pub fn $max(&self, output_size: impl Into<OutputSize<$rank>>) -> Result<Tensor> {
                Ok(largest(stringify!($max), self, output_size.into())?.0)
            }

            #[doc = concat!("[`Tensor::", stringify!($max), "`], and the index of each element in its channel, flattened over the ")]
            /// spatial dimensions; the first of equal elements.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "let (_, indices) = x.", stringify!($with_indices), "(", $size, ")?;\n",
                "assert_eq!(indices.to_vec::<i64>()?, [1, 2]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            #[doc = concat!("As [`Tensor::", stringify!($avg), "`]; integers are taken, bool is not.")]
            pub fn $with_indices(&self, output_size: impl Into<OutputSize<$rank>>) -> Result<(Tensor, Tensor)> {
                largest(stringify!($with_indices), self, output_size.into())
            }
        )+}
    };
}

pools! {
    1 adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool1d_with_indices ["[batch, channels, length]"]
        "(1, 1, 4)" "2";
    2 adaptive_avg_pool2d adaptive_max_pool2d adaptive_max_pool2d_with_indices ["[batch, channels, height, width]"]
        "(1, 1, 1, 4)" "[1, 2]";
    3 adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices
        ["[batch, channels, depth, height, width]"] "(1, 1, 1, 1, 4)" "[1, 1, 2]";
}

/// The spatial sizes of the result, and the window sizes if they are the same at every position.
fn windows<const N: usize>(x: &Tensor, to: OutputSize<N>) -> (PerDim<N>, Option<[i64; N]>) {
    let sizes: [usize; N] = std::array::from_fn(|d| to.0[d].unwrap_or(x.shape()[d + 2]));
    let own = &x.shape()[2..];
    let alike = (0..N).all(|d| own[d] > 0 && sizes[d] > 0 && own[d].is_multiple_of(sizes[d]));
    (PerDim(sizes), alike.then(|| std::array::from_fn(|d| (own[d] / sizes[d]) as i64)))
}

pub(crate) fn mean<const N: usize>(op: &'static str, input: &Tensor, to: OutputSize<N>) -> Result<Tensor> {
    called(op, &["self", "output_size"], || {
        let (x, had_batch) = batched(op, input, N)?;
        let made = match windows(&x, to) {
            // A single window is a full reduction, which has its own kernels.
            (PerDim(sizes), Some(_)) if sizes == [1; N] && x.dtype().is_float() => {
                let dims: [i64; N] = std::array::from_fn(|d| d as i64 + 2);
                x.mean_keepdim(dims)?
            }
            // Windows of equal size are those of `avg_pool`, which more kernels serve.
            (_, Some(window)) => avg_pool::DEF.run(&[
                (&x).into(),
                Arg::Ints(&window),
                Arg::Ints(&window),
                Arg::Ints(&[0; N]),
                Arg::Bool(false),
                Arg::Bool(false),
                Arg::None,
            ])?,
            (sizes, None) => adaptive_avg_pool::DEF.run(&[(&x).into(), Arg::Ints(&sizes.ints())])?,
        };
        unbatched(made, had_batch)
    })
}

fn largest<const N: usize>(op: &'static str, input: &Tensor, to: OutputSize<N>) -> Result<(Tensor, Tensor)> {
    called(op, &["self", "output_size"], || {
        let (x, had_batch) = batched(op, input, N)?;
        let (values, indices) = match windows(&x, to) {
            (_, Some(window)) => max_pool::DEF.run_pair(&[
                (&x).into(),
                Arg::Ints(&window),
                Arg::Ints(&window),
                Arg::Ints(&[0; N]),
                Arg::Ints(&[1; N]),
                Arg::Bool(false),
            ])?,
            (sizes, None) => adaptive_max_pool::DEF.run_pair(&[(&x).into(), Arg::Ints(&sizes.ints())])?,
        };
        Ok((unbatched(values, had_batch)?, unbatched(indices, had_batch)?))
    })
}
