//! Memory mapped from files: anonymous files that processes share, and named files. Linux only.
//!
//! Memory that processes share is an anonymous file (`memfd_create`), which has no name in any folder: the kernel frees it when
//! the last mapping and the last descriptor are gone, however the processes ended. Its size is sealed, so that no process can
//! shrink it below a mapping of another one, which would end that one with SIGBUS; and its pages are allocated when it is
//! created, so that a machine without free memory is an error here and not a signal later.

use super::mapping::{FileId, Mapping};
use super::{Inner, Owner, Shared, Storage, Weak};
use crate::base::error::{Error, Result};
use crate::base::fork;
use crate::base::key::Device;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Mutex, Once, PoisonError};

/// The seals that a shared file must have: its size is constant.
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// The storages over anonymous files of this process, so that a file that is opened twice is mapped once.
static OPEN: Mutex<BTreeMap<FileId, Weak<Inner>>> = Mutex::new(BTreeMap::new());

/// Runs `change` while no other thread uses the table, and no fork copies it locked.
fn with_open<R>(change: impl FnOnce(&mut BTreeMap<FileId, Weak<Inner>>) -> R) -> R {
    static PROTECTED: Once = Once::new();
    PROTECTED.call_once(|| fork::protect(|| Box::new(OPEN.lock().unwrap_or_else(PoisonError::into_inner))));
    change(&mut OPEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Removes a storage from the table, unless another thread opened the file again meanwhile.
fn forget(id: FileId) {
    let again = with_open(|open| {
        let again = open.remove(&id).and_then(|weak| weak.upgrade());
        if let Some(storage) = &again {
            open.insert(id, Shared::downgrade(storage));
        }
        again
    });
    // Outside the lock: it may be the last handle.
    drop(again);
}

fn refused(op: &'static str, reason: impl Into<String>, advice: &'static str) -> Error {
    Error::Mapping { op, reason: reason.into(), advice }
}

/// The error of a system call.
fn failed(op: &'static str, what: &str, error: Errno, bytes: usize) -> Error {
    match error {
        Errno::NOMEM | Errno::NOSPC | Errno::FBIG => Error::OutOfMemory {
            device: Device::CPU,
            requested: bytes as u64,
            detail: format!("{what}: {error}"),
        },
        Errno::MFILE | Errno::NFILE => refused(
            op,
            format!("{what}: too many open files; each tensor in shared memory has one"),
            "drop tensors, share one large tensor and send views of it, or raise the limit with `ulimit -n`",
        ),
        Errno::ACCESS | Errno::PERM => refused(
            op,
            format!("{what}: permission denied"),
            "processes of one user can share memory, unless a sandbox forbids it; pass the descriptor over a Unix socket instead",
        ),
        error => refused(
            op,
            format!("{what}: {error}"),
            "check that the file, or the process that shared it, still exists",
        ),
    }
}

/// The size of a file, and its identity.
fn size_of(op: &'static str, file: impl AsFd) -> Result<(usize, FileId)> {
    let stat = rustix::fs::fstat(file).map_err(|error| failed(op, "reading the size of a file", error, 0))?;
    Ok((stat.st_size as usize, (stat.st_dev as u64, stat.st_ino as u64)))
}

/// Maps the first `bytes` bytes of a file that is at least as long. With [`MapFlags::SHARED`] writes reach the file, with
/// [`MapFlags::PRIVATE`] they are this mapping's own.
fn map(
    op: &'static str,
    file: OwnedFd,
    bytes: usize,
    id: FileId,
    sealed: bool,
    flags: MapFlags,
) -> Result<Mapping> {
    if bytes == 0 || bytes > isize::MAX as usize {
        let reason = format!("expected a file of 1 to {} bytes, got one of {bytes}", isize::MAX);
        return Err(refused(op, reason, "check the file"));
    }
    // SAFETY: the kernel chooses an unused address range, so no existing memory is affected.
    let address =
        unsafe { mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags, &file, 0) };
    let address = address.map_err(|error| failed(op, "mapping a file", error, bytes))?;
    let pointer = NonNull::new(address.cast::<u8>());
    let pointer =
        pointer.ok_or_else(|| refused(op, "the kernel mapped a file to address 0", "report this"))?;
    Ok(Mapping { pointer, length: bytes, file, id, sealed: sealed.then_some(forget) })
}

/// A new anonymous file of this size, sealed against other sizes, with its pages allocated.
fn anonymous(op: &'static str, bytes: usize) -> Result<OwnedFd> {
    let make = |flags| rustix::fs::memfd_create(c"keyway", flags);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 have no flag for files that are never executed.
    let made = match make(flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => make(flags),
        other => other,
    };
    let file = made.map_err(|error| failed(op, "creating shared memory", error, bytes))?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)
        .map_err(|error| failed(op, "allocating shared memory", error, bytes))?;
    rustix::fs::fcntl_add_seals(&file, SIZE_SEALS | SealFlags::SEAL)
        .map_err(|error| failed(op, "sealing shared memory", error, bytes))?;
    Ok(file)
}

impl Storage {
    /// Allocates host memory that other processes can map: zeros in an anonymous file of constant size. The file has at least
    /// 1 byte.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")]
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// use keyway_dispatcher::memory::{Storage, read_bytes, write_bytes};
    /// let storage = Storage::allocate_shared("example", 100)?;
    /// let file = storage.shared_file().unwrap().try_clone_to_owned().unwrap();
    /// let same = Storage::open_shared("example", file)?;
    /// write_bytes(&same, 99, &[7])?;
    /// let mut last = [0];
    /// read_bytes(&storage, 99, &mut last)?;
    /// assert_eq!((last, storage.allocator()), ([7], "shared memory"));
    /// # Ok(()) }
    /// # #[cfg(not(target_os = "linux"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// `OutOfMemory`; `Mapping` for too many open files, or a system without sealed files.
    pub fn allocate_shared(op: &'static str, bytes: usize) -> Result<Storage> {
        let bytes = bytes.max(1);
        let file = anonymous(op, bytes)?;
        let (_, id) = size_of(op, &file)?;
        let storage = Storage::mapped(map(op, file, bytes, id, true, MapFlags::SHARED)?);
        with_open(|open| open.insert(id, Shared::downgrade(&storage.0)));
        Ok(storage)
    }

    /// The storage over a file that [`Storage::allocate_shared`] created in this or another process; the same one if this
    /// process has a storage over it. The whole file is mapped.
    ///
    /// # Errors
    /// `Mapping` for a file whose size is not sealed: another process could truncate it, and an access would end this process
    /// with SIGBUS.
    pub fn open_shared(op: &'static str, file: OwnedFd) -> Result<Storage> {
        let seals = match rustix::fs::fcntl_get_seals(&file) {
            Ok(seals) => seals,
            Err(Errno::INVAL) => SealFlags::empty(),
            Err(error) => return Err(failed(op, "reading the seals of a file", error, 0)),
        };
        if !seals.contains(SIZE_SEALS) {
            return Err(refused(
                op,
                "expected an anonymous file whose size is sealed, got one that its owner may truncate",
                "create the memory with `share_memory_` or `to_shared_memory`",
            ));
        }
        let (bytes, id) = size_of(op, &file)?;
        let known = |open: &BTreeMap<FileId, Weak<Inner>>| open.get(&id).and_then(Weak::upgrade).map(Storage);
        if let Some(storage) = with_open(|open| known(open)) {
            return Ok(storage);
        }
        let storage = Storage::mapped(map(op, file, bytes, id, true, MapFlags::SHARED)?);
        let other = with_open(|open| {
            let other = known(open);
            if other.is_none() {
                open.insert(id, Shared::downgrade(&storage.0));
            }
            other
        });
        // Another thread may have been faster; the second mapping is removed outside the lock.
        Ok(other.unwrap_or(storage))
    }

    /// [`Storage::open_shared`] of a descriptor of another process, `/proc/PID/fd/N`, if it is the file of this identity and
    /// size.
    ///
    /// # Errors
    /// As [`Storage::open_shared`]; `Mapping` if the process has ended, has closed the descriptor or uses it for another file.
    pub fn open_shared_of(
        op: &'static str,
        process: u32,
        descriptor: u32,
        id: FileId,
        bytes: usize,
    ) -> Result<Storage> {
        const GONE: &str =
            "keep a tensor over the memory alive in the process that shared it until this one has opened it";
        if let Some(storage) = with_open(|open| open.get(&id).and_then(Weak::upgrade)).map(Storage) {
            return Storage::of_size(op, storage, bytes);
        }
        let path = format!("/proc/{process}/fd/{descriptor}");
        // Without access, so that a FIFO does not block and a device is not touched.
        let found = match rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::SRCH) => {
                return Err(refused(
                    op,
                    format!("process {process} has ended or has dropped the memory"),
                    GONE,
                ));
            }
            Err(error) => {
                return Err(failed(op, &format!("opening memory of process {process}"), error, bytes));
            }
        };
        if size_of(op, &found)?.1 != id {
            return Err(refused(op, format!("process {process} has dropped the memory"), GONE));
        }
        use std::os::fd::AsRawFd;
        let own = format!("/proc/self/fd/{}", found.as_raw_fd());
        let file = rustix::fs::open(own, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
            .map_err(|error| failed(op, &format!("opening memory of process {process}"), error, bytes))?;
        Storage::of_size(op, Storage::open_shared(op, file)?, bytes)
    }

    fn of_size(op: &'static str, storage: Storage, bytes: usize) -> Result<Storage> {
        if storage.bytes() == bytes {
            return Ok(storage);
        }
        let got = format!("{} bytes", storage.bytes());
        Err(Error::Value { op, argument: "name", expected: format!("shared memory of {bytes} bytes"), got })
    }

    /// Maps the first `bytes` bytes of a file, so that writes reach the file. A file that is shorter or absent is extended or
    /// created.
    ///
    /// The size is checked here alone: if the file is truncated while it is mapped, an access beyond its end ends the process
    /// with SIGBUS, as with every mapped file.
    ///
    /// # Errors
    /// `Mapping`: the file's error; `OutOfMemory` for a full disk.
    pub fn map_file(op: &'static str, path: &Path, bytes: usize) -> Result<Storage> {
        let named = |what: &str| format!("{what} {}", path.display());
        let io = |what: &str, error: std::io::Error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            failed(op, &named(what), errno, bytes)
        };
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| io("opening", error))?;
        let (size, id) = size_of(op, &file)?;
        if size < bytes {
            // A hole would need memory at the first write, where a full disk is a signal.
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64) {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP) => {
                    file.set_len(bytes as u64).map_err(|error| io("extending", error))?
                }
                Err(error) => return Err(failed(op, &named("extending"), error, bytes)),
            }
        }
        Ok(Storage::mapped(map(op, file.into(), bytes, id, false, MapFlags::SHARED)?))
    }

    /// Maps a whole file, copy-on-write: a page is read from the file at the first access, and a write changes this mapping
    /// alone. The file may be opened for reading only.
    ///
    /// As with [`Storage::map_file`], an access beyond the end of a file that was truncated ends the process with SIGBUS; and
    /// changes of the file by other programs may become visible.
    ///
    /// # Errors
    /// `Mapping`: an empty file, or the system's error.
    pub fn map_file_copy_on_write(op: &'static str, file: File) -> Result<Storage> {
        let (bytes, id) = size_of(op, &file)?;
        Ok(Storage::mapped(map(op, file.into(), bytes, id, false, MapFlags::PRIVATE)?))
    }

    fn mapped(mapping: Mapping) -> Storage {
        Storage::new(mapping.pointer, mapping.length, Device::CPU, Owner::Mapped(Box::new(mapping)))
    }

    /// The anonymous file of memory that other processes can map; `None` for other memory.
    pub fn shared_file(&self) -> Option<BorrowedFd<'_>> {
        match &self.0.owner {
            Owner::Mapped(mapping) if mapping.sealed.is_some() => Some(mapping.file.as_fd()),
            _ => None,
        }
    }

    /// Device and inode of [`Storage::shared_file`].
    pub fn shared_id(&self) -> Option<FileId> {
        match &self.0.owner {
            Owner::Mapped(mapping) if mapping.sealed.is_some() => Some(mapping.id),
            _ => None,
        }
    }

    /// Refuses bytes that are neither 0 nor 1 in a range of mapped memory, so that it can be read as bool.
    ///
    /// # Errors
    /// `Value` with the first such byte.
    pub fn check_bools(&self, op: &'static str, offset: usize, bytes: usize) -> Result<()> {
        let end = offset.saturating_add(bytes).min(self.bytes());
        for at in offset..end {
            // SAFETY: `at` is below the size of the mapping, which this handle keeps. Volatile, because another process may write.
            let byte = unsafe { self.pointer().as_ptr().add(at).read_volatile() };
            if byte > 1 {
                let expected = "bytes of 0 or 1 for bool".to_string();
                return Err(Error::Value {
                    op,
                    argument: "self",
                    expected,
                    got: format!("{byte} at byte {at}"),
                });
            }
        }
        Ok(())
    }

    /// Whether other processes may read and write the memory.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0.owner, Owner::Mapped(_))
    }

    /// Refuses memory that other processes may write, so that there is no reference to it.
    pub(crate) fn check_private(&self, op: &'static str) -> Result<()> {
        if self.is_mapped() {
            let advice = "read elements with `accessor`, or take a `copy()`";
            return Err(refused(op, "other processes may write to this memory", advice));
        }
        Ok(())
    }
}

// Miri has no `memfd_create` and no mappings of files.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::memory::{read_bytes, write_bytes};

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.expect_err("an error").to_string()
    }

    fn mappings() -> usize {
        let text = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
        text.lines().filter(|line| line.contains("memfd:keyway")).count()
    }

    #[test]
    fn a_file_that_is_opened_twice_is_mapped_once_and_unmapped_with_the_last_storage() {
        let storage = Storage::allocate_shared("t", 5000).unwrap();
        let file = || storage.shared_file().unwrap().try_clone_to_owned().unwrap();
        let again = Storage::open_shared("t", file()).unwrap();
        assert!(again.same_as(&storage) && !storage.is_unique());
        let (id, kept) = (storage.shared_id().unwrap(), file());
        drop((again, storage));
        assert!(with_open(|open| open.get(&id).is_none()));
        let opened = Storage::open_shared("t", kept).unwrap();
        assert_eq!((opened.bytes(), opened.shared_id(), opened.is_unique()), (5000, Some(id), false));
        let before = mappings();
        drop(opened);
        assert!(mappings() < before);
    }

    #[test]
    fn files_that_may_be_truncated_are_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64).unwrap();
        assert!(message(Storage::open_shared("t", file.into())).contains("size is sealed"));
        let unsealed =
            rustix::fs::memfd_create(c"t", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&unsealed, 64).unwrap();
        assert!(message(Storage::open_shared("t", unsealed)).contains("size is sealed"));
        let storage = Storage::allocate_shared("t", 64).unwrap();
        let file = File::from(storage.shared_file().unwrap().try_clone_to_owned().unwrap());
        assert!(file.set_len(10).is_err() && file.set_len(1000).is_err());
    }

    #[test]
    fn a_name_opens_the_file_that_it_states_and_no_other() {
        use std::os::fd::AsRawFd;
        let storage = Storage::allocate_shared("t", 64).unwrap();
        write_bytes(&storage, 0, &[9]).unwrap();
        let (id, process) = (storage.shared_id().unwrap(), std::process::id());
        let number = storage.shared_file().unwrap().as_raw_fd() as u32;
        let open = |id, bytes| Storage::open_shared_of("t", process, number, id, bytes);
        assert!(open(id, 64).unwrap().same_as(&storage));
        assert!(message(open(id, 65)).contains("65 bytes"));
        assert!(message(open((id.0, id.1 + 1), 64)).contains("dropped the memory"));
        // As another process sees it: not in the table.
        let hidden = with_open(|all| all.remove(&id));
        let other = open(id, 64).unwrap();
        assert!(!other.same_as(&storage) && hidden.is_some());
        let mut first = [0];
        read_bytes(&other, 0, &mut first).unwrap();
        assert_eq!(first, [9]);
        drop(other);
        drop(storage);
        assert!(open(id, 64).is_err());
        assert!(message(Storage::open_shared_of("t", u32::MAX, 0, id, 64)).contains("has ended"));
    }

    #[test]
    fn references_to_shared_memory_are_refused() {
        let mut storage = Storage::allocate_shared("t", 0).unwrap();
        assert_eq!(storage.bytes(), 1);
        assert!(message(storage.as_bytes_mut()).contains("other processes"));
        assert_eq!(storage.to_bytes().unwrap(), [0]);
    }

    #[test]
    fn a_write_to_a_copy_on_write_mapping_does_not_reach_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values");
        std::fs::write(&path, [1, 2, 3]).unwrap();
        let storage = Storage::map_file_copy_on_write("t", File::open(&path).unwrap()).unwrap();
        write_bytes(&storage, 1, &[7]).unwrap();
        assert_eq!((storage.to_bytes().unwrap(), storage.allocator()), (vec![1, 7, 3], "mapped file"));
        assert_eq!(std::fs::read(&path).unwrap(), [1, 2, 3]);
        std::fs::write(&path, []).unwrap();
        let empty = Storage::map_file_copy_on_write("t", File::open(&path).unwrap());
        assert!(message(empty).contains("a file of 1 to"));
    }

    #[test]
    fn a_mapped_file_is_extended_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values");
        let storage = Storage::map_file("t", &path, 16).unwrap();
        write_bytes(&storage, 15, &[3]).unwrap();
        drop(storage);
        assert_eq!(std::fs::read(&path).unwrap()[14..], [0, 3]);
        assert!(message(Storage::map_file("t", folder.path(), 16)).contains("opening"));
        assert!(message(Storage::map_file("t", &path, 0)).contains("1 to"));
    }
}
