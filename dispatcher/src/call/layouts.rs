//! Tensors of composite layouts: construction from components, validation, and conversion by the plugin that implements the
//! layout on the tensor's device. Without one, the device's fallback policy decides, as for a kernel.

use super::convert::to_device;
use super::invoke::{self, on_arguments, on_tensors};
use crate::base::dims::{self, Dims};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::intern::DEVICES;
use crate::base::key::{Device, Layout};
use crate::base::message::take_message;
use crate::op::{Arg, LayoutOptions};
use crate::registry::{
    FallbackPolicy, LayoutEntry, LayoutOpsEntry, all_layout_ops, as_args, layout_ops, table,
};
use crate::tensor::{Attrs, TensorImpl, TensorRef};
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::tensor::KernelFn;
use std::sync::atomic::{AtomicU64, Ordering};

/// The implementation of a layout for a tensor, and its device.
struct Server {
    entry: &'static LayoutOpsEntry,
    device: Device,
}

/// The declaration of a layout.
fn declared(op: &'static str, layout: Layout) -> Result<&'static LayoutEntry> {
    table::current().layout(layout).ok_or(Error::Layout {
        op,
        layout,
        reason: "has no owner: install the backend that brings it",
    })
}

/// The implementation of a layout on a device, or on its fallback device.
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
            "{op}: no backend converts layout `{layout}` on {device}, going through {there} (backend `{}`)",
            entry.plugin.name
        ));
    }
    Ok(Server { entry, device: there })
}

/// Whether the fallback of this layout has not been logged yet.
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

/// Returns an error unless the layout can hold tensors of these sizes.
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

/// Whether a layout supports tensors of these sizes on a device.
///
/// # Errors
/// `Layout` if the layout is not declared; `Value` if it is not implemented on the device, and for too many sizes.
pub fn accepts(layout: Layout, device: Device, sizes: &[usize]) -> Result<bool> {
    let server = server("accepts", layout, device)?;
    accepts_on("accepts", server.entry, sizes)
}

/// The shapes that a layout supports on a device, as text.
///
/// # Errors
/// `Layout` if the layout is not declared; `Value` if it is not implemented on the device.
pub fn shapes(layout: Layout, device: Device) -> Result<&'static str> {
    server("shapes", layout, device).map(|server| server.entry.shapes)
}

/// Converts to a contiguous strided tensor.
///
/// # Errors
/// `Layout` if the layout is not declared or cannot be converted; `Value` if it is not implemented on the tensor's device; errors
/// of the plugin.
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

/// Converts to a composite layout with these options.
///
/// # Errors
/// As [`to_strided`]; `Shape` for a shape that the layout does not support; `Value` for options that the layout does not have;
/// `Backend` if the plugin's result is wrong.
pub fn from_strided(tensor: &TensorRef, layout: Layout, options: &LayoutOptions) -> Result<TensorRef> {
    const OP: &str = "from_strided";
    let Server { entry, device } = server(OP, layout, tensor.device())?;
    let options = declared(OP, layout)?.conversion.resolve(layout, options)?;
    check_shape(OP, entry, tensor.sizes())?;
    let run = entry.api.from_strided.ok_or_else(|| lacks(OP, layout, "cannot be made from strided"))?;
    let source = to_device(tensor, device)?;
    let like = (layout, tensor.sizes(), tensor.dtype());
    let made = made_by(run, OP, entry, &[&source], &as_args(&options), like)?;
    to_device(&made, tensor.device())
}

/// Runs a function that creates a tensor, and checks its layout, sizes and dtype.
fn made_by(
    run: KernelFn,
    op: &'static str,
    entry: &LayoutOpsEntry,
    arguments: &[&TensorRef],
    options: &[Arg<'_>],
    like: (Layout, &[usize], DType),
) -> Result<TensorRef> {
    let device = arguments[0].device();
    let made = on_arguments(run, op, entry.plugin.name, arguments, options, None, true)?;
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

/// The attributes in their declared types. Returns an error unless the layout has this number of components and attributes,
/// and the components are on one device.
pub(crate) fn check_components(
    op: &'static str,
    layout: Layout,
    components: &[TensorRef],
    attrs: Attrs,
) -> Result<Attrs> {
    let wrong =
        |expected: String, got: String| Err(Error::Value { op, argument: "components", expected, got });
    let entry = table::current().layout(layout);
    if let Some(entry) = entry {
        let wanted = (entry.components.len(), entry.attrs.len());
        if (components.len(), attrs.len()) != wanted {
            let expected = format!("{} components and {} attributes of `{layout}`", wanted.0, wanted.1);
            return wrong(expected, format!("{} and {}", components.len(), attrs.len()));
        }
    }
    if let Some(other) = components.iter().find(|c| c.device() != components[0].device()) {
        return wrong(format!("all on {}", components[0].device()), other.device().to_string());
    }
    match entry {
        Some(entry) if !(attrs.are_ints() && entry.conversion.attr_types.is_empty()) => {
            Ok(entry.conversion.typed(op, &entry.attrs, attrs.iter().collect())?.into())
        }
        _ => Ok(attrs),
    }
}

/// A tensor of a composite layout over these components, which it shares; with `check` their contents are validated, which
/// reads them. Errors are reported as those of `op`.
///
/// # Errors
/// `Layout` if the layout is not declared; `Value` for mismatched components; `Shape` for a shape that the layout does not
/// support; errors of the plugin about the contents of the components.
pub fn from_components(
    op: &'static str,
    layout: Layout,
    dtype: DType,
    sizes: &[usize],
    components: &[&TensorRef],
    attrs: Attrs,
    check: bool,
) -> Result<TensorRef> {
    declared(op, layout)?;
    let components: Vec<TensorRef> = components.iter().map(|c| c.shallow_copy()).collect();
    let attrs = check_components(op, layout, &components, attrs)?;
    let made = TensorImpl::composite(layout, dtype, Dims::from_slice(sizes), components, attrs)?;
    if check {
        checked(op, &made)?;
    }
    Ok(made)
}

/// Validates a tensor's components with the layout's implementation.
///
/// # Errors
/// As [`from_components`].
pub fn validate(tensor: &TensorRef) -> Result<()> {
    declared("validate", tensor.layout())?;
    check_components("validate", tensor.layout(), tensor.components(), tensor.attributes())?;
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

/// Whether the gradient of a strided tensor's conversion to this tensor's layout is projected on its pattern, as the layout
/// declares.
pub fn projects_gradients(tensor: &TensorRef) -> bool {
    let entry = table::current().layout(tensor.layout());
    entry.is_some_and(|entry| entry.conversion.projects_gradients) && can_project(tensor)
}

/// Whether a composite tensor may have duplicate entries: its layout has an attribute `coalesced`, which is 0.
pub fn may_repeat(tensor: &TensorRef) -> bool {
    let Some(entry) = table::current().layout(tensor.layout()) else { return false };
    let at = entry.attrs.iter().position(|name| name == "coalesced");
    at.and_then(|at| tensor.attrs().get(at)) == Some(&0)
}

/// The gradient in the layout and with the pattern of `like`: its float components are the gradient with respect to those
/// of `like`, and the others are those of `like`.
///
/// # Errors
/// `Value` for different sizes, dtype or device, and if the layout is not implemented on the device; `Layout` if its
/// implementation cannot project; errors of the plugin.
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
    let wanted = (like.layout(), like.sizes(), like.dtype());
    let made = made_by(run, OP, entry, &[&grad, &pattern], &[], wanted)?;
    to_device(&made, like.device())
}

/// Whether a tensor differs from another one of its layout in float components alone, checked without reading them.
pub fn has_pattern_of(tensor: &TensorRef, like: &TensorRef) -> bool {
    let (a, b) = (tensor.components(), like.components());
    let same_part = |(a, b): (&TensorRef, &TensorRef)| {
        a.sizes() == b.sizes()
            && a.dtype() == b.dtype()
            && (a.dtype().is_float() || (a.is_strided() && b.is_strided() && a.coincides(b)))
    };
    tensor.layout() == like.layout()
        && tensor.attributes() == like.attributes()
        && a.len() == b.len()
        && a.iter().zip(b).all(same_part)
}
