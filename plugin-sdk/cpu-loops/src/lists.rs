//! Lists whose length depends on a call's arguments.

use keyway_sdk::author::Error;

/// An empty list with capacity for this many elements, or an error: a list that grows beyond available memory aborts
/// the program.
///
/// # Errors
/// Out of memory.
pub fn reserve<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    let requested = count.saturating_mul(size_of::<T>()) as u64;
    match list.try_reserve_exact(count) {
        Ok(()) => Ok(list),
        Err(_) => Err(Error::OutOfMemory { requested, available: 0 }),
    }
}
