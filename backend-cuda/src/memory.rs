//! Device memory: a cache of blocks for each stream, or the driver's own pool.
//!
//! `KEYWAY_CUDA_ALLOCATOR=expandable` caches blocks in ranges that grow in place (`ranges.rs`) instead of segments, and `pool`
//! uses the driver's stream-ordered pool, in which no block is split or cached: for tools that detect accesses past the end of an
//! allocation, and for comparison.

mod cache;
mod ranges;
mod snapshot;

use crate::driver::Context;
use cache::{Cache, STEP, Source};
use keyway_sdk::Error;
use keyway_sdk::abi::device::{Queue, RawMemoryStats};
use keyway_sdk::author::{Level, log};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The memory of one device.
#[derive(Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cache: Cache,
    stats: RawMemoryStats,
    /// The pools of the streams that are being captured.
    pools: BTreeMap<usize, usize>,
    /// The number of pools created so far.
    made: usize,
}

/// The memory pool of one graph.
#[derive(Debug)]
pub struct Pool(usize);

/// The environment variable that selects the allocator.
const VARIABLE: &str = "KEYWAY_CUDA_ALLOCATOR";

/// The allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// This library's cache, in segments.
    Cached,
    /// This library's cache, in ranges that grow in place.
    Expandable,
    /// The driver's stream-ordered pool.
    Pool,
}

/// The configured mode.
pub fn mode() -> Mode {
    static MODE: OnceLock<Mode> = OnceLock::new();
    *MODE.get_or_init(|| {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        match value.to_str() {
            Some("") => Mode::Cached,
            Some("expandable") => Mode::Expandable,
            Some("pool") => Mode::Pool,
            _ => {
                let text = format!(
                    "{VARIABLE} is {value:?}, which is no allocator, and the cache is used: `expandable` is a cache whose memory \
                     grows in place, `pool` the driver's own pool; unset it for the cache"
                );
                log(Level::Warn, &text);
                Mode::Cached
            }
        }
    })
}

/// Whether the driver's pool is used.
fn pooled() -> bool {
    mode() == Mode::Pool
}

/// Describes the mode.
pub fn fact() -> String {
    let now = match mode() {
        Mode::Cached => "cached by stream, in segments",
        Mode::Expandable => "cached by stream, in ranges that grow in place",
        Mode::Pool => "the driver's own pool",
    };
    format!("{now}; {VARIABLE} chooses: unset, `expandable` or `pool`")
}

impl Source for Context {
    fn take(&self, bytes: u64) -> Result<u64, Error> {
        self.allocate(bytes)
    }
    fn give(&self, at: u64) -> Result<(), Error> {
        self.free(at)
    }
    fn may_give(&self) -> bool {
        !self.is_capturing()
    }
    fn grows(&self) -> bool {
        mode() == Mode::Expandable
    }
    fn reserve(&self) -> Result<(u64, u64), Error> {
        let reserved = Context::reserve(self, self.total_memory()?, STEP);
        reserved.map_err(|error| match error {
            Error::Failed { detail } => Error::Failed {
                detail: format!("{detail}; unset {VARIABLE}, which asks for memory that grows in place"),
            },
            other => other,
        })
    }
    fn unreserve(&self, at: u64, bytes: u64) -> Result<(), Error> {
        Context::unreserve(self, at, bytes)
    }
    fn map(&self, at: u64, bytes: u64) -> Result<(), Error> {
        Context::map(self, at, bytes)
    }
    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
        Context::unmap(self, at, bytes)
    }
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates at least `bytes` bytes, aligned to 256, usable on `stream`.
    pub fn allocate(&self, context: &Context, bytes: u64, stream: Queue) -> Result<u64, Error> {
        let state = &mut *self.state();
        let limit = state.stats.limit;
        if limit > 0 && state.stats.in_use.saturating_add(bytes) > limit {
            let available = limit.saturating_sub(state.stats.in_use);
            return Err(Error::OutOfMemory { requested: bytes, available });
        }
        let taken = match pooled() {
            true => context.allocate_on(bytes, stream).map(|at| (at, false)),
            false => {
                let user = state.pools.get(&stream.addr()).copied().unwrap_or(stream.addr());
                state.cache.allocate(context, bytes, user)
            }
        };
        let (at, hit) = taken.map_err(|error| match error {
            // If the driver cannot be queried, its free memory is unknown.
            Error::OutOfMemory { .. } => {
                Error::OutOfMemory { requested: bytes, available: context.free_memory().unwrap_or(0) }
            }
            other => other,
        })?;
        let stats = &mut state.stats;
        stats.in_use += bytes;
        stats.held = if pooled() { stats.in_use } else { state.cache.held() };
        stats.peak_in_use = stats.peak_in_use.max(stats.in_use);
        stats.peak_held = stats.peak_held.max(stats.held);
        stats.allocations += 1;
        stats.cache_hits += u64::from(hit);
        Ok(at)
    }

    /// Frees memory of [`Memory::allocate`] with this size and stream, after the work already submitted to the stream.
    pub fn free(&self, context: &Context, at: u64, bytes: u64, stream: Queue) -> Result<(), Error> {
        let state = &mut *self.state();
        match pooled() {
            // Memory that the driver does not free in stream order is freed once the stream is synchronised, otherwise
            // leaked.
            true => context.free_on(at, stream).or_else(|first| {
                let again = context.synchronize_stream(stream).and_then(|()| context.free_on(at, stream));
                again.map_err(|_| first)
            })?,
            false => state.cache.free(at)?,
        }
        let stats = &mut state.stats;
        stats.in_use = stats.in_use.saturating_sub(bytes);
        stats.held = if pooled() { stats.in_use } else { state.cache.held() };
        stats.frees += 1;
        Ok(())
    }

    /// From now on allocates blocks for a stream from a new pool.
    pub fn begin_pool(&self, stream: Queue) -> Result<(), Error> {
        if pooled() {
            return Err(Error::Failed {
                detail: format!(
                    "work is not captured where memory is the driver's pool, whose addresses may change; unset {VARIABLE}"
                ),
            });
        }
        let state = &mut *self.state();
        state.made += 1;
        // A stream's address is even.
        state.pools.insert(stream.addr(), state.made << 1 | 1);
        Ok(())
    }

    /// Ends the pool of a stream. Blocks in use pass to the stream; free blocks stay in the pool.
    pub fn end_pool(&self, stream: Queue) -> Pool {
        let state = &mut *self.state();
        let pool = state.pools.remove(&stream.addr()).unwrap_or_default();
        state.cache.leave(pool, stream.addr());
        Pool(pool)
    }

    /// Makes the blocks of a pool available to all streams. All work that uses them has finished.
    pub fn drop_pool(&self, pool: Pool) {
        self.state().cache.retire(pool.0);
    }

    /// Makes the blocks of an ended stream available to all streams. The stream's work has finished.
    pub fn retire(&self, stream: Queue) {
        self.state().cache.retire(stream.addr());
    }

    /// Returns cached, unused memory to the driver.
    pub fn empty(&self, context: &Context) -> Result<(), Error> {
        let state = &mut *self.state();
        if !pooled() {
            state.cache.empty(context)?;
            state.stats.held = state.cache.held();
        }
        Ok(())
    }

    /// The segments and blocks of the memory, as JSON.
    pub fn snapshot(&self) -> Result<String, Error> {
        match mode() {
            Mode::Pool => {
                Err(Error::Unsupported { what: "an account of memory that the driver's pool keeps".into() })
            }
            Mode::Cached => Ok(self.state().cache.snapshot("cache")),
            Mode::Expandable => Ok(self.state().cache.snapshot("expandable")),
        }
    }

    /// The statistics.
    pub fn stats(&self) -> RawMemoryStats {
        self.state().stats
    }

    /// Resets the peaks.
    pub fn reset_peak(&self) {
        let stats = &mut self.state().stats;
        (stats.peak_in_use, stats.peak_held) = (stats.in_use, stats.held);
    }

    /// Limits the bytes in use; 0 removes the limit.
    pub fn set_limit(&self, bytes: u64) {
        self.state().stats.limit = bytes;
    }
}
