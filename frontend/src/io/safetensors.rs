//! The safetensors format: named tensors of plain values, with a JSON header and no code.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::{Tensor, io::safetensors, nn::StateDict};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("weights.safetensors");
//! let weights = StateDict::from([("weight".to_string(), Tensor::new([1.0f32, 2.0])?)]);
//! safetensors::save(&path, &weights)?;
//! assert_eq!(safetensors::load(&path)?["weight"].to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - a save replaces the file atomically, by a rename, so that a full disk or a crash preserves the old one;
//! - a save is deterministic: entries are ordered by element size, then by name;
//! - a tensor of a plugin's dtype is saved as bytes of U8, with its dtype in the metadata under `keyway.dtypes`, so that other
//!   programs can read the rest of the file;
//! - a tensor in channels_last is saved in row-major order like any other, and named in the metadata under `keyway.formats`, so
//!   that other programs read the same values and a load here restores the memory format;
//! - a tensor of a composite layout is saved as its components, `NAME.component`, and reassembled when it is loaded; its layout
//!   is in the metadata under `keyway.layouts`;
//! - an entry that this program cannot load (F8_E4M3, a plugin's dtype or layout) is an error of that tensor alone: `list`
//!   includes it, and `load_only` loads others;
//! - a load checks the whole header before it allocates anything, and reads into memory that kernels may use;
//! - [`open`] maps the file: tensors of floating-point numbers are views of the mapping, which are never a reference in safe
//!   code, since another program may write to the file.

mod formats;
mod header;
mod layouts;
mod mapped;
mod plugin_dtypes;
mod read;
mod write;

pub use crate::error::safetensors::SafetensorsError;
pub use mapped::{MappedFile, open};
pub use read::{File, list, load, load_file, load_only};
pub use write::{save, save_with_metadata};

use crate::DType;
use safetensors::tensor::Dtype;

/// The format's name of a dtype; `None` if the format lacks it.
fn to_format(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::BOOL => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::U16 => Dtype::U16,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
        DType::F32 => Dtype::F32,
        DType::C64 => Dtype::C64,
        DType::F64 => Dtype::F64,
        DType::I64 => Dtype::I64,
        DType::U64 => Dtype::U64,
        _ => return None,
    })
}

/// The dtype of the format's name; `None` if tensors cannot have it.
fn from_format(name: &str) -> Option<DType> {
    let all = DType::REAL.into_iter().chain([DType::C64]);
    all.into_iter().find(|&dtype| to_format(dtype).is_some_and(|known| known.to_string() == name))
}
