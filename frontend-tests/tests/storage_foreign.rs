//! Foreign memory with its deleter, and host allocators of the program, through the loaded CPU backend.

use keyway::storage::{Blob, HostAllocator, set_host_allocator, with_host_allocator};
use keyway::{DType, Device, Error, Result, Tensor};
use keyway_dispatcher::Error as DispatchError;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tests take turns: one sets the allocator of the whole program.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Six f32 that count their deleter's runs; `bytes` of them are declared.
fn six(bytes: usize) -> (Result<Blob>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let data: *mut [f32; 6] = Box::into_raw(Box::new([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    let free = move |data: *mut u8| {
        count.fetch_add(1, SeqCst);
        // SAFETY: the box was leaked, and is recreated only here.
        drop(unsafe { Box::from_raw(data.cast::<[f32; 6]>()) });
    };
    // SAFETY: memory of the box, which is uniquely owned; more bytes than it has are refused.
    let blob = unsafe { Blob::from_raw_parts(data.cast(), bytes, Device::CPU, free) };
    (blob.map_err(Error::from), runs)
}

#[test]
fn the_deleter_runs_once_when_the_last_tensor_goes_on_whatever_thread() -> Result<()> {
    let _one = alone();
    let (blob, runs) = six(24);
    let x = Tensor::from_blob(blob?, [2, 3], DType::F32)?.requires_grad_(true)?;
    let (view, alias, row) = (x.t()?, x.detach(), x.narrow(0, 1, 1)?);
    let loss = (&x * &x)?.sum_all()?;
    drop((x, view, alias));
    loss.backward()?;
    drop(loss);
    assert_eq!(runs.load(SeqCst), 0, "a view is left");
    assert_eq!(row.to_vec::<f32>()?, [3.0, 4.0, 5.0]);
    std::thread::spawn(move || drop(row)).join().unwrap();
    assert_eq!(runs.load(SeqCst), 1);
    Ok(())
}

#[test]
fn threads_that_drop_at_once_run_it_once() -> Result<()> {
    let _one = alone();
    for _ in 0..50 {
        let (blob, runs) = six(24);
        let x = Tensor::from_blob(blob?, [6], DType::F32)?;
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (x, y) = (x.clone(), x.detach());
                std::thread::spawn(move || drop((y, x)))
            })
            .collect();
        drop(x);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(runs.load(SeqCst), 1);
    }
    Ok(())
}

#[test]
fn what_is_refused_goes_back_to_its_owner_once() {
    let _one = alone();
    let nobody = Device::new("test.keyway/nobody", 0).unwrap();
    for (sizes, strides, dtype, expected) in [
        (&[7][..], &[1][..], DType::F32, "within the storage's 24 bytes"),
        (&[2], &[1, 1], DType::F32, "one for each size"),
        (&[24], &[1], DType::BOOL, "0 or 1"),
        (&[usize::MAX, 2], &[1, 1], DType::F32, "from_blob"),
    ] {
        let (blob, runs) = six(24);
        let error = Tensor::from_blob_strided(blob.unwrap(), sizes, strides, dtype).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(runs.load(SeqCst), 1);
    }
    let (blob, runs) = six(usize::MAX);
    assert!(blob.unwrap_err().to_string().contains("an address can count"));
    assert_eq!(runs.load(SeqCst), 1);
    for (data, bytes, device, expected) in [
        (std::ptr::null_mut(), 8, Device::CPU, "a null pointer for 8 bytes"),
        (std::ptr::null_mut(), 0, nobody, "no backend for device `test.keyway/nobody:0`"),
        (std::ptr::null_mut(), 0, Device { index: 1, ..Device::CPU }, "does not exist"),
    ] {
        let runs = Arc::new(AtomicUsize::new(0));
        let count = runs.clone();
        // SAFETY: there is no byte that anybody could use.
        let blob = unsafe {
            Blob::from_raw_parts(data, bytes, device, move |_| {
                count.fetch_add(1, SeqCst);
            })
        };
        let error = blob.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(runs.load(SeqCst), 1);
    }
    // In the middle of an element.
    let (blob, runs) = six(24);
    let inner = Arc::new(Mutex::new(Some(blob.unwrap())));
    let at = inner.lock().unwrap().as_ref().unwrap().data_ptr().cast_mut().wrapping_add(2);
    // SAFETY: 20 bytes of the box, which the deleter keeps until then.
    let odd =
        unsafe { Blob::from_raw_parts(at, 20, Device::CPU, move |_| drop(inner.lock().unwrap().take())) };
    let error = Tensor::from_blob(odd.unwrap(), [5], DType::F32).unwrap_err().to_string();
    assert!(error.contains("aligned to 4 bytes for f32"), "{error}");
    assert_eq!(runs.load(SeqCst), 1);
}

/// Gives memory of the system's up to a limit, and counts.
#[derive(Default)]
struct Limited {
    most: usize,
    held: AtomicUsize,
    given: AtomicUsize,
}

// SAFETY: memory of the system's allocator, of the layout that is asked for.
unsafe impl HostAllocator for Limited {
    fn name(&self) -> &str {
        "limited"
    }

    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.held.load(SeqCst) + layout.size() > self.most {
            return None;
        }
        self.held.fetch_add(layout.size(), SeqCst);
        self.given.fetch_add(1, SeqCst);
        // SAFETY: the size is at least 1.
        NonNull::new(unsafe { alloc(layout) })
    }

    unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) {
        self.held.fetch_sub(layout.size(), SeqCst);
        // SAFETY: `allocate` allocated it with this layout.
        unsafe { dealloc(memory.as_ptr(), layout) };
    }
}

#[test]
fn a_host_allocator_gives_the_memory_of_results() -> Result<()> {
    let _one = alone();
    let allocator = Arc::new(Limited { most: 1 << 20, ..Limited::default() });
    let x = Tensor::new([1.0f32, 2.0, 3.0])?.requires_grad_(true)?;
    let y = with_host_allocator(allocator.clone(), || -> Result<Tensor> {
        let e = x.exp()?;
        let y = e.mul(&e)?.sum_all()?;
        y.backward()?;
        Ok(y)
    })?;
    assert_eq!(y.storage()?.allocator(), "limited");
    assert_eq!(x.grad().unwrap().storage()?.allocator(), "limited");
    assert!(allocator.given.load(SeqCst) >= 3);
    let after = y.add(1.0)?;
    assert_eq!(after.storage()?.allocator(), "keyway-cpu");
    x.zero_grad();
    drop(x);
    std::thread::spawn(move || drop(y)).join().unwrap();
    assert_eq!(allocator.held.load(SeqCst), 0);
    Ok(())
}

#[test]
fn a_host_allocator_that_has_no_more_is_an_error_that_names_it() -> Result<()> {
    let _one = alone();
    let allocator = Arc::new(Limited { most: 64, ..Limited::default() });
    let x = Tensor::from_vec(vec![1.0f32; 100], [100])?;
    with_host_allocator(allocator.clone(), || {
        for error in [x.add(&x).unwrap_err(), Tensor::zeros([100]).unwrap_err()] {
            let text = error.to_string();
            assert!(text.contains("`limited` has no more") && text.contains("400 bytes"), "{text}");
            let requested = match error {
                Error::Dispatch(DispatchError::OutOfMemory { requested, .. }) => requested,
                other => panic!("expected out of memory, got {other:?}"),
            };
            assert_eq!(requested, 400);
        }
        assert!(x.narrow(0, 0, 4).unwrap().add(1.0).is_ok(), "what fits is served");
        x.add_(1.0).expect("a change in place needs none");
    });
    assert_eq!(allocator.held.load(SeqCst), 0);
    Ok(())
}

#[test]
fn an_allocator_of_the_whole_program_serves_all_threads_but_those_that_chose() -> Result<()> {
    let _one = alone();
    let (global, own) = (
        Arc::new(Limited { most: 1 << 20, ..Limited::default() }),
        Arc::new(Limited { most: 1 << 20, ..Limited::default() }),
    );
    let x = Tensor::new([1.0f32, 2.0])?;
    assert!(set_host_allocator(Some(global.clone())).is_none());
    let sum = std::thread::scope(|scope| scope.spawn(|| x.add(&x)).join().unwrap())?;
    let other = with_host_allocator(own.clone(), || x.add(&x))?;
    let before = set_host_allocator(None).expect("the one that was set");
    assert_eq!(before.name(), "limited");
    assert_eq!((global.given.load(SeqCst), own.given.load(SeqCst)), (1, 1));
    assert_eq!(x.add(&x)?.storage()?.allocator(), "keyway-cpu");
    assert_eq!(sum.to_vec::<f32>()?, other.to_vec::<f32>()?);
    Ok(())
}
