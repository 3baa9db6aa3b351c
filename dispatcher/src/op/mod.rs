//! Ops as the dispatcher represents them: schema, rule, and decomposition. Higher layers define the ops; this layer names
//! none.

mod args;
mod foreign;
mod options;
mod plan;
mod rule;
pub mod schema;

pub use crate::base::layout_value::{LayoutOptions, LayoutValue};
pub use args::{Arg, Args, Call, Out};
pub use foreign::{BackwardOp, ForeignOp};
pub use plan::{OutSpec, Plan, Strides, Typing, ViewSpec};
pub use rule::{Decomposition, Part, PartDtype, Rule};

use crate::tensor::TensorRef;
use schema::Schema;
use smallvec::SmallVec;
use std::any::Any;

/// The results of a call.
pub type Outputs = SmallVec<[TensorRef; 2]>;

/// An op as it is registered.
#[derive(Clone, Copy)]
pub struct OpSpec {
    /// The schema; see [`Schema::parse`].
    pub schema: &'static str,
    /// The rule that computes the metadata of the outputs.
    pub rule: Rule,
    /// The decomposition for calls without a kernel.
    pub decomposition: Option<Decomposition>,
    /// Data attached by the layer that defined the op.
    pub extra: Option<&'static (dyn Any + Send + Sync)>,
    /// Further data of an op that a plugin registered.
    pub foreign: Option<&'static ForeignOp>,
    /// The plugin or crate that defined it.
    pub owner: &'static str,
}

/// A registered op.
pub struct OpEntry {
    /// The op's index in the table.
    pub id: usize,
    /// The op's name.
    pub name: &'static str,
    /// The parsed schema.
    pub schema: Schema,
    /// The specification with which the op was registered.
    pub spec: OpSpec,
    /// Tensor parameters that also accept a scalar; bit `i` for parameter `i`.
    pub number_slots: u32,
}

impl std::fmt::Debug for OpEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.schema.text)
    }
}
