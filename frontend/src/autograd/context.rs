//! The inputs and outputs of a derivative's formula.

use super::node::{Edge, Node, OpCall, OwnedArg, SavedTensors, Shape, fit};
use super::saved::Saved;
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::op::rules::{reduced_by, reduced_sizes};
use crate::{DType, Device, Tensor};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::op::Arg;
use once_cell::unsync::OnceCell;
use smallvec::SmallVec;

/// A recorded call and the gradients of its outputs.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::ops::def::Derivative;
/// // The derivative of `x.log()`, whose argument 0 is saved: the gradient of the result by `x`.
/// let log = Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.div(&b.input(0)?)));
/// assert!(matches!(log, Derivative::Formula { saves: 0b1, saves_outputs: 0, .. }));
/// # Ok(()) }
/// ```
pub struct Backward<'a> {
    pub(crate) node: &'a Shared<Node>,
    pub(crate) call: &'a OpCall,
    pub(crate) saved: &'a SavedTensors,
    /// The incoming gradients, and zeros created for missing ones on request.
    pub(crate) grads: &'a [OnceCell<Tensor>],
    /// Whether each gradient was passed.
    pub(crate) came: &'a [bool],
    /// The float dtype that formulas compute in where arguments and results are of several; see [`widest`].
    pub(crate) wide: Option<DType>,
    /// The device that the formula is computed on, where that is not the tensors' own.
    pub(crate) away: Option<Device>,
}

/// The dtype in which a formula computes when its tensors have several float dtypes: one that represents the gradients of the
/// outputs and the requested gradients. In a narrower dtype products would be rounded and sums could overflow before the cast.
/// `None` if all tensors have one dtype.
pub(crate) fn widest(
    grads: &[Option<Tensor>],
    outputs: &[Shape],
    inputs: &[Shape],
    wanted: &[bool],
) -> Option<DType> {
    let dtype = |(grad, output): (&Option<Tensor>, &Shape)| grad.as_ref().map_or(output.dtype, Tensor::dtype);
    let mut dtypes = grads.iter().zip(outputs).map(dtype);
    let first = dtypes.next()?;
    // Real and complex tensors are promoted by the formula.
    if first.is_complex() {
        return None;
    }
    if dtypes.all(|dtype| dtype == first) && inputs.iter().all(|shape| shape.dtype == first) {
        return None;
    }
    let wanted = inputs.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(shape, _)| shape.dtype);
    let mut floats = grads.iter().flatten().map(Tensor::dtype).chain(wanted).filter(|dtype| dtype.is_float());
    let first = floats.next()?;
    let all = floats.try_fold((first, false), |(wide, mixed), dtype| {
        if dtype == wide { Some((wide, mixed)) } else { Some((wide.promote(dtype)?, true)) }
    })?;
    // A saved tensor may be narrower than all of these.
    let narrower = |shape: &Shape| shape.dtype.is_float() && shape.dtype != all.0;
    (all.1 || inputs.iter().any(narrower)).then_some(all.0)
}

/// The tensor cast to `wide`, if that is given and the tensor has a narrower float dtype.
pub(crate) fn widened(t: Tensor, wide: Option<DType>) -> Result<Tensor> {
    match wide {
        Some(wide) if t.dtype().is_float() && t.dtype() != wide && t.dtype().promote(wide) == Some(wide) => {
            t.to_dtype(wide)
        }
        _ => Ok(t),
    }
}

/// A saved argument that may be a tensor or a number.
///
/// ```
/// use keyway::{Arg, autograd::SavedArg};
/// assert!(matches!(SavedArg::Number(Arg::Float(2.0)).arg(), Arg::Float(2.0)));
/// ```
pub enum SavedArg<'a> {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Number(Arg<'a>),
}

impl SavedArg<'_> {
    /// The argument for another call.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Arg, Tensor, autograd::SavedArg};
    /// let saved = SavedArg::Tensor(Tensor::new([1.0f32])?);
    /// assert!(matches!(saved.arg(), Arg::Tensor(_)));
    /// # Ok(()) }
    /// ```
    pub fn arg(&self) -> Arg<'_> {
        match self {
            SavedArg::Tensor(t) => t.into(),
            SavedArg::Number(n) => *n,
        }
    }
}

impl<'a> Backward<'a> {
    /// The gradient of output `i`; zeros if it has none.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.neg()`.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.neg()));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn grad(&self, i: usize) -> Result<&'a Tensor> {
        let missing = || self.not_saved(&format!("gradient {i}"));
        let (grad, shape) = self.grads.get(i).zip(self.node.outputs.get(i)).ok_or_else(missing)?;
        grad.get_or_try_init(|| {
            let zeros = widened(shape.zeros()?, self.wide)?;
            if let Some(device) = self.away { zeros.to_device(device) } else { Ok(zeros) }
        })
    }

    /// Whether output `i` has a gradient.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of an op of two results, of which often only the first is used.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || {
    ///         let first = b.grad(0)?.clone();
    ///         if b.has_grad(1) { first.add(b.grad(1)?) } else { Ok(first) }
    ///     }));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn has_grad(&self, i: usize) -> bool {
        self.came.get(i).copied().unwrap_or(false)
    }

    fn not_saved(&self, what: &str) -> crate::Error {
        AutogradError::NotSaved { op: self.node.name().to_string(), what: what.to_string() }.into()
    }

    fn owned(&self, i: usize) -> &'a OwnedArg {
        self.call.args.get(i).unwrap_or(&OwnedArg::None)
    }

    fn name(&self, i: usize) -> &'static str {
        self.call.op.schema.param_name(i)
    }

    fn unpack(&self, slot: usize, i: usize) -> Result<Tensor> {
        match self.saved.inputs.get(slot).and_then(Option::as_ref) {
            Some(saved) => widened(saved.unpack(self.node, self.name(i))?, self.wide),
            None => Err(self.not_saved(self.name(i))),
        }
    }

    /// Argument `i`, a tensor that the definition saves.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.sin()`.
    /// let derivative = Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.cos()?)));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 1, .. }));
    /// ```
    ///
    /// # Errors
    /// The argument was changed in place since, or was not saved.
    pub fn input(&self, i: usize) -> Result<Tensor> {
        match self.owned(i) {
            OwnedArg::Tensor { slot } => self.unpack(*slot, i),
            _ => Err(self.not_saved(self.name(i))),
        }
    }

    /// Argument `i`, a tensor that the definition saves only for its sizes, strides and offset: in-place changes since are
    /// permitted.
    pub(crate) fn input_geometry(&self, i: usize) -> Result<Tensor> {
        let saved = match self.owned(i) {
            OwnedArg::Tensor { slot } => self.saved.inputs.get(*slot).and_then(Option::as_ref),
            _ => None,
        };
        saved.and_then(Saved::geometry).ok_or_else(|| self.not_saved(self.name(i)))
    }

    /// Argument `i`, an optional tensor.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of an op with a weight that may be left out.
    /// let derivative = Derivative::of_inputs(0b10, |b, g| g.set(0, || match b.optional_input(1)? {
    ///         Some(weight) => b.grad(0)?.mul(&weight),
    ///         None => Ok(b.grad(0)?.clone()),
    ///     }));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 2, .. }));
    /// ```
    ///
    /// # Errors
    /// As [`Backward::input`].
    pub fn optional_input(&self, i: usize) -> Result<Option<Tensor>> {
        match self.owned(i) {
            OwnedArg::None => Ok(None),
            _ => self.input(i).map(Some),
        }
    }

    /// Argument `i`, a list of tensors.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of the product of all tensors of a list, of which there are two.
    /// let derivative = Derivative::of_inputs(0b1, |b, g| {
    ///         let list = b.inputs(0)?;
    ///         g.set_list_item(0, 0, || b.grad(0)?.mul(&list[1]))?;
    ///         g.set_list_item(0, 1, || b.grad(0)?.mul(&list[0]))
    ///     });
    /// assert!(matches!(derivative, Derivative::Formula { saves: 1, .. }));
    /// ```
    ///
    /// # Errors
    /// As [`Backward::input`].
    pub fn inputs(&self, i: usize) -> Result<Vec<Tensor>> {
        match self.owned(i) {
            OwnedArg::Tensors { first, count } => {
                (*first..first + count).map(|s| self.unpack(s, i)).collect()
            }
            _ => Err(self.not_saved(self.name(i))),
        }
    }

    /// Argument `i`, a tensor that the definition saves, or the scalar that was passed instead.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `a.mul(&b)` by `a`, where `b` may be a number.
    /// let derivative = Derivative::of_inputs(0b10, |b, g| g.set(0, || b.grad(0)?.mul(b.saved(1)?.arg())));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 2, .. }));
    /// ```
    ///
    /// # Errors
    /// As [`Backward::input`].
    pub fn saved(&self, i: usize) -> Result<SavedArg<'a>> {
        match self.owned(i) {
            OwnedArg::Tensor { slot } => self.unpack(*slot, i).map(SavedArg::Tensor),
            other => Ok(SavedArg::Number(other.arg())),
        }
    }

    /// Output `i`, if the definition saves it.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.exp()`.
    /// let derivative = Derivative::of_output(|b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?)));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, saves_outputs: 1, .. }));
    /// ```
    ///
    /// # Errors
    /// As [`Backward::input`].
    pub fn output(&self, i: usize) -> Result<Tensor> {
        match self.saved.outputs.get(i).and_then(Option::as_ref) {
            Some(saved) => widened(saved.unpack(self.node, "its result")?, self.wide),
            None => Err(self.not_saved(&format!("output {i}"))),
        }
    }

    /// Argument `i` as a value; `Arg::None` for a tensor.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.sum_keepdim(dims)`.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.unsqueeze_reduced(b.grad(0)?, 0, b.arg(1), true)?.expand(b.sizes(0))));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn arg(&self, i: usize) -> Arg<'a> {
        self.owned(i).arg()
    }

    /// Whether argument `i` is present.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of an op that takes the negative unless argument 1 is given.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || if b.is_some(1) { Ok(b.grad(0)?.clone()) } else { b.grad(0)?.neg() }));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn is_some(&self, i: usize) -> bool {
        !matches!(self.owned(i), OwnedArg::None)
    }

    /// Integer argument `i`.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.cumsum(dim)`.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.cumsum_reversed(b.int(1)?)));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn int(&self, i: usize) -> Result<i64> {
        if let Arg::Int(v) = self.arg(i) { Ok(v) } else { self.bool(i).map(i64::from) }
    }

    /// Number argument `i` as f64.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.mul(factor)` with a number.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.mul(b.float(1)?)));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn float(&self, i: usize) -> Result<f64> {
        match self.arg(i) {
            Arg::Float(v) => Ok(v),
            Arg::Int(v) => Ok(v as f64),
            _ => self.bool(i).map(|v| f64::from(u8::from(v))),
        }
    }

    /// Truth argument `i`.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of an op that is the negative if argument 1 says so.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || if b.bool(1)? { b.grad(0)?.neg() } else { Ok(b.grad(0)?.clone()) }));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn bool(&self, i: usize) -> Result<bool> {
        if let Arg::Bool(v) = self.arg(i) { Ok(v) } else { Err(self.not_saved(self.name(i))) }
    }

    /// Integer-list argument `i`.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.flip(dims)`.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.flip(b.ints(1)?)));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn ints(&self, i: usize) -> Result<&'a [i64]> {
        if let Arg::Ints(v) = self.arg(i) { Ok(v) } else { Err(self.not_saved(self.name(i))) }
    }

    /// Text argument `i`.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of a sum or a mean, which argument 1 names.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || {
    ///         let count = b.sizes(0).iter().product::<usize>() as f64;
    ///         let each = if b.str(1)? == "mean" { b.grad(0)?.div(count)? } else { b.grad(0)?.clone() };
    ///         each.expand(b.sizes(0))
    ///     }));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn str(&self, i: usize) -> Result<&'a str> {
        if let Arg::Str(v) = self.arg(i) { Ok(v) } else { Err(self.not_saved(self.name(i))) }
    }

    /// The sizes that tensor argument `i` had; empty for a number.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.reshape(shape)`.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.reshape(b.sizes(0))));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn sizes(&self, i: usize) -> &'a [usize] {
        match self.owned(i) {
            OwnedArg::Tensor { slot } => &self.call.inputs[*slot].sizes,
            _ => &[],
        }
    }

    /// The device that tensor argument `i` was on, and a gradient of it is to be on.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of a copy to another device.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.to_device(b.device(0))));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn device(&self, i: usize) -> keyway_dispatcher::Device {
        match self.owned(i) {
            OwnedArg::Tensor { slot } => self.call.inputs[*slot].device,
            _ => keyway_dispatcher::Device::CPU,
        }
    }

    /// The sizes that each tensor of list argument `i` had.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of the concatenation of a list along dimension 0.
    /// let derivative = Derivative::of_grad(|b, g| {
    ///         let mut start = 0;
    ///         for (k, sizes) in b.list_sizes(0).into_iter().enumerate() {
    ///             g.set_list_item(0, k, || b.grad(0)?.narrow(0, start, sizes[0]))?;
    ///             start += sizes[0] as i64;
    ///         }
    ///         Ok(())
    ///     });
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn list_sizes(&self, i: usize) -> Vec<&'a [usize]> {
        match self.owned(i) {
            OwnedArg::Tensors { first, count } => {
                self.call.inputs[*first..first + count].iter().map(|s| s.sizes.as_slice()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The gradient of a reduction of argument `i` over `dims` (all dimensions if none were given), with the reduced
    /// dimensions restored as size 1.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `x.sum(dims)`.
    /// let derivative = Derivative::of_grad(|b, g| g.set(0, || b.unsqueeze_reduced(b.grad(0)?, 0, b.arg(1), false)?.expand(b.sizes(0))));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn unsqueeze_reduced(&self, grad: &Tensor, i: usize, dims: Arg<'_>, keepdim: bool) -> Result<Tensor> {
        let sizes = self.sizes(i);
        if keepdim {
            return Ok(grad.clone());
        }
        let reduced = reduced_by(self.call.op.name, dims, sizes.len())?;
        grad.reshape_as_sizes(&reduced_sizes(sizes, reduced, true))
    }
}

/// The gradients of a call's tensor arguments, as a formula sets them.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::ops::def::Derivative;
/// // The derivative of `a.sub(&b)`: each argument's is computed only if it is wanted.
/// let sub = Derivative::of_grad(|b, g| {
///     g.set(0, || Ok(b.grad(0)?.clone()))?;
///     g.set(1, || b.grad(0)?.neg())
/// });
/// assert!(matches!(sub, Derivative::Formula { saves: 0, .. }));
/// # Ok(()) }
/// ```
pub struct Grads<'a> {
    pub(crate) call: &'a OpCall,
    /// The edge that receives the gradient of each slot.
    pub(crate) edges: &'a [Option<Edge>],
    /// Slots whose gradient is requested.
    pub(crate) wanted: &'a [bool],
    /// Whether the gradients of a holomorphic op are conjugated, see [`OpFlags::HOLOMORPHIC`](crate::op::flags::OpFlags::HOLOMORPHIC).
    pub(crate) conjugate: bool,
    /// The gradients by slot.
    pub(crate) slots: SmallVec<[Option<Tensor>; 4]>,
}

impl Grads<'_> {
    /// Whether the gradient of argument `i` is requested.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // Nothing is computed where no gradient is wanted.
    /// let derivative = Derivative::of_grad(|b, g| if g.needs(0) { g.set(0, || b.grad(0)?.neg()) } else { Ok(()) });
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    pub fn needs(&self, i: usize) -> bool {
        match self.call.args.get(i) {
            Some(OwnedArg::Tensor { slot }) => self.wanted[*slot],
            Some(OwnedArg::Tensors { first, count }) => self.wanted[*first..first + count].contains(&true),
            _ => false,
        }
    }

    /// The pattern that the gradient of tensor argument `i` is to have, if it is to be sparse: zeros where the tensor stores
    /// something.
    pub(crate) fn pattern(&self, i: usize) -> Option<Tensor> {
        let Some(&OwnedArg::Tensor { slot }) = self.call.args.get(i) else { return None };
        // Few tensors are sparse, and only those need the full check.
        if self.call.inputs[slot].strided {
            return None;
        }
        self.edges.get(slot)?.as_ref()?.pattern()
    }

    /// Sets the gradient of tensor argument `i`, computed only if it is requested. It may still have the shape of the broadcast
    /// result and another float dtype.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of `a.sub(&b)`.
    /// let derivative = Derivative::of_grad(|b, g| {
    ///         g.set(0, || Ok(b.grad(0)?.clone()))?;
    ///         g.set(1, || b.grad(0)?.neg())
    ///     });
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    ///
    /// # Errors
    /// Errors of `compute`.
    pub fn set(&mut self, i: usize, compute: impl FnOnce() -> Result<Tensor>) -> Result<()> {
        if let Some(OwnedArg::Tensor { slot }) = self.call.args.get(i) {
            self.put(*slot, compute)?;
        }
        Ok(())
    }

    /// Like [`Grads::set`], for a gradient that remains sparse though the argument is strided.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // A gradient that stays sparse: that of the first row.
    /// let derivative = Derivative::of_grad(|b, g| g.set_sparse(0, || b.grad(0)?.narrow(0, 0, 1)?.to_sparse()));
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    ///
    /// # Errors
    /// Errors of `compute`.
    pub fn set_sparse(&mut self, i: usize, compute: impl FnOnce() -> Result<Tensor>) -> Result<()> {
        if let Some(&OwnedArg::Tensor { slot }) = self.call.args.get(i)
            && self.wanted[slot]
        {
            self.slots[slot] = Some(compute()?);
        }
        Ok(())
    }

    /// Sets the gradient of tensor `k` of list argument `i`.
    ///
    /// ```
    /// use keyway::ops::def::Derivative;
    /// // As of the sum of all tensors of a list.
    /// let derivative = Derivative::of_grad(|b, g| {
    ///         (0..b.list_sizes(0).len()).try_for_each(|k| g.set_list_item(0, k, || Ok(b.grad(0)?.clone())))
    ///     });
    /// assert!(matches!(derivative, Derivative::Formula { saves: 0, .. }));
    /// ```
    ///
    /// # Errors
    /// Errors of `f`.
    pub fn set_list_item(&mut self, i: usize, k: usize, f: impl FnOnce() -> Result<Tensor>) -> Result<()> {
        match self.call.args.get(i) {
            Some(OwnedArg::Tensors { first, count }) if k < *count => self.put(first + k, f),
            _ => Ok(()),
        }
    }

    fn put(&mut self, slot: usize, compute: impl FnOnce() -> Result<Tensor>) -> Result<()> {
        if self.wanted[slot] {
            let edge = self.edges.get(slot).and_then(Option::as_ref);
            let grad = compute()?;
            let grad = if self.conjugate { grad.conj()? } else { grad };
            let grad = fit(self.call.op.name, grad, &self.call.inputs[slot], edge)?;
            self.slots[slot] = Some(grad);
        }
        Ok(())
    }
}
