use super::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A guard that serialises the tests of the allocator's statistics, which are global to the process. It leaves no blocks in
/// thread-local lists.
struct Alone(#[expect(dead_code, reason = "held for its drop")] MutexGuard<'static, ()>);

impl Drop for Alone {
    fn drop(&mut self) {
        empty_cache();
    }
}

fn alone() -> Alone {
    static SERIAL: Mutex<()> = Mutex::new(());
    let guard = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    set_memory_limit(None);
    set_limit(None);
    empty_cache();
    Alone(guard)
}

fn take(bytes: usize) -> NonNull<u8> {
    allocate(bytes, 64).expect("memory")
}

fn give(ptr: NonNull<u8>, bytes: usize) {
    // SAFETY: each test frees its blocks once, with the same size.
    unsafe { free(ptr, bytes) }
}

/// Writes the first and the last byte.
fn touch(ptr: NonNull<u8>, bytes: usize) {
    // SAFETY: the block has `bytes` bytes and is owned by the test.
    unsafe {
        ptr.as_ptr().write(1);
        ptr.as_ptr().add(bytes - 1).write(2);
    }
}

const SIZES: [usize; 14] =
    [1, 63, 64, 65, 512, 513, 4096, 4097, 5000, 100_000, 1_048_575, 1 << 20, 3_000_001, 40 << 20];

#[test]
fn classes_hold_their_sizes() {
    let mut last = 0;
    for bytes in 1..=size_class::MEDIUM_MAX {
        let (class, size) = size_class::of(bytes);
        assert!(size >= bytes && size % ALIGNMENT == 0 && size == size_class::size(class));
        assert!(class == last || class == last + 1, "{bytes}");
        assert!(bytes <= 512 || size - bytes <= bytes / 4, "{bytes}");
        assert_eq!(bytes <= size_class::SMALL_MAX, class < size_class::SMALL_CLASSES);
        last = class;
    }
    assert_eq!(last + 1, size_class::CLASSES);
}

#[test]
fn blocks_are_aligned_and_statistics_return_to_zero() {
    let _alone = alone();
    let before = stats();
    let blocks: Vec<_> = SIZES.iter().map(|&bytes| (take(bytes), bytes)).collect();
    for &(ptr, bytes) in &blocks {
        assert_eq!(ptr.addr().get() % ALIGNMENT, 0);
        touch(ptr, bytes);
    }
    let during = stats();
    assert!(during.in_use - before.in_use >= SIZES.iter().sum());
    assert!(during.reserved >= during.in_use && during.peak_in_use >= during.in_use);
    for (ptr, bytes) in blocks {
        give(ptr, bytes);
    }
    let after = stats();
    assert_eq!((after.in_use, after.allocations - before.allocations), (before.in_use, SIZES.len()));
    assert_eq!(after.frees - before.frees, SIZES.len());
    assert_eq!(after.cached, after.reserved - after.in_use);
    empty_cache();
    assert_eq!((stats().cached, stats().reserved), (0, 0));
}

#[test]
fn blocks_are_reused() {
    let _alone = alone();
    for bytes in SIZES {
        let first = take(bytes);
        give(first, bytes);
        let before = stats().cache_hits;
        let second = take(bytes);
        assert_eq!(first, second, "{bytes}");
        assert_eq!(stats().cache_hits, before + 1);
        give(second, bytes);
    }
}

#[test]
fn a_large_block_serves_sizes_down_to_four_fifths() {
    let _alone = alone();
    let block = take(100 << 20);
    give(block, 100 << 20);
    let near = take(80 << 20);
    assert_eq!(near, block);
    assert_eq!(stats().in_use, 100 << 20);
    give(near, 80 << 20);
    assert_eq!(stats().in_use, 0);
    let far = take(70 << 20);
    assert_ne!(far, block);
    give(far, 70 << 20);
}

#[test]
fn zero_bytes_are_free() {
    let ptr = take(0);
    assert_eq!(ptr.addr().get() % ALIGNMENT, 0);
    give(ptr, 0);
}

#[test]
fn impossible_requests_are_refused() {
    let _alone = alone();
    for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize + 1, 1 << 60] {
        let error = allocate(bytes, 64).expect_err("no such memory");
        assert_eq!((error.requested, error.limit), (bytes, None));
    }
    assert!(allocate(64, 128).is_err() && allocate(64, 3).is_err() && allocate(64, 0).is_err());
    assert_eq!(stats().in_use, 0);
}

#[test]
fn the_memory_limit_holds_for_every_range() {
    let _alone = alone();
    for bytes in [64, 4096, 100_000, 8 << 20] {
        set_memory_limit(Some(bytes * 4));
        let mut blocks = Vec::new();
        let error = loop {
            match allocate(bytes, 64) {
                Ok(block) => blocks.push(block),
                Err(error) => break error,
            }
        };
        assert!((3..=4).contains(&blocks.len()), "{bytes}: {}", blocks.len());
        assert_eq!((error.requested, error.limit), (bytes, Some(bytes * 4)));
        assert_eq!(error.in_use, stats().in_use);
        assert!(error.to_string().contains("raise the limit"));
        for block in blocks {
            give(block, bytes);
        }
        set_memory_limit(None);
        assert_eq!(stats().in_use, 0);
    }
}

#[test]
fn the_cache_is_bounded() {
    let _alone = alone();
    set_limit(Some(8 << 20));
    let blocks: Vec<_> = (0..32).map(|_| take(2 << 20)).collect();
    for block in blocks {
        give(block, 2 << 20);
    }
    assert!(stats().cached <= 9 << 20, "{:?}", stats());
    set_limit(Some(0));
    let block = take(200_000);
    give(block, 200_000);
    assert!(stats().cached <= 1 << 20, "{:?}", stats());
    set_limit(None);
}

#[test]
fn peaks_can_be_reset() {
    let _alone = alone();
    let block = take(10 << 20);
    give(block, 10 << 20);
    assert!(stats().peak_in_use >= 10 << 20 && stats().peak_reserved >= 10 << 20);
    empty_cache();
    reset_peak();
    assert_eq!((stats().peak_in_use, stats().peak_reserved), (0, 0));
}

#[test]
fn many_threads() {
    let _alone = alone();
    let before = stats();
    let (sender, receiver) = std::sync::mpsc::channel::<(usize, usize)>();
    let threads: Vec<_> = (0..6u64)
        .map(|seed| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut state = seed * 977 + 1;
                let mut held = Vec::new();
                for step in 0..20_000u32 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let bytes = SIZES[(state >> 33) as usize % (SIZES.len() - 1)];
                    let ptr = take(bytes);
                    touch(ptr, bytes.min(64));
                    if step % 50 == 0 {
                        // A block that another thread frees.
                        sender.send((ptr.as_ptr().expose_provenance(), bytes)).expect("receiver");
                    } else {
                        held.push((ptr, bytes));
                    }
                    if held.len() > 20 {
                        let (ptr, bytes) = held.swap_remove((state >> 40) as usize % 20);
                        give(ptr, bytes);
                    }
                }
                for (ptr, bytes) in held {
                    give(ptr, bytes);
                }
            })
        })
        .collect();
    drop(sender);
    for (address, bytes) in receiver {
        let ptr = std::ptr::with_exposed_provenance_mut(address);
        give(NonNull::new(ptr).expect("an address"), bytes);
    }
    for thread in threads {
        thread.join().expect("no panic");
    }
    let after = stats();
    assert_eq!(after.in_use, before.in_use);
    assert_eq!(after.allocations - before.allocations, 120_000);
    assert_eq!(after.frees - before.frees, 120_000);
    empty_cache();
    assert_eq!(stats().reserved, 0);
}

#[test]
fn a_thread_may_allocate_while_it_ends() {
    let _alone = alone();
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            for bytes in [64, 4096, 100_000] {
                let block = take(bytes);
                touch(block, bytes);
                give(block, bytes);
            }
        }
    }
    thread_local!(static AT_EXIT: AtExit = const { AtExit });
    let thread = std::thread::spawn(|| {
        // Both orders of destruction occur: the first guard is older than the thread's lists.
        AT_EXIT.with(|_| give(take(64), 64));
    });
    thread.join().expect("no panic");
    assert_eq!(stats().in_use, 0);
}
