//! Elements or channels left out at random.

use super::slot::Mode;
use super::{Members, Module, ModuleError};
use crate::rng::{self, Generator};
use crate::{Result, Tensor};

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident $call:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            p: f64,
            generator: Option<Generator>,
            mode: Mode,
        }

        impl $name {
            /// A module that leaves out this share.
            ///
            /// # Errors
            /// A share that is not in 0..=1.
            pub fn new(p: f64) -> Result<$name> {
                if !(0.0..=1.0).contains(&p) {
                    let (owner, got) = (stringify!($name), p.to_string());
                    return Err(ModuleError::Option { owner, option: "p", expected: "within 0..=1", got }.into());
                }
                Ok($name { p, generator: None, mode: Mode::default() })
            }

            /// With a generator of its own instead of the default one. Its state is in
            /// [`Module::generator_state_dict`].
            pub fn generator(mut self, generator: Generator) -> $name {
                self.generator = Some(generator);
                self
            }
        }

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                let training = self.mode.is_training() && self.p > 0.0;
                rng::using_some(self.generator.as_ref(), || input.$call(self.p, training))
            }

            fn members<'a>(&'a self, members: &mut Members<'a>) {
                members.mode(&self.mode);
                if let Some(generator) = &self.generator {
                    members.generator("generator", generator);
                }
            }
        }
    )+};
}

dropouts! {
    /// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`; in use, lets everything
    /// through (N. Srivastava and others, "Dropout: a simple way to prevent neural networks from overfitting", 2014).
    ///
    /// What is left out is drawn from the default generator, see [`manual_seed`](crate::manual_seed), or from one of the module's
    /// own, see [`Dropout::generator`].
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
    Dropout dropout;

    /// [`Tensor::dropout1d`] while training: channels of `[batch, channels, length]`; see [`Dropout`].
    Dropout1d dropout1d;

    /// [`Tensor::dropout2d`] while training: channels of `[batch, channels, height, width]`; see [`Dropout`].
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
    Dropout2d dropout2d;

    /// [`Tensor::dropout3d`] while training: channels of `[batch, channels, depth, height, width]`; see [`Dropout`].
    Dropout3d dropout3d;

    /// [`Tensor::alpha_dropout`] while training; see [`Dropout`].
    AlphaDropout alpha_dropout;

    /// [`Tensor::feature_alpha_dropout`] while training: channels of `[batch, channels, ..]`; see [`Dropout`].
    FeatureAlphaDropout feature_alpha_dropout;
}
