//! A single tensor in a file.

use super::{npy, safetensors};
use crate::Tensor;
use crate::error::Result;
use std::path::Path;

/// The name of the only tensor in a safetensors file.
const NAME: &str = "tensor";

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
}

impl Tensor {
    /// Saves this tensor: in NumPy's format if the path ends in `.npy`, otherwise in a safetensors file under the name
    /// `tensor`. An existing file is replaced atomically, and is unchanged if the save fails.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("x.safetensors");
    /// Tensor::new([1.0f32, 2.0])?.save(&path)?;
    /// assert_eq!(Tensor::load(&path)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// Use [`safetensors::save`] or [`npz::save`](crate::io::npz::save) for several tensors in one file, and
    /// [`Module::save`](crate::nn::Module::save) for the tensors of a module.
    ///
    /// # Errors
    /// A file that cannot be written; a dtype that the format lacks; errors of the device.
    #[doc(alias = "save_safetensors")]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match is_npy(path) {
            true => npy::save(path, self),
            false => safetensors::save(path, &[(NAME.to_string(), self.clone())].into()),
        }
    }

    /// Loads the tensor of a file onto the CPU: NumPy's array if the path ends in `.npy`, otherwise the only tensor of a
    /// safetensors file.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("x.npy");
    /// Tensor::new([1i64, 2])?.save(&path)?;
    /// assert_eq!(Tensor::load(&path)?.to_vec::<i64>()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A file that cannot be read or is damaged; a safetensors file of no tensor or of several, which
    /// [`safetensors::load`] reads by name.
    pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
        let path = path.as_ref();
        if is_npy(path) {
            return npy::load(path);
        }
        let mut tensors = safetensors::load(path)?;
        match (tensors.pop_first(), tensors.len()) {
            (Some((_, tensor)), 0) => Ok(tensor),
            (first, more) => {
                let count = more + usize::from(first.is_some());
                Err(keyway_dispatcher::Error::Value {
                    op: "load",
                    argument: "path",
                    expected: "a file of one tensor; `io::safetensors::load` returns several by name".into(),
                    got: format!("{count} tensors in {}", path.display()),
                }
                .into())
            }
        }
    }
}
