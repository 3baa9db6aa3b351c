//! Optimisers, their schedules, and the clipping of gradients.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::Tensor;
//! use keyway::optim::{Optimizer, Sgd};
//! let w = Tensor::new(1.0f64)?.requires_grad_(true)?;
//! let mut optimizer = Sgd::new(vec![w.clone()], 0.1)?;
//! for _ in 0..50 {
//!     optimizer.zero_grad();
//!     w.mul(&w)?.backward()?;
//!     optimizer.step()?;
//! }
//! assert!(w.item::<f64>()?.abs() < 1e-4);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - all parameters whose gradients and means lie as they do, and that share no memory, are stepped by one op, which a backend
//!   may serve by one walk or one launch; where no kernel does, and for the others, a step is composed of ops for each
//!   parameter, in order;
//! - f16 and bf16 are computed in f32 either way: 1e-8 is 0 in f16, and what is divided by it has no number;
//! - updates run in place and outside the graph; terms are added to a parameter one by one where a sum would need memory of
//!   its own, so SGD in f32 allocates nothing after its first step;
//! - the state is a state dict of plain tensors, options included, so it is saved as weights are;
//! - what is not linear in the gradient coalesces a sparse one and works on copies of its rows, which are a few of many.

mod adagrad;
mod adam;
mod clip;
mod clock;
mod fused;
mod grad_scaler;
mod group;
pub mod lr_scheduler;
mod moments;
mod optimizer;
mod rate;
mod rms_prop;
mod rows;
mod sgd;
mod sparse_adam;

pub use adagrad::{Adagrad, AdagradOptions};
pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use clip::{clip_grad_norm_, clip_grad_value_};
pub use grad_scaler::{GradScaler, GradScalerOptions, GradScalerState};
pub use group::Group;
pub use optimizer::Optimizer;
#[doc(hidden)]
pub use rms_prop::RmsProp as RMSprop;
pub use rms_prop::{RmsProp, RmsPropOptions};
#[doc(hidden)]
pub use sgd::Sgd as SGD;
pub use sgd::{Sgd, SgdOptions};
pub use sparse_adam::{SparseAdam, SparseAdamOptions};
