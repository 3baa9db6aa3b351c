//! Tensors of composite layouts: made of components, checked, and converted by the plugin that serves the layout on the
//! tensor's device. Where nobody does, the device's fallback policy decides, as for a kernel.

use super::convert::to_device;
use super::invoke::{self, on_tensors};
use crate::base::dims::{self, Dims};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::intern::DEVICES;
use crate::base::key::{Device, Layout};
use crate::base::message::take_message;
use crate::registry::{FallbackPolicy, LayoutEntry, LayoutOpsEntry, all_layout_ops, layout_ops, table};
use crate::tensor::{TensorImpl, TensorRef};
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::tensor::KernelFn;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who serves a layout for a tensor, and on which device.
struct Server {
    entry: &'static LayoutOpsEntry,
    device: Device,
}

/// How a layout is declared.
fn declared(op: &'static str, layout: Layout) -> Result<&'static LayoutEntry> {
    table::current().layout(layout).ok_or(Error::Layout {
        op,
        layout,
        reason: "has no owner: install the backend that brings it",
    })
}

/// Who serves a layout on a device, itself or by the device's policy.
fn server(op: &'static str, layout: Layout, device: Device) -> Result<Server> {
    if let Some(entry) = layout_ops(layout, device.kind) {
        return Ok(Server { entry, device });
    }
    declared(op, layout)?;
    let (to, warn) = match table::current().fallback(device.kind) {
        FallbackPolicy::Error => return Err(elsewhere(op, layout, device)),
        FallbackPolicy::Warn(to) => (to, true),
        FallbackPolicy::Allow(to) => (to, false),
    };
    let Some(entry) = layout_ops(layout, to) else { return Err(elsewhere(op, layout, device)) };
    let there = Device { kind: to, index: 0 };
    if warn && is_first(layout) {
        crate::base::log::warn(&format!(
            "{op}: nobody converts layout `{layout}` on {device}, going through {there} (backend `{}`)",
            entry.plugin.name
        ));
    }
    Ok(Server { entry, device: there })
}

/// Whether the log has had no line about this layout yet.
fn is_first(layout: Layout) -> bool {
    static SAID: AtomicU64 = AtomicU64::new(0);
    const { assert!(crate::base::intern::MAX_LAYOUTS <= 64, "one bit for each layout") };
    let bit = 1 << (layout.id() % 64);
    SAID.fetch_or(bit, Ordering::Relaxed) & bit == 0
}

#[cold]
fn elsewhere(op: &'static str, layout: Layout, device: Device) -> Error {
    let there: Vec<String> = all_layout_ops(layout)
        .iter()
        .map(|(kind, e)| format!("{} (by `{}`)", DEVICES.name(*kind), e.plugin.name))
        .collect();
    let there = if there.is_empty() { "no device".to_string() } else { there.join(", ") };
    Error::Value {
        op,
        argument: "self",
        expected: format!("on a device that layout `{layout}` has functions for: {there}"),
        got: format!(
            "a tensor on another device, {device}; move it with `to_device`, or set a fallback for it"
        ),
    }
}

fn lacks(op: &'static str, layout: Layout, reason: &'static str) -> Error {
    Error::Layout { op, layout, reason }
}

/// Fails unless the layout can hold tensors of these sizes.
fn check_shape(op: &'static str, entry: &LayoutOpsEntry, sizes: &[usize]) -> Result<()> {
    if accepts_on(op, entry, sizes)? {
        return Ok(());
    }
    Err(Error::Shape {
        op,
        argument: "self",
        expected: format!("{}, to be held by layout `{}`", entry.shapes, entry.layout),
        got: sizes.into(),
    })
}

fn accepts_on(op: &'static str, entry: &LayoutOpsEntry, sizes: &[usize]) -> Result<bool> {
    let Some(accepts) = entry.api.accepts else { return Ok(true) };
    dims::composite_numel(op, sizes)?;
    let code = invoke::accepts(accepts, sizes);
    let message = take_message();
    match code {
        status::OK => Ok(true),
        status::UNSUPPORTED => Ok(false),
        code => Err(Error::Backend { op, plugin: entry.plugin.name, status: code, message }),
    }
}

/// Whether a layout can hold tensors of these sizes on a device.
///
/// # Errors
/// `Layout` when nobody declares the layout; `Value` when nobody serves it on the device, and for sizes that are too many.
pub fn accepts(layout: Layout, device: Device, sizes: &[usize]) -> Result<bool> {
    let server = server("accepts", layout, device)?;
    accepts_on("accepts", server.entry, sizes)
}

/// The shapes that a layout can hold on a device, in words.
///
/// # Errors
/// `Layout` when nobody declares the layout; `Value` when nobody serves it on the device.
pub fn shapes(layout: Layout, device: Device) -> Result<&'static str> {
    server("shapes", layout, device).map(|server| server.entry.shapes)
}

/// The same values in one contiguous strided tensor.
///
/// # Errors
/// `Layout` when nobody declares the layout or it cannot be converted; `Value` when nobody serves it on the tensor's device;
/// what the plugin reports.
pub fn to_strided(tensor: &TensorRef) -> Result<TensorRef> {
    const OP: &str = "to_strided";
    if tensor.is_strided() {
        return Ok(tensor.clone());
    }
    let Server { entry, device } = server(OP, tensor.layout(), tensor.device())?;
    let run = entry.api.to_strided.ok_or_else(|| lacks(OP, tensor.layout(), "cannot become strided"))?;
    let source = to_device(tensor, device)?;
    let output = TensorImpl::empty(tensor.sizes(), tensor.dtype(), device)?;
    on_tensors(run, OP, entry.plugin.name, &[&source], Some(&output), false)?;
    to_device(&output, tensor.device())
}

/// The same values in a composite layout.
///
/// # Errors
/// As [`to_strided`]; `Shape` for a shape that the layout cannot hold; `Backend` when the plugin made something else.
pub fn from_strided(tensor: &TensorRef, layout: Layout) -> Result<TensorRef> {
    const OP: &str = "from_strided";
    let Server { entry, device } = server(OP, layout, tensor.device())?;
    check_shape(OP, entry, tensor.sizes())?;
    let run = entry.api.from_strided.ok_or_else(|| lacks(OP, layout, "cannot be made from strided"))?;
    let source = to_device(tensor, device)?;
    let made = made_by(run, OP, entry, &[&source], (layout, tensor.sizes(), tensor.dtype()))?;
    to_device(&made, tensor.device())
}

/// Runs a function that makes a tensor, which must be like this.
fn made_by(
    run: KernelFn,
    op: &'static str,
    entry: &LayoutOpsEntry,
    arguments: &[&TensorRef],
    like: (Layout, &[usize], DType),
) -> Result<TensorRef> {
    let device = arguments[0].device();
    let made = on_tensors(run, op, entry.plugin.name, arguments, None, true)?;
    match made {
        Some(t) if (t.layout(), t.sizes(), t.dtype()) == like && t.device() == device => Ok(t),
        other => Err(Error::Backend {
            op,
            plugin: entry.plugin.name,
            status: status::FAILED,
            message: format!(
                "expected a {} tensor of shape {:?} and dtype {} on {device}, got {other:?}",
                like.0, like.1, like.2
            ),
        }),
    }
}

/// Fails unless the components are as many as the layout has and lie on one device, and the attributes are as many.
pub(crate) fn check_components(
    op: &'static str,
    layout: Layout,
    components: &[TensorRef],
    attrs: usize,
) -> Result<()> {
    let wrong =
        |expected: String, got: String| Err(Error::Value { op, argument: "components", expected, got });
    if let Some(entry) = table::current().layout(layout) {
        let wanted = (entry.components.len(), entry.attrs.len());
        if (components.len(), attrs) != wanted {
            let expected = format!("{} components and {} attributes of `{layout}`", wanted.0, wanted.1);
            return wrong(expected, format!("{} and {attrs}", components.len()));
        }
    }
    match components.iter().find(|c| c.device() != components[0].device()) {
        Some(other) => wrong(format!("all on {}", components[0].device()), other.device().to_string()),
        None => Ok(()),
    }
}

/// A tensor of a composite layout over these components, which it shares; `check` says whether they are compared with each
/// other, which reads them. Errors are those of `op`.
///
/// # Errors
/// `Layout` when nobody declares the layout; `Value` for components that do not fit; `Shape` for a shape that the layout
/// cannot hold; what the plugin reports of what the components hold.
pub fn from_components(
    op: &'static str,
    layout: Layout,
    dtype: DType,
    sizes: &[usize],
    components: &[&TensorRef],
    attrs: &[i64],
    check: bool,
) -> Result<TensorRef> {
    declared(op, layout)?;
    let components: Vec<TensorRef> = components.iter().map(|c| c.shallow_copy()).collect();
    check_components(op, layout, &components, attrs.len())?;
    let made = TensorImpl::composite(layout, dtype, Dims::from_slice(sizes), components, attrs.to_vec())?;
    if check {
        checked(op, &made)?;
    }
    Ok(made)
}

/// Asks who serves a composite layout whether a tensor's components fit each other.
///
/// # Errors
/// As [`from_components`].
pub fn validate(tensor: &TensorRef) -> Result<()> {
    declared("validate", tensor.layout())?;
    check_components("validate", tensor.layout(), tensor.components(), tensor.attrs().len())?;
    checked("validate", tensor)
}

fn checked(op: &'static str, tensor: &TensorRef) -> Result<()> {
    let Server { entry, device } = server(op, tensor.layout(), tensor.device())?;
    check_shape(op, entry, tensor.sizes())?;
    let Some(run) = entry.api.validate else { return Ok(()) };
    let tensor = to_device(tensor, device)?;
    on_tensors(run, op, entry.plugin.name, &[&tensor], None, false).map(|_| ())
}

/// Whether gradients can be projected on the pattern of this tensor.
pub fn can_project(like: &TensorRef) -> bool {
    !like.is_strided()
        && layout_ops(like.layout(), like.device().kind).is_some_and(|e| e.api.project.is_some())
}

/// Whether several entries of a composite tensor may stand for one element: its layout has an attribute `coalesced`, which is 0.
pub fn may_repeat(tensor: &TensorRef) -> bool {
    let Some(entry) = table::current().layout(tensor.layout()) else { return false };
    let at = entry.attrs.iter().position(|name| name == "coalesced");
    at.and_then(|at| tensor.attrs().get(at)) == Some(&0)
}

/// A gradient in the layout and with the pattern of `like`: its float components are the gradient with respect to those of
/// `like`, and the others are those of `like`.
///
/// # Errors
/// `Value` for sizes, dtype or device that differ, and where nobody serves the layout on the device; `Layout` when whoever
/// does cannot project; what the plugin reports.
pub fn project(grad: &TensorRef, like: &TensorRef) -> Result<TensorRef> {
    const OP: &str = "project";
    if grad.sizes() != like.sizes() || grad.dtype() != like.dtype() || grad.device() != like.device() {
        let (expected, got) = (format!("like {like:?}"), format!("{grad:?}"));
        return Err(Error::Value { op: OP, argument: "self", expected, got });
    }
    if like.is_strided() {
        return to_strided(grad);
    }
    if has_pattern_of(grad, like) {
        return Ok(grad.clone());
    }
    let Server { entry, device } = server(OP, like.layout(), like.device())?;
    let run = entry.api.project.ok_or_else(|| {
        lacks(
            OP,
            like.layout(),
            "cannot project a gradient on its pattern; differentiate a strided tensor instead",
        )
    })?;
    let (grad, pattern) = (to_device(grad, device)?, to_device(like, device)?);
    let made = made_by(run, OP, entry, &[&grad, &pattern], (like.layout(), like.sizes(), like.dtype()))?;
    to_device(&made, like.device())
}

/// Whether a tensor differs from another of its layout in float components alone, by what is known without reading them.
pub fn has_pattern_of(tensor: &TensorRef, like: &TensorRef) -> bool {
    let (a, b) = (tensor.components(), like.components());
    let same_part = |(a, b): (&TensorRef, &TensorRef)| {
        a.sizes() == b.sizes()
            && a.dtype() == b.dtype()
            && (a.dtype().is_float() || (a.is_strided() && b.is_strided() && a.coincides(b)))
    };
    tensor.layout() == like.layout()
        && tensor.attrs() == like.attrs()
        && a.len() == b.len()
        && a.iter().zip(b).all(same_part)
}
