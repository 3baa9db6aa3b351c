//! Which cases to run: names and patterns that a person gives.

use crate::case::{Case, glob};
use crate::families::{self, Family};
use keyway::DType;
use keyway::ops::tiers;
use serde::{Deserialize, Serialize};

/// The family that also judges what is registered without effect.
const CLAIMS: &str = "claims";

/// Which cases to run; an empty list stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Patterns of op names, with `*` and `?`.
    pub ops: Vec<String>,
    /// Names of families.
    pub families: Vec<String>,
    /// Names of families that are left out.
    #[serde(default)]
    pub without: Vec<String>,
    /// Names of dtypes.
    pub dtypes: Vec<String>,
    /// Ids of cases, or patterns of them.
    pub cases: Vec<String>,
    /// Whether a part of the cases is enough.
    pub quick: bool,
    /// Whether cases of more than 2^31 elements are wanted too.
    #[serde(default)]
    pub huge: bool,
    /// The tier of ops to judge, all of which must be served.
    #[serde(default)]
    pub profile: Option<String>,
    /// Mixed into the values of the samples.
    pub seed: u64,
    /// What the family `drawn` draws its calls from.
    #[serde(default)]
    pub draws: u64,
    /// Whether somebody chose that, rather than chance.
    #[serde(default)]
    pub chosen: bool,
    /// Whether an hour of drawn calls is wanted.
    #[serde(default)]
    pub thorough: bool,
}

/// A name that nothing has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No such family.
    #[error("there is no family `{got}`; there are:\n{there}")]
    Family {
        /// What came.
        got: String,
        /// What there is, each on a line with what it checks.
        there: String,
    },
    /// No such dtype.
    #[error("there is no dtype `{got}`; there are: {there}")]
    DType {
        /// What came.
        got: String,
        /// What there is.
        there: String,
    },
    /// No op of that name.
    #[error("no op matches `{got}`; `keyway ops` lists them")]
    Op {
        /// What came.
        got: String,
    },
    /// No tier of that name.
    #[error("there is no profile `{got}`; there are:\n{there}")]
    Profile {
        /// What came.
        got: String,
        /// What there is, each on a line with what it is for.
        there: String,
    },
    /// No case of that id.
    #[error("no case matches `{got}`; an id is family/op/dtype/sample/variant, as a report prints it")]
    Case {
        /// What came.
        got: String,
    },
}

impl Selection {
    /// Whether every case is wanted, so that the result speaks for the whole backend.
    pub fn is_everything(&self) -> bool {
        let Selection { seed, draws, chosen, huge, thorough, .. } = *self;
        *self == Selection { seed, draws, chosen, huge, thorough, ..Selection::default() }
    }

    /// Whether every case is wanted, or every case of a profile, on the usual values and on calls that chance draws, so that the
    /// result is worth a certificate.
    pub fn is_whole(&self) -> bool {
        self.seed == 0 && !self.chosen && Selection { profile: None, ..self.clone() }.is_everything()
    }

    /// What of all cases is wanted, in words; `None` if every one is.
    pub fn narrowed(&self) -> Option<String> {
        let named = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(" or ")))
        };
        let parts = [
            self.profile.as_ref().map(|name| format!("profile {name}")),
            named("op", &self.ops),
            named("family", &self.families),
            named("without family", &self.without),
            named("dtype", &self.dtypes),
            named("case", &self.cases),
            self.quick.then(|| "the quick cases".to_string()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Refuses names that nothing has, but for those of ops, of which plugins bring some; see [`Selection::check_ops`].
    ///
    /// # Errors
    /// The first such name.
    pub fn check(&self) -> Result<(), SelectionError> {
        for got in self.families.iter().chain(&self.without) {
            if !families::ALL.iter().any(|f| f.name == got) {
                let line = |f: &Family| format!("  {:16}  {}", f.name, f.about);
                let there: Vec<String> = families::ALL.iter().map(line).collect();
                return Err(SelectionError::Family { got: got.clone(), there: there.join("\n") });
            }
        }
        if let Some(got) = self.profile.as_ref().filter(|name| tiers::up_to(name).is_none()) {
            let line = |tier: &tiers::Tier| format!("  {:16}  {}", tier.name, tier.about);
            let there: Vec<String> = tiers::ALL.iter().map(line).collect();
            return Err(SelectionError::Profile { got: got.clone(), there: there.join("\n") });
        }
        for got in &self.dtypes {
            if !DType::REAL.iter().any(|d| d.name() == got) {
                let there: Vec<&str> = DType::REAL.iter().map(|d| d.name()).collect();
                return Err(SelectionError::DType { got: got.clone(), there: there.join(", ") });
            }
        }
        Ok(())
    }

    /// Refuses patterns that match no op, neither of the definitions nor of `more`.
    ///
    /// # Errors
    /// The first such pattern.
    pub fn check_ops(&self, more: &[&str]) -> Result<(), SelectionError> {
        let names = || keyway::ops::all().map(|def| def.name()).chain(more.iter().copied());
        match self.ops.iter().find(|pattern| !names().any(|name| glob(pattern, name))) {
            Some(got) => Err(SelectionError::Op { got: got.clone() }),
            None => Ok(()),
        }
    }

    /// Whether an op is wanted.
    pub fn wants_op(&self, name: &str) -> bool {
        let tiers = self.profile.as_deref().map(|name| tiers::up_to(name).unwrap_or_default());
        tiers.is_none_or(|tiers| tiers.iter().any(|tier| tier.ops.contains(&name)))
            && (self.ops.is_empty() || self.ops.iter().any(|pattern| glob(pattern, name)))
    }

    /// Whether a family is wanted.
    pub fn wants_family(&self, name: &str) -> bool {
        let named = |families: &[String]| families.iter().any(|family| family == name);
        (self.families.is_empty() || named(&self.families)) && !named(&self.without)
    }

    /// Whether a case is wanted.
    pub fn wants(&self, case: &Case) -> bool {
        let dtype = || case.dtype.is_some_and(|d| self.dtypes.iter().any(|name| name == d.name()));
        let id = || {
            let id = case.to_string();
            self.cases.iter().any(|pattern| glob(pattern, &id))
        };
        // Registrations without effect bear the name of the op that they are of, be there one or not.
        let named = || case.family == CLAIMS && self.ops.iter().any(|pattern| glob(pattern, case.name()));
        // A pattern of ops leaves out what is about no op.
        (case.is_about_op() || self.ops.is_empty() || named())
            && case.def.is_none_or(|def| self.wants_op(def.name()))
            && (self.dtypes.is_empty() || dtype())
            && (self.cases.is_empty() || id())
    }
}
