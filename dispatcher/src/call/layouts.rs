//! Conversions between a composite layout and strided, through the plugin that owns the layout.

use super::invoke::on_tensor;
use crate::base::error::{Error, Result};
use crate::base::key::Layout;
use crate::registry::LayoutEntry;
use crate::tensor::{TensorImpl, TensorRef};

fn owner(op: &'static str, layout: Layout) -> Result<&'static LayoutEntry> {
    crate::registry::table::current().layout(layout).ok_or(Error::Layout {
        op,
        layout,
        reason: "has no owner: install the backend that brings it",
    })
}

/// The same values in one contiguous strided tensor.
///
/// # Errors
/// `Layout` when nobody owns the layout or its owner cannot convert; what the plugin reports.
pub fn to_strided(tensor: &TensorRef) -> Result<TensorRef> {
    if tensor.is_strided() {
        return Ok(tensor.clone());
    }
    let entry = owner("to_strided", tensor.layout())?;
    let Some(run) = entry.api.to_strided else {
        return Err(Error::Layout {
            op: "to_strided",
            layout: tensor.layout(),
            reason: "cannot become strided",
        });
    };
    let output = TensorImpl::empty(tensor.sizes(), tensor.dtype(), tensor.device())?;
    on_tensor(run, "to_strided", entry.plugin.name, tensor, Some(&output), false)?;
    Ok(output)
}

/// The same values in a composite layout.
///
/// # Errors
/// As [`to_strided`]; `Backend` when the plugin made another layout than its own.
pub fn from_strided(tensor: &TensorRef, layout: Layout) -> Result<TensorRef> {
    let entry = owner("from_strided", layout)?;
    let Some(run) = entry.api.from_strided else {
        return Err(Error::Layout { op: "from_strided", layout, reason: "cannot be made from strided" });
    };
    let made = on_tensor(run, "from_strided", entry.plugin.name, tensor, None, true)?;
    match made {
        Some(t) if t.layout() == layout && t.sizes() == tensor.sizes() => Ok(t),
        other => Err(Error::Backend {
            op: "from_strided",
            plugin: entry.plugin.name,
            status: keyway_sdk::abi::codes::status::FAILED,
            message: format!("expected a {layout} tensor of shape {:?}, got {other:?}", tensor.sizes()),
        }),
    }
}

/// Asks the owner of a composite layout whether a tensor's components fit each other.
///
/// # Errors
/// `Layout` when nobody owns the layout; what the plugin reports.
pub fn validate(tensor: &TensorRef) -> Result<()> {
    let entry = owner("validate", tensor.layout())?;
    let wanted = (entry.components.len(), entry.attrs.len());
    if (tensor.components().len(), tensor.attrs().len()) != wanted {
        return Err(Error::Value {
            op: "validate",
            argument: "components",
            expected: format!("{} components and {} attributes", wanted.0, wanted.1),
            got: format!("{} and {}", tensor.components().len(), tensor.attrs().len()),
        });
    }
    match entry.api.validate {
        Some(run) => on_tensor(run, "validate", entry.plugin.name, tensor, None, false).map(|_| ()),
        None => Ok(()),
    }
}
