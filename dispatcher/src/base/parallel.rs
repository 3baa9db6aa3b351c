//! The thread pool, which plugins use through the host's services.

use super::fork;
use super::scratch_count::Shared;
use once_cell::sync::OnceCell;
use rayon::{ThreadPool, ThreadPoolBuilder};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of forks up to which a process has its own pool; after more, calls run on the calling thread.
const FORKS: usize = 8;
/// One pool for each fork in the history of the process: a child has none of its parent's threads.
static POOLS: [OnceCell<ThreadPool>; FORKS] = [const { OnceCell::new() }; FORKS];
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Work items per thread, so that a delayed thread does not delay the others.
const PIECES_PER_THREAD: usize = 4;

/// The maximum limit of threads on machines with fewer cores: more threads would only wait for each other.
///
/// ```
/// use keyway_dispatcher::parallel::{MOST_THREADS, num_threads, set_num_threads};
/// set_num_threads(usize::MAX);
/// assert!(num_threads() >= MOST_THREADS && num_threads() < usize::MAX);
/// set_num_threads(0);
/// ```
pub const MOST_THREADS: usize = 64;

fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Limits the threads of one call, including the caller; 0, the default, means the number of cores. Results are
/// bit-identical for any number of threads. The pool is created at its first use, with at least as many threads as the
/// limit at that time: a limit raised later has no effect beyond that number and the number of cores. A limit is capped at
/// the larger of [`MOST_THREADS`] and the number of cores.
///
/// ```
/// use keyway_dispatcher::parallel::{num_threads, set_num_threads};
/// set_num_threads(1);
/// assert_eq!(num_threads(), 1);
/// set_num_threads(0);
/// assert!(num_threads() >= 1);
/// ```
#[doc(alias = "RAYON_NUM_THREADS")]
pub fn set_num_threads(threads: usize) {
    LIMIT.store(threads.min(MOST_THREADS.max(cores())), Ordering::Relaxed);
}

/// The maximum number of threads of one call: [`set_num_threads`].
#[doc(alias = "get_num_threads")]
#[inline]
pub fn num_threads() -> usize {
    match LIMIT.load(Ordering::Relaxed) {
        0 => cores(),
        limit => limit,
    }
}

/// The pool; `None` if the system currently cannot create threads, and the next call tries again.
fn pool() -> Option<&'static ThreadPool> {
    let make = || {
        ThreadPoolBuilder::new()
            // The pool has one thread less, since the caller works too.
            .num_threads((num_threads().max(cores()) - 1).max(1))
            .thread_name(|i| format!("keyway-{i}"))
            .build()
    };
    POOLS.get(fork::generation() as usize)?.get_or_try_init(make).ok()
}

/// Makes the calling thread one of the pool's threads, which makes its calls cheaper. For the main thread of a program,
/// before the first use; no effect later.
pub fn adopt_current_thread() {
    let make = || {
        ThreadPoolBuilder::new()
            .num_threads(num_threads().max(cores()))
            .thread_name(|i| format!("keyway-{i}"))
            .use_current_thread()
            .build()
    };
    // Without it the pool is created at its first use, and a call passes its work to another thread.
    let _ = POOLS.get(fork::generation() as usize).map(|pool| pool.get_or_try_init(make));
}

/// Runs `body` over `0..n` in ranges of at least `grain` (the last may be shorter), and returns when all have finished. The
/// ranges depend on the number of threads.
pub fn parallel_for(n: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    if n == 0 {
        return;
    }
    let grain = grain.max(1);
    let threads = num_threads().min(n.div_ceil(grain));
    let pool = if threads > 1 { pool() } else { None };
    let Some(pool) = pool else { return body(0..n) };
    let pieces = (threads * PIECES_PER_THREAD).min(n.div_ceil(grain)).max(threads);
    let piece = n.div_ceil(pieces).max(1);
    let shares = Shares::new(n.div_ceil(piece), threads);
    // The caller works too. Each worker starts with its own share.
    let work = |worker: usize| shares.each(worker, |i| body(i * piece..((i + 1) * piece).min(n)));
    let scratch = Shared::of_this_thread();
    pool.in_place_scope(|scope| {
        for worker in 1..threads {
            let (work, scratch) = (&work, &scratch);
            scope.spawn(move |_| {
                let _counting = scratch.count();
                work(worker);
            });
        }
        work(0);
    });
}

/// Work items divided into one share per worker.
struct Shares {
    pieces: usize,
    /// The next work item of each share.
    next: SmallVec<[AtomicUsize; 8]>,
}

impl Shares {
    fn new(pieces: usize, shares: usize) -> Shares {
        let begin = |share| AtomicUsize::new(share * pieces / shares);
        Shares { pieces, next: (0..shares).map(begin).collect() }
    }

    /// Runs work items until none is left: first from the worker's own share, then from others (work stealing).
    fn each(&self, worker: usize, mut run: impl FnMut(usize)) {
        let shares = self.next.len();
        for share in (0..shares).map(|k| (worker + k) % shares) {
            let end = (share + 1) * self.pieces / shares;
            loop {
                let piece = self.next[share].fetch_add(1, Ordering::Relaxed);
                if piece >= end {
                    break;
                }
                run(piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_index_comes_exactly_once() {
        for n in [0usize, 1, 7, 1000, 4097] {
            for grain in [1usize, 10, 5000] {
                let seen = Mutex::new(vec![0u8; n]);
                parallel_for(n, grain, &|range| {
                    let mut seen = seen.lock().unwrap();
                    range.for_each(|i| seen[i] += 1);
                });
                assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1), "n {n} grain {grain}");
            }
        }
    }

    #[test]
    fn a_worker_takes_its_own_share_first_and_then_what_is_left() {
        let shares = Shares::new(7, 3);
        let mut taken = Vec::new();
        shares.each(4, |piece| taken.push(piece));
        shares.each(0, |piece| taken.push(piece));
        assert_eq!(taken, [2, 3, 4, 5, 6, 0, 1]);
        Shares::new(2, 4).each(1, |piece| taken.push(piece));
        assert_eq!(taken[7..].iter().sum::<usize>(), 1);
    }

    #[test]
    fn calls_may_nest() {
        let total = AtomicUsize::new(0);
        parallel_for(8, 1, &|outer| {
            for _ in outer {
                parallel_for(8, 1, &|inner| {
                    total.fetch_add(inner.len(), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(total.into_inner(), 64);
    }
}
