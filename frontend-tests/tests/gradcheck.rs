//! Every differentiable op: its derivative against differences, and the derivative of its derivative.
//! `KEYWAY_OPS=mul,exp` limits the run to those ops.

mod rehearsal_support;

use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::ops::build::build;
use keyway::ops::def::{Derivative, OpDef};
use keyway::{DType, Tensor};

/// The op's samples that gradcheck may differentiate, as functions of their f64 tensors.
fn check(def: &'static OpDef, second: bool) -> Result<usize, String> {
    let mut count = 0;
    for (seed, sample) in (def.samples)().iter().enumerate().filter(|(_, s)| s.smooth) {
        let describe = |what: String| format!("{}: sample {seed} {:?}: {what}", def.name(), sample.args);
        let built = build(&sample.args, DType::F64, seed as u64).map_err(|e| describe(e.to_string()))?;
        let inputs: Vec<Tensor> = built
            .tensors
            .iter()
            .zip(&built.tested)
            .map(|(t, tested)| if *tested { t.clone().requires_grad_(true).unwrap() } else { t.clone() })
            .collect();
        if !built.tested.contains(&true) {
            continue;
        }
        let function = |tensors: &[Tensor]| built.call(def, tensors);
        let outputs = function(&inputs).map_err(|e| describe(e.to_string()))?;
        // A cast to f32 loses the digits that differences need, one to an integer has no derivative.
        if outputs.iter().all(|o| o.dtype() != DType::F64) {
            continue;
        }
        let run = if second { gradgradcheck } else { gradcheck };
        match run(&function, &inputs, Tolerance::default()) {
            Ok(None) => count += 1,
            Ok(Some(mismatch)) => return Err(describe(mismatch.to_string())),
            Err(error) => return Err(describe(error.to_string())),
        }
    }
    Ok(count)
}

fn run(second: bool) {
    let _one = rehearsal_support::load(&["keyway_backend_sparse", "keyway_backend_linalg"]);
    let only = std::env::var("KEYWAY_OPS").ok();
    let wanted = |name: &str| only.as_ref().is_none_or(|o| o.split(',').any(|n| n == name));
    let mut failures = Vec::new();
    let (mut ops, mut samples) = (0, 0);
    for def in keyway::ops::all().filter(|d| wanted(d.name())) {
        match def.derivative {
            Derivative::Formula { .. } | Derivative::Composite => {}
            Derivative::NotDifferentiable | Derivative::Missing(_) => continue,
        }
        match check(def, second) {
            Ok(count) => {
                ops += 1;
                samples += count;
            }
            Err(failure) => failures.push(failure),
        }
    }
    println!("{ops} ops, {samples} samples");
    assert!(failures.is_empty(), "{} ops fail:\n{}", failures.len(), failures.join("\n"));
    assert!(only.is_some() || ops > 5, "no op was checked");
}

#[test]
fn first_derivatives_agree_with_differences() {
    run(false);
}

#[test]
fn second_derivatives_agree_with_differences() {
    run(true);
}
