//! Calls of ops by name, the interface to ops of plugins.

use super::nearest::nearest;
use super::sample::{Fill, Role, Sample, SampleArg, TensorSample};
use crate::error::Result;
use crate::tensor::refs;
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Args, OpEntry, Out};
use keyway_dispatcher::schema::Kind;
use keyway_dispatcher::tensor::TensorRef;
use keyway_dispatcher::{Error, registry};
use serde_json::Value;
use std::borrow::Borrow;

fn find(name: &str) -> Result<&'static OpEntry> {
    crate::runtime::start()?;
    Ok(registry::find_op(name).ok_or_else(|| Error::UnknownOp { name: name.to_string() })?)
}

fn run(name: &str, args: &[Arg<'_>], out: Out<'_>) -> Result<Vec<Tensor>> {
    let op = find(name)?;
    let (lists, ints) = (float_lists(op, args), single_ints(op, args));
    let mut values = Args::with_defaults(op, args);
    for (i, (param, value)) in op.schema.params.iter().zip(&mut values).enumerate() {
        *value = match (param.kind, *value) {
            (Kind::Float, Arg::Int(v)) => Arg::Float(v as f64),
            (Kind::Float, Arg::Bool(v)) => Arg::Float(f64::from(u8::from(v))),
            (Kind::Int, Arg::Bool(v)) => Arg::Int(v.into()),
            (Kind::Ints, Arg::Int(_)) => Arg::Ints(ints.get(i).map_or(&[], std::slice::from_ref)),
            (Kind::Floats, Arg::Ints(_)) => Arg::Floats(lists.get(i).map_or(&[], Vec::as_slice)),
            (_, value) => value,
        };
    }
    let args = Args { op, values: &values };
    args.check()?;
    if let (Out::New, Some(made)) = (out, super::index::roll::flat(&args)) {
        return Ok(vec![made?]);
    }
    let made = keyway_dispatcher::call::call(args, out)?;
    Ok(made.into_iter().map(Tensor::from_ref).collect())
}

/// List arguments of integers converted to floats where the schema has a list of floats, as in Python.
fn float_lists(op: &OpEntry, args: &[Arg<'_>]) -> Vec<Vec<f64>> {
    if op.schema.params.iter().all(|param| param.kind != Kind::Floats) {
        return Vec::new();
    }
    let floats = |arg: &Arg<'_>| match arg {
        Arg::Ints(ints) => ints.iter().map(|&v| v as f64).collect(),
        _ => Vec::new(),
    };
    args.iter().map(floats).collect()
}

/// Integer arguments, for lists of one element where the schema has a list of integers, as PyTorch's `int[1]`.
fn single_ints(op: &OpEntry, args: &[Arg<'_>]) -> Vec<i64> {
    if op.schema.params.iter().all(|param| param.kind != Kind::Ints) {
        return Vec::new();
    }
    args.iter().map(|arg| if let Arg::Int(v) = *arg { v } else { 0 }).collect()
}

/// Calls the op of this name, with one argument per parameter of its schema; omitted trailing arguments take the schema's
/// defaults, and an integer is a list of one integer where the schema has a list. Gradients flow as for any other op.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let a = Tensor::new([1.0f32, 2.0])?;
/// let sums = keyway::ops::by_name::call("add", &[(&a).into(), (&a).into()])?;
/// assert_eq!(sums[0].to_vec::<f32>()?, [2.0, 4.0]);
/// assert_eq!(keyway::ops::by_name::call("sum", &[(&a).into(), 0.into()])?[0].item::<f32>()?, 3.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// An unknown op name; arguments that do not match the schema in number or type; the errors of the op.
pub fn call(name: &str, args: &[Arg<'_>]) -> Result<Vec<Tensor>> {
    run(name, args, Out::New)
}

/// [`call`] in place: writes the result to argument 0 and returns it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Arg, Tensor};
/// let a = Tensor::new([1.0f32, 2.0])?;
/// keyway::ops::by_name::call_in_place("mul", &[(&a).into(), Arg::Float(3.0)])?;
/// assert_eq!(a.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`call`]; a result that argument 0 cannot hold.
pub fn call_in_place(name: &str, args: &[Arg<'_>]) -> Result<Tensor> {
    let count = find(name)?.schema.outputs;
    if count != Some(1) {
        return Err(Error::Value {
            op: "call_in_place",
            argument: "name",
            expected: "an op with one output".to_string(),
            got: format!("`{name}`"),
        }
        .into());
    }
    let made = run(name, args, Out::InPlace)?;
    Ok(made.into_iter().next().ok_or_else(|| Error::UnknownOp { name: name.to_string() })?)
}

/// [`call`] with the results written to `out`, one tensor per output.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Arg, Tensor};
/// let a = Tensor::new([1.0f32, 2.0])?;
/// let out = a.empty_like()?;
/// keyway::ops::by_name::call_out("mul", &[(&a).into(), Arg::Float(3.0)], &[&out])?;
/// assert_eq!(out.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`call`]; another number of tensors, or a result that one of them cannot hold.
pub fn call_out<T: Borrow<Tensor>>(name: &str, args: &[Arg<'_>], out: &[T]) -> Result<()> {
    call_into(name, args, &refs(out))
}

fn call_into(name: &str, args: &[Arg<'_>], out: &[&TensorRef]) -> Result<()> {
    let count = find(name)?.schema.outputs;
    if count.is_some_and(|count| count != out.len()) {
        return Err(Error::Value {
            op: "call_out",
            argument: "out",
            expected: format!("{} tensors for the outputs of `{name}`", count.unwrap_or(0)),
            got: out.len().to_string(),
        }
        .into());
    }
    run(name, args, Out::Given(out)).map(|_| ())
}

/// The names of the ops that plugins define.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// assert!(!keyway::ops::by_name::foreign()?.contains(&"add"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`runtime::start`](crate::runtime::start).
pub fn foreign() -> Result<Vec<&'static str>> {
    crate::runtime::start()?;
    Ok(keyway_dispatcher::table::current()
        .ops()
        .filter(|r| r.op.spec.foreign.is_some())
        .map(|r| r.op.name)
        .collect())
}

/// The valid sample calls of an op, from its definition or its plugin.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// let samples = keyway::ops::by_name::samples("add")?;
/// assert!(samples.iter().all(|sample| sample.args.len() >= 2));
/// assert!(keyway::ops::by_name::samples("no_such_op").is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// An unknown op name; a sample with an unknown fill or dtype.
pub fn samples(name: &str) -> Result<Vec<Sample>> {
    let op = find(name)?;
    if let Some(definition) = super::def::definition(op) {
        return Ok((definition.samples)());
    }
    let text = op.spec.foreign.map_or("", |foreign| foreign.samples);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let list: Value = serde_json::from_str(text).map_err(|error| unreadable(op, &error.to_string()))?;
    let list = list.as_array().ok_or_else(|| unreadable(op, "they are no list"))?;
    list.iter().map(|sample| read(op, sample)).collect()
}

/// The result of the reference implementation that the op's plugin provides for conformance tests, computed on tensors in host
/// memory with floats as f64; `None` if it provides none.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// let a = keyway::Tensor::new([1.0f64])?;
/// // An op of this crate has no reference function of a plugin.
/// assert!(keyway::ops::by_name::reference("relu", &[(&a).into()])?.is_none());
/// # Ok(()) }
/// ```
///
/// # Errors
/// An unknown op name; the errors of the op's rule and of the function.
pub fn reference(name: &str, args: &[Arg<'_>]) -> Result<Option<Vec<Tensor>>> {
    let args = Args { op: find(name)?, values: args };
    args.check()?;
    match keyway_dispatcher::call::reference(&args) {
        None => Ok(None),
        Some(made) => Ok(Some(made?.into_iter().map(Tensor::from_ref).collect())),
    }
}

#[cold]
fn unreadable(op: &OpEntry, reason: &str) -> crate::Error {
    Error::Registration {
        what: "op",
        name: op.name.to_string(),
        reason: format!("the `samples` of `{}` cannot be read: {reason}", op.spec.owner),
    }
    .into()
}

/// The keys of a sample, of a tensor in it, and of a fill.
const OF_SAMPLE: [&str; 3] = ["args", "smooth", "loosened"];
const OF_TENSOR: [&str; 3] = ["sizes", "dtype", "fill"];
const OF_FILL: [&str; 7] = ["uniform", "distinct", "away_from", "values", "index", "definite", "permuted"];

/// Refuses unknown keys: ignoring one would test another call than was meant.
fn check_keys(op: &OpEntry, sample: &Value) -> Result<()> {
    let check = |value: &Value, holder: &str, known: &[&str]| {
        let Some(object) = value.as_object() else { return Ok(()) };
        let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        let meant = nearest(key, known).map_or(String::new(), |name| format!("; the nearest is `{name}`"));
        let there = known.join("`, `");
        Err(unreadable(op, &format!("`{key}` is no key of {holder}, which has `{there}`{meant}")))
    };
    check(sample, "a sample", &OF_SAMPLE)?;
    let args = sample.get("args").and_then(Value::as_array).into_iter().flatten();
    let tensors = args.flat_map(|arg| arg.as_array().map_or(std::slice::from_ref(arg), Vec::as_slice));
    for tensor in tensors {
        check(tensor, "a tensor", &OF_TENSOR)?;
        tensor.get("fill").map_or(Ok(()), |fill| check(fill, "a filling", &OF_FILL))?;
    }
    Ok(())
}

fn read(op: &OpEntry, sample: &Value) -> Result<Sample> {
    check_keys(op, sample)?;
    let none = Vec::new();
    let values = sample.get("args").and_then(Value::as_array).unwrap_or(&none);
    let args = op
        .schema
        .params
        .iter()
        .zip(values)
        .map(|(param, value)| {
            argument(param.kind, value)
                .ok_or_else(|| unreadable(op, &format!("`{}` cannot be {value}", param.name)))
        })
        .collect::<Result<Vec<_>>>()?;
    let tolerance_factor =
        sample.get("loosened").and_then(Value::as_array).and_then(|pair| match &pair[..] {
            [factor, reason] => Some((factor.as_f64()?, &*String::leak(reason.as_str()?.to_string()))),
            _ => None,
        });
    let smooth = sample.get("smooth").and_then(Value::as_bool).unwrap_or(true);
    Ok(Sample { args, smooth, tolerance_factor })
}

fn argument(kind: Kind, value: &Value) -> Option<SampleArg> {
    let number = |v: &Value| match (v.as_i64(), v.as_bool()) {
        (Some(v), _) => Some(SampleArg::Int(v)),
        (None, Some(v)) => Some(SampleArg::Bool(v)),
        (None, None) => v.as_f64().map(SampleArg::Float),
    };
    Some(match kind {
        _ if value.is_null() => SampleArg::None,
        Kind::Tensor | Kind::OptionalTensor if value.is_object() => SampleArg::Tensor(tensor(value)?),
        Kind::Tensor | Kind::OptionalTensor | Kind::Scalar => number(value)?,
        Kind::Tensors => SampleArg::Tensors(value.as_array()?.iter().map(tensor).collect::<Option<_>>()?),
        Kind::Int => SampleArg::Int(value.as_i64()?),
        Kind::Float => SampleArg::Float(value.as_f64()?),
        Kind::Bool => SampleArg::Bool(value.as_bool()?),
        Kind::Ints => SampleArg::Ints(value.as_array()?.iter().map(Value::as_i64).collect::<Option<_>>()?),
        Kind::Floats => SampleArg::Floats(floats(value)?),
        // Leaked: samples live as long as the process, as those of definitions do.
        Kind::Str => SampleArg::Str(String::leak(value.as_str()?.to_string())),
        Kind::DType => SampleArg::DType(dtype(value.get("dtype")?)?),
    })
}

fn floats(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

fn dtype(value: &Value) -> Option<DType> {
    DType::from_name(value.as_str()?)
}

fn tensor(value: &Value) -> Option<TensorSample> {
    let size = |v: &Value| usize::try_from(v.as_u64()?).ok();
    let sizes = value.get("sizes")?.as_array()?.iter().map(size).collect::<Option<_>>()?;
    let role = match value.get("dtype") {
        Some(name) => Role::Fixed(dtype(name)?),
        None => Role::Tested,
    };
    let fill = match value.get("fill") {
        None => Fill::Uniform(-2.0, 2.0),
        Some(fill) => {
            let (name, value) = fill.as_object()?.iter().next()?;
            let list = || floats(value);
            match (name.as_str(), list().as_deref()) {
                ("uniform", Some(&[low, high])) => Fill::Uniform(low, high),
                ("distinct", Some(&[low, high])) => Fill::Distinct(low, high),
                ("away_from", Some(&[low, high, step])) => Fill::AwayFrom(low, high, step),
                ("values", Some(values)) if !values.is_empty() => Fill::Values(values.to_vec()),
                ("index", None) => Fill::Index(value.as_i64()?),
                ("definite", None) if value.as_bool() == Some(true) => Fill::Definite,
                ("permuted", None) if value.as_bool() == Some(true) => Fill::Permuted,
                _ => return None,
            }
        }
    };
    Some(TensorSample { sizes, fill, role })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_that_mean_nothing_are_refused_with_the_nearest() {
        let add = crate::ops::all().find(|def| def.name() == "add").expect("the op");
        let add = add.entry().expect("an entry");
        let read = |sample: Value| read(add, &sample).map_err(|error| error.to_string());
        let valid = json!({"args": [{"sizes": [2], "fill": {"index": 3}}, {"sizes": [2], "dtype": "f32"}, 1], "smooth": false});
        assert_eq!(read(valid).map(|sample| sample.args.len()), Ok(3));
        for (sample, key, meant) in [
            (json!({"args": [{"sizes": [2], "fil": {"index": 3}}]}), "fil", "fill"),
            (json!({"args": [{"sizes": [2], "dtyp": "i64"}]}), "dtyp", "dtype"),
            (json!({"args": [{"sizes": [2], "fill": {"indx": 3}}]}), "indx", "index"),
            (json!({"arg": []}), "arg", "args"),
        ] {
            let text = read(sample).expect_err("a refusal");
            assert!(text.contains(&format!("`{key}` is no key")), "{text}");
            assert!(text.contains(&format!("the nearest is `{meant}`")), "{text}");
        }
        let text = read(json!({"args": [], "comment": ""})).expect_err("a refusal");
        assert!(text.contains("`args`, `smooth`, `loosened`") && !text.contains("nearest"), "{text}");
    }
}
