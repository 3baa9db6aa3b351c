//! Tensors of plugins' dtypes in a file: the format has no names for these, so their bytes are saved as U8 and the dtypes
//! named in the metadata, by tensor. An element of several bytes adds a last dimension.

use super::SafetensorsError as Error;
use super::header::{Entry, Header, Unread};
use crate::{DType, Tensor};
use std::collections::BTreeMap;
use std::path::Path;

/// The metadata's key: a JSON object of dtype names by tensor.
const KEY: &str = "keyway.dtypes";

/// Whether tensors of the dtype are saved in this way.
pub(super) fn is_saved_as_bytes(dtype: DType) -> bool {
    !dtype.is_built_in() && dtype.size() > 0
}

/// The dtype and shape of a tensor in the file.
pub(super) fn stored(tensor: &Tensor) -> (DType, Vec<usize>) {
    let (dtype, mut shape) = (tensor.dtype(), tensor.shape().to_vec());
    if !is_saved_as_bytes(dtype) {
        return (dtype, shape);
    }
    if dtype.size() > 1 {
        shape.push(dtype.size());
    }
    (DType::U8, shape)
}

/// The caller's metadata, and the dtypes of the tensors.
pub(super) fn with_dtypes(
    path: &Path,
    tensors: &[(&String, &Tensor)],
    metadata: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Error> {
    if metadata.contains_key(KEY) {
        return Err(Error::ReservedMetadata { path: path.to_path_buf(), key: KEY });
    }
    let of = |(name, tensor): &(&String, &Tensor)| ((*name).clone(), tensor.dtype().name().into());
    let dtypes: serde_json::Map<String, serde_json::Value> =
        tensors.iter().filter(|(_, tensor)| is_saved_as_bytes(tensor.dtype())).map(of).collect();
    let mut all = metadata.clone();
    if !dtypes.is_empty() {
        all.insert(KEY.to_string(), serde_json::Value::from(dtypes).to_string());
    }
    Ok(all)
}

/// Restores the dtypes of the tensors that the metadata name.
pub(super) fn restore(path: &Path, header: &mut Header) -> crate::Result<()> {
    let Some(text) = header.metadata.remove(KEY) else { return Ok(()) };
    // The plugins must be loaded before their dtypes are looked up.
    crate::runtime::start()?;
    let wrong = |reason: String| Error::Header {
        path: path.to_path_buf(),
        reason: format!("a `{KEY}` that {reason}"),
    };
    let dtypes: BTreeMap<String, String> =
        serde_json::from_str(&text).map_err(|error| wrong(format!("is no object of texts ({error})")))?;
    for (name, dtype) in dtypes {
        let found = header.entries.iter().position(|entry| entry.name == name);
        let at = found.ok_or_else(|| wrong(format!("names the tensor `{name}`, which is not there")))?;
        let Some(known) = DType::from_name(&dtype).filter(|&known| is_saved_as_bytes(known)) else {
            let shape = header.entries.remove(at).shape;
            let error =
                Error::MissingDtype { path: path.to_path_buf(), tensor: name.clone(), dtype: dtype.clone() };
            header.unread.push(Unread { name, dtype, shape, error });
            continue;
        };
        restore_entry(&mut header.entries[at], known).map_err(wrong)?;
    }
    Ok(())
}

fn restore_entry(entry: &mut Entry, dtype: DType) -> Result<(), String> {
    let size = dtype.size();
    if entry.dtype != DType::U8 || (size > 1 && entry.shape.last() != Some(&size)) {
        let (name, stored, shape) = (&entry.name, entry.dtype, &entry.shape);
        let expected = if size > 1 { format!("u8 with a last size of {size}") } else { "u8".to_string() };
        return Err(format!(
            "gives `{name}` the dtype {dtype}, stored as {expected}, but it is {stored} {shape:?}"
        ));
    }
    if size > 1 {
        entry.shape.pop();
    }
    entry.dtype = dtype;
    Ok(())
}
