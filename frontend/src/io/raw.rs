//! Files of raw values.

use crate::{DType, Error, Result, Tensor};
use keyway_dispatcher::memory::write_bytes;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes per read from the file to a tensor.
const CHUNK: usize = 1 << 20;

/// A row-major tensor of one dimension with the first `size` values of a file, in memory of its own.
pub(crate) fn read(op: &'static str, path: &Path, size: usize, dtype: DType) -> Result<Tensor> {
    let failed = |source| Error::File { action: "reading", path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(failed)?;
    let (needed, there) = (size as u64 * dtype.size() as u64, file.metadata().map_err(failed)?.len());
    if there < needed {
        return Err(keyway_dispatcher::Error::Value {
            op,
            argument: "size",
            expected: format!(
                "at most the {} values of {dtype} in {}",
                there / dtype.size() as u64,
                path.display()
            ),
            got: size.to_string(),
        }
        .into());
    }
    let tensor = Tensor::uninit([size], dtype)?;
    let Some(storage) = tensor.as_ref().storage() else { return Ok(tensor) };
    let (mut buffer, mut at) = (Vec::new(), 0);
    while at < needed as usize {
        buffer.resize((needed as usize - at).min(CHUNK), 0);
        file.read_exact(&mut buffer).map_err(failed)?;
        if dtype == DType::BOOL
            && let Some(wrong) = buffer.iter().position(|&byte| byte > 1)
        {
            return Err(keyway_dispatcher::Error::Value {
                op,
                argument: "path",
                expected: "bytes of 0 or 1 for bool".into(),
                got: format!("{} at byte {}", buffer[wrong], at + wrong),
            }
            .into());
        }
        write_bytes(storage, at, &buffer)?;
        at += buffer.len();
    }
    Ok(tensor)
}
