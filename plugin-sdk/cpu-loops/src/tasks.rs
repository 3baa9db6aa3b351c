//! Parallel loops.

use keyway_sdk::author::{Error, parallel_for};
use std::ops::Range;

/// [`parallel_for`] with a fallible body: returns one of the errors after all work items have finished.
///
/// # Errors
/// An error of the body, or of the host's service.
pub fn parallel_try(
    n: usize,
    grain: usize,
    body: impl Fn(Range<usize>) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    if n <= grain.max(1) {
        return body(0..n);
    }
    let failed = std::sync::Mutex::new(None);
    parallel_for(n, grain, |range| {
        if let Err(error) = body(range) {
            failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
        }
    })?;
    failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}
