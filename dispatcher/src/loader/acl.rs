//! POSIX access control lists: users and groups with write access beyond the mode bits.

use super::reason::Distrust;
use std::path::Path;

/// A user or group to which an access control list grants write access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// A user id.
    User(u32),
    /// A group id.
    Group(u32),
    /// The file's own group.
    OwningGroup,
}

impl Writer {
    /// The reason for not trusting a path that this user or group may write.
    pub(super) fn distrusted(self, path: &Path, group: u32) -> Distrust {
        let who = match self {
            Writer::User(number) => format!("user {number}"),
            Writer::Group(number) => format!("group {number}"),
            Writer::OwningGroup => format!("group {group}"),
        };
        Distrust::WritableByAcl { path: path.to_path_buf(), who }
    }
}

/// The named users and groups with write access in the access control list of a file or folder; `None` if it has no list.
#[cfg(target_os = "linux")]
pub(super) fn writers(path: &Path) -> Result<Option<Vec<Writer>>, String> {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let mut bytes = vec![0u8; 1 << 16];
    // SAFETY: both names are C strings, and the buffer is valid for its length until the call returns.
    let length = unsafe {
        libc::getxattr(
            name.as_ptr(),
            c"system.posix_acl_access".as_ptr(),
            bytes.as_mut_ptr().cast(),
            bytes.len(),
        )
    };
    match usize::try_from(length) {
        Ok(length) => parse(&bytes[..length.min(bytes.len())]).map(Some),
        Err(_) => match std::io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::ENODATA | libc::ENOTSUP | libc::ENOSYS)) => {
                Ok(None)
            }
            error => Err(error.to_string()),
        },
    }
}

/// Other systems have other formats, which are not read.
#[cfg(not(target_os = "linux"))]
pub(super) fn writers(_path: &Path) -> Result<Option<Vec<Writer>>, String> {
    Ok(None)
}

/// Parses a list in the format of Linux: a version, then tag, rights and id of each entry.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has this format"))]
fn parse(bytes: &[u8]) -> Result<Vec<Writer>, String> {
    const USER: u16 = 0x02;
    const GROUP_OBJ: u16 = 0x04;
    const GROUP: u16 = 0x08;
    const MASK: u16 = 0x10;
    let wrong = || format!("an access control list of {} bytes that cannot be read", bytes.len());
    let (version, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
    let (entries, left) = rest.as_chunks::<8>();
    if u32::from_le_bytes(*version) != 2 || !left.is_empty() {
        return Err(wrong());
    }
    let entries: Vec<(u16, bool, u32)> = entries
        .iter()
        .map(|&[t0, t1, p0, p1, n @ ..]| {
            (u16::from_le_bytes([t0, t1]), u16::from_le_bytes([p0, p1]) & 2 != 0, u32::from_le_bytes(n))
        })
        .collect();
    // The mask limits the rights of all but the owner and others.
    if entries.iter().any(|(tag, writes, _)| *tag == MASK && !writes) {
        return Ok(Vec::new());
    }
    let writer = |(tag, writes, number): &(u16, bool, u32)| match *tag {
        _ if !writes => None,
        USER => Some(Writer::User(*number)),
        GROUP => Some(Writer::Group(*number)),
        GROUP_OBJ => Some(Writer::OwningGroup),
        _ => None,
    };
    Ok(entries.iter().filter_map(writer).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A list with these entries (tag, rights, id) between the entries that each list has.
    pub(crate) fn list(mask: u16, named: &[(u16, u16, u32)]) -> Vec<u8> {
        let none = u32::MAX;
        let mut entries = vec![(0x01, 6, none)];
        entries.extend(named.iter().filter(|(tag, ..)| *tag == 0x02));
        entries.push((0x04, 0, none));
        entries.extend(named.iter().filter(|(tag, ..)| *tag == 0x08));
        entries.extend([(0x10, mask, none), (0x20, 4, none)]);
        let mut bytes = 2u32.to_le_bytes().to_vec();
        for (tag, rights, number) in entries {
            bytes.extend(u16::to_le_bytes(tag));
            bytes.extend(u16::to_le_bytes(rights));
            bytes.extend(u32::to_le_bytes(number));
        }
        bytes
    }

    #[test]
    fn the_mask_bounds_what_named_users_and_groups_may() {
        let named = [(0x02, 6, 1001), (0x02, 4, 1002), (0x08, 7, 50)];
        assert_eq!(parse(&list(7, &named)), Ok(vec![Writer::User(1001), Writer::Group(50)]));
        assert_eq!(parse(&list(5, &named)), Ok(Vec::new()));
        assert!(parse(b"").is_err() && parse(&[2, 0, 0, 0, 1]).is_err() && parse(&[3, 0, 0, 0]).is_err());
        assert_eq!(parse(&[2, 0, 0, 0]), Ok(Vec::new()));
    }
}
