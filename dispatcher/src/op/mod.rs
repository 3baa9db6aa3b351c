//! What the dispatcher knows of an op: its schema, its rule, and how it may be written with others. The ops
//! themselves are defined above; no op is named here.

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
    /// See [`Schema::parse`].
    pub schema: &'static str,
    /// How the outputs come about.
    pub rule: Rule,
    /// How to do without a kernel of its own.
    pub decomposition: Option<Decomposition>,
    /// What the layer that defined the op keeps with it.
    pub extra: Option<&'static (dyn Any + Send + Sync)>,
    /// What a plugin that brought the op says of it besides.
    pub foreign: Option<&'static ForeignOp>,
    /// Who defined it.
    pub owner: &'static str,
}

/// A registered op.
pub struct OpEntry {
    /// Its place in the table.
    pub id: usize,
    /// Its name.
    pub name: &'static str,
    /// Its schema.
    pub schema: Schema,
    /// As it was registered.
    pub spec: OpSpec,
    /// Parameters where a bare number may stand for a tensor; bit `i` for parameter `i`.
    pub number_slots: u32,
}

impl std::fmt::Debug for OpEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.schema.text)
    }
}
