//! A device that is as far from the CPU as a graphics card: memory that the host cannot read (its pages are
//! protected, so that a read by the host would end this program), work that is done later on streams, two
//! devices, and limited memory.

mod rehearsal_support;

use keyway::autograd::no_grad;
use keyway::ops::by_name;
use keyway::{DType, Device, Layout, Tensor};
use keyway_dispatcher::device::{
    Event, Stream, memory_stats, properties, reset_peak, set_memory_limit, synchronize,
};
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::registry::{FallbackPolicy, find_op, set_fallback};
use keyway_dispatcher::{ledger, log};
use rehearsal_support::*;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PLUGIN: &[&str] = &["keyway_test_device"];

fn in_use(device: Device) -> u64 {
    synchronize(device).unwrap();
    memory_stats(device).unwrap().unwrap().in_use
}

fn pause(t: &Tensor, milliseconds: i64) -> Tensor {
    by_name::call("remote_pause", &[t.into(), Arg::Int(milliseconds)]).unwrap().remove(0)
}

#[test]
fn values_go_there_and_back() {
    let _one = load(PLUGIN);
    let d = remote(0);
    let p = properties(d).unwrap();
    assert!(p.asynchronous && !p.host_accessible && p.name == "a far away device");
    let a = ramp(&[3, 4]);
    let there = a.to_device(d).unwrap();
    assert_eq!((there.device(), there.shape()), (d, [3, 4].as_slice()));
    assert_eq!(there.to_vec::<f32>().unwrap(), a.to_vec::<f32>().unwrap());
    assert_eq!(there.to_device(Device::CPU).unwrap().to_vec::<f32>().unwrap(), a.to_vec::<f32>().unwrap());
    assert!(there.to_device(d).unwrap().ptr_eq(&there));
    // Views are made without the device, and are packed by it.
    let t = there.t().unwrap();
    assert_eq!(t.device(), d);
    assert_eq!(t.to_vec::<f32>().unwrap(), a.t().unwrap().to_vec::<f32>().unwrap());
    assert_eq!(t.to_device(Device::CPU).unwrap().shape(), [4, 3]);
    // Other dtypes move as well, although no kernel knows them; so do tensors without elements or dimensions.
    let n = Tensor::new([1i64, -2]).unwrap().to_device(d).unwrap();
    assert_eq!(n.to_vec::<i64>().unwrap(), [1, -2]);
    let none = Tensor::from_vec(Vec::<f32>::new(), [0, 3]).unwrap().to_device(d).unwrap();
    assert!(none.to_vec::<f32>().unwrap().is_empty());
    assert_eq!(Tensor::new(2.5f64).unwrap().to_device(d).unwrap().item::<f64>().unwrap(), 2.5);
    // Debug output needs no memory at all.
    assert!(format!("{there:?}").contains("test.keyway/remote:0"), "{there:?}");
}

#[test]
fn an_empty_view_goes_there_and_back_wherever_it_begins() {
    let _one = load(PLUGIN);
    let empty = Tensor::from_vec(Vec::<f32>::new(), [3, 0, 2]).unwrap();
    let view = empty.select(2, 1).unwrap();
    assert_eq!(view.storage_offset(), 1);
    let back = view.to_device(remote(0)).unwrap().to_device(Device::CPU).unwrap();
    assert_eq!(back.shape(), [3, 0]);
    assert!(back.to_vec::<f32>().unwrap().is_empty());
}

#[test]
fn arithmetic_with_gradients_and_a_step_of_sgd() {
    let _one = load(PLUGIN);
    let step = |device: Device| -> (Vec<f32>, Vec<f32>, f32) {
        let x = ramp(&[5, 3]).to_device(device).unwrap();
        let w = ramp(&[3, 2]).to_device(device).unwrap().requires_grad_(true).unwrap();
        let b = ramp(&[2]).to_device(device).unwrap().requires_grad_(true).unwrap();
        // Broadcasting, numbers, a host scalar, casts: all on the device.
        let h = x.mm(&w).unwrap().add(&b).unwrap().mul(0.5).unwrap();
        let loss = h.exp().unwrap().mul(&Tensor::new(0.1f32).unwrap()).unwrap().sum_all().unwrap();
        loss.backward().unwrap();
        let (gw, gb) = (w.grad().unwrap(), b.grad().unwrap());
        assert_eq!((gw.device(), gb.device()), (device, device));
        {
            let _off = no_grad();
            w.add_with_(&gw, -0.1).unwrap();
            b.add_with_(&gb, -0.1).unwrap();
        }
        assert_eq!(w.device(), device);
        (w.to_vec().unwrap(), b.to_vec().unwrap(), loss.item().unwrap())
    };
    let (w, b, loss) = step(remote(0));
    let (cpu_w, cpu_b, cpu_loss) = {
        // The CPU backend may lack an op of this step; then the numbers are computed here.
        let x = ramp(&[5, 3]).to_vec::<f32>().unwrap();
        let (mut w, mut b) = (ramp(&[3, 2]).to_vec::<f32>().unwrap(), ramp(&[2]).to_vec::<f32>().unwrap());
        let (mut gw, mut gb, mut loss) = (vec![0.0f64; 6], vec![0.0f64; 2], 0.0f64);
        for i in 0..5 {
            for j in 0..2 {
                let h: f64 =
                    (0..3).map(|k| f64::from(x[i * 3 + k] * w[k * 2 + j])).sum::<f64>() + f64::from(b[j]);
                let e = 0.1 * (0.5 * h).exp();
                loss += e;
                gb[j] += 0.5 * e;
                (0..3).for_each(|k| gw[k * 2 + j] += 0.5 * e * f64::from(x[i * 3 + k]));
            }
        }
        w.iter_mut().zip(gw).for_each(|(w, g)| *w -= 0.1 * g as f32);
        b.iter_mut().zip(gb).for_each(|(b, g)| *b -= 0.1 * g as f32);
        (w, b, loss as f32)
    };
    let wide = |v: &[f32]| v.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    assert_close(&wide(&w), &wide(&cpu_w), 1e-5);
    assert_close(&wide(&b), &wide(&cpu_b), 1e-5);
    assert_close(&[f64::from(loss)], &[f64::from(cpu_loss)], 1e-5);
}

#[test]
fn gradients_cross_devices() {
    let _one = load(PLUGIN);
    let x = ramp(&[4]).requires_grad_(true).unwrap();
    let y = x.to_device(remote(0)).unwrap().mul(3.0).unwrap().to_device(remote(1)).unwrap().mul(2.0).unwrap();
    y.sum_all().unwrap().to_device(Device::CPU).unwrap().backward().unwrap();
    let g = x.grad().unwrap();
    assert_eq!((g.device(), g.to_vec::<f32>().unwrap()), (Device::CPU, vec![6.0; 4]));
}

#[test]
fn devices_do_not_mix() {
    let _one = load(PLUGIN);
    let (host, zero) = (ramp(&[3]), ramp(&[3]).to_device(remote(0)).unwrap());
    let one = ramp(&[3]).to_device(remote(1)).unwrap();
    for text in [message(host.add(&zero)), message(zero.mul(&one)), message(zero.add_(&host))] {
        assert!(text.contains("expected all tensors on") && text.contains("`other`"), "{text}");
        assert!(text.contains("test.keyway/remote:") && text.contains("to_device"), "{text}");
    }
    // A tensor of no dimensions in host memory goes with any device; one on a device does not.
    let half = Tensor::new(0.5f32).unwrap();
    let wanted: Vec<f32> = host.to_vec::<f32>().unwrap().iter().map(|v| v * 0.5).collect();
    assert_eq!(zero.mul(&half).unwrap().to_vec::<f32>().unwrap(), wanted);
    assert_eq!(half.mul(&zero).unwrap().to_vec::<f32>().unwrap(), wanted);
    // A scalar of another dtype is cast on the host.
    let wide = Tensor::new(0.5f64).unwrap();
    let made = zero.mul(&wide).unwrap();
    assert_eq!((made.dtype(), made.to_vec::<f32>().unwrap()), (DType::F32, wanted));
    let far = half.to_device(remote(0)).unwrap();
    assert!(message(host.mul(&far)).contains("expected all tensors on"));
}

#[test]
fn the_value_of_a_host_scalar_is_taken_when_the_work_is_queued() {
    let _one = load(PLUGIN);
    let a = ramp(&[4]).to_device(remote(0)).unwrap();
    let slow = pause(&a, 50);
    let factor = Tensor::new(2.0f32).unwrap();
    let made = slow.mul(&factor).unwrap();
    factor.fill_(100.0).unwrap();
    drop(factor);
    let wanted: Vec<f32> = a.to_vec::<f32>().unwrap().iter().map(|v| v * 2.0).collect();
    assert_eq!(made.to_vec::<f32>().unwrap(), wanted);
}

#[test]
fn a_device_that_is_not_there() {
    let _one = load(PLUGIN);
    let nine = remote(9);
    for text in [
        message(ramp(&[2]).to_device(nine)),
        message(Tensor::empty_with([2], nine)),
        message(Stream::new(nine).map_err(Into::into)),
    ] {
        assert!(text.contains("test.keyway/remote:9 does not exist: 2 device(s)"), "{text}");
    }
    let text = message(ramp(&[2]).to_device(Device::new("test.keyway/nowhere", 0).unwrap()));
    assert!(text.contains("no backend for device `test.keyway/nowhere:0` is installed"), "{text}");
}

#[test]
fn running_out_of_memory_and_going_on() {
    let _one = load(PLUGIN);
    let d = remote(0);
    let before = in_use(d);
    set_memory_limit(d, before + 4096).unwrap();
    let small = Tensor::empty_with([512], d).unwrap().fill_(1.0).unwrap();
    let text = message(Tensor::empty_with([1024], d));
    assert!(text.contains("out of memory on test.keyway/remote:0: 4096 bytes were asked for"), "{text}");
    assert!(text.contains("2048 bytes can be had") && text.contains("free tensors"), "{text}");
    // The number asked for is said once, what is held already beside it.
    assert_eq!(text.matches("4096").count(), 1, "{text}");
    assert!(text.contains(&format!("{} bytes are in use, 0 cached", before + 2048)), "{text}");
    // Also in the middle of a call; the arguments are as they were.
    let other = small.mul(2.0).unwrap();
    assert!(message(small.add(&other)).contains("out of memory"), "nothing is left");
    assert_eq!(small.to_vec::<f32>().unwrap(), vec![1.0; 512]);
    // Memory that queued work still holds is waited for.
    let slow = pause_into_nothing(&other);
    drop((small, other));
    assert!(slow);
    assert!(Tensor::empty_with([1024], d).is_ok());
    // The other device is not concerned.
    assert!(Tensor::empty_with([1024], remote(1)).is_ok());
    set_memory_limit(d, 0).unwrap();
    assert_eq!(in_use(d), before);
}

/// Queues work that holds a tensor for a while; there is no memory for a result, so it works in place.
fn pause_into_nothing(t: &Tensor) -> bool {
    let half = Tensor::new(0.5f32).unwrap();
    (0..50).all(|_| t.mul_(&half).is_ok())
}

#[test]
fn statistics_return_to_zero() {
    let _one = load(PLUGIN);
    for d in [remote(0), remote(1)] {
        reset_peak(d).unwrap();
        assert_eq!(in_use(d), 0, "nothing of the tests before is left");
        let a = ramp(&[64]).to_device(d).unwrap().requires_grad_(true).unwrap();
        let loss = a.mul(&a).unwrap().exp().unwrap().sum_all().unwrap();
        loss.backward().unwrap();
        assert!(in_use(d) >= 2 * 256);
        drop((a, loss));
        assert_eq!(in_use(d), 0);
        let stats = memory_stats(d).unwrap().unwrap();
        assert_eq!(stats.allocations, stats.frees);
        assert!(stats.peak_in_use >= 3 * 256 && stats.held == 0);
    }
}

#[test]
fn work_is_done_later_and_copies_wait() {
    let _one = load(PLUGIN);
    let a = ramp(&[8]).to_device(remote(0)).unwrap();
    synchronize(remote(0)).unwrap();
    let start = Instant::now();
    let slow = pause(&a, 200);
    assert!(start.elapsed() < Duration::from_millis(150), "the call must not wait");
    assert_eq!(slow.to_vec::<f32>().unwrap(), ramp(&[8]).to_vec::<f32>().unwrap());
    assert!(start.elapsed() >= Duration::from_millis(200), "the copy must wait");
}

#[test]
fn streams_and_events_order_work() {
    let _one = load(PLUGIN);
    let d = remote(0);
    let a = ramp(&[8]).to_device(d).unwrap();
    synchronize(d).unwrap();
    let (first, second) = (Stream::new(d).unwrap(), Stream::new(d).unwrap());
    let (begun, done) = (Event::new(d).unwrap(), Event::new(d).unwrap());
    assert!(done.is_done().unwrap(), "nothing was recorded");
    let made = {
        let _in = first.enter();
        begun.record(&first).unwrap();
        let slow = pause(&a, 100);
        let made = slow.mul(3.0).unwrap();
        done.record(&first).unwrap();
        made
    };
    assert!(!done.is_done().unwrap());
    second.wait(&done).unwrap();
    let doubled = {
        let _in = second.enter();
        made.mul(2.0).unwrap()
    };
    second.synchronize().unwrap();
    assert!(done.is_done().unwrap(), "the second stream came after the first");
    let wanted: Vec<f32> = ramp(&[8]).to_vec::<f32>().unwrap().iter().map(|v| v * 6.0).collect();
    assert_eq!(doubled.to_vec::<f32>().unwrap(), wanted);
    done.synchronize().unwrap();
    let between = done.elapsed_since(&begun).unwrap().unwrap();
    assert!(between >= 100_000_000, "{between} ns");
    assert!(done.elapsed_since(&Event::new(d).unwrap()).is_err(), "an event that never happened has no time");
}

#[test]
fn memory_is_freed_after_the_work_of_every_stream_that_used_it() {
    let _one = load(PLUGIN);
    let d = remote(0);
    let before = in_use(d);
    let stream = Stream::new(d).unwrap();
    // Created on the default stream, used on another, dropped outside both: the pending work must still be valid.
    let a = ramp(&[16]).to_device(d).unwrap();
    synchronize(d).unwrap();
    let made = {
        let _in = stream.enter();
        let slow = pause(&a, 100);
        slow.add(&a).unwrap()
    };
    drop(a);
    // Created on a stream, dropped outside it, and the stream dropped before the work is complete.
    let other = Stream::new(d).unwrap();
    let late = {
        let _in = other.enter();
        pause(&pause(&made, 1), 50)
    };
    drop(other);
    drop((late, made));
    synchronize(d).unwrap();
    assert_eq!(in_use(d), before);
}

#[test]
fn copies_between_devices_wait_for_both_sides() {
    let _one = load(PLUGIN);
    let (zero, one) = (remote(0), remote(1));
    let a = ramp(&[6]).to_device(zero).unwrap();
    let slow = pause(&a, 100).mul(2.0).unwrap();
    let there = slow.to_device(one).unwrap();
    // The source is overwritten after the copy was queued, and the copy is slow to come.
    slow.fill_(0.0).unwrap();
    assert_eq!(there.device(), one);
    let wanted: Vec<f32> = ramp(&[6]).to_vec::<f32>().unwrap().iter().map(|v| v * 2.0).collect();
    assert_eq!(there.to_vec::<f32>().unwrap(), wanted);
    let back = there.add(1.0).unwrap().to_device(zero).unwrap();
    drop(there);
    assert_eq!(back.to_vec::<f32>().unwrap(), wanted.iter().map(|v| v + 1.0).collect::<Vec<_>>());
    let into = Tensor::empty_with([6], (DType::F64, one)).unwrap();
    into.copy_(&back).unwrap();
    assert_eq!(into.to_vec::<f64>().unwrap()[5], f64::from(wanted[5]) + 1.0);
}

#[test]
fn an_error_of_queued_work_comes_at_the_next_synchronisation_and_once() {
    let _one = load(PLUGIN);
    let a = ramp(&[4]).to_device(remote(0)).unwrap();
    let broken = by_name::call("remote_fail", &[(&a).into()]).unwrap();
    let text = message(synchronize(remote(0)).map_err(Into::into));
    assert!(text.contains("keyway.test/device") && text.contains("told to fail on the device"), "{text}");
    synchronize(remote(0)).unwrap();
    assert!(broken[0].to_vec::<f32>().is_ok(), "its memory is there, whatever it holds");
    let again = by_name::call("remote_fail", &[(&a).into()]).unwrap();
    assert!(message(again[0].to_vec::<f32>()).contains("told to fail on the device"));
    assert_eq!(a.to_vec::<f32>().unwrap().len(), 4);
    // The other device knows nothing of it.
    synchronize(remote(1)).unwrap();
}

#[test]
fn a_kernel_that_is_missing() {
    let _one = load(PLUGIN);
    let a = ramp(&[2]).to_device(remote(0)).unwrap();
    let text = message(a.ge(0.0));
    for part in [
        "ge: no kernel for (test.keyway/remote:0, strided, f32)",
        "self f32[2] on test.keyway/remote:0",
        "keyway explain ge --device test.keyway/remote",
    ] {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
    let n = Tensor::new([1i64]).unwrap().to_device(remote(0)).unwrap();
    let text = message(n.add(&n));
    for part in [
        "`keyway.test/device` for (test.keyway/remote, strided): f32, f64",
        "nearest: kernel of `keyway.test/device`",
        "(test.keyway/remote, strided, f64)",
        "to_dtype",
    ] {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
    let why = explain(find_op("ge").unwrap(), remote(0), Layout::STRIDED, DType::F32);
    assert!(why.candidates.is_empty() && why.verdict == "nothing serves this key", "{why:?}");
}

/// Errors name the function and its arguments, and say where the tensor is that was called.
#[test]
fn tensors_on_other_devices_are_named_as_they_were_passed() {
    let _one = load(PLUGIN);
    let (here, there) = (ramp(&[3]), ramp(&[3]).to_device(remote(0)).unwrap());
    let mask = Tensor::new([true, false, true]).unwrap();
    let far_mask = mask.to_device(remote(0)).unwrap();
    let index = Tensor::new([0i64, 2]).unwrap();
    let on = "test.keyway/remote:0";
    let cases: [(keyway::Result<Tensor>, String); 9] = [
        (here.i(&far_mask), format!("i: expected all tensors on cpu, but `indices` is on {on}")),
        (there.i(&mask), format!("i: expected all tensors on {on}, but `indices` is on cpu")),
        (there.i(&index), format!("i: expected all tensors on {on}, but `indices` is on cpu")),
        (
            here.index(&[Some(&far_mask)]),
            format!("index: expected all tensors on cpu, but `indices` is on {on}"),
        ),
        (
            there.index_put(&[Some(&mask)], 1.0),
            format!("index_put: expected all tensors on {on}, but `indices` is on cpu"),
        ),
        (
            mask.where_cond(&there, 0.0),
            format!("where_cond: expected all tensors on cpu, but `a` is on {on}"),
        ),
        (
            mask.where_cond(&here, &there),
            format!("where_cond: expected all tensors on cpu, but `b` is on {on}"),
        ),
        (
            here.masked_select(&far_mask),
            format!("masked_select: expected all tensors on cpu, but `mask` is on {on}"),
        ),
        (
            here.masked_fill(&far_mask, 0.0),
            format!("masked_fill: expected all tensors on cpu, but `mask` is on {on}"),
        ),
    ];
    for (made, part) in cases {
        let text = message(made);
        assert!(text.starts_with(&part), "`{part}` is missing in: {text}");
    }
    assert_eq!("TEST.KEYWAY/REMOTE:1".parse::<Device>().unwrap(), remote(1));
    let text = message(Device::parse("gpu:0").map_err(Into::into));
    assert!(text.contains("device, `cpu`, `") && text.contains("`test.keyway/remote`"), "{text}");
}

#[test]
fn falling_back_is_a_matter_of_policy_and_never_silent() {
    let _one = load(PLUGIN);
    let d = remote(0);
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = lines.clone();
    log::set_sink(Box::new(move |_, text| sink.lock().unwrap().push(text.to_string())));
    let n = Tensor::new([1i64, 2, 3]).unwrap().to_device(d).unwrap();
    let run = || n.add(&n).map(|t| (t.device(), t.to_vec::<i64>().unwrap()));
    let count = || ledger::fallbacks().iter().filter(|f| f.op == "add").map(|f| f.calls).sum::<u64>();

    assert!(message(run()).contains("no kernel for"));
    assert_eq!(count(), 0);

    set_fallback(d.kind, FallbackPolicy::Warn(Device::CPU.kind)).unwrap();
    assert_eq!(run().unwrap(), (d, vec![2, 4, 6]));
    assert_eq!(run().unwrap(), (d, vec![2, 4, 6]));
    let said: Vec<String> = lines.lock().unwrap().iter().filter(|l| l.starts_with("add:")).cloned().collect();
    assert_eq!(said.len(), 1, "once for each op: {said:?}");
    assert!(said[0].contains("no kernel for test.keyway/remote:0, running on cpu"), "{said:?}");
    assert_eq!(count(), 2);

    set_fallback(d.kind, FallbackPolicy::Allow(Device::CPU.kind)).unwrap();
    assert_eq!(run().unwrap(), (d, vec![2, 4, 6]));
    assert_eq!(count(), 3, "silent in the log, not in the ledger");
    assert!(ledger::fallbacks().iter().any(|f| f.from == d.to_string() && f.to == "cpu"));
    assert!(matches!(ledger::last_served(), ledger::Served::Fallback) || ledger::last_served().name() != "");
    let why = explain(find_op("add").unwrap(), d, Layout::STRIDED, DType::I64);
    assert!(why.verdict.contains("fallback to `cpu`"), "{why:?}");

    // In-place ops through views with gaps, and packing, must not need a kernel of the device.
    n.add_(&n).unwrap();
    assert_eq!(n.to_vec::<i64>().unwrap(), [2, 4, 6]);
    let grid = Tensor::from_vec((0..6i64).collect(), [2, 3]).unwrap().to_device(d).unwrap();
    let transposed = grid.t().unwrap();
    transposed.add_(&Tensor::new([10i64, 20]).unwrap().to_device(d).unwrap()).unwrap();
    assert_eq!(grid.to_vec::<i64>().unwrap(), [10, 11, 12, 23, 24, 25]);
    let spread = n.expand([2, 3]).unwrap();
    assert_eq!(spread.to_device(remote(1)).unwrap().to_vec::<i64>().unwrap(), [2, 4, 6, 2, 4, 6]);
    let mut out = Tensor::empty_with([3], (DType::I64, d)).unwrap();
    n.add_out(&n, &mut out).unwrap();
    assert_eq!(out.to_vec::<i64>().unwrap(), [4, 8, 12]);
    set_fallback(d.kind, FallbackPolicy::Error).unwrap();
    assert!(message(run()).contains("no kernel for"));
}

#[test]
fn a_fallback_that_does_not_serve_is_named_in_the_error() {
    let _one = load(PLUGIN);
    let (d, nobody) = (remote(0), Device::new("test.keyway/nobody", 0).unwrap());
    let n = Tensor::new([1i64, 2]).unwrap().to_device(d).unwrap();
    set_fallback(d.kind, FallbackPolicy::Allow(nobody.kind)).unwrap();
    let text = message(n.add(&n));
    let why = explain(find_op("add").unwrap(), d, Layout::STRIDED, DType::I64);
    set_fallback(d.kind, FallbackPolicy::Error).unwrap();
    for part in [
        "add: no kernel for (test.keyway/remote:0, strided, i64)",
        "the policy of `test.keyway/remote` sends the call to `test.keyway/nobody`",
        "no backend for `test.keyway/nobody` is installed; change the policy with `--fallback`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(why.verdict, "nothing serves this key");
    let last = why.candidates.last().unwrap();
    assert!(!last.chosen && last.reason.contains("no backend for `test.keyway/nobody`"), "{why:?}");
}

#[test]
fn threads_have_streams_of_their_own() {
    let _one = load(PLUGIN);
    let workers: Vec<_> = (0..4u16)
        .map(|i| {
            std::thread::spawn(move || {
                let d = remote(i % 2);
                let stream = Stream::new(d).unwrap();
                let _in = stream.enter();
                let mut t = ramp(&[32]).to_device(d).unwrap();
                for _ in 0..20 {
                    t = t.mul(1.5).unwrap().add(&t).unwrap().mul(0.4).unwrap();
                }
                t.to_vec::<f32>().unwrap()
            })
        })
        .collect();
    let all: Vec<Vec<f32>> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    assert!(all.iter().all(|v| *v == all[0]));
}
