//! Pooling to a given output size, and max unpooling.

use super::Module;
use crate::ops::conv::PerDim;
use crate::ops::pool::{MaxUnpoolOptions, OutputSize};
use crate::{Result, Tensor};

macro_rules! adaptive {
    ($($(#[$doc:meta])* $name:ident $rank:literal $call:ident ($shape:literal, $size:literal, $made:literal);)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub OutputSize<$rank>);

        impl $name {
            /// A module with these output sizes.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                "let x = Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
                "let pool = ", stringify!($name), "::new(", $size, ");\n",
                "assert_eq!(pool.forward(&x)?.to_vec::<f32>()?, ", $made, ");\n",
                "# Ok(()) }\n```",
            )]
            pub fn new(output_size: impl Into<OutputSize<$rank>>) -> $name {
                $name(output_size.into())
            }
        }

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$call(self.0)
            }
        }
    )+};
}

adaptive! {
    /// [`Tensor::adaptive_avg_pool1d`] of inputs `[batch, channels, length]`; see [`AdaptiveAvgPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AdaptiveAvgPool1d, Module}};
    /// let x = Tensor::new([[[1.0f32, 4.0, 4.0]]])?;
    /// assert_eq!(AdaptiveAvgPool1d::new(1).forward(&x)?.to_vec::<f32>()?, [3.0]);
    /// # Ok(()) }
    /// ```
    AdaptiveAvgPool1d 1 adaptive_avg_pool1d ("(1, 1, 4)", "2", "[2.5, 2.5]");

    /// [`Tensor::adaptive_avg_pool2d`] of inputs `[batch, channels, height, width]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AdaptiveAvgPool2d, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 4.0, 3.0, 5.0, 9.0], (1, 1, 2, 3))?;
    /// assert_eq!(AdaptiveAvgPool2d::new(1).forward(&x)?.to_vec::<f32>()?, [4.0]);
    /// let columns = AdaptiveAvgPool2d::new([Some(1), None]);
    /// assert_eq!(columns.forward(&x)?.to_vec::<f32>()?, [2.0, 3.5, 6.5]);
    /// # Ok(()) }
    /// ```
    AdaptiveAvgPool2d 2 adaptive_avg_pool2d ("(1, 1, 1, 4)", "[1, 2]", "[2.5, 2.5]");

    /// [`Tensor::adaptive_avg_pool3d`] of inputs `[batch, channels, depth, height, width]`; see [`AdaptiveAvgPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AdaptiveAvgPool3d, Module}};
    /// let x = Tensor::ones((1, 2, 4, 5, 6))?;
    /// assert_eq!(AdaptiveAvgPool3d::new([2, 1, 3]).forward(&x)?.shape(), [1, 2, 2, 1, 3]);
    /// # Ok(()) }
    /// ```
    AdaptiveAvgPool3d 3 adaptive_avg_pool3d ("(1, 1, 1, 1, 4)", "[1, 1, 2]", "[2.5, 2.5]");

    /// [`Tensor::adaptive_max_pool1d`] of inputs `[batch, channels, length]`; see [`AdaptiveMaxPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AdaptiveMaxPool1d, Module}};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0]]])?;
    /// assert_eq!(AdaptiveMaxPool1d::new(1).forward(&x)?.to_vec::<f32>()?, [4.0]);
    /// # Ok(()) }
    /// ```
    AdaptiveMaxPool1d 1 adaptive_max_pool1d ("(1, 1, 4)", "2", "[4.0, 3.0]");

    /// [`Tensor::adaptive_max_pool2d`] of inputs `[batch, channels, height, width]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AdaptiveMaxPool2d, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 4.0, 3.0, 5.0, 9.0], (1, 1, 2, 3))?;
    /// assert_eq!(AdaptiveMaxPool2d::new([1, 2]).forward(&x)?.to_vec::<f32>()?, [5.0, 9.0]);
    /// # Ok(()) }
    /// ```
    AdaptiveMaxPool2d 2 adaptive_max_pool2d ("(1, 1, 1, 4)", "[1, 2]", "[4.0, 3.0]");

    /// [`Tensor::adaptive_max_pool3d`] of inputs `[batch, channels, depth, height, width]`; see [`AdaptiveMaxPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AdaptiveMaxPool3d, Module}};
    /// let x = Tensor::ones((1, 2, 4, 5, 6))?;
    /// assert_eq!(AdaptiveMaxPool3d::new([2, 1, 3]).forward(&x)?.shape(), [1, 2, 2, 1, 3]);
    /// # Ok(()) }
    /// ```
    AdaptiveMaxPool3d 3 adaptive_max_pool3d ("(1, 1, 1, 1, 4)", "[1, 1, 2]", "[4.0, 3.0]");
}

macro_rules! unpools {
    ($($(#[$doc:meta])* $name:ident $rank:literal $call:ident ($pooled:literal, $window:literal);)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub MaxUnpoolOptions<$rank>);

        impl $name {
            /// The inverse of max pooling with this window and an equal stride.
            ///
            #[doc = concat!(
                "```\n",
                "use keyway::nn::{MaxUnpoolOptions, ", stringify!($name), "};\n",
                "assert_eq!(", stringify!($name), "::new(2).0, MaxUnpoolOptions::new(2));\n",
                "```",
            )]
            pub fn new(kernel: impl Into<PerDim<$rank>>) -> $name {
                $name(MaxUnpoolOptions::new(kernel))
            }

            /// Writes each pooled value to the index that max pooling returned for it, and 0 elsewhere. The spatial sizes of
            /// the result are `output_size`, or the default sizes. It takes two tensors, so it is not a [`Module`].
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::", stringify!($name), "};\n",
                "let x = Tensor::new([4.0f32, 3.0])?.reshape(", $pooled, ")?;\n",
                "let indices = Tensor::new([1i64, 2])?.reshape(", $pooled, ")?;\n",
                "let back = ", stringify!($name), "::new(", $window, ").forward(&x, &indices, None)?;\n",
                "assert_eq!(back.to_vec::<f32>()?, [0.0, 4.0, 3.0, 0.0]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            #[doc = concat!("As [`Tensor::", stringify!($call), "`].")]
            pub fn forward(
                &self,
                input: &Tensor,
                indices: &Tensor,
                output_size: Option<[usize; $rank]>,
            ) -> Result<Tensor> {
                let output_size = output_size.or(self.0.output_size);
                input.$call(indices, MaxUnpoolOptions { output_size, ..self.0 })
            }
        }
    )+};
}

unpools! {
    /// [`Tensor::max_unpool1d`] of inputs `[batch, channels, length]`; see [`MaxUnpool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{MaxPoolOptions, MaxUnpool1d}};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0]]])?;
    /// let (largest, indices) = x.max_pool1d_with_indices(MaxPoolOptions::new(2))?;
    /// let back = MaxUnpool1d::new(2).forward(&largest, &indices, None)?;
    /// assert_eq!(back.to_vec::<f32>()?, [0.0, 4.0, 3.0, 0.0]);
    /// # Ok(()) }
    /// ```
    MaxUnpool1d 1 max_unpool1d ("(1, 1, 2)", "2");

    /// [`Tensor::max_unpool2d`] of inputs `[batch, channels, height, width]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{MaxPoolOptions, MaxUnpool2d}};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 4.0, 3.0], (1, 1, 2, 2))?;
    /// let (largest, indices) = x.max_pool2d_with_indices(MaxPoolOptions::new(2))?;
    /// let back = MaxUnpool2d::new(2).forward(&largest, &indices, None)?;
    /// assert_eq!(back.to_vec::<f32>()?, [0.0, 0.0, 4.0, 0.0]);
    /// # Ok(()) }
    /// ```
    MaxUnpool2d 2 max_unpool2d ("(1, 1, 1, 2)", "[1, 2]");

    /// [`Tensor::max_unpool3d`] of inputs `[batch, channels, depth, height, width]`; see [`MaxUnpool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{MaxPoolOptions, MaxUnpool3d}};
    /// let x = Tensor::ones((1, 2, 4, 4, 4))?;
    /// let (largest, indices) = x.max_pool3d_with_indices(MaxPoolOptions::new(2))?;
    /// assert_eq!(MaxUnpool3d::new(2).forward(&largest, &indices, None)?.shape(), x.shape());
    /// # Ok(()) }
    /// ```
    MaxUnpool3d 3 max_unpool3d ("(1, 1, 1, 1, 2)", "[1, 1, 2]");
}
