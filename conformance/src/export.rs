//! Writes samples and the oracle's results, for independent checks of the oracle.

use crate::array::{Array, Number};
use crate::families::is_in;
use crate::oracle::{self, Inputs, Value};
use crate::{extremes, inputs};
use keyway::DType;
use keyway::ops::pointwise;
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::Path;

fn number(value: Number) -> Json {
    match value {
        Number::Float(v) if v.is_nan() => json!("nan"),
        Number::Float(v) if v.is_infinite() => json!(if v > 0.0 { "inf" } else { "-inf" }),
        Number::Float(v) => json!(v),
        // As text: JSON parsers read numbers as f64.
        Number::Int(v) => json!(v.to_string()),
        Number::Bool(v) => json!(v),
        Number::Complex(re, im) => json!([number(Number::Float(re)), number(Number::Float(im))]),
        Number::Any => json!("any"),
    }
}

fn array(a: &Array) -> Json {
    json!({
        "dtype": a.dtype.name(),
        "sizes": a.sizes,
        "values": a.values.iter().copied().map(number).collect::<Vec<_>>(),
    })
}

fn value(v: &Value) -> Json {
    match v {
        Value::None => Json::Null,
        Value::Array(a) => json!({ "tensor": array(a) }),
        Value::Arrays(list) => json!({ "tensors": list.iter().map(array).collect::<Vec<_>>() }),
        Value::Int(v) => json!({ "int": v }),
        Value::Float(v) => json!({ "float": number(Number::Float(*v)) }),
        Value::Bool(v) => json!({ "bool": v }),
        Value::Ints(v) => json!({ "ints": v }),
        Value::Floats(v) => {
            json!({ "floats": v.iter().map(|v| number(Number::Float(*v))).collect::<Vec<_>>() })
        }
        Value::Str(v) => json!({ "str": v }),
        Value::DType(v) => json!({ "dtype": v.name() }),
    }
}

/// Writes `OP.jsonl` into `folder` for each `wanted` op that has an oracle: one line for each sample and dtype, and for
/// element-wise ops lines of extreme values, whose `sample` is `extremes`. A line has `op`, `sample`, `dtype`, `schema`,
/// `args` and either `expected`, a list of arrays, or `unknown`, the reason. Returns the number of ops and of lines.
///
/// # Errors
/// A file that cannot be written.
pub fn export(folder: &Path, wanted: impl Fn(&str) -> bool) -> std::io::Result<(usize, usize)> {
    std::fs::create_dir_all(folder)?;
    let (mut ops, mut lines) = (0, 0);
    for def in keyway::ops::all().filter(|def| wanted(def.name())) {
        let Some(oracle) = oracle::find(def.name()) else { continue };
        let mut file =
            std::io::BufWriter::new(std::fs::File::create(folder.join(format!("{}.jsonl", def.name())))?);
        let mut write = |sample: Json, dtype: DType, inputs: &Inputs| {
            let mut line = json!({
                "op": def.name(), "sample": sample, "dtype": dtype.name(), "schema": def.schema,
                "args": inputs.0.iter().map(value).collect::<Vec<_>>(),
            });
            match oracle(inputs) {
                Ok(expected) => line["expected"] = expected.iter().map(array).collect(),
                Err(unknown) => line["unknown"] = json!(unknown.to_string()),
            }
            lines += 1;
            writeln!(file, "{line}")
        };
        let dtypes = || DType::REAL.into_iter().filter(|&d| def.dtypes.has(d));
        for (index, sample) in (def.samples)().iter().enumerate() {
            for dtype in dtypes() {
                write(json!(index), dtype, &inputs::of_sample(&sample.args, dtype, index as u64))?;
            }
        }
        if is_in(def, &[pointwise::ALL]) {
            for dtype in dtypes() {
                for inputs in extremes::of_op(def, oracle, dtype) {
                    write(json!("extremes"), dtype, &inputs)?;
                }
            }
        }
        file.flush()?;
        ops += 1;
    }
    Ok((ops, lines))
}
