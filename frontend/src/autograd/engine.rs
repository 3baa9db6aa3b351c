//! The engine: runs nodes newest first, so that all gradients of a node have been accumulated before it runs.

use super::meta;
use super::modes::{enable_grad, no_grad};
use super::node::{Body, Edge, Node, Shape, by_entry, lock};
use super::pending::{Pending, Slots, Waiting};
use super::run::{apply_hook, check_for_nan, run_node};
use super::{extensions, hooks};
use crate::Tensor;
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::profiler::scope;
use crate::tensor::refs;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet, local_keys};
use keyway_dispatcher::layouts::{can_project, has_pattern_of};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::progress::BackwardGuard;
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::borrow::Borrow;

/// The options of a backward pass.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::{self, BackwardOptions}};
/// let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
/// let y = x.square()?;
/// let start = Tensor::new([1.0f32, 10.0])?;
/// let options = BackwardOptions { gradients: Some(vec![start]), ..BackwardOptions::default() };
/// autograd::backward(&[y], options)?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 40.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct BackwardOptions {
    /// The initial gradient of each output; if not given, one for outputs of one element.
    pub gradients: Option<Vec<Tensor>>,
    /// Retains the saved tensors, so that the graph can be used again.
    pub retain_graph: bool,
    /// Records the pass itself, so that gradients can be differentiated. Retains the graph too.
    pub create_graph: bool,
    /// In `grad`: returns `None` for an input that the outputs do not depend on, instead of an error.
    pub allow_unused: bool,
    /// Returns strided gradients also for sparse tensors: the gradient at the coordinates that the tensor stores, and 0
    /// elsewhere; duplicates count once, not per entry.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, autograd::BackwardOptions};
    /// let indices = Tensor::new([[2i64, 0, 2]])?;
    /// let a = Tensor::sparse_coo(&indices, &Tensor::new([1.0f32, 2.0, 3.0])?, 3)?.requires_grad_(true)?;
    /// let options = BackwardOptions { strided_gradients: true, ..BackwardOptions::default() };
    /// a.mul(5)?.sum_all()?.backward_with(options)?;
    /// assert_eq!(a.grad().unwrap().to_vec::<f32>()?, [5.0, 0.0, 5.0]);
    /// # Ok(()) }
    /// ```
    pub strided_gradients: bool,
}

/// The gradient to start from.
impl From<&Tensor> for BackwardOptions {
    fn from(gradient: &Tensor) -> BackwardOptions {
        BackwardOptions { gradients: Some(vec![gradient.clone()]), ..BackwardOptions::default() }
    }
}

/// The nodes for which it is known whether a target is reachable from them. A few are searched one by one. Their numbers are
/// sequential, so the hasher needs no defence against chosen keys.
#[derive(Default)]
struct Known {
    few: SmallVec<[(u64, bool); 16]>,
    many: FxHashMap<u64, bool>,
}

impl Known {
    fn get(&self, node: &Node) -> Option<bool> {
        if self.many.is_empty() {
            return self.few.iter().find(|(number, _)| *number == node.number).map(|(_, leads)| *leads);
        }
        self.many.get(&node.number).copied()
    }

    fn insert(&mut self, node: &Node, leads: bool) {
        if self.many.is_empty() && self.few.len() < self.few.inline_size() {
            self.few.push((node.number, leads));
        } else {
            self.many.extend(self.few.drain(..));
            self.many.insert(node.number, leads);
        }
    }
}

/// Computes the gradients of the outputs with respect to every leaf and adds them to the leaves.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::{self, BackwardOptions}};
/// let x = Tensor::new(3.0f32)?.requires_grad_(true)?;
/// let options = BackwardOptions { retain_graph: true, ..BackwardOptions::default() };
/// let y = x.square()?;
/// autograd::backward(&[&y], options)?;
/// autograd::backward(&[&y], BackwardOptions::default())?;
/// assert_eq!(x.grad().unwrap().item::<f32>()?, 12.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// See [`AutogradError`].
pub fn backward<T: Borrow<Tensor>>(outputs: &[T], options: BackwardOptions) -> Result<()> {
    run(&refs(outputs), &options, None).map(|_| ())
}

/// Returns the gradients of the outputs with respect to the inputs; leaves accumulate nothing.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::{self, BackwardOptions}};
/// let x = Tensor::new(3.0f32)?.requires_grad_(true)?;
/// let options = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
/// let first = autograd::grad(&[x.square()?.mul(&x)?], &[&x], options)?.remove(0).unwrap();
/// let second = autograd::grad(&[&first], &[&x], BackwardOptions::default())?.remove(0).unwrap();
/// assert_eq!((first.item::<f32>()?, second.item::<f32>()?), (27.0, 18.0));
/// # Ok(()) }
/// ```
///
/// # Errors
/// See [`AutogradError`].
pub fn grad<O: Borrow<Tensor>, I: Borrow<Tensor>>(
    outputs: &[O],
    inputs: &[I],
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    grads_of(&refs(outputs), &refs(inputs), options)
}

fn grads_of(
    outputs: &[&TensorRef],
    inputs: &[&TensorRef],
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    let mut targets: SmallVec<[Edge; 4]> = SmallVec::new();
    for input in inputs {
        targets.push(meta::edge(input).ok_or(AutogradError::NoGraph { op: "grad" })?);
    }
    let grads = run(outputs, &options, Some(&targets))?;
    if !options.allow_unused
        && let Some(index) = grads.iter().position(Option::is_none)
    {
        return Err(AutogradError::Unused { index }.into());
    }
    Ok(grads)
}

/// A backward pass runs in the dtypes of the forward pass and on plain tensors: neither mixed precision nor the program's
/// handlers apply to it.
fn plain_calls() -> Option<KeyGuard> {
    let included = local_keys().0.intersect(KeySet::of(DispatchKey::AUTOCAST));
    let off = included.union(extensions::registered());
    if off == KeySet::EMPTY { None } else { Some(KeyGuard::exclude(off)) }
}

/// The gradients that a pass begins with, for `op`: `backward` or `grad`.
fn start(
    pending: &mut Pending,
    op: &'static str,
    outputs: &[&TensorRef],
    options: &BackwardOptions,
) -> Result<()> {
    let given = options.gradients.as_deref();
    if let Some(given) = given
        && given.len() != outputs.len()
    {
        let (expected, got) = (outputs.len(), given.len());
        return Err(AutogradError::GradientCount { op: op.into(), expected, got }.into());
    }
    for (i, output) in outputs.iter().enumerate() {
        let edge = meta::edge(output).ok_or(AutogradError::NoGraph { op })?;
        let gradient = match given.map(|g| &g[i]) {
            Some(g) if g.shape() != output.sizes() => {
                return Err(AutogradError::GradientShape {
                    op: op.into(),
                    expected: output.sizes().to_vec(),
                    got: g.shape().to_vec(),
                }
                .into());
            }
            Some(g) if g.dtype().is_complex() && !output.dtype().is_complex() => {
                return Err(AutogradError::GradientPlace {
                    op: op.to_string(),
                    expected: format!("of dtype {}", output.dtype()),
                    got: format!("of dtype {}", g.dtype()),
                    call: "real",
                }
                .into());
            }
            // A caller's gradient is an ordinary tensor: its duplicate coordinates add up.
            Some(g) if edge.by_entry() => {
                g.coalesce()?.sparse_mask_like(&Tensor::from_ref(output.shallow_copy()))?
            }
            Some(g) => match edge.shape() {
                Some(shape) => shape.formatted(g.clone())?,
                None => g.clone(),
            },
            None if output.dtype().is_complex() => {
                return Err(AutogradError::ComplexOutput { op, dtype: output.dtype().to_string() }.into());
            }
            None if output.numel() == 1 => Shape::of(output).filled(1.0)?,
            None => return Err(AutogradError::NotScalar { op, sizes: output.sizes().to_vec() }.into()),
        };
        add(pending, &edge, gradient)?;
    }
    Ok(())
}

fn add(pending: &mut Pending, edge: &Edge, grad: Tensor) -> Result<()> {
    let grad = if edge.is_strided() { grad } else { edge.on_pattern(grad)? };
    let slot = &mut pending.slots(&edge.node)[edge.output];
    *slot = Some(match slot.take() {
        None => grad,
        Some(present) => sum(present, grad, edge.by_entry())?,
    });
    Ok(())
}

/// The sum of two gradients of one tensor. Gradients of a tensor that may have duplicate coordinates are per stored entry, on the
/// tensor's pattern, not per element; a strided one is projected onto that pattern first. Two gradients of one pattern are added
/// entry by entry.
fn sum(a: Tensor, b: Tensor, by_entry: bool) -> Result<Tensor> {
    let [first, second] = [&a, &b].map(|t| t.as_ref().is_strided());
    let one_pattern = !first && has_pattern_of(b.as_ref(), a.as_ref());
    if !(by_entry || one_pattern) || (first && second) {
        return a.add(&b);
    }
    let (a, b) = if first { (b, a) } else { (a, b) };
    let parts = b.sparse_mask_like(&a.detach())?.components()?;
    let add = |(a, b): (Tensor, Tensor)| if a.dtype().is_differentiable() { a.add(&b) } else { Ok(a) };
    let parts = a.components()?.into_iter().zip(parts).map(add).collect::<Result<Vec<_>>>()?;
    a.with_components(&parts)
}

/// Marks the nodes from which one of `targets` is reachable, among the nodes that the pass may visit.
fn leading_to(known: &mut Known, pending: &Pending, targets: &[Edge]) {
    targets.iter().for_each(|target| known.insert(&target.node, true));
    // Depth first, with an explicit stack: a node is decided once all that it leads to are.
    let mut stack: SmallVec<[(&Node, bool); 16]> = pending.nodes().map(|node| (&**node, false)).collect();
    while let Some((node, visited)) = stack.pop() {
        if known.get(node).is_some() {
            continue;
        }
        if visited {
            let leads = node.edges.iter().flatten().any(|e| known.get(&e.node) == Some(true));
            known.insert(node, leads);
        } else {
            stack.push((node, true));
            stack.extend(node.edges.iter().flatten().map(|e| (&*e.node, false)));
        }
    }
}

/// Maximum nesting of backward passes started by hooks and functions; each uses stack space.
const DEEPEST: u32 = 100;

fn run(
    outputs: &[&TensorRef],
    options: &BackwardOptions,
    targets: Option<&[Edge]>,
) -> Result<Vec<Option<Tensor>>> {
    let _mode = if options.create_graph { enable_grad() } else { no_grad() };
    let _plain = plain_calls();
    let op = if targets.is_some() { "grad" } else { "backward" };
    let running = BackwardGuard::enter();
    if running.depth() > DEEPEST {
        return Err(AutogradError::NestedTooDeep { op, most: DEEPEST }.into());
    }
    let _scope = scope("backward");
    let (mut pending, mut leads) = (Pending::default(), Known::default());
    start(&mut pending, op, outputs, options)?;
    let retain = options.retain_graph || options.create_graph;
    if let Some(targets) = targets {
        leading_to(&mut leads, &pending, targets);
    }
    let mut captured: Vec<Option<Tensor>> = vec![None; targets.map_or(0, <[Edge]>::len)];

    while let Some(Waiting { node, mut grads }) = pending.pop() {
        let leaf = match &node.body {
            Body::Accumulate(leaf) => leaf.upgrade(),
            _ => None,
        };
        run_hooks(&node, leaf.as_ref(), &mut grads)?;
        if let Some(targets) = targets {
            for (i, target) in targets.iter().enumerate() {
                if Shared::ptr_eq(&target.node, &node) {
                    captured[i] = match grads[target.output].clone() {
                        Some(grad) if options.strided_gradients => Some(strided(grad, target.by_entry())?),
                        grad => grad,
                    };
                }
            }
        }
        if node.is_accumulator() {
            if let (None, Some(leaf)) = (targets, leaf)
                && let Some(grad) = grads[0].take()
            {
                accumulate(&leaf, grad, options)?;
                for hook in meta::hooks(&leaf, hooks::When::After) {
                    hook(&Tensor::from_ref(leaf.clone()))?;
                }
            }
            continue;
        }
        let is_wanted = |edge: &Edge| targets.is_none() || leads.get(&edge.node) == Some(true);
        let mut wanted: SmallVec<[bool; 4]> = SmallVec::new();
        node.edges.iter().for_each(|edge| wanted.push(edge.as_ref().is_some_and(is_wanted)));
        if !wanted.contains(&true) {
            continue;
        }
        let mut made = run_node(&node, grads, &wanted, retain)?;
        check_for_nan(&node, &made)?;
        for ((edge, grad), wanted) in node.edges.iter().zip(&mut made).zip(&wanted) {
            if let (Some(edge), true) = (edge, *wanted)
                && let Some(grad) = grad.take()
            {
                add(&mut pending, edge, grad)?;
            }
        }
    }
    Ok(captured)
}

/// Runs the hooks of a node, or of the leaf whose gradient it accumulates.
fn run_hooks(node: &Shared<Node>, leaf: Option<&TensorRef>, grads: &mut Slots) -> Result<()> {
    if let Some(leaf) = leaf {
        for hook in meta::hooks(leaf, hooks::When::Before) {
            apply_hook(&hook, &node.outputs[0], &mut grads[0])?;
        }
        return Ok(());
    }
    let Some(hooks) = node.hooks() else { return Ok(()) };
    let hooks = lock(hooks).clone();
    let (retained, hooks): (Vec<_>, Vec<_>) =
        hooks.into_iter().partition(|hooked| hooked.id == hooks::RETAINS);
    for hooks::Hooked { output, hook, .. } in hooks.into_iter().chain(retained) {
        apply_hook(&hook, &node.outputs[output], &mut grads[output])?;
    }
    Ok(())
}

/// Converts a gradient to a strided one. A gradient per entry is the gradient at the entry's coordinate, so duplicates are
/// averaged.
fn strided(grad: Tensor, by_entry: bool) -> Result<Tensor> {
    if grad.as_ref().is_strided() {
        return Ok(grad);
    }
    let sums = grad.to_strided()?;
    if !by_entry {
        return Ok(sums);
    }
    let counts = {
        let _off = no_grad();
        grad.detach().map_stored(|values| values.ones_like())?.to_strided()?.clamp_min(1)?
    };
    sums.div(&counts)
}

/// Accumulates a leaf's gradient, which has the strides of the leaf, or its layout where that can project gradients.
fn accumulate(leaf: &TensorRef, grad: Tensor, options: &BackwardOptions) -> Result<()> {
    let grad = if !leaf.is_strided() && can_project(leaf) {
        grad.sparse_mask_like(&Tensor::from_ref(leaf.shallow_copy()))?
    } else {
        grad
    };
    let (by_entry, create_graph) = (by_entry(leaf), options.create_graph);
    let grad = if options.strided_gradients { strided(grad, by_entry)? } else { grad };
    meta::while_adding(leaf, || {
        if let (true, Some(present)) = (options.strided_gradients, meta::grad(leaf)) {
            meta::set_grad(leaf, Some(strided(present, by_entry)?));
        }
        match meta::grad(leaf) {
            Some(present) if create_graph => meta::set_grad(leaf, Some(sum(present, grad, by_entry)?)),
            Some(present) if present.as_ref().is_strided() && grad.as_ref().is_strided() => {
                present.add_(&grad)?;
            }
            Some(present) => meta::set_grad(leaf, Some(sum(present, grad, by_entry)?)),
            None => meta::set_grad(leaf, Some(own(leaf, grad, create_graph)?)),
        }
        Ok(())
    })
}

/// A uniquely owned gradient with the leaf's strides.
fn own(leaf: &TensorRef, grad: Tensor, create_graph: bool) -> Result<Tensor> {
    if create_graph {
        return Ok(grad);
    }
    if !grad.as_ref().is_strided() {
        return own_parts(grad);
    }
    if !leaf.is_strided() {
        return Ok(grad);
    }
    let grad = of_its_own(grad);
    let fits = grad.strides() == leaf.strides() || (grad.is_contiguous() && leaf.is_contiguous());
    let alone = Shared::strong_count(grad.as_ref()) == 1
        && grad.as_ref().base().is_none()
        && grad.as_ref().storage().is_some_and(|s| s.is_unique());
    if fits && alone {
        return Ok(grad);
    }
    let dense = keyway_dispatcher::dims::is_dense(leaf.sizes(), leaf.strides());
    let copy = if dense {
        let (sizes, strides) = (leaf.sizes().into(), leaf.strides().into());
        Tensor::from_ref(TensorImpl::empty_strided(sizes, strides, grad.dtype(), grad.device())?)
    } else {
        Tensor::uninit(leaf.sizes(), (grad.dtype(), grad.device()))?
    };
    copy.copy_(&grad)?;
    Ok(copy)
}

/// Converts a view of a whole storage to a base tensor: its base, such as a transposed product, may be uniquely owned.
fn of_its_own(grad: Tensor) -> Tensor {
    let own = grad.as_ref();
    let is_whole = own.storage().is_some_and(|s| s.bytes() == own.numel() * own.dtype().size());
    let is_view = own.base().is_some() && Shared::strong_count(own) == 1;
    if is_view && is_whole { Tensor::from_ref(own.shallow_copy()) } else { grad }
}

/// A sparse gradient whose values are uniquely owned; its indices may be shared.
fn own_parts(grad: Tensor) -> Result<Tensor> {
    let alone = Shared::strong_count(grad.as_ref()) == 1;
    let is_own = |part: &TensorRef| {
        let kept = alone && part.base().is_none() && part.storage().is_some_and(|s| s.is_unique());
        !part.dtype().is_float() || (kept && part.is_contiguous())
    };
    if grad.as_ref().components().iter().all(is_own) {
        return Ok(grad);
    }
    let copy = |part: Tensor| if part.dtype().is_float() { part.copy() } else { Ok(part) };
    grad.with_components(&grad.components()?.into_iter().map(copy).collect::<Result<Vec<_>>>()?)
}
