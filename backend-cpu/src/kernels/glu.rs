//! `glu` and `glu_backward`
//!
//! The two halves alternate in memory, in runs of contiguous elements, for each index of the outer dimensions. This holds
//! for contiguous tensors, and for any other dense order that the input and the halves share; other tensors are copied.

use super::activations::Sigmoid;
use super::cells::overlap;
use super::dims::dim;
use super::exponential::Exp;
use super::number::Apply;
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, View, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Elements of a half that are computed together, so that their sigmoids stay in L1.
const PIECE: usize = 1024;
const GRAIN: usize = 8 * 1024;

/// The number of elements of a half that are contiguous in a dense tensor of these sizes and strides.
fn run(sizes: &[i64], strides: &[i64], dim: usize) -> usize {
    (sizes[dim] / 2 * strides[dim]) as usize
}

/// [`run`] of the input, if a tensor with the shape of a half has its elements in the same order. Both are dense.
fn run_alike(sizes: &[i64], whole: &[i64], half: &[i64], dim: usize) -> Option<usize> {
    let alike = |d: usize| {
        let size = if d == dim { sizes[d] / 2 } else { sizes[d] };
        let expected = if whole[d] > whole[dim] { whole[d] / 2 } else { whole[d] };
        size <= 1 || half[d] == expected
    };
    (0..sizes.len()).all(alike).then(|| run(sizes, whole, dim))
}

/// [`run`] in row-major order.
fn run_of_rows<T: Element>(x: &View<T>, dim: usize) -> usize {
    (x.sizes()[dim] / 2 * x.sizes()[dim + 1..].iter().product::<i64>()) as usize
}

/// Calls `body` with pieces of runs: the offset in the halves, the offset in the first half of the input, and the length.
/// The second half starts one run after the first.
fn pieces(half: usize, run: usize, body: impl Fn(usize, usize, usize) + Sync) -> Result<(), Error> {
    let across = run.div_ceil(PIECE);
    parallel_for(half / run.max(1) * across, GRAIN.div_ceil(PIECE.min(run.max(1))), |units| {
        for unit in units {
            let (row, begin) = (unit / across, unit % across * PIECE);
            body(row * run + begin, 2 * row * run + begin, PIECE.min(run - begin));
        }
    })
}

fn forward<T: Float<Acc: Apply>>(x: &[T], out: &mut [T], run: usize) -> Result<(), Error> {
    let half = out.len();
    // SAFETY: the address is used within the output, which outlives the loop; the pieces are disjoint.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    pieces(half, run, |at, from, n| {
        let (own, gate) = (&x[from..from + n], &x[from + run..from + run + n]);
        // SAFETY: as above.
        let to = unsafe { to.slice_mut(at, n) };
        zip_wide((own, gate), to, |(own, gate)| own.to_acc() * gate.to_acc().apply::<Sigmoid>());
    })
}

fn backward<T: Float<Acc: Apply>>(grad: &[T], x: &[T], out: &mut [T], run: usize) -> Result<(), Error> {
    // SAFETY: the address is used within the output, which outlives the loop; the pieces are disjoint, and so are the halves.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    pieces(grad.len(), run, |at, from, n| {
        let (grad, own, gate) = (&grad[at..at + n], &x[from..from + n], &x[from + run..from + run + n]);
        let mut buffer = [T::Acc::ZERO; PIECE];
        let power = &mut buffer[..n];
        zip_wide((gate,), power, |(gate,)| (-gate.to_acc().abs()).apply::<Exp>());
        // SAFETY: as above.
        let (to_own, to_gate) = unsafe { (to.slice_mut(from, n), to.slice_mut(from + run, n)) };
        // Both factors from the exponential: `1 - sigmoid` would cancel where the sigmoid is nearly 1.
        zip_wide((grad, gate, &power[..]), to_own, |(grad, gate, e)| {
            let right = T::Acc::ONE / (T::Acc::ONE + e);
            grad.to_acc() * if gate.to_acc() < T::Acc::ZERO { e * right } else { right }
        });
        zip_wide((grad, own, &power[..]), to_gate, |(grad, own, e)| {
            let right = T::Acc::ONE / (T::Acc::ONE + e);
            grad.to_acc() * (e * right * right) * own.to_acc()
        });
    })
}

fn glu<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let (x, out) = (call.view::<T>(0)?, call.output(0)?);
    let dim = dim(call, 1, x.ndim())?;
    let alike = run_alike(x.sizes(), x.strides(), out.strides(), dim);
    if let (Some(run), Some(x)) = (alike, x.as_dense_slice()) {
        return forward(x, call.out::<T>(0)?.as_dense_mut_slice().ok_or_else(overlap)?, run);
    }
    forward(&call.contiguous::<T>(0)?, &mut call.contiguous_out::<T>(0)?, run_of_rows(&x, dim))
}

fn glu_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let (grad, x, out) = (call.view::<T>(0)?, call.view::<T>(1)?, call.output(0)?);
    let dim = dim(call, 2, x.ndim())?;
    let alike =
        run_alike(x.sizes(), x.strides(), grad.strides(), dim).filter(|_| x.strides() == out.strides());
    if let (Some(run), Some(grad), Some(x)) = (alike, grad.as_dense_slice(), x.as_dense_slice()) {
        return backward(grad, x, call.out::<T>(0)?.as_dense_mut_slice().ok_or_else(overlap)?, run);
    }
    let (grad, whole) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?);
    backward(&grad, &whole, &mut call.contiguous_out::<T>(0)?, run_of_rows(&x, dim))
}

kernel!("glu", "Ti>T", glu, [f32, f64, f16, bf16]);
kernel!("glu_backward", "TTi>T", glu_backward, [f32, f64, f16, bf16]);
