//! Selection of cases by names and patterns.

use crate::case::{Case, glob};
use crate::families::{self, Family, Source};
use keyway::DType;
use keyway::ops::tiers;
use serde::{Deserialize, Serialize};

/// The family that also tests registrations without effect.
const CLAIMS: &str = "claims";

/// Selection of cases; an empty list selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Patterns of op names, with `*` and `?`.
    pub ops: Vec<String>,
    /// Names of families.
    pub families: Vec<String>,
    /// Names of excluded families.
    #[serde(default)]
    pub without: Vec<String>,
    /// Names of dtypes.
    pub dtypes: Vec<String>,
    /// Ids of cases, or patterns of them.
    pub cases: Vec<String>,
    /// Whether a part of the cases suffices.
    pub quick: bool,
    /// Whether to include cases of more than 2^31 elements.
    #[serde(default)]
    pub huge: bool,
    /// The tier of ops to test, each of which must have a kernel.
    #[serde(default)]
    pub profile: Option<String>,
    /// Mixed into the values of the samples.
    pub seed: u64,
    /// Seed of the family `drawn`.
    #[serde(default)]
    pub draws: u64,
    /// Whether the seed was chosen by the user.
    #[serde(default)]
    pub chosen: bool,
    /// Whether to draw calls for an hour.
    #[serde(default)]
    pub thorough: bool,
    /// The share of the cases to judge, drawn by `draws`, in millionths; 0 for all.
    #[serde(default)]
    pub sample: u32,
}

/// All cases, as the unit of [`Selection::sample`].
pub const WHOLE: u32 = 1_000_000;

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No such family.
    #[error("there is no family `{got}`; there are:\n{there}")]
    Family {
        /// The given name.
        got: String,
        /// The existing names, each on a line with what the family checks.
        there: String,
    },
    /// No such dtype.
    #[error("there is no dtype `{got}`; there are: {there}")]
    DType {
        /// The given name.
        got: String,
        /// The existing names.
        there: String,
    },
    /// No op of that name.
    #[error("no op matches `{got}`; `keyway ops` lists them")]
    Op {
        /// The given name.
        got: String,
    },
    /// No tier of that name.
    #[error("there is no profile `{got}`; there are:\n{there}")]
    Profile {
        /// The given name.
        got: String,
        /// The existing names, each on a line with its purpose.
        there: String,
    },
    /// No case of that id.
    #[error("no case matches `{got}`; an id is family/op/dtype/sample/variant, as a report prints it")]
    Case {
        /// The given id.
        got: String,
    },
}

impl Selection {
    /// Whether every case is selected, so that the result covers the complete backend.
    pub fn is_everything(&self) -> bool {
        let Selection { seed, draws, chosen, huge, thorough, .. } = *self;
        *self == Selection { seed, draws, chosen, huge, thorough, ..Selection::default() }
    }

    /// Whether every case, or every case of a profile, is selected, with the usual values and randomly drawn calls, so that the
    /// result qualifies for a certificate.
    pub fn is_whole(&self) -> bool {
        self.seed == 0 && !self.chosen && Selection { profile: None, ..self.clone() }.is_everything()
    }

    /// The selected part of all cases, as text; `None` if all are selected.
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
            (self.sample > 0).then(|| {
                let share = f64::from(self.sample) / f64::from(WHOLE);
                format!("a sample of {share} of the cases, drawn from seed {}", self.draws)
            }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Refuses unknown names, except those of ops, some of which come from plugins; see [`Selection::check_ops`].
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
            let all = || DType::REAL.iter().chain(&DType::COMPLEX);
            if !all().any(|d| d.name() == got) {
                let there: Vec<&str> = all().map(|d| d.name()).collect();
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

    /// Whether an op is selected.
    pub fn wants_op(&self, name: &str) -> bool {
        let tiers = self.profile.as_deref().map(|name| tiers::up_to(name).unwrap_or_default());
        tiers.is_none_or(|tiers| tiers.iter().any(|tier| tier.ops.contains(&name)))
            && (self.ops.is_empty() || self.ops.iter().any(|pattern| glob(pattern, name)))
    }

    /// Whether a family is selected.
    pub fn wants_family(&self, name: &str) -> bool {
        let named = |families: &[String]| families.iter().any(|family| family == name);
        (self.families.is_empty() || named(&self.families)) && !named(&self.without)
    }

    /// Whether a case is selected.
    pub fn wants(&self, case: &Case) -> bool {
        let dtype = || case.dtype.is_some_and(|d| self.dtypes.iter().any(|name| name == d.name()));
        let id = || {
            let id = case.to_string();
            self.cases.iter().any(|pattern| glob(pattern, &id))
        };
        // Registrations without effect have the name of their op, whether it exists or not.
        let named = || case.family == CLAIMS && self.ops.iter().any(|pattern| glob(pattern, case.name()));
        // A pattern of ops excludes cases whose subject is not an op.
        (case.is_about_op() || self.ops.is_empty() || named())
            && case.def.is_none_or(|def| self.wants_op(def.name()))
            && (self.dtypes.is_empty() || dtype())
            && (self.cases.is_empty() || id())
            && self.is_in_sample(case)
    }

    /// Whether a case is in the sample, which depends on its id and the seed alone.
    fn is_in_sample(&self, case: &Case) -> bool {
        let drawn = || Source::named(&case.to_string(), &[self.draws]).below(WHOLE as usize);
        self.sample == 0 || drawn() < self.sample as usize
    }
}
