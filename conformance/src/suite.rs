//! Hash of the source of the cases: a certificate of another suite is stale.

use keyway::dispatcher::op::Rule;
use keyway::ops::def::{Derivative, Facts, OpDef};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The version of the suite, for people: it changes when cases or tolerances do. [`digest`] distinguishes any two suites.
pub const SUITE_VERSION: &str = "7";

/// All facts: the families read some of them.
const FACTS: &[Facts] = &[
    Facts::EXACT,
    Facts::SIGNED_ZEROS,
    Facts::MAY_OVERFLOW,
    Facts::CASTS,
    Facts::BY_STRIDES,
    Facts::SETS_FORMAT,
    Facts::KEEPS_ZERO,
    Facts::BY_ENTRY,
    Facts::KEEPS_ZERO_ABOVE_0,
    Facts::AUTOCAST,
    Facts::AUTOCAST_F32,
    Facts::DERIVED_IN_F32,
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
        let facts: Vec<bool> = FACTS.iter().map(|fact| def.is(*fact)).collect();
        let derivative = match def.derivative {
            Derivative::Formula { .. } => "formula",
            Derivative::Composite => "composite",
            _ => "none",
        };
        let by_host = matches!(def.rule, Rule::Host(_));
        let kind = (def.schema, derivative, by_host, def.rule.is_view(), def.decomposition.is_some());
        hasher.update(format!("{kind:?} {:?} {:?} {facts:?}", def.forms, def.dtypes));
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
