//! [`SharedHandle`]: the description of a tensor in shared memory by which another process opens it.

use crate::error::{Error, Result};
use keyway_dispatcher::Error as DispatchError;
use keyway_dispatcher::memory::{FileId, Storage};
use keyway_dispatcher::{DType, dims};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The prefix of a name.
const SCHEME: &str = "keyway-memory";

/// The file of a tensor in shared memory, with the tensor's dtype, offset, sizes and strides.
///
/// The descriptor goes to another process by a Unix socket (`SCM_RIGHTS`) or by inheritance; nothing in the handle is trusted
/// there: the file's size must be sealed, and elements outside it are refused.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, Tensor, storage::SharedHandle};
/// let x = Tensor::zeros_shared((2, 3), DType::F32)?;
/// let file = x.shared_handle()?.into_file();
/// // In the other process, which was told dtype, sizes and strides:
/// let y = Tensor::from_shared_handle(&SharedHandle::new(file, DType::F32, 0, &[2, 3], &[3, 1]))?;
/// y.fill_(1.0)?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0; 6]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedHandle {
    file: OwnedFd,
    geometry: Geometry,
}

/// The position of a tensor's elements in its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) dtype: DType,
    /// In elements.
    pub(crate) offset: usize,
    pub(crate) sizes: Vec<usize>,
    /// In elements.
    pub(crate) strides: Vec<usize>,
}

impl SharedHandle {
    /// A handle of a file and the position of a tensor in it; offset and strides are in elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// # use keyway::{DType, Tensor, storage::SharedHandle};
    /// # let file = Tensor::zeros_shared(2, DType::F32)?.shared_handle()?.into_file();
    /// let handle = SharedHandle::new(file, DType::F32, 1, &[1], &[1]);
    /// assert_eq!((handle.dtype(), handle.offset()), (DType::F32, 1));
    /// # Ok(()) }
    /// ```
    pub fn new(
        file: OwnedFd,
        dtype: DType,
        offset: usize,
        sizes: &[usize],
        strides: &[usize],
    ) -> SharedHandle {
        SharedHandle {
            file,
            geometry: Geometry { dtype, offset, sizes: sizes.to_vec(), strides: strides.to_vec() },
        }
    }

    /// A handle with a new descriptor of the storage's file.
    pub(crate) fn of(op: &'static str, storage: &Storage, geometry: Geometry) -> Result<SharedHandle> {
        let file = file_of(op, storage)?.try_clone_to_owned();
        let file = file.map_err(|source| DispatchError::Mapping {
            op,
            reason: format!("copying a descriptor: {source}"),
            advice: "drop tensors in shared memory, or raise the limit with `ulimit -n`",
        })?;
        Ok(SharedHandle { file, geometry })
    }

    /// The storage over the file.
    pub(crate) fn storage(&self, op: &'static str) -> Result<Storage> {
        let file = self.file.try_clone().map_err(|source| DispatchError::Mapping {
            op,
            reason: format!("copying a descriptor: {source}"),
            advice: "drop tensors in shared memory, or raise the limit with `ulimit -n`",
        })?;
        Ok(Storage::open_shared(op, file)?)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The element type.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// # use keyway::{DType, Tensor};
    /// assert_eq!(Tensor::zeros_shared(2, DType::U8)?.shared_handle()?.dtype(), DType::U8);
    /// # Ok(()) }
    /// ```
    pub fn dtype(&self) -> DType {
        self.geometry.dtype
    }

    /// The offset of the first element, in elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// # use keyway::{DType, Tensor};
    /// assert_eq!(Tensor::zeros_shared(2, DType::U8)?.i(1)?.shared_handle()?.offset(), 1);
    /// # Ok(()) }
    /// ```
    pub fn offset(&self) -> usize {
        self.geometry.offset
    }

    /// The sizes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// # use keyway::{DType, Tensor};
    /// assert_eq!(Tensor::zeros_shared((2, 3), DType::U8)?.shared_handle()?.sizes(), [2, 3]);
    /// # Ok(()) }
    /// ```
    pub fn sizes(&self) -> &[usize] {
        &self.geometry.sizes
    }

    /// The strides in elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// # use keyway::{DType, Tensor};
    /// assert_eq!(Tensor::zeros_shared((2, 3), DType::U8)?.t()?.shared_handle()?.strides(), [1, 3]);
    /// # Ok(()) }
    /// ```
    pub fn strides(&self) -> &[usize] {
        &self.geometry.strides
    }

    /// The descriptor of the file.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// # use keyway::{DType, Tensor};
    /// use std::os::fd::AsRawFd;
    /// assert!(Tensor::zeros_shared(2, DType::U8)?.shared_handle()?.file().as_raw_fd() > 2);
    /// # Ok(()) }
    /// ```
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The descriptor of the file, which the caller owns from here on.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// # use keyway::{DType, Tensor};
    /// let file: std::os::fd::OwnedFd = Tensor::zeros_shared(2, DType::U8)?.shared_handle()?.into_file();
    /// # Ok(()) }
    /// ```
    pub fn into_file(self) -> OwnedFd {
        self.file
    }
}

/// The file of a storage in shared memory.
fn file_of<'a>(op: &'static str, storage: &'a Storage) -> Result<BorrowedFd<'a>> {
    let private = || DispatchError::Value {
        op,
        argument: "self",
        expected: "a tensor in shared memory".into(),
        got: format!("one in memory of `{}`; move it with `share_memory_`", storage.allocator()),
    };
    Ok(storage.shared_file().ok_or_else(private)?)
}

/// The name of a tensor in shared memory: this process, the descriptor of its storage, the file's identity and size, and the
/// position of the elements.
pub(crate) fn name(op: &'static str, storage: &Storage, geometry: &Geometry) -> Result<String> {
    let descriptor = file_of(op, storage)?.as_raw_fd();
    let (device, inode) = storage.shared_id().unwrap_or_default();
    let list = |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let Geometry { dtype, offset, sizes, strides } = geometry;
    Ok(format!(
        "{SCHEME}:{}:{descriptor}:{device}:{inode}:{}:{}:{offset}:{}:{}",
        std::process::id(),
        storage.bytes(),
        dtype.name(),
        list(sizes),
        list(strides)
    ))
}

/// Opens the storage of a name.
pub(crate) fn open(op: &'static str, name: &str) -> Result<(Storage, Geometry)> {
    let Some((process, descriptor, id, bytes, geometry)) = parse(name) else {
        let shown: String = name.chars().take(80).collect();
        let error: Error = DispatchError::Value {
            op,
            argument: "name",
            expected: format!("a name such as `{SCHEME}:4711:9:…`, as `shared_name` returns it"),
            got: format!("{shown:?}"),
        }
        .into();
        return Err(error);
    };
    Ok((Storage::open_shared_of(op, process, descriptor, id, bytes)?, geometry))
}

type Parsed = (u32, u32, FileId, usize, Geometry);

fn parse(name: &str) -> Option<Parsed> {
    let parts: Vec<&str> = name.split(':').collect();
    let [SCHEME, process, descriptor, device, inode, bytes, dtype, offset, sizes, strides] = *parts else {
        return None;
    };
    let list = |text: &str| -> Option<Vec<usize>> {
        let values = text.split(',').filter(|_| !text.is_empty()).map(|value| value.parse().ok());
        values.collect()
    };
    let (sizes, strides) = (list(sizes)?, list(strides)?);
    dims::numel("open_shared", &sizes).ok().filter(|_| sizes.len() == strides.len())?;
    let geometry = Geometry { dtype: DType::from_name(dtype)?, offset: offset.parse().ok()?, sizes, strides };
    let id = (device.parse().ok()?, inode.parse().ok()?);
    Some((process.parse().ok()?, descriptor.parse().ok()?, id, bytes.parse().ok()?, geometry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_or_refused() {
        let name = "keyway-memory:7:9:1:1234:24:f32:1:2,3:3,1";
        let (process, descriptor, id, bytes, geometry) = parse(name).unwrap();
        assert_eq!((process, descriptor, id, bytes), (7, 9, (1, 1234), 24));
        assert_eq!((geometry.offset, geometry.sizes, geometry.strides), (1, vec![2, 3], vec![3, 1]));
        assert!(parse("keyway-memory:7:9:1:1234:4:f32:0::").unwrap().4.sizes.is_empty());
        for lie in [
            "",
            "keyway-memory",
            "keyway-memory:7:9:1:1:24:f32:0:2,3:3",
            "keyway-memory:-1:9:1:1:4:f32:0:1:1",
            "keyway-memory:7:9:1:1:4:text:0:1:1",
            "keyway-memory:7:9:1:1:4:f32:0:99999999999,99999999999:1,1",
            "file:7:9:1:1:4:f32:0:1:1",
            "keyway-memory:7:9:1:1:4:f32:0:1:1:1",
            "keyway-memory:7:9:1:1:4:f32:x:1:1",
        ] {
            assert!(parse(lie).is_none(), "{lie}");
        }
    }
}
