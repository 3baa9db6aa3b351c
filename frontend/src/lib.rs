//! A tensor framework whose program holds no kernels.
//!
//! Every op goes through a dispatch table keyed by (device, layout, dtype); the kernels come from shared
//! libraries that are found at run time. Autograd is a dispatch key above them all.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::Tensor;
//! let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], 3)?.requires_grad_(true)?;
//! let y = (&x * &x)?.sum_all()?;
//! y.backward()?;
//! assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! # Ok(()) }
//! ```
//!
//! Guides for users of other libraries: [from PyTorch](guide::from_pytorch), [from candle](guide::from_candle).
//!
//! Decisions:
//! - every call returns a `Result`: shapes and dtypes come from data, and bad data must not end a program;
//! - an op is one definition (`ops::def::OpDef`), from which the typed call, the table, the derivative and
//!   the test cases derive;
//! - a clone of a tensor is the same tensor; [`Tensor::copy`] copies the values.
#![forbid(unsafe_code)]

mod arguments;
pub mod autocast;
mod autocast_mode;
pub mod autograd;
pub mod backend;
#[cfg(doctest)]
mod book;
mod chained;
mod chosen;
pub mod data;
mod deprecated;
pub mod device;
pub mod error;
pub mod graph;
pub mod guide;
pub mod interceptor;
pub mod interposer;
pub mod io;
pub mod layout_fallback;
pub mod nn;
mod op;
pub mod ops;
pub mod optim;
pub mod plan;
mod precision;
pub mod prelude;
pub mod profiler;
pub mod rng;
pub mod runtime;
mod startup;
pub mod storage;
pub mod tensor;

pub use autocast::autocast;
pub use autograd::{enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled};
pub use backend::{set_fallback, with_backend};
pub use error::{Error, Result};
/// The 16-bit floating-point types of host values.
pub use half::{bf16, f16};
pub use interposer::interposer;
/// The dispatcher below: loader, tables, memory, threads.
pub use keyway_dispatcher as dispatcher;
/// An argument of an op: a tensor, a number, text, a list, a dtype or an absent one. Methods that broadcast take `impl
/// Into<Arg>`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Arg, Tensor};
/// fn doubled<'a>(x: &'a Tensor, by: impl Into<Arg<'a>>) -> keyway::Result<Tensor> {
///     x.mul(by)?.mul(2.0)
/// }
/// let x = Tensor::new([1.5f32])?;
/// assert_eq!((doubled(&x, 2)?.item::<f32>()?, doubled(&x, &x)?.item::<f32>()?), (6.0, 4.5));
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::op::Arg;
pub use keyway_dispatcher::op::{LayoutOptions, LayoutValue};
/// The number of threads that one call may use; [`num_threads`] returns it, [`set_num_threads`] sets it.
///
/// ```
/// keyway::set_num_threads(1);
/// assert_eq!(keyway::num_threads(), 1);
/// ```
pub use keyway_dispatcher::parallel::{num_threads, set_num_threads};
pub use keyway_dispatcher::{DType, Device, Layout};
pub use keyway_sdk::num_complex::Complex;
pub use layout_fallback::set_layout_fallback;
pub use precision::{MatmulPrecision, float32_matmul_precision, set_float32_matmul_precision};
pub use rng::manual_seed;
#[doc(hidden)]
#[allow(deprecated)]
pub use tensor::D;
pub use tensor::defaults::{
    MemoryFormatGuard, default_device, default_dtype, default_memory_format, memory_format_guard,
    set_default_device, set_default_dtype,
};
pub use tensor::{MemoryFormat, Tensor, TensorOptions};
