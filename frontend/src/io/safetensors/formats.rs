//! Memory formats in a file. Elements are stored contiguously, regardless of a tensor's strides: tensors in channels_last are
//! named in the metadata, so that other programs read the same values, and a load restores their format.

use super::SafetensorsError as Error;
use super::header::Header;
use crate::Tensor;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The metadata's key: a JSON object of memory formats by tensor.
const KEY: &str = "keyway.formats";
/// The only recorded format: all other tensors are loaded in row-major order.
const CHANNELS_LAST: &str = "channels_last";

/// The metadata, and the formats of the tensors.
pub(super) fn with_formats(
    path: &Path,
    tensors: &[(&String, &Tensor)],
    mut metadata: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Error> {
    if metadata.contains_key(KEY) {
        return Err(Error::ReservedMetadata { path: path.to_path_buf(), key: KEY });
    }
    let last = |t: &Tensor| t.as_ref().is_in_channels_last_order();
    let formats: serde_json::Map<String, serde_json::Value> = tensors
        .iter()
        .filter(|(_, tensor)| last(tensor))
        .map(|(name, _)| ((*name).clone(), CHANNELS_LAST.into()))
        .collect();
    if !formats.is_empty() {
        metadata.insert(KEY.to_string(), serde_json::Value::from(formats).to_string());
    }
    Ok(metadata)
}

/// The names of the tensors to load in channels_last; removed from the metadata.
pub(super) fn channels_last(path: &Path, header: &mut Header) -> Result<BTreeSet<String>, Error> {
    let Some(text) = header.metadata.remove(KEY) else { return Ok(BTreeSet::new()) };
    let wrong = |reason: String| Error::Header {
        path: path.to_path_buf(),
        reason: format!("a `{KEY}` that {reason}"),
    };
    let formats: BTreeMap<String, String> =
        serde_json::from_str(&text).map_err(|error| wrong(format!("is no object of texts ({error})")))?;
    for (name, format) in &formats {
        if header.unread.iter().any(|unread| unread.name == *name) {
            continue;
        }
        let Some(entry) = header.entries.iter().find(|entry| entry.name == *name) else {
            return Err(wrong(format!("names the tensor `{name}`, which is not there")));
        };
        if format != CHANNELS_LAST || !(3..=5).contains(&entry.shape.len()) {
            let shape = &entry.shape;
            return Err(wrong(format!("gives `{name}` of shape {shape:?} the memory format `{format}`")));
        }
    }
    Ok(formats.into_keys().collect())
}
