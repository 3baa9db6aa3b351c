//! Calls of ops by name, from the schemas of their definitions.

use crate::arg::{self, Parts, Value};
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::{modes, runtime};
use keyway::dispatcher::op::OpEntry;
use keyway::dispatcher::registry;
use keyway::dispatcher::schema::Kind;
use keyway::dispatcher::tensor::TensorRef;
use keyway::ops::by_name;
use keyway::ops::def::OpDef;
use keyway::{Arg, Tensor};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

/// Calls on at least this many elements release the interpreter's lock: releasing it takes about 0.1 us.
const RELEASED_FROM: usize = 4096;

/// The names that NumPy gives to parameters.
const ALIASES: [(&str, &str); 4] =
    [("axis", "dim"), ("keepdims", "keepdim"), ("x1", "self"), ("ddof", "correction")];

/// The definition of an op.
///
/// # Errors
/// `AttributeError` for an unknown name.
fn find(py: Python<'_>, name: &str) -> PyResult<&'static OpEntry> {
    runtime::start(py)?;
    registry::find_op(name).ok_or_else(|| PyAttributeError::new_err(format!("there is no op named `{name}`")))
}

/// The names that differ from `name` least, for a message.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let best = known.iter().max_by_key(|other| {
        let common = name.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let shared = name.chars().filter(|c| other.contains(*c)).count();
        2 * common + shared
    });
    match best {
        Some(best) => format!("; the nearest parameter is `{best}` of {}", known.join(", ")),
        None => String::new(),
    }
}

/// The arguments of a call in the order of the schema, `None` where one was left out.
fn bind<'py>(
    op: &'static OpEntry,
    positional: &[Bound<'py, PyAny>],
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let (name, params) = (op.name, &op.schema.params);
    let mut bound: Vec<Option<Bound<'py, PyAny>>> = vec![None; params.len()];
    // `x.reshape(2, 3)` is `x.reshape((2, 3))` where a list of ints is the last parameter.
    let variadic =
        params.last().is_some_and(|param| param.kind == Kind::Ints) && positional.len() > params.len();
    if positional.len() > params.len() && !variadic {
        let (expected, got) = (params.len(), positional.len());
        return Err(PyTypeError::new_err(format!(
            "{name}: expected at most {expected} arguments, got {got}"
        )));
    }
    for (slot, object) in bound.iter_mut().zip(positional) {
        *slot = Some(object.clone());
    }
    if variadic && let Some(last) = bound.last_mut() {
        let rest = &positional[params.len() - 1..];
        if rest.iter().any(|object| !object.is_instance_of::<PyInt>()) {
            return Err(PyTypeError::new_err(format!("{name}: expected ints at the end of the call")));
        }
        *last = rest.first().map(|first| PyTuple::new(first.py(), rest)).transpose()?.map(Bound::into_any);
    }
    for (key, object) in keywords.into_iter().flat_map(|keywords| keywords.iter()) {
        let key: String = key.extract()?;
        let alias = ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key.as_str(), |(_, name)| name);
        // PyTorch's functions name their first parameter so, its methods `self`.
        let first = (key == "input" && params.iter().all(|param| param.name != "input")).then_some(0);
        let found = params.iter().position(|param| param.name == key || param.name == alias);
        let at = found.or(first).ok_or_else(|| {
            let near = nearest(&key, params.iter().map(|param| param.name));
            PyTypeError::new_err(format!("{name}: unexpected keyword argument `{key}`{near}"))
        })?;
        if bound[at].replace(object).is_some() {
            return Err(PyTypeError::new_err(format!("{name}: multiple values for argument `{key}`")));
        }
    }
    Ok(bound)
}

/// The arguments as values; one that was left out takes the default of the schema.
fn values(op: &'static OpEntry, bound: &[Option<Bound<'_, PyAny>>]) -> PyResult<Vec<Value>> {
    let parts = Parts::among(bound.iter().flatten());
    let objects = bound.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let each = op.schema.params.iter().zip(objects).map(|(param, object)| match object {
        Some(object) => arg::convert(op.name, param, object, parts),
        None => match param.default_arg() {
            Some(Arg::Int(value)) => Ok(Value::Int(value)),
            Some(Arg::Float(value)) => Ok(Value::Float(value)),
            Some(Arg::Bool(value)) => Ok(Value::Bool(value)),
            Some(Arg::Str(text)) => Ok(Value::Str(text.to_string())),
            Some(Arg::DType(dtype)) => Ok(Value::DType(dtype)),
            Some(Arg::Ints(values)) => Ok(Value::Ints(values.to_vec())),
            Some(_) => Ok(Value::None),
            None => {
                let (op, missing, schema) = (op.name, param.name, op.schema.text);
                Err(PyTypeError::new_err(format!("{op}: missing argument `{missing}` of `{schema}`")))
            }
        },
    });
    each.collect()
}

/// Where the results of a call go.
enum Target<'a> {
    New,
    First,
    Given(&'a [Tensor]),
}

fn call(name: &str, args: &[Arg<'_>], target: &Target<'_>) -> keyway::Result<Vec<Tensor>> {
    match target {
        Target::New => by_name::call(name, args),
        Target::First => by_name::call_in_place(name, args).map(|result| vec![result]),
        Target::Given(out) => by_name::call_out(name, args, out).map(|()| out.to_vec()),
    }
}

/// Runs a call by name.
fn run(py: Python<'_>, name: &str, values: &[Value], target: &Target<'_>) -> PyResult<Vec<Tensor>> {
    let lists: Vec<Vec<&TensorRef>> = values.iter().map(Value::list).collect();
    let args: Vec<Arg<'_>> = values.iter().zip(&lists).map(|(value, list)| value.arg(list)).collect();
    let elements = values.iter().map(elements).sum();
    released(py, elements, || call(name, &args, target))
}

/// The number of elements of an argument.
fn elements(value: &Value) -> usize {
    match value {
        Value::Tensor(tensor) => tensor.elem_count(),
        Value::Tensors(tensors) => tensors.iter().map(Tensor::elem_count).sum(),
        _ => 0,
    }
}

/// Runs a call on this many elements, without the interpreter's lock if it computes for long.
pub fn released<R: Send>(
    py: Python<'_>,
    elements: usize,
    run: impl FnOnce() -> keyway::Result<R> + Send,
) -> PyResult<R> {
    if elements < RELEASED_FROM || modes::keeps_lock() { run().or_raise() } else { py.detach(run).or_raise() }
}

/// The arguments of an operator: the operands, and the one of its op that follows, if any.
fn with_rest<'a>(left: &'a Value, right: &'a Value, rest: Option<Arg<'static>>) -> Vec<Arg<'a>> {
    [left.arg(&[]), right.arg(&[])].into_iter().chain(rest).collect()
}

/// One tensor, or a tuple of several.
fn results<'py>(py: Python<'py>, op: &OpEntry, made: Vec<Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let mut made = made.into_iter().map(PyTensor);
    match (op.schema.outputs, made.len()) {
        (Some(1), 1) => Ok(made.next().into_pyobject(py)?.into_any()),
        _ => Ok(PyTuple::new(py, made.map(|tensor| Bound::new(py, tensor)).collect::<PyResult<Vec<_>>>()?)?
            .into_any()),
    }
}

/// Calls the op of this name: `call("add", (x, y), {"alpha": 2})`. With `in_place` it writes to argument 0.
#[pyfunction]
#[pyo3(signature = (name, args, kwargs=None, in_place=false))]
pub fn call_op<'py>(
    py: Python<'py>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    in_place: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let op = find(py, name)?;
    let out = match kwargs.map(|kwargs| kwargs.get_item("out")).transpose()?.flatten() {
        Some(out) => {
            kwargs.map(|kwargs| kwargs.del_item("out")).transpose()?;
            Some(out).filter(|out| !out.is_none())
        }
        None => None,
    };
    let positional: Vec<Bound<'py, PyAny>> = args.iter().collect();
    let bound = bind(op, &positional, kwargs)?;
    let mut values = values(op, &bound)?;
    if !in_place {
        promote_operands(op, &bound, &mut values)?;
    }
    let Some(out) = out else {
        if in_place {
            run(py, name, &values, &Target::First)?;
            return args.get_item(0);
        }
        return results(py, op, run(py, name, &values, &Target::New)?);
    };
    let tensors: Vec<Tensor> = match out.cast::<PyTensor>() {
        Ok(tensor) => vec![tensor.get().0.clone()],
        Err(_) => {
            let each = out.try_iter()?.map(|tensor| Ok(tensor?.cast::<PyTensor>()?.get().0.clone()));
            each.collect::<PyResult<_>>()?
        }
    };
    run(py, name, &values, &Target::Given(&tensors))?;
    Ok(out)
}

/// Whether an object is a tensor rather than a number or an array.
fn is_tensor(object: &Bound<'_, PyAny>) -> bool {
    object.cast::<PyTensor>().is_ok()
}

/// Converts a tensor with dimensions to the dtype to which it and a tensor without dimensions promote, by their dtypes alone as in
/// NumPy and the array API. The Rust side promotes a tensor without dimensions like a number, as PyTorch does.
fn promote_pair(left: &mut Value, right: &mut Value) -> PyResult<()> {
    let (Value::Tensor(left), Value::Tensor(right)) = (left, right) else { return Ok(()) };
    if left.dtype() == right.dtype() || (left.rank() == 0) == (right.rank() == 0) {
        return Ok(());
    }
    let Some(common) = left.dtype().promote(right.dtype()) else { return Ok(()) };
    let dimensioned = if left.rank() == 0 { right } else { left };
    if dimensioned.dtype() != common {
        *dimensioned = dimensioned.to_dtype(common).or_raise()?;
    }
    Ok(())
}

/// [`promote_pair`] of the operands of an op of `self` and `other`, if both are tensors.
fn promote_operands(op: &OpEntry, bound: &[Option<Bound<'_, PyAny>>], values: &mut [Value]) -> PyResult<()> {
    let at = |name: &str| op.schema.params.iter().position(|param| param.name == name);
    let (Some(first), Some(second)) = (at("self"), at("other")) else { return Ok(()) };
    let given = |i: usize| bound.get(i).and_then(Option::as_ref).is_some_and(is_tensor);
    match values.get_disjoint_mut([first, second]) {
        Ok([left, right]) if given(first) && given(second) => promote_pair(left, right),
        _ => Ok(()),
    }
}

/// The result of a binary operator with the argument `rest` of its op, if it has one; `NotImplemented` for an operand of another type than a
/// number, tensor or array.
pub fn operator<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    rest: Option<Arg<'static>>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    runtime::start(py)?;
    let both_tensors = is_tensor(left) && is_tensor(right);
    let parts = Parts::among([left, right]);
    let (Some(mut left), Some(mut right)) = (arg::operand(left, parts)?, arg::operand(right, parts)?) else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    if both_tensors {
        promote_pair(&mut left, &mut right)?;
    }
    let args = with_rest(&left, &right, rest);
    let made = released(py, elements(&left) + elements(&right), || op.run(&args))?;
    Ok(Bound::new(py, PyTensor(made))?.into_any())
}

/// An operator in place: `left += right`.
pub fn in_place(
    py: Python<'_>,
    op: &'static OpDef,
    rest: Option<Arg<'static>>,
    left: &Bound<'_, PyTensor>,
    right: &Bound<'_, PyAny>,
) -> PyResult<()> {
    runtime::start(py)?;
    let Some(right) = arg::operand(right, Parts::beside(left.get().0.dtype()))? else {
        let got = right.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{}: expected a tensor or a number, got {got}", op.name())));
    };
    let left = Value::Tensor(left.get().0.clone());
    let args = with_rest(&left, &right, rest);
    released(py, elements(&left) + elements(&right), || op.run_in_place(&args)).map(drop)
}

/// The result of an op of one tensor.
pub fn unary(py: Python<'_>, op: &'static OpDef, tensor: &Tensor) -> PyResult<PyTensor> {
    runtime::start(py)?;
    released(py, tensor.elem_count(), || op.run(&[tensor.into()])).map(PyTensor)
}

/// The ops of this build: name, schema, documentation in Markdown, and whether there is a form in place.
#[pyfunction]
pub fn op_table() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    keyway::ops::all()
        .map(|op| {
            (op.name(), op.schema, op.documentation(), matches!(op.forms, keyway::ops::def::Forms::InPlace))
        })
        .collect()
}
