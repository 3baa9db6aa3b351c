//! Reading an array.

use super::NpyError as Error;
use super::header::{self, LONGEST, MAGIC, Raw};
use crate::{DType, Result, Tensor};
use keyway_dispatcher::memory::write_bytes;
use std::io::{ErrorKind, Read};

/// Bytes per read from the file to a tensor: whole elements of every size.
const CHUNK: usize = 1 << 20;

/// The source of an array.
pub struct Source<'a> {
    /// The file, and the array of an archive, as messages name them.
    pub at: &'a str,
    /// Size in bytes.
    pub bytes: u64,
}

impl Source<'_> {
    fn failed(&self, source: std::io::Error) -> Error {
        Error::Read { at: self.at.to_string(), source }
    }

    fn cut(&self, expected: &str) -> Error {
        let got = format!("a file of {} bytes", self.bytes);
        Error::Header { at: self.at.to_string(), expected: expected.to_string(), got }
    }

    /// Reads the next bytes of the header.
    fn fill(&self, from: &mut impl Read, bytes: &mut [u8]) -> Result<(), Error> {
        from.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.cut("NumPy's header"),
            _ => self.failed(error),
        })
    }
}

/// The header of an array, and where the data begin.
pub fn read_header(source: &Source<'_>, from: &mut impl Read) -> Result<(Raw, u64)> {
    let mut start = [0; 8];
    source.fill(from, &mut start)?;
    if start[..6] != *MAGIC {
        let (expected, got) =
            ("the bytes `\\x93NUMPY`".to_string(), format!("`{}`", start[..6].escape_ascii()));
        return Err(Error::Header { at: source.at.to_string(), expected, got }.into());
    }
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        other => {
            let (expected, got) = ("version 1, 2 or 3".to_string(), format!("version {other}"));
            return Err(Error::Header { at: source.at.to_string(), expected, got }.into());
        }
    };
    let mut length = [0; 4];
    source.fill(from, &mut length[..length_bytes])?;
    let length = u64::from(u32::from_le_bytes(length));
    let begin = 8 + length_bytes as u64 + length;
    if length > LONGEST || begin > source.bytes {
        return Err(source.cut(&format!("a header of {length} bytes, {LONGEST} at most")).into());
    }
    let mut text = vec![0; length as usize];
    source.fill(from, &mut text)?;
    Ok((header::parse(source.at, &text)?, begin))
}

/// Reads an array.
pub fn read(source: &Source<'_>, from: &mut impl Read) -> Result<Tensor> {
    let (raw, begin) = read_header(source, from)?;
    let header = raw.known(source.at)?;
    let bytes = size(&header.shape, header.dtype);
    let left = source.bytes - begin;
    if bytes != Some(left) {
        let expected = bytes.map_or_else(|| "more than 2^64".to_string(), |bytes| bytes.to_string());
        let (at, dtype, shape) = (source.at.to_string(), header.dtype, header.shape);
        return Err(Error::Length { at, dtype, shape, expected, got: left }.into());
    }
    let mut shape = header.shape;
    if header.fortran {
        shape.reverse();
    }
    let tensor = Tensor::uninit(&shape, header.dtype)?;
    fill(source, from, &tensor, header.swapped)?;
    if !header.fortran {
        return Ok(tensor);
    }
    let order: Vec<usize> = (0..shape.len()).rev().collect();
    tensor.permute(order)
}

/// Size of an array in bytes; `None` if it exceeds 64 bits.
fn size(shape: &[usize], dtype: DType) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(dtype.size() as u64, |bytes, &n| bytes.checked_mul(n as u64))
}

fn fill(source: &Source<'_>, from: &mut impl Read, tensor: &Tensor, swapped: bool) -> Result<()> {
    let dtype = tensor.dtype();
    let mut left = tensor.elem_count() * dtype.size();
    let mut buffer = vec![0; left.min(CHUNK)];
    let mut at = 0;
    while left > 0 {
        let bytes = &mut buffer[..left.min(CHUNK)];
        from.read_exact(bytes).map_err(|error| source.failed(error))?;
        if swapped {
            // A complex number is two of half its size.
            let part = dtype.to_real().size();
            bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
        }
        if dtype == DType::BOOL
            && let Some(&got) = bytes.iter().find(|&&byte| byte > 1)
        {
            return Err(Error::Bool { at: source.at.to_string(), got }.into());
        }
        if let Some(storage) = tensor.as_ref().storage() {
            write_bytes(storage, at, bytes)?;
        }
        at += bytes.len();
        left -= bytes.len();
    }
    // An archive reports a wrong checksum at its end.
    match from.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(source.cut("no bytes behind the array").into()),
        Err(error) => Err(source.failed(error).into()),
    }
}
