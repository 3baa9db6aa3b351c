//! Functions with a derivative that Python defines.

use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::modes;
use keyway::Tensor;
use keyway::autograd::{Context, Function, apply, visit_owned_function};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Backward passes that run without the interpreter's lock.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Runs a backward pass without the interpreter's lock.
pub fn detached<R: Send>(py: Python<'_>, run: impl FnOnce() -> R + Send) -> R {
    struct Ended;
    impl Drop for Ended {
        fn drop(&mut self) {
            RUNNING.fetch_sub(1, Ordering::AcqRel);
        }
    }
    if modes::keeps_lock() {
        return run();
    }
    RUNNING.fetch_add(1, Ordering::AcqRel);
    let _ended = Ended;
    py.detach(run)
}

/// Whether a backward pass may take handles of tensors at this moment. It can begin with the interpreter's lock alone, so the
/// answer "no" holds for a whole collection of garbage.
pub fn is_backward_running() -> bool {
    RUNNING.load(Ordering::Acquire) > 0
}

/// A call of a subclass of `keyway.autograd.Function`.
struct Call {
    name: &'static str,
    class: Py<PyAny>,
    /// The context, an object of `keyway.autograd.FunctionCtx`.
    ctx: Py<PyAny>,
    /// The index of each tensor among all arguments.
    at: Vec<usize>,
    /// The number of all arguments.
    arity: usize,
    /// The arguments and the results of the forward pass, while it runs.
    args: Mutex<Option<Py<PyTuple>>>,
    made: Arc<Mutex<Option<Py<PyAny>>>>,
}

/// Tensors of a tuple or list, or of one tensor.
fn outputs_of(made: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<Option<Tensor>>> {
    if let Ok(tensor) = made.cast::<PyTensor>() {
        return Ok(vec![Some(tensor.get().0.clone())]);
    }
    let wrong = |got: &Bound<'_, PyAny>| {
        let got = got.get_type().name().map_or_else(|_| "another type".into(), |name| name.to_string());
        PyTypeError::new_err(format!("{name}.forward: expected a tensor or a tuple of tensors, got {got}"))
    };
    let tuple = made.cast::<PyTuple>().map_err(|_| wrong(made))?;
    // Other results pass through, as in PyTorch.
    Ok(tuple.iter().map(|one| one.cast::<PyTensor>().ok().map(|tensor| tensor.get().0.clone())).collect())
}

/// The tensors that a list of the context holds.
fn listed(ctx: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<Option<Tensor>>> {
    let each = ctx.getattr(name)?.try_iter()?.map(|one| {
        let one = one?;
        if one.is_none() {
            return Ok(None);
        }
        let tensor = one.cast::<PyTensor>().map_err(|_| {
            let got = one.get_type().name().map_or_else(|_| "another type".into(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "save_for_backward: expected tensors or None, got {got}; set other values as attributes of `ctx`"
            ))
        })?;
        Ok(Some(tensor.get().0.clone()))
    });
    each.collect()
}

impl Call {
    fn run_forward(&self, py: Python<'_>, context: &mut Context) -> PyResult<Vec<Tensor>> {
        let args = self.args.lock().unwrap_or_else(PoisonError::into_inner).take();
        let args = args.ok_or_else(|| PyRuntimeError::new_err("the forward pass ran before"))?;
        let ctx = self.ctx.bind(py);
        let made = if self.class.bind(py).getattr("_separate")?.is_truthy()? {
            let made = self.class.bind(py).call_method1("forward", args.bind(py))?;
            self.class.bind(py).call_method1("setup_context", (ctx, args.bind(py), &made))?;
            made
        } else {
            let all = std::iter::once(ctx.clone()).chain(args.bind(py).iter());
            self.class.bind(py).call_method1("forward", PyTuple::new(py, all.collect::<Vec<_>>())?)?
        };
        let saved = listed(ctx, "_to_save")?;
        context.save(&saved.iter().flatten().collect::<Vec<_>>());
        ctx.setattr("_present", PyTuple::new(py, saved.iter().map(Option::is_some))?)?;
        ctx.setattr("_to_save", PyTuple::empty(py))?;
        let dirty = listed(ctx, "_dirty")?;
        context.mark_dirty(&dirty.iter().flatten().collect::<Vec<_>>());
        let outputs = outputs_of(&made, self.name)?.into_iter().flatten().collect();
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.unbind());
        Ok(outputs)
    }

    fn run_backward(
        &self,
        py: Python<'_>,
        context: &Context,
        grads: &[Tensor],
    ) -> PyResult<Vec<Option<Tensor>>> {
        let ctx = self.ctx.bind(py);
        let mut saved = context.saved().iter();
        let present: Vec<bool> = ctx.getattr("_present")?.extract()?;
        let tensors = present.into_iter().map(|is| saved.next_if(is).cloned().map(PyTensor));
        let each = tensors.map(|tensor| tensor.into_pyobject(py)).collect::<Result<Vec<_>, _>>()?;
        let saved = PyTuple::new(py, each)?;
        let materialize: bool = ctx.getattr("_materialize")?.is_truthy()?;
        let positions: Vec<Option<usize>> = ctx.getattr("_outputs")?.extract()?;
        let all = positions.into_iter().map(|at| {
            // A result that is no tensor has no gradient.
            let grad = at.filter(|&at| materialize || context.has_grad(at)).and_then(|at| grads.get(at));
            grad.cloned().map(PyTensor).into_pyobject(py)
        });
        let all = PyTuple::new(py, all.collect::<Result<Vec<_>, _>>()?)?;
        let made = ctx.call_method1("_backward", (self.class.bind(py), saved, all))?;
        self.gradients(&made)
    }

    /// The gradients of the tensors among the arguments.
    fn gradients(&self, made: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Tensor>>> {
        let all: Vec<Bound<'_, PyAny>> = match made.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![made.clone()],
        };
        let (name, arity) = (self.name, self.arity);
        // PyTorch takes further ones that are None.
        let fits = all.len() == arity || (all.len() > arity && all[arity..].iter().all(|one| one.is_none()));
        if !fits {
            let got = all.len();
            return Err(PyRuntimeError::new_err(format!(
                "{name}.backward: expected a gradient for each of the {arity} arguments of forward, got {got}; return None for \
                 an argument without a gradient"
            )));
        }
        for (i, one) in all.iter().enumerate().take(arity) {
            if !one.is_none() && !self.at.contains(&i) {
                return Err(PyRuntimeError::new_err(format!(
                    "{name}.backward: expected None as the gradient of argument {i}, which is no tensor"
                )));
            }
        }
        let each = self.at.iter().map(|&i| {
            let one = &all[i];
            if one.is_none() {
                return Ok(None);
            }
            let tensor = one.cast::<PyTensor>().map_err(|_| {
                let got =
                    one.get_type().name().map_or_else(|_| "another type".into(), |name| name.to_string());
                PyTypeError::new_err(format!(
                    "{name}.backward: expected a tensor or None as the gradient of argument {i}, got {got}"
                ))
            })?;
            Ok(Some(tensor.get().0.clone()))
        });
        each.collect()
    }
}

/// The next element if `is`.
trait NextIf<'a> {
    fn next_if(&mut self, is: bool) -> Option<&'a Tensor>;
}

impl<'a> NextIf<'a> for std::slice::Iter<'a, Tensor> {
    fn next_if(&mut self, is: bool) -> Option<&'a Tensor> {
        if is { self.next() } else { None }
    }
}

impl Function for Call {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, context: &mut Context, _inputs: &[Tensor]) -> keyway::Result<Vec<Tensor>> {
        let run = |py: Python<'_>| modes::scoped(|| self.run_forward(py, context));
        Python::attach(run).map_err(keyway::Error::other)
    }

    fn backward(&self, context: &Context, grads: &[Tensor]) -> keyway::Result<Vec<Option<Tensor>>> {
        let run = |py: Python<'_>| modes::scoped(|| self.run_backward(py, context, grads));
        Python::attach(run).map_err(keyway::Error::other)
    }
}

/// The name of a class in the graph, which lasts as long as the program.
fn interned(name: String) -> &'static str {
    static NAMES: OnceLock<Mutex<HashMap<String, &'static str>>> = OnceLock::new();
    let mut names = NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = names.get(&name) {
        return found;
    }
    let leaked: &'static str = Box::leak(name.clone().into_boxed_str());
    names.insert(name, leaked);
    leaked
}

/// Calls a subclass of `keyway.autograd.Function` with a new context, and records its derivative.
#[pyfunction]
pub fn _apply_function<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyAny>,
    ctx: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    crate::runtime::start(py)?;
    let mut inputs = Vec::new();
    let mut at = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        if let Ok(tensor) = arg.cast::<PyTensor>() {
            inputs.push(tensor.get().0.clone());
            at.push(i);
        }
    }
    let needs: Vec<bool> = args
        .iter()
        .map(|arg| arg.cast::<PyTensor>().is_ok_and(|tensor| tensor.get().0.requires_grad()))
        .collect();
    ctx.setattr("needs_input_grad", PyTuple::new(py, needs)?)?;
    let name = interned(class.getattr("__name__")?.extract()?);
    let made: Arc<Mutex<Option<Py<PyAny>>>> = Arc::default();
    let call = Call {
        name,
        class: class.clone().unbind(),
        ctx: ctx.clone().unbind(),
        at,
        arity: args.len(),
        args: Mutex::new(Some(args.clone().unbind())),
        made: made.clone(),
    };
    let outputs = apply(call, &inputs).or_raise()?;
    let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
    let made = made.ok_or_else(|| PyRuntimeError::new_err("the function was not called"))?;
    results(py, ctx, made.bind(py), outputs, args)
}

/// The results of a function: those of the graph in the order of what `forward` returned.
fn results<'py>(
    py: Python<'py>,
    ctx: &Bound<'py, PyAny>,
    made: &Bound<'py, PyAny>,
    outputs: Vec<Tensor>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let frozen: Vec<Option<Tensor>> = listed(ctx, "_non_differentiable")?;
    let dirty: Vec<Option<Tensor>> = listed(ctx, "_dirty")?;
    ctx.setattr("_non_differentiable", PyTuple::empty(py))?;
    ctx.setattr("_dirty", PyTuple::empty(py))?;
    let mut outputs = outputs.into_iter();
    let mut positions: Vec<Option<usize>> = Vec::new();
    let mut count = 0;
    let mut wrap = |one: Bound<'py, PyAny>| -> PyResult<Bound<'py, PyAny>> {
        let Ok(before) = one.cast::<PyTensor>() else {
            positions.push(None);
            return Ok(one);
        };
        positions.push(Some(count));
        count += 1;
        let Some(output) = outputs.next() else { return Ok(one) };
        let before = &before.get().0;
        if frozen.iter().flatten().any(|tensor| tensor.ptr_eq(before)) {
            return Ok(Bound::new(py, PyTensor(output.detach()))?.into_any());
        }
        if dirty.iter().flatten().any(|tensor| tensor.ptr_eq(before)) {
            let same = args
                .iter()
                .find(|arg| arg.cast::<PyTensor>().is_ok_and(|tensor| tensor.get().0.ptr_eq(&output)));
            return Ok(same.unwrap_or(one));
        }
        // The object that `forward` made may have attributes.
        if output.ptr_eq(before) { Ok(one) } else { Ok(Bound::new(py, PyTensor(output))?.into_any()) }
    };
    let result = match made.cast::<PyTuple>() {
        Ok(tuple) => {
            let each = tuple.iter().map(&mut wrap).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, each)?.into_any()
        }
        Err(_) => wrap(made.clone())?,
    };
    ctx.setattr("_outputs", positions)?;
    Ok(result)
}

/// Visits the objects of the function of a tensor's history, if they belong to the tensor alone.
pub fn traverse(tensor: &Tensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    let mut result = Ok(());
    visit_owned_function(tensor, &mut |function: &dyn Any| {
        if let Some(call) = function.downcast_ref::<Call>() {
            result = visit.call(&call.ctx).and_then(|()| visit.call(&call.class));
        }
    });
    result
}
