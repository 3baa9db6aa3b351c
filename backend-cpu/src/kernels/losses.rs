//! `mse_loss`, `l1_loss` and `smooth_l1_loss`, fused with their reduction, and `smooth_l1_loss_backward`.
//!
//! Arguments that are not dense with equal strides use the decomposition.

use super::buffer::Buffer;
use keyway_cpu_loops::vectors::halves;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes as Elements, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
/// Elements per partial sum, which also bounds the rounding error of long sums.
const BLOCK: usize = 16 * 1024;

/// The sum of the losses of a block, accumulated in lanes.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
fn total<T: Float>(x: &[T], y: &[T], loss: impl Fn(T::Acc) -> T::Acc) -> T::Acc {
    let mut lanes = [T::Acc::ZERO; LANES];
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in xs.iter().zip(ys) {
        for k in 0..LANES {
            lanes[k] += loss(x[k].to_acc() - y[k].to_acc());
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane += loss(x.to_acc() - y.to_acc());
    }
    halves(&mut lanes, |a, b| a + b)
}

/// Applies `loss` to the differences of the first two arguments, and reduces as the text argument `how` specifies.
#[inline(always)]
fn reduced<T: Float>(call: &Call, how: usize, loss: impl Fn(T::Acc) -> T::Acc + Sync) -> Result<(), Error> {
    let how = call.str(how)?;
    if how == "none" {
        return call.map2_wide::<T, T, T>(Cost::Cheap, |x, y| loss(x - y));
    }
    let (x, y, mut out) = (call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?);
    let alike =
        x.sizes() == y.sizes() && (x.strides() == y.strides() || x.is_contiguous() && y.is_contiguous());
    let (Some(x), Some(y), true) = (x.as_dense_slice(), y.as_dense_slice(), alike) else {
        return Err(Error::Unsupported { what: "a loss of arguments with different strides".into() });
    };
    let mut parts = Buffer::<T::Acc>::zeroed(x.len().div_ceil(BLOCK))?;
    // SAFETY: the address is used within the parts, which outlive the loop; each block has its own element.
    let to = unsafe { Elements::new(parts.as_mut_ptr()) };
    parallel_for(x.len().div_ceil(BLOCK), 2, |blocks| {
        for i in blocks {
            let range = i * BLOCK..((i + 1) * BLOCK).min(x.len());
            // SAFETY: as above.
            unsafe { to.as_ptr().add(i).write(total(&x[range.clone()], &y[range], &loss)) };
        }
    })?;
    let sum = parts.iter().fold(T::Acc::ZERO, |sum, part| sum + *part);
    let count = if how == "mean" { T::Acc::from_f64(x.len() as f64) } else { T::Acc::ONE };
    // SAFETY: the output has one element.
    unsafe { out.as_mut_ptr().write(T::from_acc(sum / count)) };
    Ok(())
}

fn mse_loss<T: Float>(call: &Call) -> Result<(), Error> {
    reduced::<T>(call, 2, |d| d * d)
}

fn l1_loss<T: Float>(call: &Call) -> Result<(), Error> {
    reduced::<T>(call, 2, |d| d.abs())
}

fn smooth_l1_loss<T: Float>(call: &Call) -> Result<(), Error> {
    let beta = call.scalar::<f64>(2)?;
    let factor = if beta == 0.0 { 0.0 } else { 0.5 / beta };
    let [beta, factor, half] = [beta, factor, 0.5 * beta].map(T::Acc::from_f64);
    reduced::<T>(call, 3, move |d| {
        let d = d.abs();
        // Scaled before the second product: the square alone may overflow or underflow.
        let (near, far) = (d * factor * d, d - half);
        if d < beta { near } else { far }
    })
}

/// The gradient of the input: linear within `beta`, otherwise by the sign; NaN propagates.
fn smooth_l1_loss_backward<T: Float>(call: &Call) -> Result<(), Error> {
    let beta = T::Acc::from_f64(call.scalar(3)?);
    let count = call.view::<T>(1)?.numel();
    let share = if call.str(4)? == "mean" { 1.0 / count as f64 } else { 1.0 };
    let (share, one, zero) = (T::Acc::from_f64(share), T::Acc::ONE, T::Acc::ZERO);
    call.map3_wide::<T, T, T, T>(Cost::Cheap, move |grad, x, y| {
        let d = x - y;
        let (near, below) = (d / beta, if d < zero { -one } else { d * zero });
        let far = if d > zero { one } else { below };
        grad * share * if d.abs() < beta { near } else { far }
    })
}

kernel!("mse_loss", "TTS>T", mse_loss, [f32, f64, f16, bf16]);
kernel!("l1_loss", "TTS>T", l1_loss, [f32, f64, f16, bf16]);
kernel!("smooth_l1_loss", "TTsS>T", smooth_l1_loss, [f32, f64, f16, bf16]);
kernel!("smooth_l1_loss_backward", "TTTsS>T", smooth_l1_loss_backward, [f32, f64, f16, bf16]);
