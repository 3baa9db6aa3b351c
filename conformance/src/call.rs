//! A call on tensors that the suite placed itself.

pub mod last;

use crate::array::Array;
use crate::memory::{Arrangement, Damage, GUARD, Placed};
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use crate::target::{Service, Target};
use keyway::dispatcher::Error as DispatchError;
use keyway::dispatcher::call::{decompose, without_successors};
use keyway::dispatcher::op::{Arg, Args, Call, OpEntry, Out, Rule};
use keyway::dispatcher::registry;
use keyway::dispatcher::tensor::TensorRef;
use keyway::ops::def::{OpDef, OpFlags, definition};
use keyway::{DType, Device, Error, Tensor};
use std::sync::Arc;

/// A call with its tensors placed on the device.
#[derive(Debug)]
pub struct Prepared {
    /// The arguments, arrays without their elements.
    values: Arc<Vec<Value>>,
    /// Every tensor argument, lists flattened.
    pub placed: Vec<Placed>,
}

impl Prepared {
    /// Allocates every tensor of the inputs with the arrangement that `arrange` returns for its sizes.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        inputs: &Inputs,
        device: Device,
        arrange: impl Fn(&[usize]) -> Arrangement,
    ) -> keyway::Result<Prepared> {
        Prepared::guarded(inputs, device, arrange, GUARD)
    }

    /// As [`Prepared::new`], with contiguous tensors.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn contiguous(inputs: &Inputs, device: Device) -> keyway::Result<Prepared> {
        Prepared::new(inputs, device, |_| Arrangement::Contiguous)
    }

    /// As [`Prepared::new`], contiguous and without guard bands: a storage contains only the tensor's elements, as in a
    /// program.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn bare(inputs: &Inputs, device: Device) -> keyway::Result<Prepared> {
        Prepared::bare_in(inputs, device, |_| Arrangement::Contiguous)
    }

    /// As [`Prepared::bare`], each tensor arranged as `arrange` returns for its sizes.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn bare_in(
        inputs: &Inputs,
        device: Device,
        arrange: impl Fn(&[usize]) -> Arrangement,
    ) -> keyway::Result<Prepared> {
        Prepared::guarded(inputs, device, arrange, 0)
    }

    fn guarded(
        inputs: &Inputs,
        device: Device,
        arrange: impl Fn(&[usize]) -> Arrangement,
        guard: usize,
    ) -> keyway::Result<Prepared> {
        Prepared::place_each(inputs, |array| Placed::guarded(array, arrange(&array.sizes), device, guard))
    }

    /// As [`Prepared::new`], each tensor allocated by a function, in the order of the arguments.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn place_each(
        inputs: &Inputs,
        mut place_one: impl FnMut(&Array) -> keyway::Result<Placed>,
    ) -> keyway::Result<Prepared> {
        let mut placed = Vec::new();
        let mut place = |array: &Array| -> keyway::Result<()> {
            placed.push(place_one(array)?);
            Ok(())
        };
        for value in &inputs.0 {
            match value {
                Value::Array(a) => place(a)?,
                Value::Arrays(list) => list.iter().try_for_each(&mut place)?,
                _ => {}
            }
        }
        Ok(Prepared { placed, ..Prepared::unplaced(inputs) })
    }

    /// A call without tensors: each call passes them, one for each array of the inputs.
    pub fn unplaced(inputs: &Inputs) -> Prepared {
        let bare = |a: &Array| Array { dtype: a.dtype, sizes: a.sizes.clone(), values: Vec::new() };
        let values = inputs.0.iter().map(|value| match value {
            Value::Array(a) => Value::Array(bare(a)),
            Value::Arrays(list) => Value::Arrays(list.iter().map(bare).collect()),
            other => other.clone(),
        });
        Prepared { values: Arc::new(values.collect()), placed: Vec::new() }
    }

    /// A call without tensors of its own: they are passed to [`Prepared::call_entry`]. Only the number of arrays is used.
    pub fn of_values(values: Vec<Value>) -> Prepared {
        Prepared { values: Arc::new(values), placed: Vec::new() }
    }

    /// The tensors, in the order of the arguments.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.placed.iter().map(|p| p.tensor.clone()).collect()
    }

    /// Calls the op.
    ///
    /// # Errors
    /// Errors of the op.
    pub fn call(&self, def: &'static OpDef, out: Out<'_>) -> keyway::Result<Vec<Tensor>> {
        self.call_with(def, &self.tensors(), out)
    }

    /// Calls the op with these tensors instead of the prepared ones.
    ///
    /// # Errors
    /// Errors of the op.
    pub fn call_with(
        &self,
        def: &'static OpDef,
        tensors: &[Tensor],
        out: Out<'_>,
    ) -> keyway::Result<Vec<Tensor>> {
        self.call_entry(def.entry()?, tensors, out)
    }

    /// Calls any op, also of a plugin, with these tensors instead of the prepared ones.
    ///
    /// # Errors
    /// Errors of the op.
    pub fn call_entry(
        &self,
        op: &'static OpEntry,
        tensors: &[Tensor],
        out: Out<'_>,
    ) -> keyway::Result<Vec<Tensor>> {
        last::note(op.name, &self.values, tensors);
        self.with_args(tensors, |values| {
            let made = keyway::dispatcher::call::call(Args { op, values }, out)?;
            Ok(made.into_iter().map(Tensor::from_ref).collect())
        })
    }

    /// Calls the op's decomposition, regardless of kernels.
    ///
    /// # Errors
    /// An op without a decomposition; errors of the parts.
    pub fn call_parts(&self, op: &'static OpEntry) -> keyway::Result<Vec<Tensor>> {
        last::note(op.name, &self.values, &self.tensors());
        self.with_args(&self.tensors(), |values| {
            let made = decompose(&Call { args: Args { op, values }, out: Out::New })?;
            Ok(made.into_iter().map(Tensor::from_ref).collect())
        })
    }

    /// Calls the op with results in `outs`, or in argument 0 for the in-place form. A kernel that refuses the call must
    /// leave all memory unchanged; then the call is repeated, for the next candidate.
    ///
    /// # Errors
    /// The memory that a refusing kernel wrote to.
    pub fn call_watched(
        &self,
        op: &'static OpEntry,
        out: Out<'_>,
        outs: &[Placed],
    ) -> Steps<keyway::Result<Vec<Tensor>>> {
        let tensors = self.tensors();
        match without_successors(|| self.call_entry(op, &tensors, out)) {
            Err(Error::Dispatch(DispatchError::MissingKernel(missing))) if !missing.refused.is_empty() => {
                let late = |whose: String, damage| {
                    let mut failure = damaged(&whose, damage);
                    failure.what = format!("a kernel refused the call after it had begun: {}", failure.what);
                    Stop::from(failure)
                };
                for (nth, out) in outs.iter().enumerate() {
                    if let Some(damage) = out.damage(true)? {
                        return Err(late(format!("output {nth}"), damage));
                    }
                }
                for (nth, input) in self.placed.iter().enumerate() {
                    if let Some(damage) = input.damage(true)? {
                        return Err(late(format!("input tensor {nth}"), damage));
                    }
                }
                Ok(self.call_entry(op, &tensors, out))
            }
            result => Ok(result),
        }
    }

    /// Passes the arguments, with these tensors instead of the prepared ones, to a function.
    pub fn with_args<T>(&self, tensors: &[Tensor], use_them: impl FnOnce(&[Arg<'_>]) -> T) -> T {
        let mut rest = tensors;
        let mut take = |count: usize| -> Vec<&TensorRef> {
            let (now, later) = rest.split_at(count.min(rest.len()));
            rest = later;
            now.iter().map(AsRef::as_ref).collect()
        };
        let values = &self.values;
        let lists: Vec<Vec<&TensorRef>> = values
            .iter()
            .map(|value| match value {
                Value::Array(_) => take(1),
                Value::Arrays(list) => take(list.len()),
                _ => Vec::new(),
            })
            .collect();
        let args: Vec<Arg<'_>> = values
            .iter()
            .zip(&lists)
            .map(|(value, list)| match value {
                Value::None => Arg::None,
                Value::Array(_) => list.first().map_or(Arg::None, |t| Arg::Tensor(t)),
                Value::Arrays(_) => Arg::Tensors(list),
                Value::Int(v) => Arg::Int(*v),
                Value::Float(v) => Arg::Float(*v),
                Value::Bool(v) => Arg::Bool(*v),
                Value::Ints(v) => Arg::Ints(v),
                Value::Floats(v) => Arg::Floats(v),
                Value::Str(v) => Arg::Str(v),
                Value::DType(v) => Arg::DType(*v),
            })
            .collect();
        use_them(&args)
    }

    /// Fails if a call wrote to an input or outside its elements. Argument `except`, that of an in-place call, may have
    /// changed elements.
    ///
    /// # Errors
    /// The first changed byte.
    pub fn check_untouched(&self, except: Option<usize>) -> Steps {
        for (nth, placed) in self.placed.iter().enumerate() {
            match placed.damage(Some(nth) != except)? {
                None => {}
                Some(damage) => return Err(damaged(&format!("input tensor {nth}"), damage).into()),
            }
        }
        Ok(())
    }
}

/// The failure that damage is.
pub fn damaged(whose: &str, damage: Damage) -> Failure {
    let got = match damage {
        Damage::Outside(bytes) => format!("a write {bytes} bytes from the first element"),
        Damage::Element(nth) => format!("element {nth} changed"),
    };
    Failure::new(format!("the memory of {whose} was written to"), "unchanged", got)
}

/// Whether the host refused the arguments by the op's rule, before any kernel was called.
pub fn is_of_arguments(error: &Error) -> bool {
    let Error::Dispatch(error) = error else { return false };
    let error = match error {
        DispatchError::Part { inner, .. } => inner,
        error => error,
    };
    matches!(
        error,
        DispatchError::Broadcast { .. }
            | DispatchError::Shape { .. }
            | DispatchError::Value { .. }
            | DispatchError::Index { .. }
            | DispatchError::Dim { .. }
            | DispatchError::SizeOverflow { .. }
    )
}

/// The verdict of a failed call of a valid sample of a dtype: a failure, or unsupported if the target claims no support: it
/// has no kernel for a part of it, or refuses an op that it registers no kernel for.
///
/// A kernel may refuse if another candidate runs the call, and then the call does not fail. A call that fails has no
/// candidate left, although a kernel is registered.
pub fn refused(target: &Target, op: &OpEntry, dtype: Option<DType>, error: Error) -> Stop {
    if let Error::Dispatch(DispatchError::MissingKernel(missing)) = &error {
        let served = |op: &OpEntry, dtype| target.service(op, dtype) == Service::Kernel;
        if !missing.refused.is_empty() {
            let why = missing.refused.join("; ");
            // The kernel of a cast is selected by the target dtype; only the call knows the source dtype.
            let cast = registry::find_op(missing.op)
                .filter(|op| definition(op).is_some_and(|def| def.is(OpFlags::CASTS)))
                .is_some_and(|cast| last::dtypes().into_iter().any(|dtype| !served(cast, dtype)));
            if cast || !dtype.is_some_and(|dtype| served(op, dtype)) {
                return Stop::Unsupported(why);
            }
            return Failure::new(
                format!("{} is refused, and nothing else serves it on {}", op.name, target.device),
                "a result: have this kernel serve it, register another that does, or give the op a decomposition; a list \
                 of known failures can name the case",
                why,
            )
            .into();
        }
        let claimed = registry::find_op(missing.op).is_some_and(|op| {
            DType::REAL
                .into_iter()
                .chain(DType::COMPLEX)
                .any(|d| missing.key.ends_with(&format!(", {d})")) && served(op, d))
        });
        if !claimed {
            return Stop::Unsupported(format!("no kernel of {} for {}", missing.op, missing.key));
        }
    }
    // A backend does not claim support for an op that the host performs on its own memory.
    if let (Rule::Host(_), Error::Dispatch(DispatchError::DeviceMismatch { expected: Device::CPU, .. })) =
        (&op.spec.rule, &error)
    {
        return Stop::Unsupported(error.to_string());
    }
    Failure::new(format!("{} refuses a valid call", op.name), "a result", error.to_string()).into()
}
