//! `multinomial` with replacement by inverse transform sampling, bit-identical to the decomposition. Other calls use the
//! decomposition: many draws from few categories, which it distributes among threads, and invalid distributions, which it
//! refuses.

use super::buffer::{Buffer, try_parallel_for};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Element, Error, Float, Lanes};
use keyway_sdk::half::{bf16, f16};
use keyway_sdk::philox::{element, fraction};

/// The number of rows whose cumulative sums are computed in parallel, since each step depends on the previous one.
const ROWS: usize = 4;
/// The minimum number of elements per work item.
const GRAIN: usize = 16 * 1024;

fn left() -> Error {
    Error::Unsupported { what: "what the parts of `multinomial` do or refuse".to_string() }
}

/// Writes the probabilities of a row, for f64 divided by the largest, so that no sum overflows. Returns whether they are a
/// distribution.
fn widen<T: Float>(row: &[T], to: &mut [f64]) -> bool {
    let wide = |x: T| x.to_acc().to_f64();
    let mut valid = true;
    // Non-negative floats have the order of their bits without the sign bit, which -0 has set.
    let mut most = 0;
    for x in row {
        valid &= wide(*x) >= 0.0 && wide(*x) < f64::INFINITY;
        most = most.max(wide(*x).to_bits() & !(1 << 63));
    }
    let most = f64::from_bits(most);
    let to = &mut to[..row.len()];
    if size_of::<T>() == size_of::<f64>() {
        (0..row.len()).for_each(|i| to[i] = wide(row[i]) / most);
    } else {
        (0..row.len()).for_each(|i| to[i] = wide(row[i]));
    }
    valid && most > 0.0
}

/// Replaces `R` rows of `n` elements by their cumulative sums.
fn accumulate<const R: usize>(rows: &mut [f64], n: usize) {
    let rows = &mut rows[..R * n];
    let mut sums = [-0.0; R];
    for i in 0..n {
        for (r, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `i` is below `n` and `r` below `R`, and the slice has `R` rows of `n` elements; a bounds check would
            // take longer than the addition.
            let place = unsafe { rows.get_unchecked_mut(r * n + i) };
            *sum += *place;
            *place = *sum;
        }
    }
}

fn multinomial<T: Float>(call: &Call) -> Result<(), Error> {
    let (drawn, sizes) = (call.int(1)? as usize, call.tensor(0)?.sizes());
    let n = sizes.last().map_or(0, |n| *n as usize);
    if !call.bool(2)? || drawn > n {
        return Err(left());
    }
    let (seed, offset) = (call.int(3)? as u64, call.int(4)? as u64);
    let p = call.contiguous::<T>(0)?;
    let mut out = call.contiguous_out::<i64>(0)?;
    // SAFETY: the address is used within `out`, which outlives the call.
    let out = unsafe { Lanes::new(out.as_mut_ptr()) };
    try_parallel_for(p.len() / n, GRAIN.div_ceil(n), |part| {
        // SAFETY: `widen` writes each row before it is read.
        let mut sums = unsafe { Buffer::<f64>::unwritten(n.saturating_mul(ROWS)) }?;
        let mut draws = Buffer::<u64>::zeroed(drawn + 1)?;
        for first in part.clone().step_by(ROWS) {
            let rows = ROWS.min(part.end - first);
            let given = p[first * n..(first + rows) * n].chunks_exact(n);
            if !given.zip(sums.chunks_exact_mut(n)).fold(true, |all, (row, to)| all & widen(row, to)) {
                return Err(left());
            }
            match rows {
                ROWS => accumulate::<ROWS>(&mut sums, n),
                _ => sums.chunks_exact_mut(n).take(rows).for_each(|row| accumulate::<1>(row, n)),
            }
            for (row, sums) in (first..first + rows).zip(sums.chunks_exact(n)) {
                // A block of random words provides two draws; the first may belong to the previous row.
                let (begin, odd) = (row * drawn, row * drawn % 2);
                let draws = &mut draws[..odd + drawn];
                element::pairs(seed, offset.wrapping_add(begin as u64 / 2), draws);
                for (j, draw) in draws[odd..].iter().enumerate() {
                    let wanted = fraction(*draw) * sums[n - 1];
                    let place = sums.partition_point(|sum| *sum <= wanted);
                    // SAFETY: there is an element for each draw of each row, and rows are disjoint.
                    unsafe { out.write(begin + j, place as i64) };
                }
            }
        }
        Ok(())
    })
}

kernel!("multinomial", "Tibii>T", multinomial, [f32, f64, f16, bf16]);
