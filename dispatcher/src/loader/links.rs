//! Checks the symbolic links in the path of a library: a user who may change one chooses what is loaded.

use super::error::LoadError;
use super::reason::Distrust;
use super::trust::TrustPolicy;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The maximum number of links followed, as in the system.
const MAX_LINKS: usize = 40;

fn unreadable(path: &Path, error: impl std::fmt::Display) -> LoadError {
    LoadError::Unreadable { detail: format!("{}: {error}", path.display()) }
}

impl TrustPolicy {
    /// Checks each symbolic link in `path`: it belongs to an accepted user, and is in a folder in which no other user can
    /// replace it.
    ///
    /// # Errors
    /// `Untrusted`, `Unreadable`.
    pub fn check_way(&self, path: &Path) -> Result<(), LoadError> {
        let path = std::path::absolute(path).map_err(|error| unreadable(path, error))?;
        // Next component last.
        let mut ahead: Vec<OsString> = Vec::new();
        let queue = |ahead: &mut Vec<OsString>, path: &Path| {
            ahead.extend(path.components().rev().map(|part| part.as_os_str().to_os_string()));
        };
        queue(&mut ahead, &path);
        let (mut here, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = ahead.pop() {
            match Path::new(&part).components().next() {
                Some(Component::RootDir) => here = PathBuf::from("/"),
                Some(Component::ParentDir) => drop(here.pop()),
                Some(Component::Normal(name)) => {
                    let next = here.join(name);
                    let meta = match next.symlink_metadata() {
                        Ok(meta) => meta,
                        // A missing file is reported by the caller.
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                        Err(error) => return Err(unreadable(&next, error)),
                    };
                    if !meta.is_symlink() {
                        here = next;
                        continue;
                    }
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(unreadable(&path, "too many symbolic links"));
                    }
                    if !self.owners.contains(&meta.uid()) {
                        let (owner, accepted) = (meta.uid(), self.owners.clone());
                        let why = Distrust::ForeignOwner { path: next, owner, accepted };
                        return Err(LoadError::Untrusted { why });
                    }
                    // In a sticky folder other users cannot rename or remove files that they do not own.
                    self.check_folders(&here, true)?;
                    let target = next.read_link().map_err(|error| unreadable(&next, error))?;
                    queue(&mut ahead, &target);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_link_that_others_can_turn_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (own, open) = (root.join("own"), root.join("open"));
        for path in [&own, &open] {
            std::fs::create_dir(path).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let library = own.join("a.so");
        std::fs::write(&library, "x").unwrap();
        symlink("../own", open.join("folder")).unwrap();
        symlink("folder/a.so", open.join("a.so")).unwrap();
        let policy = TrustPolicy { program: None, ..TrustPolicy::of_process() };
        let ways = [open.join("a.so"), open.join("folder/a.so"), open.join("folder/../own/a.so")];
        for way in &ways {
            assert_eq!(policy.check_way(way), Ok(()), "{}", way.display());
        }
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        for way in &ways {
            let Err(LoadError::Untrusted { why }) = policy.check_way(way) else {
                panic!("{}", way.display())
            };
            assert_eq!(why, Distrust::WritableByOthers { path: open.clone(), mode: 0o777 });
        }
        // The target of the links passes the checks.
        assert_eq!((policy.check_way(&library), policy.check(&library)), (Ok(()), Ok(())));
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(policy.check_way(&ways[0]), Ok(()), "a sticky folder keeps links their owner's");
        let strangers = TrustPolicy { owners: vec![u32::MAX - 1], program: None };
        assert!(matches!(
            strangers.check_way(&ways[0]),
            Err(LoadError::Untrusted { why: Distrust::ForeignOwner { .. } })
        ));
    }

    #[test]
    fn a_circle_is_an_error_and_a_dangling_link_is_not_this_ones() {
        let folder = tempfile::tempdir().unwrap();
        let circle = folder.path().canonicalize().unwrap().join("circle");
        symlink(&circle, &circle).unwrap();
        let policy = TrustPolicy::of_process();
        assert!(matches!(policy.check_way(&circle), Err(LoadError::Unreadable { .. })));
        let dangling = circle.with_file_name("dangling");
        symlink("nowhere", &dangling).unwrap();
        assert_eq!(policy.check_way(&dangling), Ok(()));
    }
}
