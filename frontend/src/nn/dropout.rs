//! Dropout of elements or channels.

use super::parameter::TrainingMode;
use super::{Module, ModuleError, ModuleVisitor};
use crate::rng::{self, Generator};
use crate::{Result, Tensor};

/// Checks a dropout probability, which is in 0..=1.
pub(super) fn share(owner: &'static str, p: f64) -> Result<f64, ModuleError> {
    if (0.0..=1.0).contains(&p) {
        return Ok(p);
    }
    Err(ModuleError::Option { owner, option: "p", expected: "within 0..=1", got: p.to_string() })
}

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident $call:ident $dims:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            p: f64,
            generator: Option<Generator>,
            mode: TrainingMode,
        }

        impl $name {
            /// A module with this dropout probability.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::{", stringify!($name), ", Module}};\n",
                "let dropout = ", stringify!($name), "::new(0.5)?;\n",
                "dropout.eval();\n",
                "assert_eq!(dropout.forward(&Tensor::ones(", $dims, ")?)?.to_vec::<f32>()?, [1.0; 6]);\n",
                "assert!(", stringify!($name), "::new(1.5).is_err());\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// A probability outside 0..=1.
            pub fn new(p: f64) -> Result<$name> {
                Ok($name { p: share(stringify!($name), p)?, generator: None, mode: TrainingMode::default() })
            }

            /// Draws from this generator instead of the default one. Its state is in [`Module::generator_state_dict`].
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::{", stringify!($name), ", Module}, rng::Generator};\n",
                "let draw = || ", stringify!($name), "::new(0.5)?.generator(Generator::new(7)).forward(&Tensor::ones(", $dims, ")?)?.to_vec::<f32>();\n",
                "assert_eq!(draw()?, draw()?);\n",
                "# Ok(()) }\n```",
            )]
            pub fn generator(mut self, generator: Generator) -> $name {
                self.generator = Some(generator);
                self
            }
        }

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                let training = self.mode.is_training() && self.p > 0.0;
                rng::with_some_generator(self.generator.as_ref(), || input.$call(self.p, training))
            }

            fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
                visitor.training_mode(&self.mode);
                if let Some(generator) = &self.generator {
                    visitor.generator("generator", generator);
                }
            }
        }
    )+};
}

dropouts! {
    /// Sets each element to 0 with probability `p` and divides the others by `1 - p` in training mode; the identity in
    /// evaluation mode (N. Srivastava and others, "Dropout: a simple way to prevent neural networks from overfitting", 2014).
    ///
    /// The mask is drawn from the default generator, see [`manual_seed`](crate::manual_seed), or from a generator of the
    /// module, see [`Dropout::generator`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Dropout, Module}};
    /// let dropout = Dropout::new(0.5)?;
    /// let x = Tensor::from_vec(vec![1.0f32; 1000], 1000)?;
    /// let kept = dropout.forward(&x)?.to_vec::<f32>()?.iter().filter(|&&v| v == 2.0).count();
    /// assert!((400..600).contains(&kept));
    /// # Ok(()) }
    /// ```
    Dropout dropout "6";

    /// [`Tensor::dropout1d`] in training mode: drops channels of `[batch, channels, length]`; see [`Dropout`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Dropout1d, Module}};
    /// let channels = Dropout1d::new(0.5)?.forward(&Tensor::ones((1, 16, 3))?)?.mean(2)?.to_vec::<f32>()?;
    /// assert!(channels.iter().all(|&mean| mean == 0.0 || mean == 2.0));
    /// # Ok(()) }
    /// ```
    Dropout1d dropout1d "(1, 2, 3)";

    /// [`Tensor::dropout2d`] in training mode: drops channels of `[batch, channels, height, width]`; see [`Dropout`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Dropout2d, Module}};
    /// let dropout = Dropout2d::new(0.5)?;
    /// let x = Tensor::ones((8, 16, 3, 3))?;
    /// let channels = dropout.forward(&x)?.mean((2, 3))?.to_vec::<f32>()?;
    /// assert!(channels.iter().all(|&mean| mean == 0.0 || mean == 2.0));
    /// dropout.eval();
    /// assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    /// # Ok(()) }
    /// ```
    Dropout2d dropout2d "(1, 2, 1, 3)";

    /// [`Tensor::dropout3d`] in training mode: drops channels of `[batch, channels, depth, height, width]`; see [`Dropout`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Dropout3d, Module}};
    /// let channels = Dropout3d::new(0.5)?.forward(&Tensor::ones((1, 16, 2, 2, 2))?)?;
    /// let means = channels.mean((2, 3, 4))?.to_vec::<f32>()?;
    /// assert!(means.iter().all(|&mean| mean == 0.0 || mean == 2.0));
    /// # Ok(()) }
    /// ```
    Dropout3d dropout3d "(1, 2, 1, 1, 3)";

    /// [`Tensor::alpha_dropout`] in training mode; see [`Dropout`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AlphaDropout, Module}};
    /// // Preserves mean and variance of the input.
    /// let y = AlphaDropout::new(0.25)?.forward(&Tensor::randn(20_000)?)?;
    /// assert!(y.mean_all()?.item::<f32>()?.abs() < 0.1);
    /// assert!((y.var_all()?.item::<f32>()? - 1.0).abs() < 0.1);
    /// # Ok(()) }
    /// ```
    AlphaDropout alpha_dropout "6";

    /// [`Tensor::feature_alpha_dropout`] in training mode: drops channels of `[batch, channels, ..]`; see [`Dropout`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{FeatureAlphaDropout, Module}};
    /// let y = FeatureAlphaDropout::new(0.5)?.forward(&Tensor::ones((1, 16, 3))?)?.to_vec3::<f32>()?.remove(0);
    /// assert!(y.iter().all(|channel| channel[0] == channel[1] && channel[1] == channel[2]));
    /// # Ok(()) }
    /// ```
    FeatureAlphaDropout feature_alpha_dropout "(1, 2, 3)";
}
