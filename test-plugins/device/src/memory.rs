//! Pages that are accessible only while they are open.

use keyway_sdk::author::Error;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

struct Pages {
    bytes: usize,
    open: usize,
}

static PAGES: Mutex<BTreeMap<usize, Pages>> = Mutex::new(BTreeMap::new());

fn pages() -> MutexGuard<'static, BTreeMap<usize, Pages>> {
    PAGES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn system(what: &str) -> Error {
    Error::Failed { detail: format!("{what}: {}", std::io::Error::last_os_error()) }
}

/// Maps pages from the system, inaccessible.
pub fn map(bytes: usize) -> Result<usize, Error> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping at an address that the system chooses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(system("mmap"));
    }
    pages().insert(at as usize, Pages { bytes, open: 0 });
    Ok(at as usize)
}

/// Unmaps pages; later use of them is an error of the work that tries.
pub fn unmap(at: usize) -> Result<(), Error> {
    let Some(gone) = pages().remove(&at) else {
        return Err(Error::Failed { detail: format!("{at:#x} was freed before") });
    };
    // SAFETY: the mapping is this module's and was taken out of the list, so it is unmapped once.
    if unsafe { libc::munmap(at as *mut libc::c_void, gone.bytes) } != 0 {
        return Err(system("munmap"));
    }
    Ok(())
}

/// A guard: while it lives, the pages around an address are accessible.
pub struct Opened {
    start: usize,
}

impl Opened {
    /// Makes the pages that contain `at` accessible.
    pub fn new(at: usize) -> Result<Opened, String> {
        let mut all = pages();
        let Some((&start, found)) = all.range_mut(..=at).next_back().filter(|(s, p)| at < *s + p.bytes)
        else {
            return Err(format!(
                "work on {at:#x}, which is no memory of this device: it was freed too early"
            ));
        };
        if found.open == 0 {
            protect(start, found.bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        }
        found.open += 1;
        Ok(Opened { start })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(found) = pages().get_mut(&self.start) {
            found.open -= 1;
            if found.open == 0 {
                // Pages that remain accessible only weaken error detection.
                let _ = protect(self.start, found.bytes, libc::PROT_NONE);
            }
        }
    }
}

fn protect(start: usize, bytes: usize, access: i32) -> Result<(), String> {
    // SAFETY: the pages are this module's own mapping.
    match unsafe { libc::mprotect(start as *mut libc::c_void, bytes, access) } {
        0 => Ok(()),
        _ => Err(format!("mprotect: {}", std::io::Error::last_os_error())),
    }
}
