//! Rearrangement of channels and pixels.

use super::Module;
use crate::{Result, Tensor};

macro_rules! rearrangements {
    ($($(#[$doc:meta])* $name:ident $call:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub usize);

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$call(self.0)
            }
        }
    )+};
}

rearrangements! {
    /// [`Tensor::pixel_shuffle`] by this factor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, PixelShuffle, PixelUnshuffle}};
    /// let x = Tensor::from_vec((0..8).collect(), (1, 8, 1, 1))?;
    /// let y = PixelShuffle(2).forward(&x)?;
    /// assert_eq!(y.shape(), [1, 2, 2, 2]);
    /// assert_eq!(PixelUnshuffle(2).forward(&y)?.to_vec::<i32>()?, x.to_vec::<i32>()?);
    /// # Ok(()) }
    /// ```
    PixelShuffle pixel_shuffle;

    /// [`Tensor::pixel_unshuffle`] by this factor; see [`PixelShuffle`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, PixelUnshuffle}};
    /// let x = Tensor::new([[[[1, 2], [3, 4]]]])?;
    /// assert_eq!(PixelUnshuffle(2).forward(&x)?.shape(), [1, 4, 1, 1]);
    /// # Ok(()) }
    /// ```
    PixelUnshuffle pixel_unshuffle;

    /// [`Tensor::channel_shuffle`] with this number of groups.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ChannelShuffle, Module}};
    /// let x = Tensor::from_vec(vec![0, 1, 2, 3], (1, 4, 1))?;
    /// assert_eq!(ChannelShuffle(2).forward(&x)?.to_vec::<i32>()?, [0, 2, 1, 3]);
    /// # Ok(()) }
    /// ```
    ChannelShuffle channel_shuffle;
}
