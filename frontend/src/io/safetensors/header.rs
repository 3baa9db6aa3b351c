//! The header: `{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …, "__metadata__": {…}}`.
//!
//! Source: the format's own page, <https://github.com/huggingface/safetensors#format>. The data of the tensors follow the header
//! without gaps, each little-endian and in row-major order.
//!
//! The header is checked here rather than by the crate, whose errors name neither the tensor nor the values; the crate provides
//! the names of dtypes and the form of an entry.

use super::SafetensorsError as Error;
use super::{from_format, to_format};
use crate::DType;
use safetensors::tensor::{Dtype, TensorInfo};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// The longest header that is read: the format's own limit.
pub(super) const LONGEST: u64 = 100_000_000;
/// Size in bytes of the header's length field.
pub(super) const LENGTH_BYTES: u64 = 8;
const METADATA: &str = "__metadata__";

/// The data range of a tensor.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    /// The first byte after the header, and the end.
    pub(super) range: (u64, u64),
}

/// A tensor that this program cannot load: of an unknown dtype or layout.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) name: String,
    /// The dtype as the file names it.
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    /// The error of loading it.
    pub(super) error: Error,
}

/// A header that has been checked: the entries follow one another without gaps.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) entries: Vec<Entry>,
    pub(super) unread: Vec<Unread>,
    pub(super) metadata: BTreeMap<String, String>,
}

/// A header, or an object in it: its entries in order, including duplicates of a name.
pub(super) enum Top {
    Entries(Vec<(String, Value)>),
    Other(Value),
}

impl<'de> Deserialize<'de> for Top {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Top;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Top, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Top::Entries(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Top, A::Error> {
                while list.next_element::<Value>()?.is_some() {}
                Ok(Top::Other(Value::Array(Vec::new())))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Top, E> {
                Ok(Top::Other(text.into()))
            }

            fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Top, E> {
                Ok(Top::Other(value.into()))
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Top, E> {
                Ok(Top::Other(value.into()))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Top, E> {
                Ok(Top::Other(value.into()))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Top, E> {
                Ok(Top::Other(value.into()))
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Top, E> {
                Ok(Top::Other(Value::Null))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// Reads a header whose data have `data_bytes` bytes.
pub(super) fn parse(path: &Path, text: &[u8], data_bytes: u64) -> Result<Header, Error> {
    let wrong = |reason: String| Error::Header { path: path.to_path_buf(), reason };
    let named = match serde_json::from_slice(text) {
        Ok(Top::Entries(entries)) => entries,
        Ok(Top::Other(other)) => return Err(wrong(kind(&other).to_string())),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let (mut placed, mut names) = (Vec::new(), BTreeSet::new());
    let mut metadata = BTreeMap::new();
    for (name, value) in named {
        if !names.insert(name.clone()) {
            return Err(Error::DuplicateName { path: path.to_path_buf(), tensor: shown(&name) });
        }
        match &*name {
            METADATA => metadata = parse_metadata(path, value)?,
            _ => placed.push(parse_entry(path, name, value)?),
        }
    }
    placed.sort_by(|a, b| (a.range, &a.name).cmp(&(b.range, &b.name)));
    let mut end = 0;
    for entry in &placed {
        check_place(path, entry, end)?;
        end = entry.range.1;
    }
    if end != data_bytes {
        return Err(Error::DataLength { path: path.to_path_buf(), expected: end, got: data_bytes });
    }
    let (mut entries, mut unread) = (Vec::new(), Vec::new());
    for Placed { name, dtype, shape, range } in placed {
        match from_format(&dtype) {
            Some(dtype) => entries.push(Entry { name, dtype, shape, range }),
            None => {
                let (path, tensor, got) = (path.to_path_buf(), shown(&name), shown(&dtype));
                let error = Error::UnknownDtype { path, tensor, known: known_dtypes(), got };
                unread.push(Unread { name, dtype, shape, error });
            }
        }
    }
    Ok(Header { entries, unread, metadata })
}

/// An entry whose dtype is still a name.
struct Placed {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    range: (u64, u64),
}

fn parse_metadata(path: &Path, value: Value) -> Result<BTreeMap<String, String>, Error> {
    serde_json::from_value(value).map_err(|error| Error::Header {
        path: path.to_path_buf(),
        reason: format!("a `{METADATA}` that is no object of texts ({error})"),
    })
}

fn parse_entry(path: &Path, name: String, value: Value) -> Result<Placed, Error> {
    let wrong = |field: &'static str, expected: &'static str, got: &Value| Error::Field {
        path: path.to_path_buf(),
        tensor: shown(&name),
        field,
        expected,
        got: shown(&got.to_string()),
    };
    let object = value.as_object().ok_or_else(|| wrong("entry", "an object", &value))?;
    let field = |field: &str| object.get(field).unwrap_or(&Value::Null);

    let dtype = field("dtype");
    let text = dtype.as_str().ok_or_else(|| wrong("dtype", "a text", dtype))?;
    let dtype = text.to_string();

    let sizes = field("shape");
    let shape = integers(sizes).ok_or_else(|| wrong("shape", "a list of integers of 0 or more", sizes))?;
    let shape: Result<Vec<usize>, _> = shape.into_iter().map(usize::try_from).collect();
    let shape = shape.map_err(|_| wrong("shape", "sizes that memory can have", sizes))?;

    let offsets = field("data_offsets");
    let range = match integers(offsets).as_deref() {
        Some(&[begin, end]) if begin <= end => (begin, end),
        _ => return Err(wrong("data_offsets", "two integers, the second not below the first", offsets)),
    };
    Ok(Placed { name, dtype, shape, range })
}

/// Bits of an element, for every dtype of the format.
fn bits_of(dtype: &str) -> Option<u128> {
    let known: Dtype = serde_json::from_value(Value::from(dtype)).ok()?;
    Some(known.bitsize() as u128)
}

/// Checks that an entry begins at the end of the previous one, and has the size that its shape needs.
fn check_place(path: &Path, entry: &Placed, end: u64) -> Result<(), Error> {
    let (begin, behind) = entry.range;
    if begin != end {
        let (path, tensor) = (path.to_path_buf(), shown(&entry.name));
        return Err(Error::Offset { path, tensor, expected: end, got: begin });
    }
    // For dtypes of a newer format that the crate lacks, only the offsets are checked.
    let Some(bits) = bits_of(&entry.dtype) else { return Ok(()) };
    let needed = entry.shape.iter().try_fold(bits, |product, &size| product.checked_mul(size as u128));
    let needed = needed.and_then(|bits| u64::try_from(bits.div_ceil(8)).ok());
    if needed == Some(behind - begin) {
        return Ok(());
    }
    Err(Error::TensorLength {
        path: path.to_path_buf(),
        tensor: shown(&entry.name),
        dtype: from_format(&entry.dtype).map_or_else(|| entry.dtype.clone(), |dtype| dtype.to_string()),
        shape: entry.shape.clone(),
        expected: needed.map_or_else(|| "more than 2^64".to_string(), |bytes| bytes.to_string()),
        got: behind - begin,
    })
}

/// The bytes of a header, its length in front, filled up with spaces to whole words.
pub(super) fn write(entries: &[Entry], metadata: &BTreeMap<String, String>) -> serde_json::Result<Vec<u8>> {
    let mut text = String::from("{");
    if !metadata.is_empty() {
        text += &format!("\"{METADATA}\":{}", serde_json::to_string(metadata)?);
    }
    for entry in entries {
        // The writer has refused every other dtype.
        let Some(dtype) = to_format(entry.dtype) else { continue };
        let data_offsets = (entry.range.0 as usize, entry.range.1 as usize);
        let info = TensorInfo { dtype, shape: entry.shape.clone(), data_offsets };
        let separator = if text.len() > 1 { "," } else { "" };
        text +=
            &format!("{separator}{}:{}", serde_json::to_string(&entry.name)?, serde_json::to_string(&info)?);
    }
    text.push('}');
    let padded = text.len().next_multiple_of(LENGTH_BYTES as usize);
    let mut bytes = (padded as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(LENGTH_BYTES as usize + padded, b' ');
    Ok(bytes)
}

/// Whether a name is reserved by the format.
pub(super) fn is_reserved(name: &str) -> bool {
    name == METADATA
}

/// The dtypes that can be read and saved.
pub(super) fn known_dtypes() -> String {
    let all = DType::REAL.into_iter().chain([DType::C64]);
    let names: Vec<String> = all.filter_map(to_format).map(|dtype| dtype.to_string()).collect();
    names.join(", ")
}

fn integers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(Map { .. }) => "an object",
    }
}

/// The beginning of a text from the file, for an error.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_string(),
    }
}
