//! The registry of plugins and ops, and the dispatch table resolved from it.

mod access;
mod conversion;
mod entries;
mod interposers;
mod layouts;
mod near;
mod preferences;
mod program;
mod resolve;
pub mod serving;
mod state;
pub mod table;
mod unreached;

pub use conversion::{Conversion, LayoutOption, LayoutSample, LayoutTolerance};
pub(crate) use conversion::{Declared, as_args};
pub(crate) use entries::CHANGED_BY;
pub use entries::{
    FallbackPolicy, Handler, KernelEntry, KeyHandler, LayoutEntry, LayoutOpsEntry, PreferenceEntry,
};
pub(crate) use interposers::first_of;
pub use interposers::{InterposerInfo, InterposerSpec, interposers, interposers_of};
pub(crate) use layouts::more_special;
pub use layouts::{all_layout_ops, layout_ops};
pub use near::{edit_distance, near_ops};
pub use preferences::{preference, preferences};
pub use program::register_interceptor;
pub use state::{
    Batch, LeftOut, devices, find_key, find_op, is_preferred, kernels, layouts, left_out, plugins, prefer,
    register_key_handler, register_ops, restore, retire, set_default_fallback, set_fallback, set_priority,
};
pub(crate) use state::{MAX_PRIORITY, any_fallback, lock};
pub use unreached::{Unreached, unreached};
