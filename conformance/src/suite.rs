//! Hash of the source of the cases: a certificate of another suite is stale.

use keyway::dispatcher::op::Rule;
use keyway::ops::def::{Derivative, OpDef, OpFlags};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The version of the suite, for people: it changes when cases or tolerances do. [`digest`] distinguishes any two suites.
pub const SUITE_VERSION: &str = "7";

/// All flags: the families read some of them.
const FLAGS: &[OpFlags] = &[
    OpFlags::EXACT,
    OpFlags::SIGNED_ZEROS,
    OpFlags::MAY_OVERFLOW,
    OpFlags::CASTS,
    OpFlags::STRIDE_DEPENDENT,
    OpFlags::SETS_FORMAT,
    OpFlags::ZERO_PRESERVING,
    OpFlags::UNCOALESCED,
    OpFlags::ZERO_PRESERVING_IF_POSITIVE,
    OpFlags::AUTOCAST,
    OpFlags::AUTOCAST_F32,
    OpFlags::DERIVED_IN_F32,
    OpFlags::COMPLEX,
    OpFlags::HOLOMORPHIC,
];

/// The SHA-256 of the source of the cases: the sources of this crate, and the definitions of the ops with their samples. It needs
/// no library.
pub fn digest() -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(|| of(keyway::ops::all()));
    &DIGEST
}

fn of(ops: impl Iterator<Item = &'static OpDef>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(env!("KEYWAY_SUITE_SOURCES"));
    for def in ops {
        let flags: Vec<bool> = FLAGS.iter().map(|flag| def.is(*flag)).collect();
        let derivative = match def.derivative {
            Derivative::Formula { .. } => "formula",
            Derivative::Composite => "composite",
            _ => "none",
        };
        let by_host = matches!(def.rule, Rule::Host(_));
        let kind = (def.schema, derivative, by_host, def.rule.is_view(), def.decomposition.is_some());
        hasher.update(format!("{kind:?} {:?} {:?} {flags:?}", def.forms, def.dtypes));
        hasher.update(format!("{:?} {:?}", (def.samples)(), (def.errors)()));
        hasher.update([0]);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_op_less_is_another_suite() {
        assert_eq!(digest(), of(keyway::ops::all()));
        assert_eq!(digest().len(), 64);
        assert_ne!(digest(), of(keyway::ops::all().skip(1)));
    }
}
