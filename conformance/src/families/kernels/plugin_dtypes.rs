//! Kernels for dtypes of plugins. The suite does not know their encoding: tensors are created and read by the dtype's own
//! conversions from f32 and to f64, which the report names.

use super::asked::Asked;
use crate::array::{Array, Number, unravelled};
use crate::call::Prepared;
use crate::inputs;
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::{self, Value};
use crate::outcome::{Failure, Mismatch, Steps, Stop};
use crate::recorder;
use keyway::dispatcher::op::Out;
use keyway::ops::def::OpFlags;
use keyway::ops::sample::{Role, Sample};
use keyway::{DType, Tensor};

/// The values of a tensor, through f64.
fn values(tensor: &Tensor) -> Steps<Array> {
    let wide = if tensor.dtype().is_built_in() { tensor.clone() } else { tensor.to_dtype(DType::F64)? };
    read(&wide)?.ok_or_else(|| Stop::from(Failure::new("the converted values", "numbers", "others")))
}

/// Calls with every sample, its tensors under test of the kernel's dtype.
pub(super) fn run(asked: &Asked<'_>, samples: &[Sample]) -> Steps {
    let (dtype, mut served) = (asked.context.dtype(), 0);
    let casts = asked.def.is_some_and(|def| def.is(OpFlags::CASTS));
    for (nth, sample) in samples.iter().enumerate() {
        let mut given = inputs::of_sample(&sample.args, DType::F32, nth as u64);
        given.0.iter_mut().filter(|v| matches!(v, Value::DType(_))).for_each(|v| *v = Value::DType(dtype));
        let prepared = Prepared::contiguous(&given, asked.device)?;
        let roles = super::super::tensors(sample).map(|t| t.role);
        let convert = |(t, role): (Tensor, Role)| match role {
            Role::Tested => t.to_dtype(dtype),
            Role::Fixed(_) => Ok(t),
        };
        let tensors = prepared.tensors().into_iter().zip(roles).map(convert);
        let Ok(tensors) = tensors.collect::<keyway::Result<Vec<_>>>() else { continue };
        let before = recorder::served_by(asked.kernel);
        let calls = if casts { vec![prepared.tensors(), tensors] } else { vec![tensors] };
        for tensors in calls {
            let made = match prepared.call_entry(asked.entry, &tensors, Out::New) {
                Ok(made) => made,
                Err(error) => {
                    asked.why_not.replace(error.to_string());
                    continue;
                }
            };
            if recorder::served_by(asked.kernel) == before {
                continue;
            }
            served += 1;
            same(asked, &given, &tensors, &made).map_err(|stop| match stop {
                Stop::Failed(mut failure) => {
                    failure.what = format!("sample {nth}: {}", failure.what);
                    Stop::Failed(failure)
                }
                other => other,
            })?;
        }
    }
    if served > 0 { Ok(()) } else { Err(asked.not_called()) }
}

/// Compares results with those of the oracle on the values stored in the tensors.
fn same(asked: &Asked<'_>, given: &oracle::Inputs, tensors: &[Tensor], made: &[Tensor]) -> Steps {
    let mut held = tensors.iter().map(values).collect::<Steps<Vec<_>>>()?.into_iter();
    let mut inputs = given.clone();
    inputs::map_arrays(&mut inputs, |array| {
        if let Some(held) = held.next() {
            *array = held;
        }
    });
    inputs.0.iter_mut().filter(|v| matches!(v, Value::DType(_))).for_each(|v| *v = Value::DType(DType::F64));
    let expected = oracle::find(asked.entry.name).and_then(|oracle| oracle(&inputs).ok());
    let Some(expected) = expected else {
        asked.context.judge_by("nothing but that it answers");
        return Ok(());
    };
    asked.context.judge_by("the oracle, through the dtype's own conversions");
    for (nth, (expected, made)) in expected.iter().zip(made).enumerate() {
        let got = values(made)?;
        // The nearest value of the dtype to the exact one, or an adjacent one.
        let exact = expected.map(DType::F64, |v| Number::Float(v.float()));
        let rounded = match made.dtype().is_built_in() {
            true => exact.clone(),
            false => values(
                &Placed::new(&exact, Arrangement::Contiguous, asked.device)?.tensor.to_dtype(made.dtype())?,
            )?,
        };
        for (element, value) in got.values.iter().enumerate() {
            let (exact, rounded, got) =
                (exact.values[element].float(), rounded.values[element].float(), value.float());
            let near = got == rounded || (got - exact).abs() <= 2.0 * (rounded - exact).abs() + 1e-12;
            if !(near || got.is_nan() && rounded.is_nan()) {
                let what = format!("output {nth}: an element is wrong");
                let mut failure = Failure::new(what, rounded.to_string(), got.to_string());
                failure.mismatch = Some(Mismatch {
                    output: nth,
                    element: unravelled(&expected.sizes, element),
                    wrong: 1,
                    of: expected.numel(),
                    rtol: 0.0,
                    atol: 2.0 * (rounded - exact).abs() + 1e-12,
                });
                return Err(failure.into());
            }
        }
    }
    Ok(())
}
