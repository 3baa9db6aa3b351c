//! The CUDA backend, loaded by the real loader, on the stand-in for the driver.

mod support;

use keyway::{DType, Device, Tensor, profiler};
use keyway_dispatcher::device::{
    Event, Stream, empty_cache, memory_stats, peer, properties, report, reset_peak, set_memory_limit,
    synchronize,
};
use std::path::Path;
use support::{cuda, is_stand_in, load, message, ramp, run, stand_in, start, texts};

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("values") => values(),
        Some("streams") => streams(),
        Some("memory") => memory(),
        Some("growing") => growing(),
        Some("pinned") => pinned(),
        Some("errors") => errors(),
        Some("count") => count(),
        Some("work") => work(),
        Some("fork") => fork(),
        Some("lost") => lost(),
        Some(other) => panic!("there is no scenario {other}"),
    }
}

fn to_vec(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec::<f32>().unwrap()
}

fn values() {
    load();
    let d = cuda(0);
    let p = properties(d).unwrap();
    assert!(p.name.contains("compute capability "), "{}", p.name);
    assert!(p.asynchronous && !p.host_accessible && p.total_memory >= 1 << 30 && p.units > 0);
    if is_stand_in() {
        assert!(p.name.contains("stand-in") && p.name.contains("compute capability 9.0"), "{}", p.name);
        assert!(p.total_memory == 1 << 30 && p.units == 4 && properties(cuda(1)).is_ok());
    }

    // Copies to the device and back, views, other dtypes, empty tensors.
    let a = ramp(&[3, 4]);
    let there = a.to_device(d).unwrap();
    assert_eq!(to_vec(&there), to_vec(&a));
    assert_eq!(to_vec(&there.t().unwrap()), to_vec(&a.t().unwrap()));
    if properties(cuda(1)).is_ok() {
        assert_eq!(to_vec(&there.to_device(cuda(1)).unwrap()), to_vec(&a));
    }
    let whole = Tensor::new([1i64, -2]).unwrap().to_device(d).unwrap();
    assert_eq!(whole.to_dtype(DType::U8).unwrap().to_vec::<u8>().unwrap(), [1, 254]);
    assert!(to_vec(&Tensor::from_vec(Vec::<f32>::new(), [0, 3]).unwrap().to_device(d).unwrap()).is_empty());

    // Broadcasting, scalars, a 0-d tensor of the host, in-place results; compared with the CPU.
    let made = |device: Device| {
        let x = ramp(&[5, 3]).to_device(device).unwrap().requires_grad_(true).unwrap();
        let b = ramp(&[3]).to_device(device).unwrap();
        let h = x.add(&b).unwrap().mul(0.5).unwrap().t().unwrap();
        let loss = h.exp().unwrap().mul(&Tensor::new(0.1f32).unwrap()).unwrap().sum_all().unwrap();
        loss.backward().unwrap();
        let grad = x.grad().unwrap();
        assert_eq!(grad.device(), device);
        let step = x.detach();
        step.mul_(2.0).unwrap();
        [to_vec(&grad), to_vec(&step), to_vec(&x.detach().amax(1).unwrap()), vec![loss.item().unwrap()]]
    };
    for (own, expected) in made(d).iter().zip(&made(Device::CPU)) {
        for (got, wanted) in own.iter().zip(expected) {
            assert!((got - wanted).abs() <= 1e-5 * wanted.abs().max(1.0), "{own:?} {expected:?}");
        }
        assert_eq!(own.len(), expected.len());
    }
}

/// Work on two streams, executed in random orders: an event orders it.
fn streams() {
    load();
    let d = cuda(0);
    let (first, second) = (Stream::new(d).unwrap(), Stream::new(d).unwrap());
    for round in 0..50 {
        let a = ramp(&[100]).to_device(d).unwrap();
        let (before, after) = (Event::new(d).unwrap(), Event::new(d).unwrap());
        let here = Stream::current(d).unwrap();
        before.record(&here).unwrap();
        let b = {
            let _on = first.enter();
            first.wait(&before).unwrap();
            let b = a.mul(2.0).unwrap().add(f64::from(round)).unwrap();
            after.record(&first).unwrap();
            b
        };
        let c = {
            let _on = second.enter();
            second.wait(&after).unwrap();
            b.add(&b).unwrap()
        };
        second.synchronize().unwrap();
        let expected: Vec<f32> =
            to_vec(&ramp(&[100])).iter().map(|x| (x * 2.0 + round as f32) * 2.0).collect();
        assert_eq!(to_vec(&c), expected, "round {round}");
        assert!(after.is_done().unwrap());
        assert!(after.elapsed_since(&before).unwrap().is_some());
    }
    // Synchronizing the device completes the work of each stream.
    let a = ramp(&[100]).to_device(d).unwrap();
    let ends = [&first, &second].map(|stream| {
        let (_on, end) = (stream.enter(), Event::new(d).unwrap());
        (0..8).for_each(|_| drop(a.mul(2.0).unwrap()));
        end.record(stream).unwrap();
        end
    });
    synchronize(d).unwrap();
    assert!(ends.iter().all(|end| end.is_done().unwrap()));
}

fn memory() {
    load();
    let d = cuda(0);
    let stats = || {
        synchronize(d).unwrap();
        memory_stats(d).unwrap().unwrap()
    };
    let before = stats().in_use;
    let a = Tensor::zeros_with([1 << 20], d).unwrap();
    assert_eq!(stats().in_use, before + (4 << 20));
    drop(a);
    assert_eq!(stats().in_use, before);
    assert!(stats().held > 0 && stats().peak_in_use >= 4 << 20);
    // The cache serves the same size again.
    let hits = stats().cache_hits;
    drop(Tensor::zeros_with([1 << 20], d).unwrap());
    assert!(stats().cache_hits > hits);
    empty_cache(d).unwrap();
    reset_peak(d).unwrap();
    assert_eq!(stats().held, before);
    // A memory limit, and the machine's own memory: errors, after which everything works again.
    set_memory_limit(d, 1 << 20).unwrap();
    let text = message(Tensor::zeros_with([1 << 20], d));
    assert!(text.contains("out of memory") && text.contains("4194304"), "{text}");
    set_memory_limit(d, 0).unwrap();
    let text = message(Tensor::zeros_with([1 << 30], d));
    assert!(text.contains("out of memory"), "{text}");
    // Blocks cached for other sizes are released when memory runs out.
    let all: Vec<Tensor> = (0..20).map(|_| Tensor::zeros_with([8 << 20], d).unwrap()).collect();
    drop(all);
    let large = Tensor::ones_with([200 << 20], d).unwrap();
    assert_eq!(large.narrow(0, 199 << 20, 3).unwrap().to_vec::<f32>().unwrap(), [1.0; 3]);
}

/// Sizes that grow from step to step, as those of a growing sequence, and memory that is freed while work is pending.
fn growing() {
    load();
    let d = cuda(0);
    let stats = || memory_stats(d).unwrap().unwrap();
    for step in 0..20 {
        let x = Tensor::ones_with([(12 + step) << 18], d).unwrap();
        assert_eq!(x.narrow(0, (11 + step) << 18, 2).unwrap().to_vec::<f32>().unwrap(), [1.0; 2]);
    }
    // Of the range; small blocks, such as that of the numbers that were read, have one of their own.
    assert!(stats().held <= 42 << 20, "{}", stats().held);
    let text = report::memory(d).unwrap().unwrap();
    for part in ["{\"allocator\":\"expandable\",", "\"total_size\":41943040,", "\"is_expandable\":true"] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    // A memory profile shows the same account, taken at its own moment.
    let memory = profiler::memory();
    let held = Tensor::ones_with([1 << 18], d).unwrap();
    let snapshot = memory.snapshot();
    let of_device = snapshot.devices.iter().find(|one| one.device == d.to_string()).unwrap();
    let cut = of_device.cut.as_ref().unwrap();
    assert_eq!((of_device.usage.bytes, &cut["allocator"]), (1 << 20, &"expandable".into()));
    assert!(!cut["segments"].as_array().unwrap().is_empty(), "{cut}");
    drop((held, memory));
    let kept = ramp(&[50]).to_device(d).unwrap();
    for _ in 0..8 {
        let x = Tensor::ones_with([4 << 20], d).unwrap();
        let y = x.mul(2.0).unwrap();
        drop((x, y));
        empty_cache(d).unwrap();
        assert_eq!(stats().held, 2 << 20, "what is kept");
    }
    assert_eq!(to_vec(&kept.add(0.0).unwrap()), to_vec(&ramp(&[50])));
    // Streams created and destroyed repeatedly use one range, sequentially.
    for _ in 0..10 {
        let stream = Stream::new(d).unwrap();
        let _on = stream.enter();
        drop(Tensor::ones_with([4 << 20], d).unwrap());
        stream.synchronize().unwrap();
    }
    synchronize(d).unwrap();
    assert!(stats().held <= 44 << 20, "{}", stats().held);
    let (c, e) = (cuda(0), cuda(1));
    assert!(!peer::can_access(c, e).unwrap());
    assert!(message(peer::enable(c, e).map_err(Into::into)).contains("grows in place"));
    // No memory of the driver is lost to fragmentation.
    let all: Vec<Tensor> = (0..20).map(|_| Tensor::zeros_with([8 << 20], d).unwrap()).collect();
    drop(all);
    drop(Tensor::ones_with([200 << 20], d).unwrap());
    assert!(message(Tensor::zeros_with([300 << 20], d)).contains("out of memory"));
}

fn pinned() {
    load();
    let d = cuda(0);
    let host = ramp(&[1000]).pin_memory().unwrap();
    let there = host.to_device(d).unwrap();
    assert_eq!(to_vec(&there.add(1.0).unwrap()), to_vec(&ramp(&[1000]).add(1.0).unwrap()));
}

fn errors() {
    load();
    let d = cuda(0);
    let text = message(ramp(&[2]).to_device(cuda(99)));
    assert!(text.contains("cuda:99") && (!is_stand_in() || text.contains('2')), "{text}");
    let (a, zero) = (Tensor::new([4i32, 5]).unwrap(), Tensor::new([2i32, 0]).unwrap());
    let (a, zero) = (a.to_device(d).unwrap(), zero.to_device(d).unwrap());
    let text = message(a.remainder(&zero));
    assert!(text.contains("integers other than 0"), "{text}");
    let text = message(a.pow(&Tensor::new([1i32, -1]).unwrap().to_device(d).unwrap()));
    assert!(text.contains("0 or more for integers"), "{text}");
    assert_eq!(a.remainder(&a).unwrap().to_vec::<i32>().unwrap(), [0, 0], "the program goes on");
    // An op without a kernel here is reported as missing, and nothing replaces it.
    let text = message(ramp(&[2, 2]).to_device(d).unwrap().to_sparse_csr());
    assert!(text.contains("to_sparse_csr") && text.contains("`keyway-sparse`"), "{text}");
    if properties(cuda(1)).is_ok() {
        let text = message(ramp(&[2]).to_device(d).unwrap().add(&ramp(&[2]).to_device(cuda(1)).unwrap()));
        assert!(text.contains("cuda:1") && text.contains("to_device"), "{text}");
    }
}

/// The reason why there are no devices.
fn count() {
    load();
    println!("SAID {}", message(properties(cuda(0)).map_err(Into::into)));
    println!("SAID {}", message(ramp(&[2]).to_device(cuda(0))));
    assert_eq!(to_vec(&ramp(&[2]).add(1.0).unwrap()), [0.0, 0.25], "the CPU serves");
}

/// A program that uses a little of everything; each step may fail.
fn work() {
    load();
    let d = cuda(0);
    let some = || -> keyway::Result<()> {
        let a = ramp(&[300, 7]).to_device(d)?;
        let b = a.mul(2.0)?.t()?.exp()?.sum(0)?;
        let other = b.to_device(cuda(1))?;
        let stream = Stream::new(d)?;
        let on = stream.enter();
        let c = a.add(1.0)?;
        drop(on);
        let (start, end) = (Event::new(d)?, Event::new(d)?);
        start.record(&stream)?;
        end.record(&stream)?;
        Stream::current(d)?.wait(&end)?;
        end.is_done()?;
        end.synchronize()?;
        end.elapsed_since(&start)?;
        stream.synchronize()?;
        let pinned = ramp(&[500]).pin_memory_for(d)?.to_device(d)?;
        assert_eq!(pinned.narrow(0, 2, 1)?.to_vec::<f32>()?, [-0.5]);
        drop(pinned);
        synchronize(d)?;
        empty_cache(d)?;
        let whole = Tensor::new([4i32, 5])?.to_device(d)?;
        whole.remainder(&whole)?;
        assert_eq!(other.to_vec::<f32>()?.len(), 300);
        assert_eq!(c.to_vec::<f32>()?[0], 0.0);
        Ok(())
    };
    match some() {
        Ok(()) => println!("RESULT all is well"),
        Err(error) => {
            println!("RESULT {error}");
            // One call failed: the next ones do not.
            some().unwrap_or_else(|error| println!("LASTING {error}"));
        }
    }
    let left = memory_stats(d).ok().flatten().map_or(0, |stats| stats.in_use);
    assert_eq!(left, 0, "memory is left behind");
}

/// A forked child has no driver: an error, not a hang.
fn fork() {
    load();
    let a = ramp(&[4]).to_device(cuda(0)).unwrap();
    // SAFETY: the child calls the library, whose locks no other thread of this program holds, and exits immediately.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let text = a.add(1.0).map(|_| String::new()).unwrap_or_else(|error| error.to_string());
        let said = text.contains("forked");
        // SAFETY: ends the child without the parent's destructors.
        unsafe { libc::_exit(i32::from(!said)) };
    }
    let mut status = 0;
    // SAFETY: the address is valid, and the child is this program's.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    assert_eq!(to_vec(&a.add(1.0).unwrap()), [0.0, 0.25, 0.5, 0.75], "the parent goes on");
}

/// A driver fault in one kernel makes a device permanently unusable, and nothing else.
fn lost() {
    load();
    let there = [cuda(0), cuda(1)].map(|d| ramp(&[300]).to_device(d).unwrap());
    // A launch that is accepted may fail later, at the next synchronisation.
    let first = there[0].exp().and_then(|made| made.to_vec::<f32>());
    for text in [message(first), message(there[0].neg()), message(there[0].to_vec::<f32>())] {
        for part in ["CUDA_ERROR_ILLEGAL_ADDRESS", "device 0", "newest first: exp_f32_dense", "started anew"]
        {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }
    assert!(message(ramp(&[2]).to_device(cuda(0))).contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_eq!(to_vec(&there[1].neg().unwrap())[..2], [1.0, 0.75], "the other device goes on");
    assert_eq!(to_vec(&ramp(&[2]).neg().unwrap()), [1.0, 0.75], "the CPU goes on");
}

/// The setting for memory that grows in place.
const GROWS: (&str, &str) = ("KEYWAY_CUDA_ALLOCATOR", "expandable");

fn seeds() -> [(&'static str, &'static str); 3] {
    [("KEYWAY_STAND_IN_SEED", "1"), ("KEYWAY_STAND_IN_SEED", "2"), ("KEYWAY_STAND_IN_SEED", "3")]
}

#[test]
fn values_are_those_of_the_cpu_in_every_order() {
    let Some(driver) = stand_in() else { return };
    for seed in seeds() {
        run("values", &driver, &[seed]);
        run("values", &driver, &[seed, ("KEYWAY_CUDA_ALLOCATOR", "pool")]);
        run("values", &driver, &[seed, GROWS]);
    }
}

#[test]
fn streams_are_ordered_by_events() {
    let Some(driver) = stand_in() else { return };
    for seed in seeds() {
        run("streams", &driver, &[seed]);
        run("streams", &driver, &[seed, ("KEYWAY_CUDA_ALLOCATOR", "pool")]);
        run("streams", &driver, &[seed, GROWS]);
    }
}

/// Each synchronization is needed: if the driver skips it, a scenario fails.
#[test]
fn an_order_that_is_left_out_is_seen() {
    let Some(driver) = stand_in() else { return };
    for (function, scenario, machine) in [
        ("cuStreamWaitEvent", "streams", None),
        ("cuEventRecord", "streams", None),
        ("cuStreamSynchronize", "streams", None),
        ("cuCtxSynchronize", "streams", None),
        ("cuCtxSynchronize", "growing", Some(GROWS)),
    ] {
        let wrong = |seed| {
            let machine: Vec<_> =
                [seed, ("KEYWAY_STAND_IN_SKIP", function)].into_iter().chain(machine).collect();
            !start(scenario, &driver, &machine).status.success()
        };
        assert!(seeds().into_iter().any(wrong), "nobody misses {function}");
    }
}

#[test]
fn a_kernel_that_touches_what_is_not_its_own_is_named_and_its_device_is_lost() {
    let Some(driver) = stand_in() else { return };
    let output = start("lost", &driver, &[("KEYWAY_STAND_IN_FAULT", "exp_f32_dense")]);
    let text = texts(&output);
    assert!(output.status.success(), "{text}");
    // The messages of the guards around each allocation.
    let said = text.lines().find(|line| line.starts_with("stand-in driver: exp_f32_dense, block ("));
    assert!(said.is_some_and(|line| line.contains(", thread ")), "{text}");
}

#[test]
fn memory_is_cached_counted_and_limited() {
    let Some(driver) = stand_in() else { return };
    run("memory", &driver, &[]);
    run("memory", &driver, &[GROWS]);
    run("pinned", &driver, &[]);
}

#[test]
fn memory_that_grows_in_place_is_mapped_and_taken_away_in_order() {
    let Some(driver) = stand_in() else { return };
    for seed in seeds() {
        run("growing", &driver, &[seed, GROWS]);
    }
    let output = start("memory", &driver, &[GROWS, ("KEYWAY_STAND_IN_MAPS", "0")]);
    let text = texts(&output);
    assert!(!output.status.success() && text.contains("maps no memory"), "{text}");
    assert!(text.contains("unset KEYWAY_CUDA_ALLOCATOR"), "{text}");
}

#[test]
fn errors_say_what_was_expected_and_the_program_goes_on() {
    let Some(driver) = stand_in() else { return };
    run("errors", &driver, &[]);
    run("fork", &driver, &[]);
}

#[test]
fn without_a_driver_that_serves_there_are_no_devices_and_the_reason_is_told() {
    let said = |driver: &Path, machine: &[(&str, &str)], parts: &[&str]| {
        let output = start("count", driver, machine);
        let text = texts(&output);
        assert!(output.status.success(), "{text}");
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    };
    let absent = Path::new("/no/such/folder/libcuda.so.1");
    said(absent, &[], &["cannot be read", "KEYWAY_CUDA_DRIVER"]);
    // The usual name, on a machine without a driver; with one, this says nothing.
    if !Path::new("/proc/driver/nvidia").exists() {
        said(Path::new(""), &[], &["libcuda.so.1 was not found", "install NVIDIA's driver, 575 or newer"]);
    }
    let Some(driver) = stand_in() else { return };
    said(&driver, &[("KEYWAY_STAND_IN_VERSION", "12020")], &["is for CUDA 12.2", "12.9 or newer", "update"]);
    said(&driver, &[("CUDA_VISIBLE_DEVICES", "")], &["finds no GPU", "CUDA_VISIBLE_DEVICES"]);
    said(
        &driver,
        &[("KEYWAY_STAND_IN_FAIL", "cuInit:*"), ("KEYWAY_STAND_IN_DEVICES", "0")],
        &["finds no GPU"],
    );
}

/// Every call of the driver fails once: an error that names the function, no leak, and the program continues.
#[test]
fn every_call_of_the_driver_may_fail() {
    let Some(driver) = stand_in() else { return };
    let failures = each_fails(&driver, &[], &[]);
    println!("{failures} failures");
    assert!(failures >= 147, "{failures}: fewer calls than conformance/README.md says");
}

/// As above, for calls of the driver's own pool, if it caches memory.
#[test]
fn every_call_of_the_drivers_pool_may_fail() {
    let Some(driver) = stand_in() else { return };
    let own = ["cuMemAllocAsync", "cuMemFreeAsync"].map(str::to_string);
    let failures = each_fails(&driver, &[("KEYWAY_CUDA_ALLOCATOR", "pool")], &own);
    println!("{failures} failures");
    assert!(failures >= 20, "{failures}: fewer calls than conformance/README.md says");
}

/// As above, for calls that map memory, if it grows in place.
#[test]
fn every_call_that_maps_memory_may_fail() {
    let Some(driver) = stand_in() else { return };
    let mapping = ["Address", "Create", "Release", "Map", "Unmap", "SetAccess", "GetAllocation"];
    let failures = each_fails(&driver, &[GROWS], &mapping.map(|name| format!("cuMem{name}")));
    println!("{failures} failures");
    assert!(failures >= 18, "{failures}: fewer calls than conformance/README.md says");
}

/// Lets each call of the functions with these prefixes, or of all, fail in a separate run; returns the number of runs.
fn each_fails(driver: &Path, machine: &[(&str, &str)], names: &[String]) -> usize {
    let counts = driver.with_file_name(format!("counts-{}-{}", std::process::id(), names.len()));
    run("work", driver, &[&[("KEYWAY_STAND_IN_COUNT", counts.to_str().unwrap())], machine].concat());
    let text = std::fs::read_to_string(&counts).unwrap();
    std::fs::remove_file(&counts).unwrap();
    let mut failures = 0;
    for line in text.lines() {
        let (name, number) = line.split_once(' ').unwrap();
        if !names.is_empty() && !names.iter().any(|begin| name.starts_with(begin)) {
            continue;
        }
        let number: usize = number.parse().unwrap();
        for n in 1..=number {
            let fail = format!("{name}:{n}");
            let output =
                start("work", driver, &[&[("KEYWAY_STAND_IN_FAIL", fail.as_str())], machine].concat());
            let text = texts(&output);
            assert!(output.status.success(), "{fail}: {}\n{text}", output.status);
            let said = text.contains(&format!("{name} answered CUDA_ERROR_UNKNOWN (999)"));
            // Errors of destroying and freeing are only logged; counting asks again.
            assert!(said || text.contains("RESULT all is well"), "{fail}\n{text}");
            assert!(!text.contains("LASTING"), "{fail}\n{text}");
            failures += 1;
        }
    }
    failures
}
