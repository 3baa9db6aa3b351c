//! Functions with a custom derivative, written by users.

use super::alias::Alias;
use super::meta;
use super::modes::{is_grad_enabled, no_grad};
use super::node::{Body, Edge, Node, Shape, lock};
use super::saved::Saved;
use super::watch;
use crate::Tensor;
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::tensor::handles;
use keyway_dispatcher::memory::Shared;
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Borrow;
use std::sync::{Arc, Mutex};

/// State that a function saves between forward and backward.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::Context};
/// let mut context = Context::default();
/// let x = Tensor::new([1.0f32])?;
/// context.save(&[&x]);
/// assert!(context.saved()[0].ptr_eq(&x));
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Context {
    saved: Vec<Tensor>,
    dirty: Vec<Tensor>,
    /// Whether a gradient came for each output.
    came: SmallVec<[bool; 2]>,
}

impl Context {
    /// Saves tensors for backward: inputs, outputs, or others. They are checked for in-place changes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, autograd::Context};
    /// let mut context = Context::default();
    /// context.save(&[&Tensor::new([1.0f32])?, &Tensor::new([2.0f32])?]);
    /// assert_eq!(context.saved().len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn save<T: Borrow<Tensor>>(&mut self, tensors: &[T]) {
        self.saved.extend(handles(tensors));
    }

    /// The saved tensors.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, autograd::Context};
    /// let mut context = Context::default();
    /// let x = Tensor::new([1.0f32])?;
    /// context.save(&[&x]);
    /// assert!(context.saved()[0].ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    pub fn saved(&self) -> &[Tensor] {
        &self.saved
    }

    /// Marks inputs that `forward` changes in place and returns: each such result is the input itself, with the function as its
    /// history.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Result, Tensor, autograd::{self, Context, Function}};
    /// struct Negate;
    /// impl Function for Negate {
    ///     fn name(&self) -> &'static str {
    ///         "negate"
    ///     }
    ///     fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    ///         context.mark_dirty(&[inputs[0].mul_(-1.0)?]);
    ///         Ok(vec![inputs[0].clone()])
    ///     }
    ///     fn backward(&self, _: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    ///         Ok(vec![Some(grads[0].neg()?)])
    ///     }
    /// }
    /// let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
    /// let y = x.mul(3.0)?;
    /// autograd::apply(Negate, &[y.clone()])?;
    /// y.sum_all()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [-3.0, -3.0]);
    /// # Ok(()) }
    /// ```
    pub fn mark_dirty<T: Borrow<Tensor>>(&mut self, inputs: &[T]) {
        self.dirty.extend(handles(inputs));
    }

    /// In `backward`, whether a gradient of this output came. The gradient of one that did not is zeros.
    ///
    /// ```
    /// use keyway::autograd::Context;
    /// assert!(!Context::default().has_grad(0));
    /// ```
    #[doc(alias = "set_materialize_grads")]
    pub fn has_grad(&self, output: usize) -> bool {
        self.came.get(output).copied().unwrap_or(false)
    }

    fn is_dirty(&self, tensor: &Tensor) -> bool {
        self.dirty.iter().any(|dirty| dirty.ptr_eq(tensor))
    }
}

/// A function with a custom derivative.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Result, Tensor, autograd::{self, Context, Function}};
/// /// Rounds; the gradient passes as if nothing were rounded.
/// struct StraightThrough;
/// impl Function for StraightThrough {
///     fn name(&self) -> &'static str {
///         "straight_through"
///     }
///     fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
///         Ok(vec![inputs[0].round()?])
///     }
///     fn backward(&self, _: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
///         Ok(vec![Some(grads[0].clone())])
///     }
/// }
/// let x = Tensor::new([0.4f32, 1.6])?.requires_grad_(true)?;
/// let y = autograd::apply(StraightThrough, &[x.clone()])?.remove(0);
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
/// y.sum_all()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok(()) }
/// ```
pub trait Function: Any + Send + Sync {
    /// The name that the graph shows.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Result, Tensor, autograd::{self, Context, Function}};
    /// # struct Square;
    /// # impl Function for Square {
    /// #     fn name(&self) -> &'static str { "square" }
    /// #     fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    /// #         context.save(&[&inputs[0]]);
    /// #         Ok(vec![inputs[0].square()?])
    /// #     }
    /// #     fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    /// #         Ok(vec![Some(context.saved()[0].mul(2.0)?.mul(&grads[0])?)])
    /// #     }
    /// # }
    /// // `Square` saves `x` and has the derivative `2 x`.
    /// let x = Tensor::new(3.0f32)?.requires_grad_(true)?;
    /// let y = autograd::apply(Square, &[x])?.remove(0);
    /// assert_eq!(y.grad_fn().unwrap().name(), "square");
    /// # Ok(()) }
    /// ```
    fn name(&self) -> &'static str;

    /// Computes the outputs; the ops inside are not recorded.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Result, Tensor, autograd::{self, Context, Function}};
    /// # struct Square;
    /// # impl Function for Square {
    /// #     fn name(&self) -> &'static str { "square" }
    /// #     fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    /// #         context.save(&[&inputs[0]]);
    /// #         Ok(vec![inputs[0].square()?])
    /// #     }
    /// #     fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    /// #         Ok(vec![Some(context.saved()[0].mul(2.0)?.mul(&grads[0])?)])
    /// #     }
    /// # }
    /// // `Square` saves `x` and has the derivative `2 x`.
    /// let x = Tensor::new(3.0f32)?.requires_grad_(true)?;
    /// let y = Square.forward(&mut Context::default(), &[x])?.remove(0);
    /// assert_eq!(y.item::<f32>()?, 9.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>>;

    /// Computes a gradient for each input, `None` for zero, from the gradients of the outputs. Written with tensor ops, it can
    /// itself be differentiated.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Result, Tensor, autograd::{self, Context, Function}};
    /// # struct Square;
    /// # impl Function for Square {
    /// #     fn name(&self) -> &'static str { "square" }
    /// #     fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    /// #         context.save(&[&inputs[0]]);
    /// #         Ok(vec![inputs[0].square()?])
    /// #     }
    /// #     fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    /// #         Ok(vec![Some(context.saved()[0].mul(2.0)?.mul(&grads[0])?)])
    /// #     }
    /// # }
    /// // `Square` saves `x` and has the derivative `2 x`.
    /// let x = Tensor::new(3.0f32)?.requires_grad_(true)?;
    /// let mut context = Context::default();
    /// let y = Square.forward(&mut context, &[x])?.remove(0);
    /// let grads = Square.backward(&context, &[y.ones_like()?])?;
    /// assert_eq!(grads[0].as_ref().unwrap().item::<f32>()?, 6.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Any error of the implementation.
    fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>>;
}

pub(crate) struct CustomCall {
    pub(crate) name: &'static str,
    function: Arc<dyn Function>,
    inputs: SmallVec<[Shape; 2]>,
    /// Shared with the node that replaces this one when an input is changed in place.
    saved: Mutex<Option<Arc<Vec<Saved>>>>,
}

impl CustomCall {
    pub(crate) fn free(&self) {
        drop(lock(&self.saved).take());
    }
}

/// Calls a function and records its custom derivative.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Result, Tensor, autograd::{self, Context, Function}};
/// # struct Square;
/// # impl Function for Square {
/// #     fn name(&self) -> &'static str { "square" }
/// #     fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
/// #         context.save(&[&inputs[0]]);
/// #         Ok(vec![inputs[0].square()?])
/// #     }
/// #     fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
/// #         Ok(vec![Some(context.saved()[0].mul(2.0)?.mul(&grads[0])?)])
/// #     }
/// # }
/// // `Square` saves `x` and has the derivative `2 x`.
/// let x = Tensor::new(3.0f32)?.requires_grad_(true)?;
/// autograd::apply(Square, &[x.clone()])?.remove(0).backward()?;
/// assert_eq!(x.grad().unwrap().item::<f32>()?, 6.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Errors of the function; an inference tensor that it saves; an input that requires a gradient and that `forward` changed in
/// place.
#[doc(alias = "apply_op1")]
pub fn apply(function: impl Function, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let function: Arc<dyn Function> = Arc::new(function);
    let mut context = Context::default();
    let versions: SmallVec<[u32; 4]> = inputs.iter().map(Tensor::version).collect();
    let outputs = {
        let _off = no_grad();
        function.forward(&mut context, inputs)?
    };
    let wanted = inputs.iter().any(Tensor::requires_grad);
    if wanted {
        watch::note();
    }
    if !is_grad_enabled() || !wanted {
        return Ok(outputs);
    }
    context.dirty.iter().try_for_each(|input| check_dirty(function.name(), input))?;
    let is_changed = |(input, version): (&Tensor, &u32)| {
        input.requires_grad() && input.version() != *version && !context.is_dirty(input)
    };
    if let Some(input) = inputs.iter().zip(&versions).position(is_changed) {
        return Err(AutogradError::InputChanged { function: function.name(), input }.into());
    }
    let aliases: Vec<_> = (0..outputs.len()).map(|i| sharing(i, &outputs, inputs)).collect();
    // A result that is also an input, a tensor that the function captured, or a view of either becomes a tensor of its own
    // over the same memory, so that it holds its own history.
    let is_own = |o: &Tensor, alias: &Option<_>| !o.requires_grad() && alias.is_none() && !is_view_of_own(o);
    let own = |(o, alias)| if context.is_dirty(&o) || is_own(&o, alias) { o } else { o.detach() };
    let is_result =
        |t: &Tensor| context.is_dirty(t) || (!t.requires_grad() && inputs.iter().all(|i| !i.ptr_eq(t)));
    let position = |t: &Tensor| outputs.iter().position(|o| o.ptr_eq(t)).filter(|_| is_result(t));
    let saved_as: Vec<_> = context.saved.iter().map(position).collect();
    let outputs: Vec<Tensor> = outputs.into_iter().zip(&aliases).map(own).collect();
    let name = function.name();
    let saved = context
        .saved
        .iter()
        .zip(saved_as)
        .map(|(t, output)| match output {
            Some(i) => Ok(Saved::output(outputs[i].as_ref(), i)),
            None => Saved::input(name, t.as_ref()),
        })
        .collect::<Result<Vec<_>>>()?;
    let edges: SmallVec<_> = inputs.iter().map(|t| meta::edge(t.as_ref())).collect();
    let inputs: SmallVec<[Shape; 2]> = inputs.iter().map(|t| Shape::of(t.as_ref())).collect();
    let shapes = outputs
        .iter()
        .map(|t| Shape::of_result(t.as_ref(), &inputs, &edges, false))
        .collect::<Result<_>>()?;
    let body = Body::Custom(CustomCall { name, function, inputs, saved: Mutex::new(Some(Arc::new(saved))) });
    let node = Node::new(body, edges, shapes);
    for (output, tensor) in outputs.iter().enumerate() {
        let edge = Edge { node: node.clone(), output };
        match tensor.dtype().is_differentiable() {
            true if context.is_dirty(tensor) => meta::rebase_history(tensor.as_ref(), edge),
            true => meta::set_edge(tensor.as_ref(), edge),
            false => {}
        }
    }
    for (tensor, alias) in outputs.iter().zip(aliases) {
        if let Some(alias) = alias.filter(|_| !context.is_dirty(tensor)) {
            meta::set_alias(tensor.as_ref(), alias);
        }
    }
    Ok(outputs)
}

/// Refuses an input that is marked dirty and whose history cannot be replaced.
fn check_dirty(op: &'static str, input: &Tensor) -> Result<()> {
    if meta::is_collecting_leaf(input.as_ref()) {
        return Err(AutogradError::LeafInPlace { op }.into());
    }
    if input.as_ref().base().is_some() {
        let reason = "is a view, and `mark_dirty` takes whole tensors";
        return Err(AutogradError::ViewInPlace { op, reason }.into());
    }
    Ok(())
}

/// Whether a result is a view of a tensor that the function created and that has no other handle.
fn is_view_of_own(output: &Tensor) -> bool {
    output.as_ref().base().is_some_and(|base| Shared::strong_count(base) == 1)
}

/// Whether the memory of result `i` is shared with another tensor, and with which input, if it is an input.
fn sharing(i: usize, outputs: &[Tensor], inputs: &[Tensor]) -> Option<Option<Alias>> {
    let output = &outputs[i];
    let shares = |other: &Tensor| output.shares_storage(other);
    // If there is a choice, the gradient flows to an input that requires one.
    let of = |wanted: bool| inputs.iter().position(|input| input.requires_grad() == wanted && shares(input));
    if let Some(index) = of(true).or_else(|| of(false)) {
        return Some(Some(Alias::of(index, inputs[index].as_ref())));
    }
    let is_another = |(other, tensor): (usize, &Tensor)| other != i && shares(tensor);
    let is_captured = output.requires_grad() || output.as_ref().base().is_some_and(meta::requires_grad);
    (is_captured || outputs.iter().enumerate().any(is_another)).then_some(None)
}

/// The node of the same call with the current input `index`; `None` for any other node.
pub(super) fn again(node: &Node, index: usize, input: Option<Edge>) -> Option<Shared<Node>> {
    let Body::Custom(call) = &node.body else { return None };
    let mut edges = node.edges.clone();
    *edges.get_mut(index)? = input;
    let body = CustomCall {
        name: call.name,
        function: call.function.clone(),
        inputs: call.inputs.clone(),
        saved: Mutex::new(lock(&call.saved).clone()),
    };
    Some(Node::new(Body::Custom(body), edges, node.outputs.clone()))
}

/// Runs a recorded function's own derivative.
pub(super) fn backward(
    node: &Shared<Node>,
    call: &CustomCall,
    grads: SmallVec<[Option<Tensor>; 2]>,
    wanted: &[bool],
) -> Result<Vec<Option<Tensor>>> {
    let came = grads.iter().map(Option::is_some).collect();
    let grads = node.materialised(grads)?;
    let context = {
        let saved = lock(&call.saved).clone();
        let saved = saved.as_ref().ok_or_else(|| AutogradError::Freed { op: call.name.to_string() })?;
        let tensors = saved.iter().map(|s| s.unpack(node, "a saved tensor")).collect::<Result<_>>()?;
        Context { saved: tensors, came, ..Context::default() }
    };
    let made = call.function.backward(&context, &grads)?;
    if made.len() != call.inputs.len() {
        let (expected, got) = (call.inputs.len(), made.len());
        return Err(AutogradError::GradientCount { op: call.name.to_string(), expected, got }.into());
    }
    made.into_iter()
        .zip(&call.inputs)
        .zip(&node.edges)
        .zip(wanted)
        .map(|(((grad, shape), edge), &wanted)| match grad {
            Some(grad) if wanted => super::node::fit(call.name, grad, shape, edge.as_ref()).map(Some),
            _ => Ok(None),
        })
        .collect()
}

/// Calls `visit` with the function of a tensor's history if it belongs to this handle alone: nothing else refers to the tensor, to
/// its node, or to the function. A garbage collector of another language finds cycles through functions by it.
#[doc(hidden)]
pub fn visit_owned_function(tensor: &Tensor, visit: &mut dyn FnMut(&dyn Any)) {
    if owns_hooks(tensor, 1)
        && let Some(edge) = meta::recorded_edge(tensor.as_ref())
        && let Body::Custom(call) = &edge.node.body
        && Arc::strong_count(&call.function) == 1
    {
        visit(&*call.function);
    }
}

/// Whether the hooks of a tensor belong to its handles alone, whose number is `handles`.
#[doc(hidden)]
pub fn owns_hooks(tensor: &Tensor, handles: usize) -> bool {
    let alone = Shared::strong_count(tensor.as_ref()) == handles;
    alone && meta::recorded_edge(tensor.as_ref()).is_none_or(|edge| Shared::strong_count(&edge.node) == 2)
}
