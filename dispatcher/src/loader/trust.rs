//! The check of owners and permissions of libraries.
//!
//! A library runs with all privileges of the program, so only users who could replace the program may be able to provide
//! one:
//! - the file, its folder and every folder above belong to root, the current (effective) user or the
//!   program's owner, and others may not write them. A group may write only if it is its owner's private
//!   group (group number = user number, as Debian and Fedora set up with umask 002) or the root group;
//! - a sticky folder such as `/tmp` may be an ancestor, since other users cannot rename files that they do not own in it,
//!   but a library directly in one is refused;
//! - an ancestor folder that is also an ancestor of the program needs no check: a user who can replace it can replace
//!   the program. A privileged process does not use this exception;
//! - symlinks are resolved, and the resolved location counts; but a link in a folder that others may write is refused,
//!   because they choose its target;
//! - an access control list counts like the mode bits;
//! - folders that the library itself names for its dependencies are trusted by the same rules;
//! - if `<file>.sha256` is next to the library, its hash must be the file's.

use super::acl::{self, Writer};
use super::error::LoadError;
use super::precheck::{Stamp, open_regular};
use super::privilege::is_privileged;
use super::reason::Distrust;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The users whose files are accepted.
#[derive(Debug, Clone)]
pub struct TrustPolicy {
    /// Ids of users whose files and folders are accepted.
    pub owners: Vec<u32>,
    /// The program's canonical path; folders above it need no check. `None` checks all.
    pub program: Option<PathBuf>,
}

impl TrustPolicy {
    /// The policy of this process.
    pub fn of_process() -> TrustPolicy {
        let program = std::env::current_exe().and_then(|p| p.canonicalize()).ok();
        // SAFETY: geteuid takes no pointers and cannot fail.
        let mut owners = vec![0, unsafe { libc::geteuid() }];
        owners.extend(program.as_deref().and_then(|p| p.metadata().ok()).map(|meta| meta.uid()));
        owners.sort_unstable();
        owners.dedup();
        TrustPolicy { owners, program: program.filter(|_| !is_privileged()) }
    }

    /// Checks a library's file, its folder and the folders above. `path` is canonical.
    pub fn check(&self, path: &Path) -> Result<(), LoadError> {
        let kind = path.metadata().map(|meta| meta.is_file() || meta.is_dir());
        if kind.is_ok_and(|known| !known) {
            return Err(LoadError::NotALibrary {
                expected: "a regular file".to_string(),
                got: "a pipe, socket or device".to_string(),
            });
        }
        self.check_one(path, false)?;
        path.parent().map_or(Ok(()), |folder| self.check_folder(folder))
    }

    /// Checks a folder of libraries and the folders above. `path` is canonical.
    ///
    /// # Errors
    /// `Untrusted`, `Unreadable`.
    pub fn check_folder(&self, path: &Path) -> Result<(), LoadError> {
        self.check_folders(path, false)
    }

    /// Checks folders as [`check_folder`](Self::check_folder); `sticky` is whether a sticky folder is accepted itself, not
    /// only as an ancestor.
    pub(super) fn check_folders(&self, path: &Path, sticky: bool) -> Result<(), LoadError> {
        for (depth, folder) in path.ancestors().enumerate() {
            if depth > 0 && self.program.as_deref().is_some_and(|program| program.starts_with(folder)) {
                // All ancestors of this folder are ancestors of the program too.
                break;
            }
            self.check_one(folder, sticky || depth > 0)?;
        }
        Ok(())
    }

    fn check_one(&self, path: &Path, sticky_is_enough: bool) -> Result<(), LoadError> {
        let meta = path
            .metadata()
            .map_err(|e| LoadError::Unreadable { detail: format!("{}: {e}", path.display()) })?;
        let mode = meta.mode() & 0o7777;
        // With an access control list, the group bits are the mask of all its entries.
        let listed = match mode & 0o020 {
            0 => None,
            _ => acl::writers(path)
                .map_err(|e| LoadError::Unreadable { detail: format!("{}: {e}", path.display()) })?,
        };
        let strange = |writer: &&Writer| match **writer {
            Writer::User(number) => !self.owners.contains(&number),
            Writer::Group(number) => !is_private_group(number, meta.uid()),
            Writer::OwningGroup => !is_private_group(meta.gid(), meta.uid()),
        };
        let stranger =
            listed.iter().flatten().find(strange).map(|writer| writer.distrusted(path, meta.gid()));
        let path = path.to_path_buf();
        let why = if !self.owners.contains(&meta.uid()) {
            Distrust::ForeignOwner { path, owner: meta.uid(), accepted: self.owners.clone() }
        } else if sticky_is_enough && mode & 0o1000 != 0 {
            return Ok(());
        } else if mode & 0o002 != 0 {
            Distrust::WritableByOthers { path, mode }
        } else if let Some(why) = stranger {
            why
        } else if listed.is_none() && mode & 0o020 != 0 && !is_private_group(meta.gid(), meta.uid()) {
            Distrust::WritableByGroup { path, mode, group: meta.gid() }
        } else {
            return Ok(());
        };
        Err(LoadError::Untrusted { why })
    }
}

fn is_private_group(group: u32, owner: u32) -> bool {
    // On Apple systems group 80 is `admin`, whose members may become root.
    group == 0 || group == owner || (cfg!(target_vendor = "apple") && group == 80)
}

/// The SHA-256 of a regular file, in lower-case hexadecimal digits.
pub fn sha256_file(path: &Path) -> Result<String, LoadError> {
    hash_regular(path).map(|(hash, _)| hash)
}

/// The SHA-256 of a regular file, and the file as it was then.
pub(super) fn hash_regular(path: &Path) -> Result<(String, Stamp), LoadError> {
    let (mut file, stamp) = open_regular(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; 1 << 16];
    loop {
        let n = file.read(&mut buffer).map_err(|e| LoadError::Unreadable { detail: e.to_string() })?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
    }
    Ok((hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), stamp))
}

/// Whether `text` is a SHA-256 in hexadecimal digits.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The path of the record of a library's hash: `<file>.sha256`, in the form that `sha256sum` writes.
pub fn record_path(library: &Path) -> PathBuf {
    let mut name = library.as_os_str().to_os_string();
    name.push(".sha256");
    name.into()
}

/// Compares the file with the hash recorded next to it, if there is one.
pub fn check_recorded_hash(
    path: &Path,
    hash: impl FnOnce() -> Result<String, LoadError>,
) -> Result<(), LoadError> {
    let record = record_path(path);
    let refused = |record: PathBuf, detail: String| {
        Err(LoadError::Untrusted { why: Distrust::RecordUnreadable { record, detail } })
    };
    let text = match super::side::read(&record) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return refused(record, e.to_string()),
    };
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let expected: Vec<String> = text.lines().map(first).filter(|word| !word.is_empty()).collect();
    if expected.is_empty() || !expected.iter().all(|word| is_sha256(word)) {
        return refused(record, format!("the text {:?}", super::manifest::excerpt(&text, 40)));
    }
    let got = hash()?;
    // While a library is replaced by another build of the same version, the record names both.
    if expected.contains(&got) {
        return Ok(());
    }
    let expected = expected.join(" or ");
    Err(LoadError::Untrusted { why: Distrust::HashChanged { record, expected, got } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(result: Result<(), LoadError>) -> Distrust {
        match result {
            Err(LoadError::Untrusted { why }) => why,
            other => panic!("expected Untrusted, got {other:?}"),
        }
    }

    fn library() -> (tempfile::TempDir, PathBuf, TrustPolicy) {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().canonicalize().unwrap().join("inner");
        std::fs::create_dir(&inner).unwrap();
        mode(&inner, 0o755);
        let file = inner.join("a.so");
        std::fs::write(&file, "x").unwrap();
        mode(&file, 0o644);
        (folder, file, TrustPolicy { program: None, ..TrustPolicy::of_process() })
    }

    #[test]
    fn own_files_in_own_folders_are_accepted() {
        let (_folder, file, policy) = library();
        assert_eq!(policy.check(&file), Ok(()));
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let (_folder, file, policy) = library();
        mode(&file, 0o646);
        assert_eq!(why(policy.check(&file)), Distrust::WritableByOthers { path: file.clone(), mode: 0o646 });
        mode(&file, 0o644);
        let inner = file.parent().unwrap();
        // The sticky bit does not make the library's own folder acceptable.
        mode(inner, 0o1777);
        assert_eq!(why(policy.check(&file)), Distrust::WritableByOthers { path: inner.into(), mode: 0o1777 });
        mode(inner, 0o755);
        let above = inner.parent().unwrap();
        mode(above, 0o777);
        assert_eq!(why(policy.check(&file)), Distrust::WritableByOthers { path: above.into(), mode: 0o777 });
        mode(above, 0o1777);
        assert_eq!(policy.check(&file), Ok(()));
        mode(above, 0o777);
        let beside = TrustPolicy { program: Some(above.join("bin/keyway")), ..policy };
        assert_eq!(beside.check(&file), Ok(()));
    }

    #[test]
    fn foreign_owners_are_refused() {
        let (_folder, file, policy) = library();
        let owner = file.metadata().unwrap().uid();
        let policy = TrustPolicy { owners: vec![owner.wrapping_add(1)], ..policy };
        assert!(matches!(why(policy.check(&file)), Distrust::ForeignOwner { owner: o, .. } if o == owner));
    }

    #[test]
    fn a_private_group_may_write_and_a_shared_one_may_not() {
        assert!(is_private_group(1000, 1000) && is_private_group(0, 1000));
        assert!(!is_private_group(100, 1000));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn users_and_groups_of_an_access_control_list_count() {
        use std::os::unix::ffi::OsStrExt;
        let (_folder, file, policy) = library();
        let name = std::ffi::CString::new(file.as_os_str().as_bytes()).unwrap();
        let set = |list: &[u8]| {
            let key = c"system.posix_acl_access";
            // SAFETY: the names are C strings, and the list is valid for its length until the call returns.
            unsafe { libc::setxattr(name.as_ptr(), key.as_ptr(), list.as_ptr().cast(), list.len(), 0) == 0 }
        };
        if !set(&acl::tests::list(7, &[(0x02, 6, 54_321)])) {
            println!("not run: this file system has no access control lists");
            return;
        }
        let refused = |who: &str| Distrust::WritableByAcl { path: file.clone(), who: who.to_string() };
        assert_eq!(why(policy.check(&file)), refused("user 54321"));
        assert!(set(&acl::tests::list(7, &[(0x08, 6, 54_322)])));
        assert_eq!(why(policy.check(&file)), refused("group 54322"));
        // Without write permission, or if the mask removes it, no one else may write.
        for list in [acl::tests::list(7, &[(0x02, 4, 54_321)]), acl::tests::list(4, &[(0x02, 6, 54_321)])] {
            assert!(set(&list));
            assert_eq!(policy.check(&file), Ok(()));
        }
    }

    #[test]
    fn a_recorded_hash_must_match() {
        let (_folder, file, _) = library();
        let hash = || sha256_file(&file);
        // SHA-256 of the one byte `x`.
        let real = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        assert_eq!(hash().unwrap(), real);
        assert_eq!(check_recorded_hash(&file, hash), Ok(()));
        std::fs::write(record_path(&file), format!("{}  a.so\n", real.to_uppercase())).unwrap();
        assert_eq!(check_recorded_hash(&file, hash), Ok(()));
        std::fs::write(record_path(&file), "0".repeat(64)).unwrap();
        assert!(
            matches!(why(check_recorded_hash(&file, hash)), Distrust::HashChanged { got, .. } if got == real)
        );
        std::fs::write(record_path(&file), format!("{}  a.so\n{real}  a.so\n", "0".repeat(64))).unwrap();
        assert_eq!(check_recorded_hash(&file, hash), Ok(()));
        std::fs::write(record_path(&file), "nonsense").unwrap();
        assert!(matches!(why(check_recorded_hash(&file, hash)), Distrust::RecordUnreadable { .. }));
    }
}
