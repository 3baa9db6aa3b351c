//! Automatic mixed precision: a dispatch key above autograd that selects the dtype in which each op computes.
//!
//! While a guard of [`autocast`] lives, on this thread and on every device:
//! - products (`mm`, `linear`, `conv`, `scaled_dot_product_attention` and similar ops) cast f32 arguments to the dtype of the
//!   guard;
//! - functions that leave the range of f16, sums, norms, softmax and losses cast f16 and bf16 arguments to f32;
//! - all other ops compute in the dtypes of their arguments, promoted as always.
//!
//! The definition of an op has its kind ([`OpFlags`]); the rules are those of PyTorch's `autocast` on CUDA, on every device. Calls
//! with f64 arguments, in-place and `out=` calls are unchanged. The casts are recorded by autograd, so parameters and their
//! gradients remain f32. A backward pass computes in the dtypes of the forward pass, wherever it is called.
//!
//! The cast of a parameter is cached until the outermost guard ends, unless the parameter is changed meanwhile; the cache holds a
//! handle of the parameter, so that `as_slice_mut` and `accessor_mut` refuse it meanwhile.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::prelude::*;
//! use keyway::autocast;
//! let w = Tensor::ones((3, 2))?.requires_grad_(true)?;
//! let loss = {
//!     let _guard = autocast(DType::BF16)?;
//!     let y = Tensor::ones((4, 3))?.mm(&w)?;
//!     assert_eq!(y.dtype(), DType::BF16);
//!     y.softmax(-1)?.sum_all()?
//! };
//! assert_eq!(loss.dtype(), DType::F32);
//! loss.backward()?;
//! assert_eq!(w.grad().unwrap().dtype(), DType::F32);
//! # Ok(()) }
//! ```
//!
//! f16 needs a [`GradScaler`](crate::optim::GradScaler) as well, since small gradients underflow to 0; bf16 does not.

use crate::arguments::replacing;
pub use crate::autocast_mode::{AutocastGuard, autocast_dtype, autocast_off};
use crate::autocast_mode::{cached, chosen, enter};
use crate::autograd::derivative::info;
use crate::autograd::{is_grad_enabled, meta};
use crate::error::Result;
use crate::op::flags::OpFlags;
use crate::{DType, Tensor};
use keyway_dispatcher::device::capture::is_captured;
use keyway_dispatcher::error::{Error, Result as DispatchResult};
use keyway_dispatcher::key::{DispatchKey, KeySet};
use keyway_dispatcher::op::{Arg, Call, OpEntry, Out, Outputs};
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use keyway_dispatcher::tensor::TensorRef;
use once_cell::sync::OnceCell;

/// Set when a program first requests mixed precision.
static KEY_REGISTERED: OnceCell<()> = OnceCell::new();

/// Mixed precision on this thread while the guard lives, with products in f16 or bf16. See the [module](self).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let _guard = keyway::autocast(DType::F16)?;
/// let a = Tensor::ones((2, 2))?;
/// assert_eq!(a.mm(&a)?.dtype(), DType::F16);
/// assert!(keyway::autocast(DType::F64).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Any other dtype.
#[doc(alias = "amp")]
pub fn autocast(dtype: DType) -> Result<AutocastGuard> {
    if ![DType::F16, DType::BF16].contains(&dtype) {
        let (expected, got) = ("f16 or bf16", dtype.to_string());
        return Err(Error::Value { op: "autocast", argument: "dtype", expected: expected.into(), got }.into());
    }
    crate::runtime::start()?;
    KEY_REGISTERED.get_or_try_init(install)?;
    Ok(enter(dtype))
}

fn install() -> DispatchResult<()> {
    register_key_handler(KeyHandler {
        key: DispatchKey::AUTOCAST,
        name: "autocast".to_string(),
        applies: |op| target_of(op).is_some(),
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

/// The dtype that an op's arguments are cast to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Chosen,
    F32,
}

fn target_of(op: &OpEntry) -> Option<Target> {
    match info(op)?.flags {
        flags if flags.has(OpFlags::AUTOCAST) => Some(Target::Chosen),
        flags if flags.has(OpFlags::AUTOCAST_F32) => Some(Target::F32),
        _ => None,
    }
}

fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    let chosen = chosen();
    let (Some(target), Some(chosen), Out::New) = (target_of(call.args.op), chosen, call.out) else {
        return keyway_dispatcher::call::redispatch(call, below);
    };
    let to = if target == Target::F32 { DType::F32 } else { chosen };
    let wanted =
        |t: &TensorRef| t.dtype() != to && [DType::F32, DType::F16, DType::BF16].contains(&t.dtype());
    let mut tensors = call.args.values.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t),
        Arg::Tensors(list) => list,
        _ => &[],
    });
    let left_alone = |t: &TensorRef| t.dtype().is_float() && t.dtype() != to && !wanted(t);
    // The op's decomposition runs in this dtype.
    let _off = autocast_off();
    if tensors.clone().any(|t| left_alone(t)) || !tensors.any(|t| wanted(t)) {
        return keyway_dispatcher::call::redispatch(call, below);
    }
    replacing(
        &call.args,
        |t| wanted(t).then(|| cast(t, to)).transpose(),
        |args| keyway_dispatcher::call::redispatch(&Call { args, out: Out::New }, below),
    )?
}

/// The tensor cast to another dtype; the cast of a parameter is cached.
fn cast(tensor: &TensorRef, to: DType) -> Result<Tensor> {
    let of = Tensor::from_ref(tensor.clone());
    if !meta::is_collecting_leaf(tensor) || tensor.base().is_some() || is_captured(tensor.device()) {
        return of.to_dtype(to);
    }
    cached(tensor, to, is_grad_enabled(), || of.to_dtype(to))
}
