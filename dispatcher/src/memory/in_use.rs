//! Integers in use: a reader-writer lock on address ranges. While an op reads indices, a mask or the structure of a sparse
//! tensor, no other thread writes to them, and vice versa.
//!
//! A kernel checks indices, then computes addresses from them: if they changed in between, it would access memory out of
//! bounds. So each op records the address ranges in which it reads integers, and those in which it writes them. Any number
//! of readers, or of writers, may use the same range concurrently; readers and writers exclude each other in first-come
//! order, and no thread waits for itself. Floats are not recorded: a race on them yields mixed values, but no wrong
//! address.
//!
//! Deadlock is impossible: an op locks storages in the order of their addresses, each with all its ranges in it. An op that
//! already holds some storage waits for holders of the next one, not for ops that wait for it.

use super::Storage;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::fork;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// The kind of access of an op to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Reads it, and computes addresses from the values.
    Read,
    /// Writes to it.
    Write,
}

/// An address range in a storage, and the kind of access.
#[derive(Clone, Debug)]
pub(crate) struct Access<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) range: Range<usize>,
    pub(crate) kind: Use,
}

/// Whether elements of this dtype may be indices or masks: all dtypes but floats.
#[inline(always)]
pub(crate) fn may_choose(dtype: DType) -> bool {
    const FLOATS: u64 = 1 << DType::F16.0 | 1 << DType::BF16.0 | 1 << DType::F32.0 | 1 << DType::F64.0;
    dtype.0 >= 64 || FLOATS & (1 << dtype.0) == 0
}

/// A range in use, or one that an op waits for.
struct Entry {
    range: Range<usize>,
    kind: Use,
    thread: usize,
    /// The ticket of all ranges of an op in one storage; later ops have larger ones.
    ticket: u64,
    waits: bool,
}

impl Entry {
    /// Whether this entry excludes an op of thread `thread` from a range.
    fn excludes(&self, access: &Access<'_>, thread: usize) -> bool {
        let meets = self.range.start < access.range.end && access.range.start < self.range.end;
        self.thread != thread && self.kind != access.kind && meets
    }
}

#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    last_ticket: u64,
    waiting: usize,
    /// The process of the entries: after a fork, the other threads' ops do not exist in the child.
    generation: u32,
}

/// The ranges of the storages whose addresses hash to this shard.
struct Shard {
    entries: Mutex<Entries>,
    fewer: Condvar,
}

const SHARDS: usize = 64;
static PLACES: [Shard; SHARDS] = [const {
    Shard {
        entries: Mutex::new(Entries { list: Vec::new(), last_ticket: 0, waiting: 0, generation: 0 }),
        fewer: Condvar::new(),
    }
}; SHARDS];

impl Shard {
    fn of(storage: &Storage) -> &'static Shard {
        // The low bits carry no information: a storage has some tens of bytes.
        let address = address(storage);
        &PLACES[((address / 64) ^ (address / 4096)) % SHARDS]
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        static PROTECTED: Once = Once::new();
        PROTECTED.call_once(|| {
            fork::protect(|| Box::new(PLACES.each_ref().map(|shard| ignoring_poison(shard.entries.lock()))));
        });
        let mut entries = ignoring_poison(self.entries.lock());
        let now = fork::generation();
        if entries.generation != now {
            let own = thread();
            entries.list.retain(|entry| entry.thread == own);
            entries.generation = now;
        }
        entries
    }
}

fn ignoring_poison<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

impl Entries {
    /// Whether another thread's op blocks these ranges: an op that uses them or, for an op with `ticket`, an op that waits
    /// for them ahead of it.
    fn are_taken(&self, accesses: &[Access<'_>], ticket: Option<u64>) -> bool {
        let thread = thread();
        let counts = |entry: &Entry| !entry.waits || ticket.is_some_and(|ticket| entry.ticket < ticket);
        let taken = |access| self.list.iter().any(|entry| counts(entry) && entry.excludes(access, thread));
        accesses.iter().any(taken)
    }

    fn add(&mut self, accesses: &[Access<'_>], ticket: u64, waits: bool) {
        let thread = thread();
        self.list.extend(accesses.iter().map(|access| Entry {
            range: access.range.clone(),
            kind: access.kind,
            thread,
            ticket,
            waits,
        }));
    }
}

thread_local! {
    /// The number of storages that this thread's ops hold. Its address identifies the thread.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

fn thread() -> usize {
    INSIDE.with(|inside| std::ptr::from_ref(inside).addr())
}

/// The maximum time that an op waits for those of other threads: longer than any op takes, so that it expires only in a
/// program with a deadlock.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(60) };

/// Address ranges in use until this is dropped. Callers box it, so that a call without integers carries only a null pointer.
#[derive(Default)]
pub(crate) struct InUse {
    entered: SmallVec<[(&'static Shard, u64); 4]>,
    /// Whether some memory that is read may also be written as floats, by ops that are not recorded.
    pub(crate) may_be_written_as_floats: bool,
}

impl InUse {
    /// Waits until no other thread blocks any of these ranges, then holds all of them.
    ///
    /// # Errors
    /// `InUse` of `op` after a minute.
    #[inline(never)]
    pub(crate) fn enter(op: &'static str, accesses: &mut [Access<'_>]) -> Result<Box<InUse>> {
        accesses.sort_unstable_by_key(|access| address(access.storage));
        let mut entered = Box::new(InUse::default());
        for of_storage in accesses.chunk_by(|a, b| a.storage.same_as(b.storage)) {
            entered.enter_storage(op, of_storage)?;
        }
        let floats = |access: &Access<'_>| access.kind == Use::Read && access.storage.may_hold_floats_too();
        entered.may_be_written_as_floats = accesses.iter().any(floats);
        Ok(entered)
    }

    fn enter_storage(&mut self, op: &'static str, accesses: &[Access<'_>]) -> Result<()> {
        let shard = Shard::of(accesses[0].storage);
        let mut entries = shard.lock();
        entries.last_ticket += 1;
        let ticket = entries.last_ticket;
        let behind = (INSIDE.get() == 0).then_some(ticket);
        let taken = entries.are_taken(accesses, behind);
        entries.add(accesses, ticket, taken);
        if taken {
            entries.waiting += 1;
            let begun = Instant::now();
            let mut in_time = true;
            while in_time && entries.are_taken(accesses, behind) {
                let left = PATIENCE.saturating_sub(begun.elapsed());
                in_time = !left.is_zero();
                entries = ignoring_poison(shard.fewer.wait_timeout(entries, left)).0;
            }
            entries.waiting -= 1;
            if !in_time {
                entries.list.retain(|entry| entry.ticket != ticket);
                drop(entries);
                // Ops that wait for this one need not wait any more.
                shard.fewer.notify_all();
                let reads = accesses.iter().any(|access| access.kind == Use::Read);
                return Err(Error::InUse { op, writes: reads });
            }
            entries
                .list
                .iter_mut()
                .filter(|entry| entry.ticket == ticket)
                .for_each(|entry| entry.waits = false);
        }
        drop(entries);
        INSIDE.set(INSIDE.get() + 1);
        self.entered.push((shard, ticket));
        Ok(())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        for &(shard, ticket) in &self.entered {
            let mut entries = shard.lock();
            entries.list.retain(|entry| entry.ticket != ticket);
            let waiting = entries.waiting > 0;
            drop(entries);
            if waiting {
                shard.fewer.notify_all();
            }
            INSIDE.set(INSIDE.get() - 1);
        }
    }
}

fn address(storage: &Storage) -> usize {
    std::ptr::from_ref(&*storage.0).addr()
}

/// The kinds of dtypes of the tensors over a storage: integers, floats.
pub(super) struct Holds(AtomicU8);

/// Integer tensors exist.
const INTEGERS: u8 = 1;
/// Float tensors, whose writers are not recorded, may exist too.
const FLOATS_TOO: u8 = 2;

impl Holds {
    pub(super) const fn nothing() -> Holds {
        Holds(AtomicU8::new(0))
    }
}

impl Storage {
    fn holds(&self) -> &AtomicU8 {
        &self.0.holds.0
    }

    /// Records the dtype of the first tensor over a new storage.
    #[inline(always)]
    pub(crate) fn begin_with(&self, dtype: DType) {
        if may_choose(dtype) {
            self.holds().store(INTEGERS, Ordering::Relaxed);
        }
    }

    /// Records the dtype of a tensor about to be created over this storage, after waiting for ops that read integers in it
    /// and would not detect its writers.
    ///
    /// # Errors
    /// As [`InUse::enter`].
    pub(crate) fn also_hold(&self, op: &'static str, dtype: DType) -> Result<()> {
        let noted = match (may_choose(dtype), self.holds_integers()) {
            (true, true) | (false, false) => return Ok(()),
            // Another owner of the storage may have created a float tensor.
            (true, false) if self.is_unique() => INTEGERS,
            _ => INTEGERS | FLOATS_TOO,
        };
        let _alone = InUse::enter(op, &mut [self.access(0..self.bytes(), Use::Write)])?;
        self.holds().fetch_or(noted, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of this storage.
    pub(crate) fn access(&self, bytes: Range<usize>, kind: Use) -> Access<'_> {
        let first = self.pointer().addr().get();
        Access { storage: self, range: first + bytes.start..first + bytes.end, kind }
    }

    /// Whether integer tensors over this storage exist.
    pub(super) fn holds_integers(&self) -> bool {
        self.holds().load(Ordering::Relaxed) & INTEGERS != 0
    }

    /// Whether writers that are not recorded may exist.
    pub(crate) fn may_hold_floats_too(&self) -> bool {
        self.holds().load(Ordering::Relaxed) & FLOATS_TOO != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::Device;
    use std::cell::RefCell;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    fn integers() -> Storage {
        let storage = Storage::allocate(Device::CPU, 64).unwrap();
        storage.begin_with(DType::I64);
        storage
    }

    fn use_of(storage: &Storage, kind: Use) -> Result<Box<InUse>> {
        InUse::enter("example", &mut [storage.access(0..64, kind)])
    }

    fn other(kind: Use) -> Use {
        if kind == Use::Read { Use::Write } else { Use::Read }
    }

    /// Runs `run` on another thread.
    fn elsewhere<R: Send>(run: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    fn is_refused(accesses: &mut [Access<'_>], word: &str) {
        let text = elsewhere(|| InUse::enter("example", accesses).err().expect("in the way").to_string());
        assert!(text.contains(word) && text.contains("`copy()`"), "{text}");
    }

    #[test]
    fn all_dtypes_but_floats_may_choose() {
        for dtype in DType::REAL.into_iter().chain([DType::C64]) {
            assert_eq!(may_choose(dtype), !dtype.is_float(), "{dtype}");
        }
        assert!(may_choose(DType(65)) && may_choose(DType(20)));
    }

    #[test]
    fn one_side_waits_for_the_other_and_no_thread_for_itself() {
        let storage = &integers();
        for (kind, word) in [(Use::Read, "read"), (Use::Write, "write to")] {
            let held = use_of(storage, kind).unwrap();
            let both = [Use::Read, Use::Write, Use::Write];
            drop(InUse::enter("example", &mut both.map(|kind| storage.access(0..64, kind))).unwrap());
            elsewhere(|| drop(use_of(storage, kind).unwrap()));
            is_refused(&mut [storage.access(0..64, other(kind))], word);
            is_refused(&mut [storage.access(60..64, other(kind))], word);
            drop(held);
            elsewhere(|| drop(use_of(storage, other(kind)).unwrap()));
        }
        assert_eq!(INSIDE.get(), 0);
    }

    #[test]
    fn disjoint_ranges_are_used_at_once() {
        let storage = &integers();
        let _first = InUse::enter("example", &mut [storage.access(0..32, Use::Read)]).unwrap();
        elsewhere(|| drop(InUse::enter("example", &mut [storage.access(32..64, Use::Write)]).unwrap()));
        is_refused(&mut [storage.access(31..64, Use::Write)], "read");
    }

    #[test]
    fn who_waits_goes_before_those_who_come_later() {
        let storage = &integers();
        let first = use_of(storage, Use::Read).unwrap();
        let (send, order) = mpsc::channel();
        std::thread::scope(|scope| {
            let writer = send.clone();
            scope.spawn(move || {
                let _held = use_of(storage, Use::Write).unwrap();
                writer.send("writer").unwrap();
            });
            let begins = storage.pointer().addr().get();
            let waits = |entry: &Entry| entry.waits && entry.range.start == begins;
            while !Shard::of(storage).lock().list.iter().any(waits) {
                std::thread::yield_now();
            }
            scope.spawn(move || {
                let _held = use_of(storage, Use::Read).unwrap();
                send.send("reader").unwrap();
            });
            // A thread that already reads is not blocked by a waiting one.
            drop(use_of(storage, Use::Read).unwrap());
            assert!(order.recv_timeout(Duration::from_millis(20)).is_err());
            drop(first);
            assert_eq!([order.recv().unwrap(), order.recv().unwrap()], ["writer", "reader"]);
        });
    }

    #[test]
    fn ops_that_use_the_same_storages_crosswise_come_to_an_end() {
        let (a, b) = (&integers(), &integers());
        let run = |read: &Storage, written: &Storage| {
            for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
                let mut accesses = [read.access(0..64, Use::Read), written.access(0..64, Use::Write)];
                drop(InUse::enter("example", &mut accesses).unwrap());
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| run(a, b));
            scope.spawn(|| run(b, a));
            scope.spawn(|| run(a, a));
        });
    }

    #[test]
    fn readers_see_no_half_written_memory() {
        let storage = &Storage::from_vec(vec![0u64; 8]);
        let stop = &AtomicBool::new(false);
        let each = |value: u64| super::super::write_bytes(storage, 0, &[value as u8; 64]).unwrap();
        storage.begin_with(DType::U64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..if cfg!(miri) { 20 } else { 20_000 }).for_each(each);
                stop.store(true, Ordering::Relaxed);
            });
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _reads = use_of(storage, Use::Read).unwrap();
                    let first = storage.to_bytes().unwrap();
                    assert!(first.iter().all(|byte| *byte == first[0]));
                    assert_eq!(first, storage.to_bytes().unwrap());
                }
            });
        });
    }

    #[test]
    fn what_a_thread_calls_while_it_ends_does_not_wait_for_itself() {
        /// Uses a storage in both ways while the thread's own values are dropped.
        struct Late(Storage);
        impl Drop for Late {
            fn drop(&mut self) {
                let both = [Use::Read, Use::Write].map(|kind| self.0.access(0..64, kind));
                let begun = Instant::now();
                assert!(InUse::enter("example", &mut both.clone()).is_ok() && begun.elapsed() < PATIENCE);
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let storage = integers();
        let own = storage.clone();
        std::thread::spawn(move || LATE.set(Some(Late(own)))).join().unwrap();
        drop(use_of(&storage, Use::Write).unwrap());
    }

    #[test]
    fn memory_of_both_kinds_is_reported_as_such() {
        let storage = integers();
        storage.also_hold("example", DType::I32).unwrap();
        assert!(!storage.may_hold_floats_too());
        storage.also_hold("example", DType::F32).unwrap();
        assert!(storage.may_hold_floats_too());
        assert!(use_of(&storage, Use::Read).unwrap().may_be_written_as_floats);
        let alone = Storage::from_vec(vec![0u32]);
        alone.also_hold("example", DType::U32).unwrap();
        assert!(alone.holds_integers() && !alone.may_hold_floats_too());
        let shared = Storage::from_vec(vec![0f32]);
        let other = shared.clone();
        shared.also_hold("example", DType::F32).unwrap();
        assert!(!other.holds_integers());
        other.also_hold("example", DType::U32).unwrap();
        assert!(shared.may_hold_floats_too());
    }
}
