//! A learning rate instead of options: `Sgd::new(parameters, 0.1)`.

use super::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, GradScaler, GradScalerOptions,
    RmsPropOptions, SgdOptions, SparseAdamOptions,
};
use crate::{Result, Tensor};

macro_rules! from_rate {
    ($($options:ident)*) => {$(
        /// The defaults with this learning rate.
        impl From<f64> for $options {
            fn from(lr: f64) -> $options {
                $options { lr, ..$options::default() }
            }
        }
    )*};
}
from_rate! { SgdOptions AdamOptions AdamWOptions SparseAdamOptions AdagradOptions RmsPropOptions }

macro_rules! new_lr {
    ($($optimizer:ident)*) => {$(
        impl $optimizer {
            /// candle's optimiser with a learning rate.
            #[doc(hidden)]
            #[deprecated(note = "`new` takes a learning rate too")]
            #[allow(clippy::missing_errors_doc)]
            pub fn new_lr(parameters: Vec<Tensor>, lr: f64) -> Result<$optimizer> {
                $optimizer::new(parameters, lr)
            }
        }
    )*};
}
new_lr! { Adagrad Adam AdamW }

/// A scaler with PyTorch's defaults, which has not seen a step.
impl Default for GradScaler {
    fn default() -> GradScaler {
        GradScaler::of(GradScalerOptions::default())
    }
}
