//! The test of one kernel.

use crate::families::Context;
use keyway::Device;
use keyway::dispatcher::op::OpEntry;
use keyway::dispatcher::registry::KernelEntry;
use keyway::ops::def::OpDef;
use std::cell::RefCell;

/// The test of one kernel.
pub(super) struct Asked<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) entry: &'static OpEntry,
    pub(super) def: Option<&'static OpDef>,
    pub(super) kernel: &'static KernelEntry,
    pub(super) device: Device,
    /// The last refusal, or who answered instead.
    pub(super) why_not: RefCell<String>,
}
