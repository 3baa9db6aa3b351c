//! Saving.

use super::SafetensorsError as Error;
use super::header::{self, Entry};
use super::{formats, layouts, plugin_dtypes, to_format};
use crate::io::replace::replace;
use crate::io::state_dict::StateDict;
use crate::{Result, Tensor};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// Saves tensors by name. An existing file is replaced atomically, or is unchanged on failure.
///
/// Tensors may be on any device and have any strides; the file stores their elements in row-major order. The format of those in
/// channels_last is restored by a load.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// let transposed = Tensor::from_vec(vec![1u8, 2, 3, 4], (2, 2))?.t()?;
/// safetensors::save(&path, &StateDict::from([("w".to_string(), transposed)]))?;
/// assert_eq!(safetensors::load(&path)?["w"].to_vec::<u8>()?, [1, 3, 2, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`SafetensorsError`](Error) for a file that cannot be written, a dtype that the format lacks, the name `__metadata__`, the
/// metadata keys `keyway.dtypes`, `keyway.formats` and `keyway.layouts`, a tensor named as another one's component; a sparse
/// tensor whose components were changed so that they no longer match; errors of the device.
#[doc(alias = "save_safetensors")]
pub fn save(path: impl AsRef<Path>, tensors: &StateDict) -> Result<()> {
    save_with_metadata(path, tensors, &BTreeMap::new())
}

/// [`save`] with additional metadata strings: the origin of the tensors, how they were trained.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// let notes = [("model".to_string(), "mlp".to_string())].into();
/// safetensors::save_with_metadata(&path, &StateDict::new(), &notes)?;
/// assert_eq!(safetensors::load_file(&path)?.metadata, notes);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`save`].
pub fn save_with_metadata(
    path: impl AsRef<Path>,
    tensors: &StateDict,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref();
    let (tensors, wholes) = layouts::split(path, tensors)?;
    let ordered = ordered(path, &tensors)?;
    let entries = entries(&ordered);
    let metadata = plugin_dtypes::with_dtypes(path, &ordered, metadata)?;
    let metadata = formats::with_formats(path, &ordered, metadata)?;
    let metadata = layouts::with_layouts(path, &wholes, metadata)?;
    let data = entries.last().map_or(0, |entry| entry.range.1);
    let failed = |bytes, source| Error::Write { path: path.to_path_buf(), bytes, source };
    let header = header::write(&entries, &metadata).map_err(|error| failed(data, error.into()))?;
    let bytes_in_all = header.len() as u64 + data;
    // An error of a device must not be reported as one of the file.
    let mut trouble = None;
    let written = replace(path, |file| {
        file.write_all(&header)?;
        for (_, tensor) in &ordered {
            let written = tensor.for_each_chunk(|bytes| {
                write_row_major(file, bytes).map_err(|source| failed(bytes_in_all, source).into())
            });
            match written {
                Ok(()) => {}
                Err(crate::Error::Safetensors(Error::Write { source, .. })) => return Err(source),
                Err(error) => {
                    trouble = Some(error);
                    return Err(io::Error::other("a tensor could not be read"));
                }
            }
        }
        Ok(())
    });
    match (trouble, written) {
        (Some(error), _) => Err(error),
        (None, Err(source)) => Err(failed(bytes_in_all, source).into()),
        (None, Ok(())) => Ok(()),
    }
}

fn write_row_major(file: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    const { assert!(cfg!(target_endian = "little"), "the format is little-endian") };
    file.write_all(bytes)
}

/// The tensors in the order of the file: those with large elements first, so that each begins at a multiple of its
/// element's size, and by name among these.
fn ordered<'a>(path: &Path, tensors: &'a StateDict) -> Result<Vec<(&'a String, &'a Tensor)>, Error> {
    for (name, tensor) in tensors {
        if header::is_reserved(name) {
            return Err(Error::ReservedName { path: path.to_path_buf() });
        }
        if to_format(tensor.dtype()).is_none() && !plugin_dtypes::is_saved_as_bytes(tensor.dtype()) {
            return Err(Error::UnsupportedDtype {
                path: path.to_path_buf(),
                tensor: name.clone(),
                known: header::known_dtypes(),
                got: tensor.dtype(),
            });
        }
    }
    let mut ordered: Vec<_> = tensors.iter().collect();
    ordered.sort_by_key(|(_, tensor)| Reverse(tensor.dtype().size()));
    Ok(ordered)
}

fn entries(ordered: &[(&String, &Tensor)]) -> Vec<Entry> {
    let mut end = 0;
    let entry = |(name, tensor): &(&String, &Tensor)| {
        let begin = end;
        end = (tensor.elem_count() as u64).saturating_mul(tensor.dtype().size() as u64).saturating_add(end);
        let (dtype, shape) = plugin_dtypes::stored(tensor);
        Entry { name: (*name).clone(), dtype, shape, range: (begin, end) }
    };
    ordered.iter().map(entry).collect()
}
