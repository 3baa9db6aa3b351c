//! Instance normalization.

use super::channel_norm::ChannelNorm;
use super::{Module, ModuleVisitor};
use crate::{Result, Tensor};

macro_rules! instance_norm {
    ($($(#[$doc:meta])* $name:ident $dims:literal $pair:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(ChannelNorm);

        impl $name {
            /// A module for `features` channels, with an `eps` of 1e-5, without weight, bias and running statistics.
            ///
            #[doc = concat!(
                "```\n",
                "use keyway::nn::{", stringify!($name), ", Module};\n",
                "assert!(", stringify!($name), "::new(3).state_dict().is_empty());\n",
                "```",
            )]
            pub fn new(features: usize) -> $name {
                $name(ChannelNorm::plain(stringify!($name), features))
            }

            /// Adds a weight of ones and a bias of zeros.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{", stringify!($name), ", Module};\n",
                "assert_eq!(", stringify!($name), "::new(3).with_affine()?.num_parameters(), 6);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Out of memory.
            pub fn with_affine(self) -> Result<$name> {
                Ok($name(self.0.with_affine()?))
            }

            /// Adds running statistics, which evaluation mode uses.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                "let norm = ", stringify!($name), "::new(1).eps(0.0).with_running_stats()?;\n",
                "norm.eval();\n",
                "let x = Tensor::new([1.0f32, 3.0])?.reshape(", $pair, ")?;\n",
                "// The mean is 0 and the variance 1 at first.\n",
                "assert_eq!(norm.forward(&x)?.to_vec::<f32>()?, [1.0, 3.0]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Out of memory.
            pub fn with_running_stats(self) -> Result<$name> {
                Ok($name(self.0.with_running()?))
            }
        }

        super::channel_norm::options!($name, "::new(1)", "::new(1).with_running_stats()?", $pair);

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                // An unbatched sample has no batch dimension.
                let batch = if input.rank() + 1 == $dims { input.unsqueeze(0)? } else { input.clone() };
                self.0.check(&batch, &[$dims])?;
                let made = self.0.forward(|running, [weight, bias], own, momentum, eps| {
                    batch.instance_norm_with(running, weight, bias, own, momentum, eps)
                })?;
                if input.rank() + 1 == $dims { made.squeeze(0) } else { Ok(made) }
            }

            fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
                self.0.visit(visitor);
            }
        }
    )*};
}

instance_norm! {
    /// [`Tensor::instance_norm`] of inputs `[batch, channels, length]`, or of one unbatched sample.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{InstanceNorm1d, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 2))?;
    /// assert_eq!(InstanceNorm1d::new(1).eps(0.0).forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    InstanceNorm1d 3 "(1, 1, 2)";

    /// [`Tensor::instance_norm`] of inputs `[batch, channels, height, width]`, or of one unbatched sample.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{InstanceNorm2d, Module}};
    /// let norm = InstanceNorm2d::new(1).eps(0.0).with_affine()?;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 1, 2))?;
    /// assert_eq!(norm.forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    InstanceNorm2d 4 "(1, 1, 1, 2)";

    /// [`Tensor::instance_norm`] of inputs `[batch, channels, depth, height, width]`, or of one unbatched sample.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{InstanceNorm3d, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 2, 1, 1))?;
    /// assert_eq!(InstanceNorm3d::new(1).eps(0.0).forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    InstanceNorm3d 5 "(1, 1, 1, 1, 2)";
}
