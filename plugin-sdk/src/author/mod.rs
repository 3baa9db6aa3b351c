//! Safe types over the contract, for people who write plugins.

mod attr;
mod cache;
mod call;
mod connection;
mod contents;
mod device;
mod device_extensions;
mod dtype;
mod dtype_size;
mod element;
mod error;
#[doc(hidden)]
pub mod export;
mod extend;
mod extent;
mod float;
mod guard;
mod half_bits;
pub mod host;
pub mod interposer;
#[doc(hidden)]
pub mod kernel_items;
mod layout;
mod lists;
mod names;
mod op;
#[doc(hidden)]
pub mod preference;
mod reach;
mod reduction;
mod services;
pub mod strided;
mod tensor;
mod view;
mod widen;

pub use attr::new_composite_of;
pub use cache::CacheKey;
pub use call::{Call, CallFn, Tensors};
pub use connection::host_api;
pub use contents::Contents;
pub use device::{Device, Properties, device_api};
pub use device_extensions::{Capture, Peer, Report, capture_api, peer_api, report_api};
pub use dtype::{Category, DType, DTypeNumber, Limits, dtype_api};
pub use dtype_size::{dtype_name, dtype_size};
pub use element::{Element, ElementType, Int, Plain, c64, c128};
pub use error::Error;
pub use float::{Float, Real};
pub use host::{
    Arg, Format, Level, MatmulPrecision, NameKind, Scratch, call_op, float32_matmul_precision, intern, log,
    name, new_composite, new_host_tensor, new_tensor, new_tensor_in, num_threads, parallel_chunks_mut,
    parallel_for,
};
pub use interposer::{Argument, Form, Interposed, Interposer};
pub use layout::{Layout, LayoutGradient, LayoutOps, Tolerance, layout_api, layout_ops_api};
pub use lists::{Group, Groups};
pub use op::{Compute, Elementwise, Op, Placement, RuleCall, op};
pub use tensor::{OwnedTensor, Tensor};
pub use view::{Iter, Lanes, View, ViewMut};
pub use widen::Widen;

#[cfg(test)]
mod call_tests;
#[cfg(test)]
mod testing;
