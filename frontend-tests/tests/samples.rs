//! Every op's own cases: each valid sample runs in every float dtype that the op is for, each error sample fails
//! with its message. `KEYWAY_OPS=mul,exp` limits the run to those ops.

mod rehearsal_support;

use keyway::DType;
use keyway::ops::build::build;
use keyway::ops::def::OpDef;

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// The ops of this run.
fn ops() -> impl Iterator<Item = &'static OpDef> {
    let only = std::env::var("KEYWAY_OPS").ok();
    keyway::ops::all()
        .filter(move |def| only.as_ref().is_none_or(|names| names.split(',').any(|name| name == def.name())))
}

#[test]
fn every_sample_runs() {
    let _one = rehearsal_support::load(&["keyway_backend_sparse", "keyway_backend_linalg"]);
    let mut failures = Vec::new();
    for def in ops() {
        let dtypes: Vec<DType> = FLOATS.into_iter().filter(|&dtype| def.dtypes.has(dtype)).collect();
        let dtypes = if dtypes.is_empty() { vec![DType::I64] } else { dtypes };
        for (seed, sample) in (def.samples)().iter().enumerate() {
            for &dtype in &dtypes {
                let made =
                    build(&sample.args, dtype, seed as u64).and_then(|built| built.call(def, &built.tensors));
                if let Err(error) = made {
                    failures.push(format!(
                        "{} {dtype}: sample {seed} {:?}: {error}",
                        def.name(),
                        sample.args
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} samples fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_error_sample_fails_with_its_message() {
    let _one = rehearsal_support::load(&["keyway_backend_sparse", "keyway_backend_linalg"]);
    let mut failures = Vec::new();
    for def in ops() {
        let dtype = FLOATS.into_iter().find(|&dtype| def.dtypes.has(dtype)).unwrap_or(DType::I64);
        for (seed, sample) in (def.errors)().iter().enumerate() {
            let made =
                build(&sample.args, dtype, seed as u64).and_then(|built| built.call(def, &built.tensors));
            match made {
                Err(error) if error.to_string().contains(sample.message) => {}
                Err(error) => failures.push(format!("{}: `{error}` lacks `{}`", def.name(), sample.message)),
                Ok(_) => failures.push(format!("{}: error sample {seed} passes", def.name())),
            }
        }
    }
    assert!(failures.is_empty(), "{} samples fail:\n{}", failures.len(), failures.join("\n"));
}
