//! Non-tensor arguments that are misread.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::abi::codes::tag;
use keyway_sdk::abi::tensor::RawArg;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "alpha_ignored",
        "the factor of the second argument is taken for 1",
        &["add", "sub"],
        |site| site.run_with(2, int(1)),
    ),
    Fault::new("alpha_magnitude", "the factor's sign is lost", &["add", "sub"], |site| {
        let given = site.args()[2];
        let value = match given.tag {
            tag::INT => (given.value as i64).unsigned_abs(),
            _ => f64::from_bits(given.value).abs().to_bits(),
        };
        site.run_with(2, RawArg { value, ..given })
    })
    .dtypes(&["f32", "i64"]),
    Fault::new("dim_ignored", "always goes along the last dimension", &["softmax"], |site| {
        site.run_with(1, int((site.input(0)?.sizes().len() as i64 - 1).max(0)))
    }),
    Fault::new("correction_ignored", "divides by the count, whatever the correction", &["var"], |site| {
        site.run_with(2, int(0))
    }),
    Fault::new("floor_truncates", "rounds a quotient towards zero instead of down", &["div"], |site| {
        match site.call.is_none(2)? {
            true => site.run(),
            false => site.run_with(2, text("trunc")),
        }
    })
    .judged(&["div", "floor_divide"]),
    Fault::new("sort_reversed", "sorts in the other direction", &["sort"], |site| {
        site.run_with(2, flag(!site.call.bool(2)?))
    }),
    Fault::new("cat_swapped", "the first two tensors change places", &["cat"], |site| {
        let given = site.args()[0];
        // SAFETY: a list argument has `len` entries; the host upholds this.
        let mut list =
            unsafe { std::slice::from_raw_parts(given.value as *const *const u8, given.len as usize) }
                .to_vec();
        if list.len() > 1 {
            list.swap(0, 1);
        }
        site.run_with(0, RawArg { value: list.as_ptr() as u64, ..given })
    }),
    Fault::new("stream_shifted", "random numbers come one place later in the stream", &["uniform"], |site| {
        site.run_with(4, int(site.call.int(4)? + 1))
    }),
    Fault::new("stream_stuck", "random numbers always come from the stream's start", &["normal"], |site| {
        site.run_with(4, int(0))
    }),
    Fault::new("seed_ignored", "random numbers are those of seed 0", &["uniform"], seed_ignored),
];

fn seed_ignored(site: &Site<'_>) -> Result<(), Error> {
    site.run_with(3, int(0))
}

pub(super) fn int(value: i64) -> RawArg {
    RawArg { tag: tag::INT, len: 0, value: value as u64 }
}

pub(super) fn flag(value: bool) -> RawArg {
    RawArg { tag: tag::BOOL, len: 0, value: u64::from(value) }
}

fn text(value: &'static str) -> RawArg {
    RawArg { tag: tag::STR, len: value.len() as u32, value: value.as_ptr() as u64 }
}
