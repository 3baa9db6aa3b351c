//! Ops of plugins: all are checked before any of them is registered.

use super::text::text;
use crate::base::error::{Error, Result};
use crate::call::foreign;
use crate::op::schema::{Kind, Schema};
use crate::op::{BackwardOp, Decomposition, ForeignOp, OpSpec, Part, Rule};
use keyway_sdk::abi::codes::op_flag;
use keyway_sdk::abi::op::RawOp;
use serde_json::Value;

/// A plugin's description of an op, parsed.
struct Read {
    schema: Schema,
    raw: &'static RawOp,
    backward: Option<BackwardOp>,
    samples: &'static str,
}

/// The registry's specs of a plugin's ops.
///
/// # Errors
/// `Registration`, which names the op, the plugin and the field that is wrong.
pub(super) fn specs(raws: &[&'static RawOp], plugin: &'static str) -> Result<Vec<OpSpec>> {
    let read = raws.iter().map(|raw| read(raw, plugin)).collect::<Result<Vec<_>>>()?;
    for op in &read {
        check(op, &read).map_err(|reason| wrong(op.schema.name, plugin, &reason))?;
    }
    read.iter().map(|op| Ok(spec(op, plugin))).collect()
}

fn wrong(op: &str, plugin: &str, reason: &str) -> Error {
    Error::Registration { what: "op", name: op.to_string(), reason: format!("`{plugin}` gives {reason}") }
}

fn read(raw: &'static RawOp, plugin: &'static str) -> Result<Read> {
    let written = text(raw.schema);
    let schema = Schema::parse(written).map_err(|error| match error {
        Error::Registration { name, reason, .. } => {
            wrong(&name, plugin, &format!("a `schema` that cannot be read: {reason}"))
        }
        other => other,
    })?;
    let backward = match text(raw.backward) {
        "" => None,
        op => Some(BackwardOp {
            op,
            saves: raw.saves,
            saves_outputs: raw.saves_outputs,
            wants: raw.flags & op_flag::BACKWARD_WANTS != 0,
        }),
    };
    Ok(Read { schema, raw, backward, samples: text(raw.samples) })
}

fn is_tensor(kind: Kind) -> bool {
    matches!(kind, Kind::Tensor | Kind::OptionalTensor | Kind::Tensors)
}

fn check(op: &Read, all: &[Read]) -> Result<(), String> {
    let Read { schema, raw, .. } = op;
    let params = &schema.params;
    let tensors = |mask: u32| (0..32).filter(move |i| mask & (1 << i) != 0);
    if raw.elementwise != 0 {
        if raw.rule.is_some() {
            return Err("both a `rule` and `elementwise`: expected one of them".to_string());
        }
        if let Some(i) =
            tensors(raw.elementwise).find(|i| params.get(*i).is_none_or(|p| p.kind != Kind::Tensor))
        {
            return Err(format!(
                "`elementwise` with bit {i}, but argument {i} of `{}` is no Tensor",
                schema.text
            ));
        }
        if schema.outputs != Some(1) {
            return Err(format!("`elementwise` for `{}`, which has not one output", schema.text));
        }
    }
    let known = op_flag::TO_FLOAT | op_flag::TO_BOOL | op_flag::BACKWARD_WANTS;
    if raw.flags & !known != 0 {
        return Err(format!("`flags` {:#x}, where this host knows {known:#x}", raw.flags));
    }
    if let Some(backward) = &op.backward {
        check_backward(schema, backward, all)?;
    }
    check_samples(schema, op.samples).map_err(|reason| format!("`samples` that cannot be read: {reason}"))
}

/// Checks the signature of a backward op of the same plugin.
fn check_backward(schema: &Schema, backward: &BackwardOp, all: &[Read]) -> Result<(), String> {
    if let Some(list) = schema.params.iter().find(|p| p.kind == Kind::Tensors) {
        return Err(format!(
            "a `backward`, but `{}` is a list of tensors: give a decomposition instead",
            list.name
        ));
    }
    let Some(outputs) = schema.outputs else {
        return Err("a `backward` for an op whose number of outputs depends on its arguments".to_string());
    };
    let Some(other) = all.iter().find(|other| other.schema.name == backward.op) else { return Ok(()) };
    let expected = backward_signature(schema, outputs, backward);
    let got = &other.schema.signature;
    if *got == expected {
        return Ok(());
    }
    Err(format!(
        "`backward` `{}` with the signature `{got}`, but it is called with `{expected}`",
        backward.op
    ))
}

/// The signature of a backward op.
fn backward_signature(schema: &Schema, outputs: usize, backward: &BackwardOp) -> String {
    let bit = |mask: u32, i: usize| i < 32 && mask & (1 << i) != 0;
    let mut expected: String = "T".repeat(outputs);
    let params = || schema.params.iter().enumerate();
    expected.extend(
        params().filter(|(i, p)| is_tensor(p.kind) && bit(backward.saves, *i)).map(|(_, p)| p.kind.letter()),
    );
    expected.extend((0..outputs).filter(|i| bit(backward.saves_outputs, *i)).map(|_| 'T'));
    expected.extend(params().filter(|(_, p)| !is_tensor(p.kind)).map(|(_, p)| p.kind.letter()));
    if backward.wants {
        expected.push(Kind::Ints.letter());
    }
    expected.push('>');
    expected.extend(params().filter(|(_, p)| is_tensor(p.kind)).map(|_| 'T'));
    expected
}

/// Checks the form of samples: an entry of the right kind for each parameter.
fn check_samples(schema: &Schema, samples: &str) -> Result<(), String> {
    if samples.is_empty() {
        return Ok(());
    }
    let value: Value = serde_json::from_str(samples).map_err(|error| error.to_string())?;
    let Value::Array(list) = value else { return Err("expected a list".to_string()) };
    for (number, sample) in list.iter().enumerate() {
        let Some(Value::Array(args)) = sample.get("args") else {
            return Err(format!("sample {number} has no list `args`"));
        };
        if args.len() != schema.params.len() {
            let (got, wanted) = (args.len(), schema.params.len());
            return Err(format!("sample {number} has {got} arguments, but `{}` takes {wanted}", schema.text));
        }
        for (param, arg) in schema.params.iter().zip(args) {
            let tensor = |v: &Value| v.get("sizes").is_some_and(Value::is_array);
            let list_of = |v: &Value, f: fn(&Value) -> bool| v.as_array().is_some_and(|l| l.iter().all(f));
            let fits = match param.kind {
                _ if arg.is_null() => param.optional,
                Kind::Tensor => tensor(arg) || arg.is_number() || arg.is_boolean(),
                Kind::OptionalTensor => tensor(arg),
                Kind::Tensors => list_of(arg, |v| v.get("sizes").is_some_and(Value::is_array)),
                Kind::Scalar => arg.is_number() || arg.is_boolean(),
                Kind::Int => arg.is_i64(),
                Kind::Float => arg.is_number(),
                Kind::Bool => arg.is_boolean(),
                Kind::Ints => list_of(arg, Value::is_i64),
                Kind::Floats => list_of(arg, Value::is_number),
                Kind::Str => arg.is_string(),
                Kind::DType => arg.get("dtype").is_some_and(Value::is_string),
            };
            if !fits {
                return Err(format!(
                    "sample {number}: `{}` must be of the kind {}, got {arg}",
                    param.name,
                    param.kind.name()
                ));
            }
        }
    }
    Ok(())
}

fn spec(op: &Read, plugin: &'static str) -> OpSpec {
    let raw = op.raw;
    // SAFETY: the loader has checked that the plugin passes `n_parts` static strings.
    let parts = (0..raw.n_parts as usize).map(|i| Part::new(text(unsafe { *raw.parts.add(i) })));
    let parts: &'static [Part] = parts.collect::<Vec<_>>().leak();
    let typing = match raw.flags {
        flags if flags & op_flag::TO_BOOL != 0 => foreign::promoted_to_bool,
        flags if flags & op_flag::TO_FLOAT != 0 => foreign::promoted_to_float,
        _ => foreign::promoted,
    };
    OpSpec {
        schema: op.schema.text,
        rule: match raw.elementwise {
            0 => Rule::Foreign(raw.rule),
            inputs => Rule::Elementwise(inputs, typing),
        },
        decomposition: raw.decomposition.map(|_| Decomposition { run: foreign::decomposed, parts }),
        extra: None,
        foreign: Some(Box::leak(Box::new(ForeignOp {
            backward: op.backward,
            backward_entry: std::sync::OnceLock::new(),
            decomposition: raw.decomposition,
            samples: op.samples,
            reference: raw.reference,
        }))),
        owner: plugin,
        library: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::abi::RawStr;

    fn op(schema: &'static str) -> RawOp {
        RawOp {
            struct_size: size_of::<RawOp>() as u32,
            flags: 0,
            schema: RawStr::new(schema),
            rule: None,
            elementwise: 0,
            saves: u32::MAX,
            saves_outputs: u32::MAX,
            n_parts: 0,
            backward: RawStr::EMPTY,
            decomposition: None,
            parts: std::ptr::null(),
            samples: RawStr::EMPTY,
            reference: None,
        }
    }

    fn refused(ops: &[RawOp]) -> String {
        let leaked: Vec<&'static RawOp> = ops.iter().map(|op| &*Box::leak(Box::new(*op))).collect();
        specs(&leaked, "example.org/bad").err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_wrong_field_is_named_with_its_plugin_and_op() {
        let samples = |text| RawOp { samples: RawStr::new(text), ..op("p(Tensor self, int dim) -> Tensor") };
        let backward =
            |name| RawOp { backward: RawStr::new(name), ..op("f(Tensor a, Tensor? b, float c) -> Tensor") };
        for (ops, parts) in [
            (vec![op("no schema")], &["`schema`", "there is no `(`"][..]),
            (vec![samples("[{")], &["`samples`", "EOF"]),
            (vec![samples("{}")], &["`samples`", "expected a list"]),
            (vec![samples(r#"[{"arg": []}]"#)], &["sample 0 has no list `args`"]),
            (vec![samples(r#"[{"args": [1]}]"#)], &["sample 0 has 1 arguments", "takes 2"]),
            (
                vec![samples(r#"[{"args": [{"sizes": [2]}, 1.5]}]"#)],
                &["`dim` must be of the kind int, got 1.5"],
            ),
            (
                vec![RawOp { elementwise: 0b10, ..op("p(Tensor a, int b) -> Tensor") }],
                &["`elementwise` with bit 1"],
            ),
            (vec![RawOp { elementwise: 1, ..op("p(Tensor a) -> (Tensor, Tensor)") }], &["not one output"]),
            (vec![RawOp { flags: 1 << 30, ..op("p(Tensor a) -> Tensor") }], &["`flags` 0x40000000"]),
            (
                vec![backward("g"), op("g(Tensor grad) -> (Tensor, Tensor)")],
                &["`backward` `g` with the signature `T>TT`", "it is called with `TTOTf>TT`"],
            ),
            (
                vec![RawOp { backward: RawStr::new("g"), ..op("f(Tensor[] a) -> Tensor") }],
                &["`a` is a list of tensors"],
            ),
        ] {
            let text = refused(&ops);
            assert!(text.contains("example.org/bad"), "{text}");
            parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
        }
        assert_eq!(refused(&[samples(r#"[{"args": [{"sizes": [2]}, -1]}]"#)]), "");
        assert_eq!(
            refused(&[
                backward("g"),
                op("g(Tensor d, Tensor a, Tensor? b, Tensor y, float c) -> (Tensor, Tensor)")
            ]),
            ""
        );
    }
}
