//! Random values from a wrong offset of the stream, and beyond their bounds.

use super::arguments::int;
use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::abi::codes::tag;
use keyway_sdk::abi::tensor::RawArg;
use keyway_sdk::half::bf16;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("seed_of_32_bits", "the upper half of the seed is lost", &["uniform", "bernoulli"], |site| {
        let place = if site.kernel.op == "uniform" { 3 } else { 2 };
        site.run_with(place, int(i64::from(site.call.int(place)? as u32)))
    })
    .dtypes(&["f32"]),
    Fault::new("offset_of_32_bits", "the upper half of the offset is lost", &["random_int"], |site| {
        site.run_with(4, int(i64::from(site.call.int(4)? as u32)))
    }),
    Fault::new("blocks_of_32_bits", "the number of a block begins again at 2^32", &["normal"], |site| {
        let (out, offset) = (site.output(0)?, site.call.int(4)?);
        let left = ((1_i64 << 32) - (offset & 0xffff_ffff)) as usize * 4;
        site.run_with(4, int(offset >> 32 << 32))?;
        let again = out.values();
        site.run()?;
        (left..out.len()).for_each(|nth| out.set(nth, again[nth - left]));
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("mean_above_the_rate", "the mean of counts is 2 % above the rate", &["poisson"], |site| {
        site.with_inputs(|rate| 1.02 * rate)
    }),
    Fault::new(
        "reaches_its_bound",
        "numbers that are rounded to the upper bound stay there",
        &["uniform"],
        bound,
    )
    .dtypes(&["bf16"]),
];

fn float(value: f64) -> RawArg {
    RawArg { tag: tag::FLOAT, len: 0, value: value.to_bits() }
}

/// Scales values between 0 and 1 to the bounds and rounds to bf16, which may round up to the upper bound.
fn bound(site: &Site<'_>) -> Result<(), Error> {
    let (low, high) = (site.call.float(1)? as f32, site.call.float(2)? as f32);
    let out = site.output(0)?;
    site.run_with_all(&[(1, float(0.0)), (2, float(1.0))])?;
    out.map(|u| bf16::from_f32(low + (high - low) * u as f32).to_f64());
    Ok(())
}
