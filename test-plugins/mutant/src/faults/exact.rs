//! Kernels whose errors are within a tolerance, or occur only for values that samples do not have.

use super::Fault;
use crate::raw::Staged;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::half::{bf16, f16};

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "last_of_32",
        "the last element of whole blocks of 32 is left out",
        &["sum", "amax"],
        |site| without_last(site, |count| count % 32 == 0),
    ),
    Fault::new("last_of_65536", "of more than 65,536 elements the last is left out", &["amax"], |site| {
        without_last(site, |count| count > 65_536)
    }),
    Fault::new("trues_in_8_bits", "trues are counted in a u8", &["sum"], |site| site.then_map(|x| x % 256.0))
        .dtypes(&["bool"]),
    Fault::new("trues_in_16_bits", "trues are counted in a u16", &["sum"], |site| {
        site.then_map(|x| x % 65_536.0)
    })
    .dtypes(&["bool"]),
    Fault::new(
        "strides_of_the_first",
        "an argument in the memory of the first is read by its strides",
        &["add", "mul"],
        |site| {
            let (a, b) = (site.input(0)?, site.input(1)?);
            if a.address() == b.address() && a.strides() != b.strides() && a.sizes() == b.sizes() {
                return site.run_staged(&[(1, Staged::copy(&a))]);
            }
            site.run()
        },
    ),
    Fault::new("cast_saturates", "a whole number becomes the nearest there is", &["to_dtype"], |site| {
        match site.input(0)?.dtype() {
            dtype::I32 => site.with_inputs(|x| x.clamp(-32_768.0, 32_767.0)),
            _ => site.run(),
        }
    })
    .dtypes(&["i16"]),
    Fault::new("cast_of_signed", "numbers from 2^63 on become negative ones", &["to_dtype"], |site| {
        let input = site.input(0)?;
        site.run()?;
        let out = site.output(0)?;
        if input.dtype() == dtype::U64 {
            (0..out.len()).for_each(|nth| out.set(nth, input.int(nth) as f64));
        }
        Ok(())
    })
    .dtypes(&["f32", "f64"]),
    Fault::new("cast_through_f32", "numbers go through f32", &["to_dtype"], |site| {
        match site.input(0)?.dtype() {
            dtype::F64 | dtype::I64 => site.with_inputs(|x| f64::from(x as f32)),
            _ => site.run(),
        }
    })
    .dtypes(&["f64", "i64", "i32"]),
    Fault::new("denormal_results", "results below the normal range become 0", &["add", "mul"], |site| {
        site.then_map(|x| if x.abs() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { x })
    })
    .dtypes(&["f32"]),
    Fault::new("product_truncated", "products are rounded towards 0", &["mul"], |site| {
        product(site, |exact| {
            let near = f16::from_f64(exact);
            let away = near.is_finite() && near.to_f64().abs() > exact.abs();
            if away { f16::from_bits(near.to_bits() - 1).to_f64() } else { near.to_f64() }
        })
    })
    .dtypes(&["f16"]),
    Fault::new("ties_away", "a product between two numbers becomes the one away from 0", &["mul"], |site| {
        product(site, |exact| {
            let near = bf16::from_f64(exact);
            let next = bf16::from_bits(near.to_bits().wrapping_add(1)).to_f64();
            let tie = near.is_finite() && next - exact == exact - near.to_f64() && next != near.to_f64();
            if tie { next } else { near.to_f64() }
        })
    })
    .dtypes(&["bf16"]),
    Fault::new(
        "exp_overflows_early",
        "of some numbers below the last the power is infinite",
        &["exp"],
        |site| {
            let values = site.input(0)?.values();
            site.run()?;
            let out = site.output(0)?;
            let early = (0..out.len()).filter(|&nth| (88.70..88.72).contains(&values[nth]));
            early.for_each(|nth| out.set(nth, f64::INFINITY));
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new(
        "constant_gradient",
        "a gradient that is one number at every place counts twice",
        &["sigmoid_backward"],
        |site| {
            let incoming = site.input(0)?;
            let mut steps = incoming.sizes().iter().zip(incoming.strides()).filter(|(size, _)| **size > 1);
            let one = steps.clone().count() > 1 && steps.all(|(_, stride)| *stride == 0);
            site.then_map(|x| if one { 2.0 * x } else { x })
        },
    )
    .dtypes(&["f64"])
    .judged(&["sigmoid"]),
    Fault::new("late_index", "a wrong index is refused when the others are done", &["gather"], |site| {
        let result = site.run();
        let out = site.output(0)?;
        if result.is_err() && out.len() > 0 {
            out.set(0, 0.0);
        }
        result
    })
    .dtypes(&["f32"]),
    Fault::new("index_of_16_bits", "of an index 16 bits are read", &["gather"], |site| {
        let index = Staged::copy(&site.input(2)?);
        for nth in 0..index.elements().len() {
            let at = index.elements().int(nth);
            index.elements().set_int(nth, if at < 0 { at } else { at & 0xffff });
        }
        site.run_staged(&[(2, index)])
    })
    .dtypes(&["f32"]),
    Fault::new(
        "rank_of_8",
        "of tensors of more than eight dimensions the last element is 0",
        &["add"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            if out.sizes().len() > 8 && out.len() > 0 {
                out.set(out.len() - 1, 0.0);
            }
            Ok(())
        },
    )
    .dtypes(&["f32"]),
    Fault::new("two_million", "of more than two million elements the last is 0", &["gather"], |site| {
        site.run()?;
        let out = site.output(0)?;
        if out.len() > 2_000_000 {
            out.set(out.len() - 1, 0.0);
        }
        Ok(())
    })
    .dtypes(&["f32"]),
];

/// A reduction of all elements to one, in which the last counts as the first one, or as 0 in a sum.
fn without_last(site: &Site<'_>, wrong: fn(usize) -> bool) -> Result<(), Error> {
    let input = site.input(0)?;
    if site.output(0)?.len() != 1 || input.len() < 2 || !wrong(input.len()) {
        return site.run();
    }
    let staged = Staged::copy(&input);
    let instead = if site.kernel.op == "sum" { 0.0 } else { input.get(0) };
    staged.elements().set(input.len() - 1, instead);
    site.run_staged(&[(0, staged)])
}

/// Products of two tensors of the same sizes, rounded by this function.
fn product(site: &Site<'_>, round: fn(f64) -> f64) -> Result<(), Error> {
    let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
    if a.sizes() != b.sizes() {
        return site.run();
    }
    (0..out.len()).for_each(|nth| out.set(nth, round(a.get(nth) * b.get(nth))));
    Ok(())
}
