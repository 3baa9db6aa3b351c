//! `nll_loss`, `nll_loss_forward` and `nll_loss_backward`

use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Element, Error, Float, Plain};
use keyway_sdk::half::{bf16, f16};

/// The number of samples, of classes, and of elements of the dimensions after the classes.
fn split(sizes: &[i64]) -> (usize, usize, usize) {
    let size = |i: usize| sizes.get(i).map_or(1, |n| *n as usize);
    match sizes.len() {
        0 | 1 => (1, size(0), 1),
        _ => (size(0), size(1), sizes[2..].iter().map(|n| *n as usize).product()),
    }
}

/// The class of a target; `None` if it is ignored.
fn class(target: i64, classes: usize, ignored: i64) -> Result<Option<usize>, Error> {
    if target == ignored {
        return Ok(None);
    }
    match usize::try_from(target) {
        Ok(class) if class < classes => Ok(Some(class)),
        _ => Err(Error::InvalidArgument {
            argument: "target",
            expected: format!("classes in 0..{classes}, or {ignored} for an ignored row"),
            got: format!("{target}"),
        }),
    }
}

/// Calls `body` with the index, the loss and the weight of each target; loss and weight are 0 if the target is ignored. A
/// class of weight 0 has loss 0 for any element.
fn each<T: Float>(call: &Call, mut body: impl FnMut(usize, T::Acc, T)) -> Result<(), Error> {
    let (input, targets) = (call.contiguous::<T>(0)?, call.contiguous::<i64>(1)?);
    let (_, classes, behind) = split(call.view::<T>(0)?.sizes());
    let weights = if call.is_none(2)? { None } else { Some(call.contiguous::<T>(2)?) };
    let ignored = call.int(3)?;
    let one = T::from_f64(1.0);
    // Sample by sample: a division for each target would take longer than its loss.
    for (sample, targets) in targets.chunks(behind.max(1)).enumerate() {
        for (k, target) in targets.iter().enumerate() {
            let (mut loss, mut weight) = (T::default().to_acc(), T::default());
            if let Some(c) = class(*target, classes, ignored)? {
                weight = weights.as_ref().and_then(|w| w.get(c).copied()).unwrap_or(one);
                if weight != T::default() {
                    loss = -(input[(sample * classes + c) * behind + k].to_acc() * weight.to_acc());
                }
            }
            body(sample * behind + k, loss, weight);
        }
    }
    Ok(())
}

fn forward<T: Float>(call: &Call) -> Result<(), Error> {
    let (mut losses, mut of) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<T>(1)?);
    each::<T>(call, |i, loss, weight| (losses[i], of[i]) = (T::from_acc(loss), weight))
}

/// Computes a reduced loss and its weight. The accumulation in f64 is accurate for any number of addends.
fn loss<T: Float>(call: &Call) -> Result<(), Error> {
    let mut out = call.contiguous_out::<T>(0)?;
    let how = call.str(4)?;
    if how == "none" {
        return each::<T>(call, |i, loss, _| out[i] = T::from_acc(loss));
    }
    let (mut sum, mut weights) = (0.0, 0.0);
    each::<T>(call, |_, loss, weight| {
        sum += loss.to_f64();
        weights += weight.to_f64();
    })?;
    out[0] = T::from_f64(if how == "mean" { sum / weights } else { sum });
    Ok(())
}

fn backward<T: Float + Plain>(call: &Call) -> Result<(), Error> {
    let (grad, targets) = (call.contiguous::<T>(0)?, call.contiguous::<i64>(1)?);
    let (weights, ignored) = (call.contiguous::<T>(2)?, call.int(4)?);
    let sizes = call.output(0)?.sizes();
    let (_, classes, behind) = split(sizes);
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::default());
    for (i, target) in targets.iter().enumerate() {
        if let Some(c) = class(*target, classes, ignored)? {
            let at = (i / behind * classes + c) * behind + i % behind;
            out[at] = T::from_acc(-(grad[i].to_acc() * weights[i].to_acc()));
        }
    }
    Ok(())
}

kernel!("nll_loss", "TTOiS>T", loss, [f32, f64, f16, bf16]);
kernel!("nll_loss_forward", "TTOi>TT", forward, [f32, f64, f16, bf16]);
kernel!("nll_loss_backward", "TTTii>T", backward, [f32, f64, f16, bf16]);
