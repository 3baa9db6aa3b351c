//! Writing an array.

use super::NpyError as Error;
use super::header;
use crate::{Result, Tensor};
use std::io::Write;

fn name_of(at: &str, tensor: &Tensor) -> Result<String, Error> {
    let unsupported = || Error::UnsupportedDtype { at: at.to_string(), got: tensor.dtype() };
    header::name_of(tensor.dtype()).ok_or_else(unsupported)
}

/// Size of an array with its header, in bytes.
pub fn array_length(at: &str, tensor: &Tensor) -> Result<u64, Error> {
    let header = header::write(&name_of(at, tensor)?, tensor.shape()).len();
    Ok((tensor.elem_count() as u64)
        .saturating_mul(tensor.dtype().size() as u64)
        .saturating_add(header as u64))
}

/// Writes an array: elements in row-major order, little-endian.
pub fn write(at: &str, to: &mut (impl Write + ?Sized), tensor: &Tensor) -> Result<()> {
    const { assert!(cfg!(target_endian = "little"), "elements are written in the byte order of memory") };
    let failed = |source| crate::Error::from(Error::Write { at: at.to_string(), source });
    to.write_all(&header::write(&name_of(at, tensor)?, tensor.shape())).map_err(failed)?;
    tensor.for_each_chunk(|bytes| to.write_all(bytes).map_err(failed))
}
