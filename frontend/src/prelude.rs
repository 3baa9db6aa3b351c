//! The items that most programs use: `use keyway::prelude::*;`.
//!
//! ```
//! use keyway::prelude::*;
//!
//! fn main() -> keyway::Result<()> {
//!     let w = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.requires_grad_(true)?;
//!     let x = Tensor::ones((2, 2))?;
//!     let loss = ((&w * &x)? * 2.0)?.sum(..)?;
//!     loss.backward()?;
//!     println!("{}", w.grad().unwrap());
//!     let mut optimizer = optim::Sgd::new(vec![w], 0.1)?;
//!     optimizer.step()
//! }
//! ```

pub use crate::Complex;
#[doc(hidden)]
#[allow(deprecated)]
pub use crate::D;
pub use crate::autograd::no_grad;
pub use crate::data::Dataset;
pub use crate::device::{KnownDevices, OnKnownDevices};
pub use crate::nn::Module;
pub use crate::optim::Optimizer;
pub use crate::optim::lr_scheduler::LrScheduler;
pub use crate::tensor::{Ellipsis, MemoryFormat, NewAxis, StepBy, Tensor, TensorOptions};
pub use crate::{DType, Device, Layout, autograd, data, nn, optim};
pub use half::{bf16, f16};
