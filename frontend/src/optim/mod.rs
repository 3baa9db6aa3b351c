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
//! - all parameters whose gradients and means have the parameter's strides, and that share no memory, are updated by one op, for
//!   which a backend may have one fused loop or launch; without such a kernel, and for other parameters, a step consists of ops
//!   for each parameter, in order;
//! - f16 and bf16 are computed in f32 either way: 1e-8 is 0 in f16, and a quotient by it is infinite or NaN;
//! - updates run in place and outside the graph; addends are added to a parameter one by one if a sum would need
//!   memory, so SGD in f32 allocates nothing after its first step;
//! - the state is a state dict of plain tensors, options included, so it is saved in the same way as weights;
//! - an update that is not linear in the gradient coalesces a sparse one and works on copies of its rows, which are usually a
//!   small part.

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
