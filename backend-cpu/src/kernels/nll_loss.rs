//! `nll_loss_forward` and `nll_loss_backward`

use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error, Float, Plain};
use keyway_sdk::half::{bf16, f16};

/// Samples, classes, and the elements of what stands behind the classes.
fn split(sizes: &[i64]) -> (usize, usize, usize) {
    let size = |i: usize| sizes.get(i).map_or(1, |n| *n as usize);
    match sizes.len() {
        0 | 1 => (1, size(0), 1),
        _ => (size(0), size(1), sizes[2..].iter().map(|n| *n as usize).product()),
    }
}

/// The class at a target, or nothing if it is ignored.
fn class(target: i64, classes: usize, ignored: i64) -> Result<Option<usize>, Error> {
    if target == ignored {
        return Ok(None);
    }
    match usize::try_from(target) {
        Ok(class) if class < classes => Ok(Some(class)),
        _ => Err(Error::InvalidArgument {
            argument: "target",
            expected: format!("classes in 0..{classes}, or {ignored} for what is ignored"),
            got: format!("{target}"),
        }),
    }
}

fn forward<T: Float>(call: &Call) -> Result<(), Error> {
    let (input, targets) = (call.contiguous::<T>(0)?, call.contiguous::<i64>(1)?);
    let (_, classes, behind) = split(call.view::<T>(0)?.sizes());
    let weights = if call.is_none(2)? { None } else { Some(call.contiguous::<T>(2)?) };
    let ignored = call.int(3)?;
    let (mut losses, mut of) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<T>(1)?);
    let one = T::from_f64(1.0);
    for (i, target) in targets.iter().enumerate() {
        let found = class(*target, classes, ignored)?;
        let weight =
            found.map_or(T::default(), |c| weights.as_ref().and_then(|w| w.get(c).copied()).unwrap_or(one));
        let value = found.map(|c| input[(i / behind * classes + c) * behind + i % behind]);
        losses[i] = value.map_or(T::default(), |x| T::from_acc(-(x.to_acc() * weight.to_acc())));
        of[i] = weight;
    }
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

kernel!("nll_loss_forward", "TTOi>TT", forward, [f32, f64, f16, bf16]);
kernel!("nll_loss_backward", "TTTii>T", backward, [f32, f64, f16, bf16]);
