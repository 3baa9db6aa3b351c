//! Kernels that refuse calls that other candidates then serve.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("late_refusal", "writes, and refuses then", &["square"], |site| {
        if site.output(0)?.sizes().len() != 5 || site.is_in_place()? {
            return site.run();
        }
        site.output(0)?.map(|_| 9.0);
        refuse(site)
    }),
    Fault::new(
        "late_refusal_in_place",
        "writes to its argument, and refuses then",
        &["leaky_relu"],
        |site| {
            if !site.is_in_place()? {
                return site.run();
            }
            site.output(0)?.map(|x| x + 1.0);
            refuse(site)
        },
    ),
    Fault::new(
        "late_refusal_without_out",
        "writes, and refuses then; the op has no `out=`",
        &["linear"],
        |site| {
            if !site.call.is_none(2)? {
                return site.run();
            }
            site.output(0)?.map(|_| 9.0);
            refuse(site)
        },
    ),
    Fault::new("never_serves", "a registered kernel refuses every call", &["square"], refuse)
        .dtypes(&["f64"]),
    Fault::new("never_serves_halves", "a registered kernel refuses every call", &["leaky_relu"], refuse)
        .dtypes(&["bf16"]),
];

fn refuse(site: &Site<'_>) -> Result<(), Error> {
    Err(Error::Unsupported { what: format!("this call of {}", site.kernel.op) })
}
