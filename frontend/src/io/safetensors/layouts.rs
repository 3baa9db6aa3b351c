//! Tensors of composite layouts (CSR and others from plugins) in a file: each component is a tensor named `NAME.component`, which
//! other programs can read, and the metadata name the layout of the whole.

use super::SafetensorsError as Error;
use super::header::{Header, Top, Unread, kind, shown};
use crate::io::state_dict::StateDict;
use crate::tensor::is_served;
use crate::{DType, Device, Layout, LayoutOptions, LayoutValue, Tensor};
use keyway_dispatcher::Error as DispatchError;
use keyway_dispatcher::layouts::validate;
use keyway_dispatcher::registry::{LayoutEntry, layout_ops};
use keyway_dispatcher::table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The metadata's key: a JSON object of composite tensors by name.
const KEY: &str = "keyway.layouts";

/// The metadata of a composite tensor, besides its components.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Whole {
    layout: String,
    dtype: String,
    shape: Vec<usize>,
    attrs: Vec<i64>,
    /// The attributes by name, as text, where some are no integers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    typed_attrs: String,
}

impl Whole {
    fn attributes(&self) -> Result<Vec<LayoutValue>, String> {
        if self.typed_attrs.is_empty() {
            return Ok(self.attrs.iter().map(|v| LayoutValue::Int(*v)).collect());
        }
        let read: LayoutOptions =
            self.typed_attrs.parse().map_err(|error: DispatchError| error.to_string())?;
        Ok(read.iter().map(|(_, value)| value.clone()).collect())
    }
}

/// The attributes of a tensor as text, if some are no integers.
fn typed_attrs(tensor: &Tensor, layout: &LayoutEntry) -> String {
    let attrs = tensor.as_ref().attributes();
    if attrs.are_ints() {
        return String::new();
    }
    let named = layout.attrs.iter().zip(attrs.iter());
    named.fold(LayoutOptions::new(), |made, (name, value)| made.set(name, value)).to_string()
}

/// The composite tensors of a file, by name.
pub(super) type Wholes = BTreeMap<String, Whole>;

fn component_name(tensor: &str, component: &str) -> String {
    format!("{tensor}.{component}")
}

fn declared(layout: Layout) -> Option<&'static LayoutEntry> {
    table::current().layout(layout)
}

/// Fails if a load would refuse the saved tensor: the components were changed in place since they were checked.
fn check(path: &Path, name: &str, tensor: &Tensor) -> Result<(), Error> {
    // No backend on this device implements the layout, so the check is skipped.
    if layout_ops(tensor.layout(), tensor.device().kind).is_none() {
        return Ok(());
    }
    validate(tensor.as_ref()).map_err(|error| Error::Unfit {
        path: path.to_path_buf(),
        tensor: name.to_string(),
        reason: error.to_string(),
    })
}

/// The tensors to save: a composite one is replaced by its components.
pub(super) fn split(path: &Path, tensors: &StateDict) -> Result<(StateDict, Wholes), Error> {
    let (mut all, mut wholes) = (StateDict::new(), Wholes::new());
    let mut rest: Vec<(String, Tensor)> = tensors.iter().map(|(n, t)| (n.clone(), t.clone())).collect();
    while let Some((name, tensor)) = rest.pop() {
        match declared(tensor.layout()).filter(|_| !tensor.as_ref().is_strided()) {
            Some(layout) => {
                check(path, &name, &tensor)?;
                let parts = layout.components.iter().zip(tensor.as_ref().components());
                rest.extend(
                    parts.map(|(part, t)| (component_name(&name, part), Tensor::from_ref(t.shallow_copy()))),
                );
                let whole = Whole {
                    layout: tensor.layout().name().to_string(),
                    dtype: tensor.dtype().name().to_string(),
                    shape: tensor.shape().to_vec(),
                    attrs: tensor.attrs().to_vec(),
                    typed_attrs: typed_attrs(&tensor, layout),
                };
                wholes.insert(name, whole);
            }
            None => {
                if all.insert(name.clone(), tensor).is_some() {
                    return Err(Error::ComponentName { path: path.to_path_buf(), tensor: name });
                }
            }
        }
    }
    Ok((all, wholes))
}

/// Adds the composite tensors to the metadata.
pub(super) fn with_layouts(
    path: &Path,
    wholes: &Wholes,
    mut metadata: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Error> {
    if metadata.contains_key(KEY) {
        return Err(Error::ReservedMetadata { path: path.to_path_buf(), key: KEY });
    }
    if !wholes.is_empty() {
        let text = serde_json::to_string(wholes);
        let failed = |error: serde_json::Error| Error::Write {
            path: path.to_path_buf(),
            bytes: 0,
            source: error.into(),
        };
        metadata.insert(KEY.to_string(), text.map_err(failed)?);
    }
    Ok(metadata)
}

/// A composite tensor to be assembled.
pub(super) struct Planned {
    pub(super) name: String,
    layout: Layout,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    attrs: Vec<LayoutValue>,
    /// Names of the components, in the layout's order.
    pub(super) components: Vec<String>,
}

/// Parses the metadata of each composite tensor.
fn named(path: &Path, text: &str, wrong: impl Fn(String) -> Error) -> Result<Wholes, Error> {
    let listed = match serde_json::from_str(text).map_err(|error| wrong(error.to_string()))? {
        Top::Entries(entries) => entries,
        Top::Other(other) => return Err(wrong(format!("got {}", kind(&other)))),
    };
    let mut wholes = Wholes::new();
    for (name, value) in listed {
        let whole = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        if wholes.insert(name.clone(), whole).is_some() {
            return Err(Error::DuplicateName { path: path.to_path_buf(), tensor: shown(&name) });
        }
    }
    Ok(wholes)
}

/// The composite tensors of a file. Their layouts and components exist; tensors that are components of others come first.
pub(super) fn take(path: &Path, header: &mut Header) -> crate::Result<Vec<Planned>> {
    let Some(text) = header.metadata.remove(KEY) else { return Ok(Vec::new()) };
    // The plugins must be loaded before their layouts are looked up.
    crate::runtime::start()?;
    let wrong = |reason: String| Error::Header {
        path: path.to_path_buf(),
        reason: format!("a `{KEY}` that {reason}"),
    };
    let wholes = named(path, &text, |why| wrong(format!("is no object of composite tensors ({why})")))?;
    let (mut planned, mut unread) = (Vec::new(), Vec::new());
    for (name, whole) in &wholes {
        let found = Layout::from_name(&whole.layout).filter(|&layout| is_served(layout, Device::CPU));
        let known = found.and_then(|layout| Some((layout, declared(layout)?)));
        let dtype = DType::from_name(&whole.dtype).filter(|dtype| dtype.size() > 0);
        let (layout, entry, dtype) = match (known, dtype) {
            (Some((layout, entry)), Some(dtype)) => (layout, entry, dtype),
            (known, _) => {
                let (path, tensor) = (path.to_path_buf(), name.clone());
                let error = match known {
                    None => Error::MissingLayout { path, tensor, layout: whole.layout.clone() },
                    Some(_) => Error::MissingDtype { path, tensor, dtype: whole.dtype.clone() },
                };
                let (name, dtype, shape) = (name.clone(), whole.dtype.clone(), whole.shape.clone());
                unread.push(Unread { name, dtype, shape, error });
                continue;
            }
        };
        let components: Vec<String> = entry.components.iter().map(|c| component_name(name, c)).collect();
        let there = |component: &String| {
            wholes.contains_key(component)
                || header.entries.iter().any(|entry| entry.name == *component)
                || header.unread.iter().any(|unread| unread.name == *component)
        };
        if let Some(absent) = components.iter().find(|component| !there(component)) {
            return Err(wrong(format!(
                "says that `{name}` is of layout {}, whose component `{absent}` is not there",
                whole.layout
            ))
            .into());
        }
        let shape = whole.shape.clone();
        let attrs =
            whole.attributes().map_err(|why| wrong(format!("has wrong attributes of `{name}` ({why})")))?;
        planned.push(Planned { name: name.clone(), layout, dtype, shape, attrs, components });
    }
    // A component's name is longer than that of its tensor.
    planned.sort_by_key(|whole: &Planned| std::cmp::Reverse(whole.name.len()));
    header.unread.extend(unread);
    Ok(planned)
}

/// Reassembles the composite tensors from their components.
pub(super) fn join<'a>(
    path: &Path,
    planned: impl IntoIterator<Item = &'a Planned>,
    tensors: &mut StateDict,
) -> crate::Result<()> {
    for whole in planned {
        let components: Vec<Tensor> = whole.components.iter().filter_map(|c| tensors.remove(c)).collect();
        let Planned { layout, shape, dtype, attrs, .. } = whole;
        let made = Tensor::from_components_with(*layout, shape, *dtype, &components, attrs);
        let damaged = |error: crate::Error| Error::Components {
            path: path.to_path_buf(),
            tensor: whole.name.clone(),
            reason: error.to_string(),
        };
        let tensor = made.map_err(damaged)?;
        tensors.insert(whole.name.clone(), tensor);
    }
    Ok(())
}
