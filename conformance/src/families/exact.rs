//! Results with a single correct value, compared exactly if a tolerance would hide the error: integer sums, including many
//! addends at one index, a single decisive element, results with one rounding, casts at the limits of dtypes.
//!
//! A sum without its last addend is within the tolerance of a long sum, and the largest of random elements is rarely the
//! last one.

mod casts;
mod many;
mod reduced;
mod rounded;

use super::{Context, Family, Scope};
use crate::case::Case;
use crate::outcome::{Steps, Stop};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "exact",
    about: "sums of integers, elements that decide alone, results rounded once, casts at the ends of dtypes",
    cases,
    run,
};

/// A kind of case.
struct Kind {
    /// The variant's name; that of a case may have a suffix.
    variant: &'static str,
    run: fn(&Context<'_>) -> Steps,
}

const KINDS: [Kind; 6] = [
    Kind { variant: reduced::MARKED, run: reduced::marked },
    Kind { variant: reduced::LONG, run: reduced::long },
    Kind { variant: reduced::WHOLE, run: reduced::whole },
    Kind { variant: many::MANY, run: many::many },
    Kind { variant: rounded::ONCE, run: rounded::once },
    Kind { variant: casts::TO, run: casts::to },
];

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let mut push = |dtype, nth, variant: &str| {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        };
        reduced::cases(scope, op, &mut push);
        many::cases(scope, op, &mut push);
        rounded::cases(scope, op, &mut push);
        casts::cases(op, &mut push);
    }
}

fn run(context: &Context<'_>) -> Steps {
    let variant = context.case.variant.as_str();
    let none = || Stop::Skipped(format!("there is no variant `{variant}`"));
    let kind = KINDS.iter().find(|kind| variant.starts_with(kind.variant)).ok_or_else(none)?;
    (kind.run)(context)
}
