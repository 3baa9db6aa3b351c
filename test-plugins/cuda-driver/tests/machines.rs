//! The CUDA backend on unusual machines: several devices, foreign streams, a chip that is too old, program exit while work
//! is pending.

mod support;

use keyway::{Device, Tensor};
use keyway_dispatcher::device::{Event, Stream, peer, properties, synchronize};
use std::sync::OnceLock;
use support::{counted, cuda, load, message, ramp, run, stand_in, start, texts};

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("peers") => peers(),
        Some("foreign") => foreign(),
        Some("threads") => threads(),
        Some("end") => end(),
        Some("old") => old(),
        Some(other) => panic!("there is no scenario {other}"),
    }
}

fn to_vec(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec::<f32>().unwrap()
}

/// Peer access between two devices, enabled and disabled, each twice; one call of the driver may fail.
fn peers() {
    load();
    let (c, e) = (cuda(0), cuda(1));
    let copies = || {
        let there = ramp(&[70]).to_device(c).unwrap().mul(2.0).unwrap().to_device(e).unwrap();
        assert_eq!(to_vec(&there), to_vec(&ramp(&[70]).mul(2.0).unwrap()));
    };
    let mut failed = Vec::new();
    let mut tried = |result: keyway_dispatcher::error::Result<()>| {
        failed.extend(result.err().map(|error| error.to_string()));
        copies();
    };
    tried(peer::can_access(c, e).map(|can| assert!(can)));
    for change in [peer::enable, peer::enable, peer::disable, peer::disable] {
        tried(change(c, e));
    }
    tried(peer::enable(e, c));
    assert!(failed.len() <= 1, "{failed:?}");
    failed.iter().for_each(|text| println!("SAID {text}"));
    for (device, other, part) in [(c, Device::CPU, "cpu"), (c, cuda(9), "cuda:9")] {
        let text = message(peer::enable(device, other).map_err(keyway::Error::from));
        assert!(text.contains(part), "{text}");
    }
}

/// A foreign stream is used, ordered by events, and not destroyed.
fn foreign() {
    load();
    let d = cuda(0);
    let owner = Stream::new(d).unwrap();
    for round in 0..20 {
        // SAFETY: the owner outlives this and all objects created from it.
        let foreign = unsafe { Stream::from_raw(d, owner.as_raw()) }.unwrap();
        assert_eq!((foreign.as_raw(), foreign.device()), (owner.as_raw(), d));
        let (here, before, after) =
            (Stream::current(d).unwrap(), Event::new(d).unwrap(), Event::new(d).unwrap());
        let a = ramp(&[100]).to_device(d).unwrap();
        before.record(&here).unwrap();
        let b = {
            let _on = foreign.enter();
            foreign.wait(&before).unwrap();
            let b = a.mul(2.0).unwrap().add(f64::from(round)).unwrap();
            after.record(&foreign).unwrap();
            b
        };
        here.wait(&after).unwrap();
        let expected = ramp(&[100]).mul(2.0).unwrap().add(f64::from(round)).unwrap();
        assert_eq!(to_vec(&b.add(0.0).unwrap()), to_vec(&expected), "round {round}");
        drop(foreign);
        owner.synchronize().unwrap();
    }
    // SAFETY: null is the default stream.
    let default = unsafe { Stream::from_raw(d, std::ptr::null_mut()) }.unwrap();
    let _on = default.enter();
    assert_eq!(to_vec(&ramp(&[3]).to_device(d).unwrap().neg().unwrap()), [1.0, 0.75, 0.5]);
    // SAFETY: the device does not exist, so nothing is wrapped.
    assert!(unsafe { Stream::from_raw(cuda(9), std::ptr::null_mut()) }.is_err());
}

/// A device is identified by tensors, not by a state of the thread: threads use both, each with its own streams.
fn threads() {
    load();
    let work = |thread: usize| {
        for round in 0..30 {
            for d in [cuda(0), cuda(1)] {
                let stream = (round % 3 == thread % 3).then(|| Stream::new(d).unwrap());
                let on = stream.as_ref().map(Stream::enter);
                let made = ramp(&[40]).to_device(d).unwrap().mul((thread * 100 + round) as f64).unwrap();
                let expected = ramp(&[40]).mul((thread * 100 + round) as f64).unwrap();
                assert_eq!(to_vec(&made), to_vec(&expected), "thread {thread}, round {round}, {d}");
                let across = made.to_device(cuda(1 - d.index)).unwrap();
                assert_eq!(to_vec(&across), to_vec(&expected), "thread {thread}, round {round}, from {d}");
                drop(on);
            }
        }
    };
    std::thread::scope(|scope| (0..3).for_each(|thread| drop(scope.spawn(move || work(thread)))));
    synchronize(cuda(0)).unwrap();
}

/// The program exits while work is pending and memory is in use, on several streams and in another thread.
fn end() {
    static KEPT: OnceLock<(Tensor, Stream)> = OnceLock::new();
    load();
    let d = cuda(0);
    let stream = Stream::new(d).unwrap();
    let on = stream.enter();
    let a = ramp(&[200, 50]).to_device(d).unwrap();
    for _ in 0..40 {
        drop(a.mul(2.0).unwrap().softmax(1).unwrap());
    }
    drop(on);
    let _ = KEPT.set((a.exp().unwrap(), stream));
    let other = std::thread::spawn(move || {
        let b = ramp(&[30]).to_device(d).unwrap();
        std::mem::forget(b.add(1.0).unwrap());
    });
    other.join().unwrap();
    println!("ended");
}

/// A chip without kernels is reported as an error, and nothing else is affected.
fn old() {
    load();
    for text in [
        message(properties(cuda(0)).map_err(keyway::Error::from)),
        message(ramp(&[2]).to_device(cuda(0))),
        message(Tensor::zeros_with(3, cuda(1))),
    ] {
        for part in ["compute capability 7.0", "7.5 and higher", "CUDA_VISIBLE_DEVICES"] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }
    assert_eq!(to_vec(&ramp(&[2]).neg().unwrap()), [1.0, 0.75], "the CPU goes on");
}

#[test]
fn direct_access_is_given_and_taken_back_and_each_call_may_fail() {
    let Some(driver) = stand_in() else { return };
    let counts = counted("peers", &driver, &[]);
    for (call, times) in
        [("cuDeviceCanAccessPeer", 1), ("cuCtxEnablePeerAccess", 3), ("cuCtxDisablePeerAccess", 2)]
    {
        assert!(counts[call] >= times, "{call}: {counts:?}");
        for nth in 1..=times {
            let output = start("peers", &driver, &[("KEYWAY_STAND_IN_FAIL", &format!("{call}:{nth}"))]);
            let text = texts(&output);
            assert!(output.status.success(), "{call}:{nth}\n{text}");
            assert!(text.contains("SAID") && text.contains(call), "{call}:{nth}\n{text}");
        }
    }
}

#[test]
fn a_stream_of_somebody_else_is_used_and_not_destroyed() {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2", "3"] {
        let counts = counted("foreign", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
        assert_eq!((counts["cuStreamCreate"], counts["cuStreamDestroy_v2"]), (1, 1));
    }
    let without = [("KEYWAY_STAND_IN_SKIP", "cuStreamWaitEvent")];
    let wrong = |seed| {
        let machine = [without[0], ("KEYWAY_STAND_IN_SEED", seed)];
        !start("foreign", &driver, &machine).status.success()
    };
    assert!(["1", "2", "3"].into_iter().any(wrong), "nobody misses the order of the two streams");
}

#[test]
fn threads_use_several_devices_at_once() {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2"] {
        run("threads", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

#[test]
fn a_program_may_end_in_the_middle_of_work() {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2", "3"] {
        for allocator in ["", "pool", "expandable"] {
            let machine = [("KEYWAY_STAND_IN_SEED", seed), ("KEYWAY_CUDA_ALLOCATOR", allocator)];
            let output = start("end", &driver, &machine);
            let text = texts(&output);
            assert!(output.status.success() && text.contains("ended"), "{machine:?}\n{text}");
            assert!(!text.contains("panicked") && !text.contains("stand-in driver:"), "{machine:?}\n{text}");
        }
    }
}

#[test]
fn a_chip_that_is_too_old_is_an_error_that_says_so() {
    let Some(driver) = stand_in() else { return };
    run("old", &driver, &[("KEYWAY_STAND_IN_CHIP", "70")]);
}
