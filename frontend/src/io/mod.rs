//! Files of tensors, such as weights, read and written so that a failure loses nothing.

mod foreign;
pub mod npy;
pub mod npz;
#[cfg(target_os = "linux")]
mod raw;
mod replace;
pub mod safetensors;
#[cfg(target_os = "linux")]
mod shared;
pub(crate) mod state_dict;
mod tensor;

pub use replace::replace;

use crate::DType;

/// The entry of one name in a file of named tensors.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// safetensors::save(&path, &StateDict::from([("bias".to_string(), Tensor::new([1.0f32])?)]))?;
/// let listed = safetensors::list(&path)?.remove(0);
/// assert_eq!((listed.name.as_str(), listed.dtype.as_str(), &listed.shape[..]), ("bias", "F32", &[1][..]));
/// assert_eq!(listed.loads, Some(DType::F32));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The entry's name.
    pub name: String,
    /// The dtype's name in the file: `F8_E4M3`, `<U2`.
    pub dtype: String,
    /// The entry's shape.
    pub shape: Vec<usize>,
    /// The dtype of the loaded tensor; `None` if it cannot be loaded.
    pub loads: Option<DType>,
}
