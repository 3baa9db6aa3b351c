//! `rms_norm` and `rms_norm_backward`

use super::buffer::Buffer;
use super::moments::{sums, widened};
use super::number::Apply;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, halves};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradient of the weight are summed together.
const ROWS: usize = 64;

// Functions of their own, each with one loop: inlined into one, the loops share its registers, and keep their sums in memory.

/// `1 / sqrt(mean(x^2) + eps)`.
#[inline(never)]
fn reciprocal_root<T: Elements>(x: &[T], eps: T::Acc) -> T::Acc
where
    T::Acc: Float,
{
    let [squares] = sums([x], |[x], [squares]| [x.mul_add(x, squares)]);
    T::Acc::ONE / (squares / T::Acc::from_f64(x.len() as f64) + eps).sqrt()
}

/// The sum of the products of gradient, weight and element; the slices are of one length.
#[inline(never)]
#[allow(clippy::needless_range_loop)]
fn products<T: Float>(x: &[T], g: &[T], w: &[T::Acc]) -> T::Acc {
    let mut all = [T::Acc::ZERO; LANES];
    let product = |x: T, g: T, w: T::Acc| g.to_acc() * w * x.to_acc();
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let ((gs, g_rest), (ws, w_rest)) = (g.as_chunks::<LANES>(), w.as_chunks::<LANES>());
    for ((x, g), w) in xs.iter().zip(gs).zip(ws) {
        for k in 0..LANES {
            all[k] += product(x[k], g[k], w[k]);
        }
    }
    for (k, ((x, g), w)) in x_rest.iter().zip(g_rest).zip(w_rest).enumerate() {
        all[k] += product(*x, *g, *w);
    }
    halves(&mut all, |a, b| a + b)
}

/// Adds what a row contributes to the gradient of the weight; the slices are of one length.
#[inline(never)]
fn add_row<T: Float>(weight: &mut [T::Acc], (x, g): (&[T], &[T]), root: T::Acc) {
    for ((w, x), g) in weight.iter_mut().zip(x).zip(g) {
        *w += g.to_acc() * (x.to_acc() * root);
    }
}

/// Argument `i`, or the distance from 1 to the next number of the type that is computed in.
fn epsilon<T: Elements>(call: &Call, i: usize) -> Result<T::Acc, Error> {
    let given = match call.is_none(i)? {
        true if size_of::<T::Acc>() == size_of::<f64>() => f64::EPSILON,
        true => f64::from(f32::EPSILON),
        false => call.float(i)?,
    };
    Ok(T::Acc::from_f64(given))
}

fn rms_norm<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let input = call.contiguous::<T>(0)?;
    let n: usize = call.ints(1)?.iter().map(|n| *n as usize).product();
    let (weight, eps) = (&widened::<T>(call, 2, n, T::Acc::ONE)?, epsilon::<T>(call, 3)?);
    let mut out = call.contiguous_out::<T>(0)?;
    // SAFETY: the address is used within the output, which outlives the loop; each row has its own part.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    parallel_for(input.len() / n.max(1), GRAIN.div_ceil(n.max(1)), |rows| {
        for r in rows {
            let x = &input[r * n..(r + 1) * n];
            let root = reciprocal_root::<T>(x, eps);
            // SAFETY: as above.
            let to = unsafe { to.slice_mut(r * n, n) };
            zip_wide((x, &weight[..]), to, |(x, w)| x.to_acc() * root * w);
        }
    })
}

fn rms_norm_backward<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let (grad, input) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?);
    let n: usize = call.ints(2)?.iter().map(|n| *n as usize).product();
    let (weight, eps) = (&widened::<T>(call, 3, n, T::Acc::ONE)?, epsilon::<T>(call, 4)?);
    let (mut out, mut weight_out) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<T>(1)?);
    let rows = input.len() / n.max(1);
    let blocks = rows.div_ceil(ROWS);
    let mut parts = Buffer::<T::Acc>::zeroed(n * blocks)?;
    // SAFETY: the addresses are used within their slices, which outlive the loop; blocks are disjoint.
    let (to, of_blocks) = unsafe { (Lanes::new(out.as_mut_ptr()), Lanes::new(parts.as_mut_ptr())) };
    parallel_for(blocks, GRAIN.div_ceil(ROWS * n.max(1)), |range| {
        for block in range {
            // SAFETY: as above.
            let of_block = unsafe { of_blocks.slice_mut(block * n, n) };
            for r in block * ROWS..((block + 1) * ROWS).min(rows) {
                let (x, g) = (&input[r * n..(r + 1) * n], &grad[r * n..(r + 1) * n]);
                let root = reciprocal_root::<T>(x, eps);
                let along = products::<T>(x, g, weight) * root / T::Acc::from_f64(n as f64);
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(r * n, n) };
                zip_wide((x, g, &weight[..]), to, |(x, g, w)| {
                    (g.to_acc() * w - x.to_acc() * root * along) * root
                });
                add_row::<T>(of_block, (x, g), root);
            }
        }
    })?;
    let mut whole = Buffer::<T::Acc>::zeroed(n)?;
    for part in parts.chunks_exact(n.max(1)) {
        whole.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
    }
    weight_out.iter_mut().zip(&whole[..]).for_each(|(to, x)| *to = T::from_acc(*x));
    Ok(())
}

kernel!("rms_norm", "TIOf>T", rms_norm, [f32, f64, f16, bf16]);
kernel!("rms_norm_backward", "TTIOf>TT", rms_norm_backward, [f32, f64, f16, bf16]);
