//! A plugin's description of its op, besides schema and rule.

use super::OpEntry;
use keyway_sdk::abi::tensor::KernelFn;
use std::sync::OnceLock;

/// A plugin's description of its op.
#[derive(Debug)]
pub struct ForeignOp {
    /// The backward op of this op.
    pub backward: Option<BackwardOp>,
    /// The entry of that op, cached at its first lookup: a plugin loaded later may register it.
    pub backward_entry: OnceLock<&'static OpEntry>,
    /// The decomposition into other ops.
    pub decomposition: Option<KernelFn>,
    /// Valid calls, as JSON; see `keyway_sdk::abi::op::RawOp::samples`. Empty for none.
    pub samples: &'static str,
    /// The reference function, on f64.
    pub reference: Option<KernelFn>,
}

/// The backward op of a plugin's op. Masks have bit `i` for argument or output `i` of the forward op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackwardOp {
    /// The backward op's name.
    pub op: &'static str,
    /// The mask of tensor arguments that it is passed.
    pub saves: u32,
    /// The mask of outputs that it is passed.
    pub saves_outputs: u32,
    /// Whether its last argument is the mask of requested gradients.
    pub wants: bool,
}
