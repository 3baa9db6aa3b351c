//! The parts of decompositions: the ops that each of them calls.
//!
//! `parts.txt` has a line for each decomposed op: its name, then the ops that a run of its decomposition on its samples calls.
//! `name` alone is called in the compute dtype of the op, `name:widened` in f32 for f16 and bf16, `name:f32` always in f32.
//! `cargo xtask parts` records the file; a test compares it with a run.

use super::def::OpDef;
use keyway_dispatcher::op::Part;

/// The lines of `parts.txt`, sorted by the name of the decomposed op.
static PARTS: &[(&str, &[Part])] = include!(concat!(env!("OUT_DIR"), "/op_parts.rs"));

impl OpDef {
    /// The ops that the decomposition calls and that need a kernel: the recorded ones and the views of its arguments. Empty
    /// without a decomposition.
    ///
    /// ```
    /// let parts: Vec<&str> = keyway::ops::pointwise::rsqrt::DEF.parts().iter().map(|part| part.op).collect();
    /// assert_eq!(parts, ["div", "sqrt"]);
    /// ```
    pub fn parts(&self) -> &'static [Part] {
        let found = PARTS.binary_search_by_key(&self.name(), |(name, _)| name);
        let recorded = found.map_or(&[][..], |i| PARTS[i].1);
        if self.views.is_empty() {
            return recorded;
        }
        let views = self.views.iter().map(|view| Part::new(view));
        // Called once for each of the few ops with views, when they are registered.
        Box::leak(recorded.iter().copied().chain(views).collect())
    }
}
