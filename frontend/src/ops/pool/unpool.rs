//! The unpooling methods of [`Tensor`](crate::Tensor).

use super::max_unpool;
use super::options::MaxUnpoolOptions;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::conv::{PerDim, batched, unbatched};
use keyway_dispatcher::Error;
use keyway_dispatcher::op::Arg;

macro_rules! unpools {
    ($($rank:literal $unpool:ident $with_indices:ident [$images:literal] $shape:literal $window:literal;)+) => {
        impl Tensor {$(
            #[doc = concat!("The elements that [`Tensor::", stringify!($with_indices), "`] took out of `", $images, "` at their ")]
            /// indices, zeros elsewhere. If overlapping windows give several elements the same index, the last one wins.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "let (largest, indices) = x.", stringify!($with_indices), "(", $window, ")?;\n",
                "let back = largest.", stringify!($unpool), "(&indices, ", $window, ")?;\n",
                "assert_eq!(back.to_vec::<f32>()?, [0.0, 4.0, 3.0, 0.0]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Another rank, a dtype that is not a float; indices of another shape, not of an integer dtype, or outside the
            /// result's channels; a result without elements, or of sizes that do not pool to the input's.
            pub fn $unpool(&self, indices: &Tensor, options: impl Into<MaxUnpoolOptions<$rank>>) -> Result<Tensor> {
                put(stringify!($unpool), self, indices, options.into())
            }
        )+}
    };
}

unpools! {
    1 max_unpool1d max_pool1d_with_indices ["[batch, channels, length]"] "(1, 1, 4)" "2";
    2 max_unpool2d max_pool2d_with_indices ["[batch, channels, height, width]"] "(1, 1, 1, 4)" "[1, 2]";
    3 max_unpool3d max_pool3d_with_indices ["[batch, channels, depth, height, width]"]
        "(1, 1, 1, 1, 4)" "[1, 1, 2]";
}

fn put<const N: usize>(
    op: &'static str,
    input: &Tensor,
    indices: &Tensor,
    options: MaxUnpoolOptions<N>,
) -> Result<Tensor> {
    called(op, &["self", "indices", "output_size"], || {
        let (x, had_batch) = batched(op, input, N)?;
        let indices = if had_batch { indices.clone() } else { indices.unsqueeze(0)? };
        let mut sizes = [0; N];
        for (d, size) in sizes.iter_mut().enumerate() {
            let [kernel, stride, padding] =
                [options.kernel, options.stride, options.padding].map(|list: PerDim<N>| list.0[d] as i128);
            let usual = (x.shape()[d + 2] as i128 - 1) * stride + kernel - 2 * padding;
            let given = options.output_size.map_or(usual, |sizes| sizes[d] as i128);
            if given < 1 || (given - usual).abs() >= stride.max(1) {
                let expected = format!(
                    "1 or more, and {usual} or less than the stride {stride} from it, in spatial dimension {d}"
                );
                return Err(
                    Error::Value { op, argument: "output_size", expected, got: given.to_string() }.into()
                );
            }
            *size = i64::try_from(given).unwrap_or(i64::MAX);
        }
        unbatched(max_unpool::DEF.run(&[(&x).into(), (&indices).into(), Arg::Ints(&sizes)])?, had_batch)
    })
}
