//! A device has kernels for every op that a use case needs; tested if a profile is requested.

use super::{Context, Family, Scope};
use crate::case::Case;
use crate::outcome::{Failure, Steps};
use crate::target::Service;
use keyway::DType;
use keyway::ops::tiers;

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "profile", about: "with --profile: every op of the tier is served", cases, run };

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let tiers = scope.profile.and_then(tiers::up_to).unwrap_or(&[]);
    for name in tiers.iter().flat_map(|tier| tier.ops) {
        if let Some(def) = keyway::ops::all().find(|def| def.name() == *name) {
            cases.push(Case::of(FAMILY.name, def, DType::F32, 0, ""));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let entry = context.def()?.entry()?;
    let dtype = context.dtype();
    if matches!(context.target.service(entry, dtype), Service::Kernel | Service::Decomposition) {
        return Ok(());
    }
    let got = match context.target.service(entry, dtype) {
        Service::Other => "served by another backend",
        _ => "not supported",
    };
    Err(Failure::new("an op of the profile is not served", "a kernel, or kernels of all its parts", got)
        .into())
}
