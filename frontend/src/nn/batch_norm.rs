//! Batch normalization.

use super::channel_norm::ChannelNorm;
use super::{Module, ModuleVisitor};
use crate::{Result, Tensor};

macro_rules! batch_norm {
    ($($(#[$doc:meta])* $name:ident [$($dims:literal),+] $pair:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub(super) ChannelNorm);

        impl $name {
            /// A module for `features` channels, with a weight of ones, a bias of zeros, running statistics, an `eps` of 1e-5
            /// and a momentum of 0.1.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{", stringify!($name), ", Module};\n",
                "let norm = ", stringify!($name), "::new(3)?;\n",
                "assert_eq!((norm.num_parameters(), norm.named_buffers().len()), (6, 3));\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Out of memory.
            pub fn new(features: usize) -> Result<$name> {
                let plain = ChannelNorm::plain(stringify!($name), features);
                Ok($name(plain.with_affine()?.with_running()?))
            }

            /// Removes weight and bias.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{", stringify!($name), ", Module};\n",
                "assert_eq!(", stringify!($name), "::new(3)?.without_affine().num_parameters(), 0);\n",
                "# Ok(()) }\n```",
            )]
            pub fn without_affine(self) -> $name {
                $name(self.0.without_affine())
            }

            /// Removes the running statistics: evaluation mode normalizes with the statistics of the batch too.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                "let norm = ", stringify!($name), "::new(1)?.eps(0.0).without_running_stats();\n",
                "norm.eval();\n",
                "let x = Tensor::new([1.0f32, 3.0])?.reshape(", $pair, ")?;\n",
                "assert_eq!(norm.forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);\n",
                "# Ok(()) }\n```",
            )]
            pub fn without_running_stats(self) -> $name {
                $name(self.0.without_running())
            }
        }

        super::channel_norm::options!($name, "::new(1)?", "::new(1)?", $pair);

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                self.0.check(input, &[$($dims),+])?;
                self.0.forward(|running, [weight, bias], own, momentum, eps| {
                    input.batch_norm(running, weight, bias, own, momentum, eps)
                })
            }

            fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
                self.0.visit(visitor);
            }
        }
    )*};
}

batch_norm! {
    /// [`Tensor::batch_norm`] of inputs `[batch, channels]` or `[batch, channels, length]`. Training mode normalizes with the
    /// statistics of the batch, evaluation mode with the running statistics.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{BatchNorm1d, Module}};
    /// let norm = BatchNorm1d::new(1)?.eps(0.0).momentum(Some(1.0));
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (2, 1))?;
    /// assert_eq!(norm.forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// norm.eval();
    /// assert_eq!(norm.state_dict()["running_mean"].to_vec::<f32>()?, [2.0]);
    /// assert_eq!(norm.forward(&Tensor::from_vec(vec![2.0f32], (1, 1))?)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    BatchNorm1d [2, 3] "(2, 1)";

    /// [`Tensor::batch_norm`] of inputs `[batch, channels, height, width]`; see [`BatchNorm1d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{BatchNorm2d, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 1, 2))?;
    /// assert_eq!(BatchNorm2d::new(1)?.eps(0.0).forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "batch_norm")]
    BatchNorm2d [4] "(2, 1, 1, 1)";

    /// [`Tensor::batch_norm`] of inputs `[batch, channels, depth, height, width]`; see [`BatchNorm1d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{BatchNorm3d, Module}};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 2, 1, 1))?;
    /// assert_eq!(BatchNorm3d::new(1)?.eps(0.0).forward(&x)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    BatchNorm3d [5] "(2, 1, 1, 1, 1)";
}
