//! Integers in use: while an op reads indices, a mask or the structure of a sparse tensor, no other thread writes to them, and
//! the other way round.
//!
//! A kernel looks at indices, then goes by them: changed in between, they lead beyond a tensor's memory. So a storage counts the
//! ops that read it as integers and those that write to it. Any number may read at once, or write; readers and writers wait for
//! each other, but no thread for itself. Floats are not counted: of what is written meanwhile some is read and some is not, which
//! leads nowhere.

use super::Storage;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What an op does with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Reads it, and goes by what it has read.
    Read,
    /// Writes to it.
    Write,
}

impl Use {
    fn other(self) -> Use {
        if self == Use::Read { Use::Write } else { Use::Read }
    }

    /// One op of this kind, in the state of a storage.
    fn one(self) -> u64 {
        if self == Use::Read { 1 } else { 1 << 32 }
    }

    /// How many ops of this kind a state counts.
    fn count(self, state: u64) -> usize {
        let both = if self == Use::Read { state } else { state >> 32 };
        (both & 0x3fff_ffff) as usize
    }
}

/// Tensors of integers lie in the storage.
const INTEGERS: u64 = 1 << 62;
/// Tensors of floats may lie there too, whose writers are not counted.
const FLOATS_TOO: u64 = 1 << 63;

/// How a storage is used: readers in the lower half, writers in the upper one, and what lies there.
pub(super) struct Users(AtomicU64);

impl Users {
    pub(super) const fn none() -> Users {
        Users(AtomicU64::new(0))
    }
}

/// Whether elements of this dtype may be indices, or choose others: all but floats.
#[inline(always)]
pub(crate) fn may_choose(dtype: DType) -> bool {
    const FLOATS: u64 = 1 << DType::F16.0 | 1 << DType::BF16.0 | 1 << DType::F32.0 | 1 << DType::F64.0;
    dtype.0 >= 64 || FLOATS & (1 << dtype.0) == 0
}

/// The addresses of storages, and how each is used.
type List = SmallVec<[(usize, Use); 8]>;

thread_local! {
    /// What this thread's ops use. Without a destructor, so that it is there for what a thread calls while it ends.
    static OWN: RefCell<ManuallyDrop<List>> = RefCell::new(ManuallyDrop::new(List::new()));
}

/// How long an op waits for those of other threads before it fails: longer than any takes, so that only a program in which two
/// wait for each other sees the end of it.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(60) };

/// Storages in use until this is dropped. Boxed by those who make one, so that a call without integers carries but a null.
pub(crate) struct InUse<'a>(SmallVec<[(&'a Storage, Use); 4]>);

impl<'a> InUse<'a> {
    /// Waits until no other thread is in the way, then uses all of these.
    ///
    /// # Errors
    /// `InUse` of `op` after a minute.
    #[inline(never)]
    pub(crate) fn enter(op: &'static str, wanted: &[(&'a Storage, Use)]) -> Result<Box<InUse<'a>>> {
        let mut entered = Box::new(InUse(SmallVec::new()));
        let mut waited: Option<(Instant, u32)> = None;
        loop {
            let Some(&(_, kind)) = wanted.iter().find(|&&(storage, kind)| !entered.take(storage, kind))
            else {
                return Ok(entered);
            };
            // Nothing is kept while others are waited for, so that two calls never wait for each other.
            entered.leave();
            let (since, times) = waited.get_or_insert_with(|| (Instant::now(), 0));
            *times += 1;
            match *times {
                ..=16 => std::hint::spin_loop(),
                17..=64 => std::thread::yield_now(),
                _ if since.elapsed() > PATIENCE => {
                    return Err(Error::InUse { op, writes: kind == Use::Read });
                }
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }

    /// Uses one more, unless another thread is in the way.
    fn take(&mut self, storage: &'a Storage, kind: Use) -> bool {
        let state = &storage.0.users.0;
        let mut now = state.load(Ordering::Relaxed);
        loop {
            let others = kind.other().count(now);
            if others > 0 && others > own(storage, kind.other()) {
                return false;
            }
            // Acquires what the others have written and released.
            match state.compare_exchange_weak(now, now + kind.one(), Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        self.0.push((storage, kind));
        OWN.with_borrow_mut(|list| list.push((address(storage), kind)));
        true
    }

    /// Whether some of what is read may be written to as floats, and so by ops that are not counted.
    pub(crate) fn may_be_written_as_floats(&self) -> bool {
        self.0.iter().any(|&(storage, kind)| kind == Use::Read && storage.may_hold_floats_too())
    }

    fn leave(&mut self) {
        while let Some((storage, kind)) = self.0.pop() {
            OWN.with_borrow_mut(|list| {
                if let Some(at) = list.iter().rposition(|&entry| entry == (address(storage), kind)) {
                    list.swap_remove(at);
                }
                if list.is_empty() && list.spilled() {
                    drop(std::mem::take(&mut **list));
                }
            });
            storage.0.users.0.fetch_sub(kind.one(), Ordering::Release);
        }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

fn address(storage: &Storage) -> usize {
    std::ptr::from_ref(&*storage.0).addr()
}

/// How often this thread itself uses a storage so.
fn own(storage: &Storage, kind: Use) -> usize {
    let place = (address(storage), kind);
    OWN.with_borrow(|list| list.iter().filter(|&&entry| entry == place).count())
}

impl Storage {
    /// Notes what the first tensor over a new storage holds.
    #[inline(always)]
    pub(crate) fn begin_with(&self, dtype: DType) {
        if may_choose(dtype) {
            self.0.users.0.store(INTEGERS, Ordering::Relaxed);
        }
    }

    /// Notes what a tensor that is about to be made over this storage holds, once no op reads it that would not see its writers.
    ///
    /// # Errors
    /// As [`InUse::enter`].
    pub(crate) fn also_hold(&self, op: &'static str, dtype: DType) -> Result<()> {
        let held = self.0.users.0.load(Ordering::Relaxed) & INTEGERS != 0;
        let noted = match (may_choose(dtype), held) {
            (true, true) | (false, false) => return Ok(()),
            // Who else has the storage may have made a tensor of floats.
            (true, false) if self.is_unique() => INTEGERS,
            _ => INTEGERS | FLOATS_TOO,
        };
        let _alone = InUse::enter(op, &[(self, Use::Write)])?;
        self.0.users.0.fetch_or(noted, Ordering::Relaxed);
        Ok(())
    }

    /// Whether tensors of integers lie here.
    pub(super) fn holds_integers(&self) -> bool {
        self.0.users.0.load(Ordering::Relaxed) & INTEGERS != 0
    }

    /// Whether others may write to this storage without being counted.
    pub(crate) fn may_hold_floats_too(&self) -> bool {
        self.0.users.0.load(Ordering::Relaxed) & FLOATS_TOO != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::Device;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    fn integers() -> Storage {
        let storage = Storage::allocate(Device::CPU, 64).unwrap();
        storage.begin_with(DType::I64);
        storage
    }

    fn use_of(storage: &Storage, kind: Use) -> Result<Box<InUse<'_>>> {
        InUse::enter("example", &[(storage, kind)])
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
        for kind in [Use::Read, Use::Write] {
            let held = use_of(storage, kind).unwrap();
            let both = [(storage, Use::Read), (storage, Use::Write), (storage, Use::Write)];
            drop(InUse::enter("example", &both).unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| drop(use_of(storage, kind).unwrap())).join().unwrap();
                let refused =
                    scope.spawn(|| use_of(storage, kind.other()).err().expect("in the way").to_string());
                let word = if kind == Use::Read { "reads" } else { "writes to" };
                let text = refused.join().unwrap();
                assert!(text.contains(word) && text.contains("`copy()`"), "{text}");
            });
            drop(held);
            std::thread::scope(|scope| {
                scope.spawn(|| drop(use_of(storage, kind.other()).unwrap()));
            });
        }
        assert_eq!(storage.0.users.0.load(Ordering::Relaxed), INTEGERS);
    }

    #[test]
    fn who_waits_keeps_nothing_and_goes_on_when_the_other_has_finished() {
        let (a, b) = (&integers(), &integers());
        let held = use_of(a, Use::Read).unwrap();
        std::thread::scope(|scope| {
            let (send, done) = mpsc::channel();
            scope.spawn(move || {
                drop(InUse::enter("example", &[(b, Use::Write), (a, Use::Write)]).unwrap());
                send.send(()).unwrap();
            });
            // The other side of `b` is free while `a` is waited for.
            drop(use_of(b, Use::Read).unwrap());
            assert!(done.recv_timeout(Duration::from_millis(20)).is_err());
            drop(held);
            done.recv().unwrap();
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
                (0..if cfg!(miri) { 20 } else { 20_000 }).for_each(&each);
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
                let (storage, begun) = (&self.0, Instant::now());
                let both = [(storage, Use::Read), (storage, Use::Write)];
                assert!(InUse::enter("example", &both).is_ok() && begun.elapsed() < PATIENCE);
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let storage = integers();
        let own = storage.clone();
        let ended = std::thread::spawn(move || {
            LATE.set(Some(Late(own.clone())));
            let many: Vec<_> = (0..20).map(|_| (&own, Use::Read)).collect();
            drop(InUse::enter("example", &many).unwrap());
        });
        ended.join().unwrap();
        assert_eq!(storage.0.users.0.load(Ordering::Relaxed), INTEGERS);
        drop(use_of(&storage, Use::Write).unwrap());
    }

    #[test]
    fn memory_of_both_kinds_says_so() {
        let storage = integers();
        storage.also_hold("example", DType::I32).unwrap();
        assert!(!storage.may_hold_floats_too());
        storage.also_hold("example", DType::F32).unwrap();
        assert!(storage.may_hold_floats_too());
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
