//! Pooling layers.

use super::Module;
use crate::ops::conv::PerDim;
use crate::ops::pool::{AvgPoolOptions, LpPoolOptions, MaxPoolOptions};
use crate::{Result, Tensor};

/// The constructor of a pooling layer: from options or a window size, or from arguments and a window.
macro_rules! new {
    ($name:ident $rank:literal $options:ident() ($shape:literal, $given:literal, $made:literal)) => {
        /// A module with this window and an equal stride, or with these options.
        ///
        #[doc = concat!(
            "```\n# fn main() -> keyway::Result<()> {\n",
            "use keyway::{Tensor, nn::{", stringify!($name), ", ", stringify!($options), ", Module}};\n",
            "let x = Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
            "let pool = ", stringify!($name), "::new(", $given, ");\n",
            "assert_eq!(pool.forward(&x)?.to_vec::<f32>()?, ", $made, ");\n",
            "let pool = ", stringify!($name), "::new(", stringify!($options), "::new(", $given, ").stride(1));\n",
            "assert_eq!(pool.forward(&x)?.elem_count(), 3);\n",
            "# Ok(()) }\n```",
        )]
        pub fn new(window: impl Into<$options<$rank>>) -> $name {
            $name(window.into())
        }
    };
    ($name:ident $rank:literal $options:ident($($arg:ident: $type:ty),+) ($shape:literal, $given:literal, $made:literal)) => {
        /// A module with this window and an equal stride.
        ///
        #[doc = concat!(
            "```\n# fn main() -> keyway::Result<()> {\n",
            "use keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
            "let x = Tensor::new([1.0f32, 4.0, 3.0, 2.0])?.reshape(", $shape, ")?;\n",
            "let pool = ", stringify!($name), "::new(", $given, ");\n",
            "assert_eq!(pool.forward(&x)?.to_vec::<f32>()?, ", $made, ");\n",
            "# Ok(()) }\n```",
        )]
        pub fn new($($arg: $type,)+ kernel: impl Into<PerDim<$rank>>) -> $name {
            $name($options::new($($arg,)+ kernel))
        }
    };
}

macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident $rank:literal $options:ident($($arg:ident: $type:ty),*) $call:ident ($shape:literal, $given:literal, $made:literal);)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $options<$rank>);

        impl $name {
            new! { $name $rank $options($($arg: $type),*) ($shape, $given, $made) }
        }

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$call(self.0)
            }
        }
    )+};
}

pools! {
    /// [`Tensor::max_pool1d`] of inputs `[batch, channels, length]`; see [`MaxPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{MaxPool1d, MaxPoolOptions, Module}};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0]]])?;
    /// assert_eq!(MaxPool1d(MaxPoolOptions::new(2).stride(1)).forward(&x)?.to_vec::<f32>()?, [4.0, 4.0]);
    /// # Ok(()) }
    /// ```
    MaxPool1d 1 MaxPoolOptions() max_pool1d
        ("(1, 1, 4)", "2", "[4.0, 3.0]");

    /// [`Tensor::max_pool2d`] of inputs `[batch, channels, height, width]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{MaxPool2d, MaxPoolOptions, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 4.0, 3.0], (1, 1, 2, 2))?;
    /// assert_eq!(MaxPool2d::new(2).forward(&x)?.to_vec::<f32>()?, [4.0]);
    /// let wide = MaxPool2d(MaxPoolOptions::new([1, 2]).stride(1));
    /// assert_eq!(wide.forward(&x)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    MaxPool2d 2 MaxPoolOptions() max_pool2d
        ("(1, 1, 1, 4)", "[1, 2]", "[4.0, 3.0]");

    /// [`Tensor::max_pool3d`] of inputs `[batch, channels, depth, height, width]`; see [`MaxPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{MaxPool3d, Module}};
    /// let x = Tensor::ones((1, 2, 4, 4, 4))?;
    /// assert_eq!(MaxPool3d::new([1, 2, 2]).forward(&x)?.shape(), [1, 2, 4, 2, 2]);
    /// # Ok(()) }
    /// ```
    MaxPool3d 3 MaxPoolOptions() max_pool3d
        ("(1, 1, 1, 1, 4)", "[1, 1, 2]", "[4.0, 3.0]");

    /// [`Tensor::avg_pool1d`] of inputs `[batch, channels, length]`; see [`AvgPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AvgPool1d, AvgPoolOptions, Module}};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0]]])?;
    /// assert_eq!(AvgPool1d(AvgPoolOptions::new(2).stride(1)).forward(&x)?.to_vec::<f32>()?, [2.5, 3.5]);
    /// # Ok(()) }
    /// ```
    AvgPool1d 1 AvgPoolOptions() avg_pool1d
        ("(1, 1, 4)", "2", "[2.5, 2.5]");

    /// [`Tensor::avg_pool2d`] of inputs `[batch, channels, height, width]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AvgPool2d, AvgPoolOptions, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 4.0, 3.0], (1, 1, 2, 2))?;
    /// assert_eq!(AvgPool2d::new(2).forward(&x)?.to_vec::<f32>()?, [2.5]);
    /// let bordered = AvgPool2d(AvgPoolOptions::new(2).padding(1));
    /// assert_eq!(bordered.forward(&x)?.to_vec::<f32>()?, [0.25, 0.5, 1.0, 0.75]);
    /// # Ok(()) }
    /// ```
    AvgPool2d 2 AvgPoolOptions() avg_pool2d
        ("(1, 1, 1, 4)", "[1, 2]", "[2.5, 2.5]");

    /// [`Tensor::avg_pool3d`] of inputs `[batch, channels, depth, height, width]`; see [`AvgPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AvgPool3d, Module}};
    /// let x = Tensor::ones((1, 2, 4, 4, 4))?;
    /// assert_eq!(AvgPool3d::new([1, 2, 2]).forward(&x)?.shape(), [1, 2, 4, 2, 2]);
    /// # Ok(()) }
    /// ```
    AvgPool3d 3 AvgPoolOptions() avg_pool3d
        ("(1, 1, 1, 1, 4)", "[1, 1, 2]", "[2.5, 2.5]");

    /// [`Tensor::lp_pool1d`] of inputs `[batch, channels, length]`; see [`LpPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LpPool1d, Module}};
    /// let x = Tensor::new([[[3.0f32, 4.0]]])?;
    /// assert_eq!(LpPool1d::new(2.0, 2).forward(&x)?.to_vec::<f32>()?, [5.0]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "LPPool1d")]
    LpPool1d 1 LpPoolOptions(norm_type: f64) lp_pool1d
        ("(1, 1, 4)", "1.0, 2", "[5.0, 5.0]");

    /// [`Tensor::lp_pool2d`] of inputs `[batch, channels, height, width]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LpPool2d, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 5.0, 1.0, 3.0], (1, 1, 2, 2))?;
    /// assert_eq!(LpPool2d::new(2.0, 2).forward(&x)?.to_vec::<f32>()?, [6.0]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "LPPool2d")]
    LpPool2d 2 LpPoolOptions(norm_type: f64) lp_pool2d
        ("(1, 1, 1, 4)", "1.0, [1, 2]", "[5.0, 5.0]");

    /// [`Tensor::lp_pool3d`] of inputs `[batch, channels, depth, height, width]`; see [`LpPool2d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LpPool3d, Module}};
    /// let x = Tensor::ones((1, 2, 4, 4, 4))?;
    /// assert_eq!(LpPool3d::new(2.0, [1, 2, 2]).forward(&x)?.shape(), [1, 2, 4, 2, 2]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "LPPool3d")]
    LpPool3d 3 LpPoolOptions(norm_type: f64) lp_pool3d
        ("(1, 1, 1, 1, 4)", "1.0, [1, 1, 2]", "[5.0, 5.0]");
}
