//! Autograd: a dispatch key above the backends that records a graph, and the engine that runs it backwards. Derivatives are
//! defined with their ops; this module names none.

mod alias;
mod anomaly;
mod away;
mod checkpoint;
mod context;
mod custom;
pub(crate) mod derivative;
pub mod draw;
pub(crate) mod engine;
pub(crate) mod extensions;
mod grad_fn;
pub mod gradcheck;
mod handler;
pub mod hooks;
pub(crate) mod meta;
mod modes;
mod moved;
pub(crate) mod node;
mod pending;
mod run;
mod saved;
mod tensor;
mod unlink;
mod view;
mod watch;

pub use crate::error::autograd::AutogradError;
#[doc(hidden)]
pub use anomaly::set_trace_source;
pub use anomaly::{AnomalyGuard, detect_anomaly};
pub use checkpoint::checkpoint;
pub use context::{Backward, Grads, SavedArg};
pub use custom::{Context, Function, apply};
#[doc(hidden)]
pub use custom::{owns_hooks, visit_owned_function};
pub use engine::{BackwardOptions, backward, grad};
pub use grad_fn::{GradFn, SavedSource, SavedTensor};
pub(crate) use handler::install;
pub use hooks::HookHandle;
#[cfg(target_os = "linux")]
pub(crate) use meta::bound_to_handle;
pub use modes::{enable_grad, inference_mode, is_grad_enabled, is_inference_mode, no_grad, set_grad_enabled};
