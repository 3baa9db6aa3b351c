//! Elements that are computed wrongly.

use super::Fault;
use crate::raw::Staged;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::dtype_name;

/// The number of elements above which the faulty kernels split a tensor.
const LARGE: usize = 4096;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("nan_swallowed", "NaN in an argument is taken for 0", &["relu", "amax", "exp"], |site| {
        site.with_inputs(|x| if x.is_nan() { 0.0 } else { x })
    }),
    Fault::new("nan_equals", "NaN equals NaN", &["eq"], |site| {
        let (a, b) = (site.input(0)?.values(), site.input(1)?.values());
        site.run()?;
        let out = site.output(0)?;
        let both = (0..out.len()).filter(|&nth| a[nth].is_nan() && b[nth].is_nan());
        both.for_each(|nth| out.set(nth, 1.0));
        Ok(())
    }),
    Fault::new(
        "infinity_clamped",
        "an infinite result is the largest number instead",
        &["add", "exp"],
        |site| site.then_map(|x| if x.is_infinite() { x.signum() * 3.0e38 } else { x }),
    )
    .dtypes(&["f32", "bf16"]),
    Fault::new("computes_in_single", "f64 is computed in f32", &["exp", "sigmoid"], |site| {
        site.then_map(|x| f64::from(x as f32))
    })
    .dtypes(&["f64"]),
    Fault::new("denormals_lost", "a denormal result is 0", &["exp"], |site| {
        site.then_map(|y| if y < f64::from(f32::MIN_POSITIVE) { 0.0 } else { y })
    })
    .dtypes(&["f32"]),
    Fault::new("overflows_early", "the exponential of more than 88 is infinite", &["exp"], |site| {
        let values = site.input(0)?.values();
        site.run()?;
        let out = site.output(0)?;
        (0..out.len()).filter(|&nth| values[nth] > 88.0).for_each(|nth| out.set(nth, f64::INFINITY));
        Ok(())
    })
    .dtypes(&["f32"]),
    Fault::new("computes_in_half", "f32 is computed in half precision", &["div"], |site| {
        site.then_map(|x| keyway_sdk::half::f16::from_f64(x).to_f64())
    })
    .dtypes(&["f32"]),
    Fault::new(
        "wrong_cast",
        "a float becomes the nearest whole number, not the next towards 0",
        &["to_dtype"],
        |site| match is_float(site.input(0)?.dtype()) {
            true => site.with_inputs(f64::round),
            false => site.run(),
        },
    )
    .dtypes(&["i8", "i16", "i32", "i64"]),
    Fault::new("wrong_promotion", "true is promoted to 3", &["to_dtype"], |site| {
        match site.input(0)?.dtype() == dtype::BOOL {
            true => site.then_map(|x| x * 3.0),
            false => site.run(),
        }
    })
    .dtypes(&["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
    .judged(&["add", "mul"]),
    Fault::new("copied_inexactly", "moved elements lose their last bits", &["clone", "gather"], |site| {
        site.then_map(|x| f64::from(f32::from_bits((x as f32).to_bits() & !7)))
    })
    .dtypes(&["f32"]),
    Fault::new("denormals_flushed", "numbers below the normal range become 0", &["relu", "round"], |site| {
        site.then_map(|x| if x.abs() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { x })
    })
    .dtypes(&["f32", "bf16"]),
    Fault::new("zero_sign_lost", "minus zero becomes plus zero", &["mul", "round"], |site| {
        site.then_map(|x| if x == 0.0 { 0.0 } else { x })
    })
    .dtypes(&["f32", "bf16"]),
    Fault::new(
        "large_tail_wrong",
        "the last element of a tensor that is split is 0",
        &["exp", "relu"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            if out.len() > LARGE {
                out.set(out.len() - 1, 0.0);
            }
            Ok(())
        },
    ),
    Fault::new("large_sum_cut", "a sum stops after so many elements", &["sum", "mean"], |site| {
        let input = Staged::copy(&site.input(0)?);
        (LARGE..input.elements().len()).for_each(|nth| input.elements().set(nth, 0.0));
        site.run_staged(&[(0, input)])
    }),
    Fault::new(
        "integer_saturates",
        "sums stop at the largest number instead of wrapping",
        &["add"],
        |site| {
            let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
            let alpha: i64 = site.call.scalar(2)?;
            for nth in 0..out.len() {
                out.set_int(nth, a.int(nth).saturating_add(b.int(nth).saturating_mul(alpha)));
            }
            Ok(())
        },
    )
    .dtypes(&["i64"]),
    Fault::new("integers_as_floats", "i64 products are computed in f64", &["mul"], |site| {
        let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
        for nth in 0..out.len() {
            out.set_int(nth, (a.int(nth) as f64 * b.int(nth) as f64) as i64);
        }
        Ok(())
    })
    .dtypes(&["i64"]),
    Fault::new("rounding_half_up", "halves go up instead of to the even number", &["round"], |site| {
        let values = site.input(0)?.values();
        site.run()?;
        let out = site.output(0)?;
        let halves = (0..out.len()).filter(|&nth| values[nth].fract().abs() == 0.5);
        halves.for_each(|nth| out.set(nth, (values[nth] + 0.5).floor()));
        Ok(())
    })
    .dtypes(&["f32", "f64", "f16", "bf16"]),
    Fault::new("invalid_bool", "true is the byte 2", &["eq"], |site| {
        site.run()?;
        let out = site.output(0)?;
        for nth in 0..out.len() {
            if out.get(nth) != 0.0 {
                out.poke_byte(out.offset(&out.index(nth)) as usize, 2);
            }
        }
        Ok(())
    }),
    Fault::new("wrong_backward", "a derivative is two per cent too large", &["sigmoid_backward"], |site| {
        site.then_map(|x| x * 1.02)
    })
    .judged(&["sigmoid"]),
    Fault::new("unclaimed_answer", "answers wrongly for a dtype that the op is not for", &["mm"], unclaimed)
        .dtypes(&["bool"]),
];

fn unclaimed(site: &Site<'_>) -> Result<(), Error> {
    site.then_map(|x| 1.0 - x)
}

fn is_float(code: u16) -> bool {
    dtype_name(code).contains('f')
}
