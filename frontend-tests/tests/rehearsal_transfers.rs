//! Pinned memory, copies that do not block, streams of others, direct access and captured work, on a device whose memory the
//! host cannot read and whose work is done later.

mod rehearsal_support;

use keyway::ops::by_name;
use keyway::{Device, Tensor};
use keyway_dispatcher::device::capture::Graph;
use keyway_dispatcher::device::{
    Event, PinnedStats, Stream, empty_cache, memory_stats, peer, pinned_stats, synchronize,
};
use keyway_dispatcher::memory::{Storage, copy_bytes, copy_bytes_async, read_bytes, write_bytes};
use keyway_dispatcher::op::Arg;
use rehearsal_support::*;
use std::time::{Duration, Instant};

const PLUGIN: &[&str] = &["keyway_test_device"];
/// The smallest block of pinned memory.
const BLOCK: usize = 4096;

fn pause(t: &Tensor, milliseconds: i64) -> Tensor {
    by_name::call("remote_pause", &[t.into(), Arg::Int(milliseconds)]).unwrap().remove(0)
}

fn values(t: &Tensor) -> Vec<f32> {
    t.to_vec().unwrap()
}

/// Starts from an empty cache of pinned memory, with all work done.
fn start() -> std::sync::MutexGuard<'static, ()> {
    let one = load(PLUGIN);
    for d in [remote(0), remote(1)] {
        synchronize(d).unwrap();
        empty_cache(d).unwrap();
        assert_eq!(pinned_stats(d).unwrap(), PinnedStats::default(), "nothing of the tests before is left");
    }
    one
}

#[test]
fn pinned_memory_is_cached_and_given_back() {
    let _one = start();
    let d = remote(0);
    let first = Storage::allocate_pinned(d, 100).unwrap();
    assert!(first.is_pinned() && first.device() == Device::CPU && first.bytes() == 100);
    assert!((first.pointer().as_ptr() as usize).is_multiple_of(64));
    assert_eq!(pinned_stats(d).unwrap(), PinnedStats { in_use: BLOCK, pending: 0, cached: 0 });
    let at = first.pointer();
    drop(first);
    assert_eq!(pinned_stats(d).unwrap(), PinnedStats { in_use: 0, pending: 0, cached: BLOCK });
    // Blocks of a class serve each other, and the devices have caches of their own.
    let again = Storage::allocate_pinned(d, 4000).unwrap();
    assert_eq!(again.pointer(), at);
    assert_eq!(pinned_stats(remote(1)).unwrap(), PinnedStats::default());
    drop(again);
    empty_cache(d).unwrap();
    assert_eq!(pinned_stats(d).unwrap(), PinnedStats::default());
    // Memory that exceeds the cache's capacity is freed immediately.
    let size = 160 << 20;
    let two = [Storage::allocate_pinned(d, size).unwrap(), Storage::allocate_pinned(d, size).unwrap()];
    assert_eq!(pinned_stats(d).unwrap().in_use, 2 * size);
    drop(two);
    assert_eq!(pinned_stats(d).unwrap(), PinnedStats { in_use: 0, pending: 0, cached: size });
    empty_cache(d).unwrap();
    // More than there is, is an error of kind out of memory.
    let text = Storage::allocate_pinned(d, 1 << 40).unwrap_err().to_string();
    assert!(text.contains("out of memory on test.keyway/remote:0: 1099511627776 bytes"), "{text}");
    let text = Storage::allocate_pinned(d, usize::MAX).unwrap_err().to_string();
    assert!(text.contains("out of memory") && text.contains("more than an address can count"), "{text}");
    let text = Storage::allocate_pinned(remote(9), 64).unwrap_err().to_string();
    assert!(text.contains("test.keyway/remote:9 does not exist: 2 device(s)"), "{text}");
    // 0 bytes need no memory of a device.
    assert!(!Storage::allocate_pinned(d, 0).unwrap().is_pinned());
}

#[test]
fn a_device_without_pinned_memory_gives_plain_host_memory() {
    let _one = start();
    let storage = Storage::allocate_pinned(Device::CPU, 64).unwrap();
    assert!(!storage.is_pinned() && storage.device() == Device::CPU);
    write_bytes(&storage, 0, &[3; 64]).unwrap();
    assert_eq!(pinned_stats(Device::CPU).unwrap(), PinnedStats::default());
    let a = ramp(&[3]);
    assert!(a.pin_memory_for(Device::CPU).unwrap().ptr_eq(&a));
}

#[test]
fn tensors_are_pinned_with_their_strides_and_gradients() {
    let _one = start();
    let a = ramp(&[3, 4]);
    assert!(!a.is_pinned());
    let pinned = a.pin_memory().unwrap();
    assert!(pinned.is_pinned() && pinned.device() == Device::CPU);
    assert_eq!(values(&pinned), values(&a));
    assert!(pinned.pin_memory().unwrap().ptr_eq(&pinned));
    // Ops take it like any other host memory.
    assert_eq!(values(&pinned.add(&a).unwrap()), values(&a.add(&a).unwrap()));
    let transposed = a.t().unwrap();
    let pinned = transposed.pin_memory().unwrap();
    assert_eq!((pinned.strides(), values(&pinned)), (transposed.strides(), values(&transposed)));
    let part = a.select(1, 2).unwrap();
    assert_eq!(values(&part.pin_memory().unwrap()), values(&part));
    let text = message(a.to_device(remote(0)).unwrap().pin_memory());
    assert!(text.contains("pin_memory: expected all tensors on cpu") && text.contains("to_device"), "{text}");
    let text = message(a.pin_memory_for(Device::new("test.keyway/nowhere", 0).unwrap()));
    assert!(text.contains("no backend for device"), "{text}");
    let x = ramp(&[3]).requires_grad_(true).unwrap();
    let far = x.pin_memory().unwrap().to_device_non_blocking(remote(0)).unwrap();
    far.mul(2.0).unwrap().sum_all().unwrap().to_device_non_blocking(Device::CPU).unwrap().backward().unwrap();
    assert_eq!(values(&x.grad().unwrap()), [2.0; 3]);
}

#[test]
fn a_copy_to_the_device_does_not_wait_and_its_source_may_be_dropped() {
    let _one = start();
    let d = remote(0);
    let busy = ramp(&[4]).to_device(d).unwrap();
    synchronize(d).unwrap();
    let begun = Instant::now();
    let slow = pause(&busy, 150);
    let source = ramp(&[6]).pin_memory_for(d).unwrap();
    let at = source.as_ref().storage().unwrap().pointer();
    let there = source.to_device_non_blocking(d).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(120), "the call must not wait");
    // The copy has not run yet. Its source must outlive it, and not be reused before.
    drop(source);
    empty_cache(d).unwrap();
    assert_eq!(pinned_stats(d).unwrap(), PinnedStats { in_use: 0, pending: BLOCK, cached: 0 });
    let other = Storage::allocate_pinned(d, 24).unwrap();
    assert_ne!(other.pointer(), at);
    write_bytes(&other, 0, &[0xFF; 24]).unwrap();
    assert_eq!(values(&there), values(&ramp(&[6])));
    assert!(begun.elapsed() >= Duration::from_millis(150));
    drop(slow);
    synchronize(d).unwrap();
    assert_eq!(pinned_stats(d).unwrap(), PinnedStats { in_use: BLOCK, pending: 0, cached: BLOCK });
    assert_eq!(Storage::allocate_pinned(d, 24).unwrap().pointer(), at, "now it serves again");
}

#[test]
fn a_copy_to_the_host_does_not_wait_and_reading_does() {
    let _one = start();
    let d = remote(0);
    let a = ramp(&[5]).to_device(d).unwrap();
    synchronize(d).unwrap();
    let begun = Instant::now();
    let here = pause(&a, 150).to_device_non_blocking(Device::CPU).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(120), "the call must not wait");
    assert!(here.is_pinned() && here.device() == Device::CPU);
    let done = Event::new(d).unwrap();
    done.record(&Stream::current(d).unwrap()).unwrap();
    assert!(!done.is_done().unwrap());
    assert_eq!(values(&here), values(&ramp(&[5])), "reading waits");
    assert!(done.is_done().unwrap() || begun.elapsed() >= Duration::from_millis(150));
    // Writing waits too: the bytes that come later must not win.
    let here = pause(&a, 100).to_device_non_blocking(Device::CPU).unwrap();
    write_bytes(here.as_ref().storage().unwrap(), 0, &[0; 20]).unwrap();
    assert_eq!(values(&here), [0.0; 5]);
    // Dropped before it has come, it is written to no more than the copy needs.
    let before = pinned_stats(d).unwrap();
    drop(pause(&a, 50).to_device_non_blocking(Device::CPU).unwrap());
    synchronize(d).unwrap();
    assert_eq!(pinned_stats(d).unwrap().in_use, before.in_use);
}

#[test]
fn host_memory_that_is_not_pinned_is_copied_before_the_call_returns() {
    let _one = start();
    let source = ramp(&[8]);
    let there = source.to_device_non_blocking(remote(0)).unwrap();
    source.fill_(0.0).unwrap();
    assert_eq!(values(&there), values(&ramp(&[8])));
    let between = there.to_device_non_blocking(remote(1)).unwrap();
    assert_eq!((between.device(), values(&between)), (remote(1), values(&ramp(&[8]))));
}

#[test]
fn copies_of_one_block_on_several_streams_are_ordered() {
    let _one = start();
    let d = remote(0);
    let a = ramp(&[4]).to_device(d).unwrap();
    synchronize(d).unwrap();
    let (one, two) = (Stream::new(d).unwrap(), Stream::new(d).unwrap());
    let here = {
        let _in = one.enter();
        pause(&a, 100).to_device_non_blocking(Device::CPU).unwrap()
    };
    let back = {
        let _in = two.enter();
        here.to_device_non_blocking(d).unwrap()
    };
    two.synchronize().unwrap();
    assert_eq!(values(&back), values(&ramp(&[4])));
}

#[test]
fn an_error_of_queued_work_reaches_who_waits_for_the_copy() {
    let _one = start();
    let d = remote(0);
    let a = ramp(&[4]).to_device(d).unwrap();
    by_name::call("remote_fail", &[(&a).into()]).unwrap();
    let here = a.to_device_non_blocking(Device::CPU).unwrap();
    let text = message(here.to_vec::<f32>());
    assert!(text.contains("keyway.test/device") && text.contains("told to fail on the device"), "{text}");
    assert_eq!(values(&here), values(&ramp(&[4])), "once, and the copy itself was done");
}

#[test]
fn guards_of_streams_may_be_dropped_in_any_order() {
    let _one = start();
    let d = remote(0);
    let (one, two) = (Stream::new(d).unwrap(), Stream::new(d).unwrap());
    let current = || Stream::current(d).unwrap().as_raw();
    let (outer, inner) = (one.enter(), two.enter());
    drop(outer);
    assert_eq!(current(), two.as_raw(), "the guard that lives holds");
    drop(inner);
    assert!(current().is_null(), "and no stream stays entered");
    let (first, again, last) = (one.enter(), two.enter(), one.enter());
    drop(again);
    assert_eq!(current(), one.as_raw());
    drop(last);
    assert_eq!(current(), one.as_raw());
    drop(first);
    assert!(current().is_null());
}

#[test]
fn large_copies_between_kinds_of_devices_come_in_pieces() {
    let _one = start();
    let farther = Device::new("test.keyway/farther", 1).unwrap();
    // Whole pieces, one piece, and a last piece of a few bytes.
    for bytes in [5, 4 << 20, (4 << 20) + 1, 8 << 20, (9 << 20) + 5] {
        let pattern: Vec<u8> = (0..bytes + 8).map(|i| (i % 251) as u8).collect();
        // One kind offers pinned memory and the other does not.
        for (from, to) in [(remote(0), farther), (farther, remote(0))] {
            let source = Storage::allocate(from, bytes + 8).unwrap();
            write_bytes(&source, 0, &pattern).unwrap();
            let target = Storage::allocate(to, bytes + 8).unwrap();
            write_bytes(&target, 0, &vec![0xEE; bytes + 8]).unwrap();
            copy_bytes(&target, 3, &source, 5, bytes).unwrap();
            let mut got = vec![0; bytes + 8];
            read_bytes(&target, 0, &mut got).unwrap();
            assert!(got[3..bytes + 3] == pattern[5..bytes + 5], "{bytes} bytes from {from} to {to}");
            assert!(got[..3] == [0xEE; 3] && got[bytes + 3..] == [0xEE; 5]);
        }
    }
    // Pieces of pinned memory are two at the most.
    assert!(pinned_stats(remote(0)).unwrap().cached <= 2 * (4 << 20) + 2 * BLOCK);
    let a = ramp(&[3, 4]).to_device(remote(0)).unwrap().to_device(farther).unwrap();
    assert_eq!((a.device(), values(&a)), (farther, values(&ramp(&[3, 4]))));
}

#[test]
fn ranges_outside_a_storage_are_refused() {
    let _one = start();
    let (far, here) =
        (Storage::allocate(remote(0), 64).unwrap(), Storage::allocate_pinned(remote(0), 64).unwrap());
    for error in [
        copy_bytes_async(&here, 1, &far, 0, 64).unwrap_err(),
        copy_bytes_async(&here, 0, &far, usize::MAX, 2).unwrap_err(),
        copy_bytes_async(&far, 60, &here, 0, 5).unwrap_err(),
    ] {
        assert!(error.to_string().contains("within the storage's 64 bytes"), "{error}");
    }
    copy_bytes_async(&here, 99, &far, 99, 0).unwrap();
}

#[test]
fn devices_reach_each_other_where_their_kind_says_so() {
    let _one = start();
    let (zero, one) = (remote(0), remote(1));
    assert!(peer::can_access(zero, one).unwrap());
    assert!(!peer::can_access(zero, zero).unwrap());
    assert!(!peer::can_access(zero, Device::CPU).unwrap());
    peer::enable(zero, one).unwrap();
    peer::enable(zero, one).unwrap();
    let a = ramp(&[4]).to_device(zero).unwrap();
    assert_eq!(values(&a.to_device(one).unwrap()), values(&ramp(&[4])));
    peer::disable(zero, one).unwrap();
    for (error, part) in [
        (peer::enable(zero, zero).unwrap_err(), "`peer` must be another device"),
        (peer::enable(zero, Device::CPU).unwrap_err(), "`peer` must be another device"),
        (peer::can_access(zero, remote(7)).unwrap_err(), "does not exist"),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn captured_work_is_done_with_each_launch() {
    let _one = start();
    let d = remote(0);
    let before = memory_stats(d).unwrap().unwrap().in_use;
    let input = ramp(&[4]).to_device(d).unwrap();
    let stream = Stream::new(d).unwrap();
    synchronize(d).unwrap();
    let (output, graph) = Graph::capture(&stream, || -> keyway::Result<Tensor> {
        // The intermediate results are dropped here, and used by every launch.
        input.mul(2.0)?.add(1.0)?.exp()
    })
    .unwrap();
    let wanted = |t: &Tensor| values(&t.mul(2.0).unwrap().add(1.0).unwrap().exp().unwrap());
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    let close = |got: &Tensor, host: &Tensor| {
        let wide = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<_>>();
        assert_close(&wide(values(got)), &wide(wanted(host)), 1e-5);
    };
    close(&output, &ramp(&[4]));
    // New values in the same memory, on another stream.
    let next = ramp(&[4]).mul(0.5).unwrap();
    input.copy_(&next.to_device(d).unwrap()).unwrap();
    synchronize(d).unwrap();
    let other = Stream::new(d).unwrap();
    graph.launch(&other).unwrap();
    other.synchronize().unwrap();
    close(&output, &next);
    // The graph retains the memory as its only owner, and frees it after its last launch.
    let shared = output.detach();
    drop((input, output));
    graph.launch(&other).unwrap();
    drop((graph, other, stream));
    synchronize(d).unwrap();
    close(&shared, &next);
    drop(shared);
    synchronize(d).unwrap();
    assert_eq!(memory_stats(d).unwrap().unwrap().in_use, before);
}

#[test]
fn copies_of_pinned_memory_are_captured_as_well() {
    let _one = start();
    let d = remote(0);
    let (from, to) = (ramp(&[4]).pin_memory_for(d).unwrap(), Tensor::empty_with([4], d).unwrap());
    let stream = Stream::new(d).unwrap();
    let (storage, target) =
        (from.as_ref().storage().unwrap().clone(), to.as_ref().storage().unwrap().clone());
    let ((), graph) = Graph::capture(&stream, || copy_bytes_async(&target, 0, &storage, 0, 16)).unwrap();
    drop((from, storage));
    for _ in 0..3 {
        graph.launch(&stream).unwrap();
    }
    drop(graph);
    stream.synchronize().unwrap();
    assert_eq!(values(&to), values(&ramp(&[4])));
    assert_eq!(pinned_stats(d).unwrap().in_use, 0);
}

#[test]
fn what_cannot_be_captured_is_an_error_and_leaves_the_stream_as_it_was() {
    let _one = start();
    let d = remote(0);
    let stream = Stream::new(d).unwrap();
    let a = ramp(&[2]).to_device(d).unwrap();
    synchronize(d).unwrap();
    let text = message(Graph::capture(&stream, || a.to_vec::<f32>()));
    assert!(text.contains("keyway.test/device") && text.contains("is being captured"), "{text}");
    let text = message(Graph::capture(&stream, || -> keyway::Result<()> {
        Graph::capture(&stream, || Ok::<_, keyway::Error>(())).map(|_| ())
    }));
    assert!(text.contains("captured already"), "{text}");
    let text = message(Graph::capture(&Stream::current(d).unwrap(), || Ok::<_, keyway::Error>(())));
    assert!(text.contains("`stream` must be a stream of `Stream::new`"), "{text}");
    let cpu = Stream::new(Device::CPU).unwrap();
    let text = message(Graph::capture(&cpu, || Ok::<_, keyway::Error>(())));
    assert!(text.contains("a device that can capture work"), "{text}");
    let panicked = std::panic::catch_unwind(|| {
        Graph::capture(&stream, || -> keyway::Result<()> { panic!("in the middle") })
    });
    assert!(panicked.is_err());
    // The stream works again.
    let (_, graph) = Graph::capture(&stream, || a.mul(2.0)).unwrap();
    let text = message(graph.launch(&Stream::new(remote(1)).unwrap()).map_err(Into::into));
    assert!(text.contains("a stream of test.keyway/remote:0"), "{text}");
    let _in = stream.enter();
    assert_eq!(values(&a.mul(3.0).unwrap()), values(&ramp(&[2]).mul(3.0).unwrap()));
}
