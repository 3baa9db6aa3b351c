//! Who holds how much memory. What other threads make counts too, so the tests take turns.

use keyway::nn::{Linear, Module, Sequential};
use keyway::profiler::{self, DeviceUsage, MemorySnapshot};
use keyway::{Result, Tensor};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    keyway::runtime::start().unwrap();
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ones(n: usize) -> Tensor {
    Tensor::from_vec(vec![1.0f32; n], [n]).unwrap()
}

/// Bytes that an op made, holds and held at most.
fn of(snapshot: &MemorySnapshot, op: &str) -> (u64, u64, u64) {
    let found = snapshot.ops.iter().find(|row| row.op == op);
    found.map_or((0, 0, 0), |row| (row.usage.made_bytes, row.usage.bytes, row.usage.peak_bytes))
}

#[test]
fn peaks_and_holders_are_told_by_op() -> Result<()> {
    let _one = alone();
    let x = ones(1000);
    let memory = profiler::memory();
    let kept = x.exp()?;
    for _ in 0..3 {
        x.mul(&x)?;
    }
    let both = (x.mul(&x)?, x.mul(&x)?);
    drop(both);
    let snapshot = memory.snapshot();
    assert_eq!(of(&snapshot, "exp"), (4000, 4000, 4000));
    assert_eq!(of(&snapshot, "mul"), (20000, 0, 8000));
    assert_eq!(snapshot.ops[0].op, "mul", "the highest peak comes first");
    let DeviceUsage { device, usage, timeline, cut } = &snapshot.devices[0];
    assert!(cut.is_none(), "host memory is the allocator's own: {cut:?}");
    assert_eq!((device.as_str(), usage.bytes, usage.peak_bytes), ("cpu", 4000, 12000));
    assert_eq!((usage.made_bytes, usage.storages, usage.made), (24000, 1, 6));
    let held: Vec<_> = timeline.iter().map(|point| point.bytes / 1000).collect();
    assert_eq!(held, [4, 8, 4, 8, 4, 8, 4, 8, 12, 8, 4]);
    assert!(timeline.is_sorted_by_key(|point| point.micros), "{timeline:?}");
    let at_peak: Vec<_> = snapshot.ops.iter().map(|row| (row.op.as_str(), row.bytes_at_peak)).collect();
    assert_eq!(at_peak, [("mul", 8000), ("exp", 4000)]);
    assert_eq!(snapshot.owners.len(), 1);
    let owner = &snapshot.owners[0];
    assert_eq!((owner.op.as_str(), owner.allocator.as_str(), owner.storages), ("exp", "keyway-cpu", 1));
    drop(kept);
    assert!(memory.snapshot().owners.is_empty());
    Ok(())
}

#[test]
fn modules_and_the_backward_pass_are_told_apart() -> Result<()> {
    let _one = alone();
    let model =
        Sequential::new().push_named("first", Linear::new(8, 16)?).push_named("last", Linear::new(16, 4)?);
    let memory = profiler::memory();
    let y = model.forward(&ones(32).view([4, 8])?)?;
    let modules: Vec<_> = memory.snapshot().owners.into_iter().map(|h| h.module).collect();
    assert!(modules.iter().any(|m| m.contains("last")), "{modules:?}");
    y.sum_all()?.backward()?;
    let snapshot = memory.snapshot();
    let gradients = 4 * (8 * 16 + 16 + 16 * 4 + 4);
    // The pass makes the number that it starts from; gradients are their ops', and no module's.
    assert_eq!(of(&snapshot, "(backward)"), (4, 0, 4), "{snapshot:#?}");
    let outside = |snapshot: &MemorySnapshot| -> u64 {
        snapshot.owners.iter().filter(|h| h.module.is_empty()).map(|h| h.bytes).sum()
    };
    assert_eq!(outside(&snapshot), gradients, "{snapshot:#?}");
    model.parameters().iter().for_each(Tensor::zero_grad);
    assert_eq!(outside(&memory.snapshot()), 0);
    Ok(())
}

#[test]
fn other_threads_and_what_was_there_before() -> Result<()> {
    let _one = alone();
    let before = ones(5000);
    let memory = profiler::memory();
    drop(before);
    let made = std::thread::spawn(|| ones(3000).exp()).join().unwrap()?;
    let snapshot = memory.snapshot();
    assert_eq!(of(&snapshot, "(program)"), (24000, 12000, 24000));
    assert_eq!(snapshot.devices[0].usage.bytes, 12000);
    let text = {
        let mut file = Vec::new();
        snapshot.write_json(&mut file).unwrap();
        String::from_utf8(file).unwrap()
    };
    let read: MemorySnapshot = serde_json::from_str(&text).unwrap();
    assert_eq!(read, snapshot);
    assert!(text.contains("\"peak_bytes\":24000"), "{text}");
    drop(memory);
    drop(made);
    assert!(profiler::memory().snapshot().devices.is_empty());
    Ok(())
}

/// The memory of each op at the peak, independent of the time before and after, compared with a record of every moment.
#[test]
fn the_peak_is_told_by_op() -> Result<()> {
    let _one = alone();
    for seed in 0..20 {
        let memory = profiler::memory();
        let (mut held, mut most, mut at_peak) = (Vec::new(), 0, [0, 0]);
        let x = ones(100);
        let mut random = keyway::rng::Philox::new(seed);
        for _ in 0..60 {
            match random.below(3) {
                0 => held.push((0, x.exp()?)),
                1 => held.push((1, x.mul(&x)?)),
                _ if held.is_empty() => {}
                _ => drop(held.swap_remove(random.below(held.len() as u64) as usize)),
            }
            let of = |op| held.iter().filter(|(made_by, _)| *made_by == op).count() as u64 * 400;
            if held.len() > most {
                (most, at_peak) = (held.len(), [of(0), of(1)]);
            }
        }
        let snapshot = memory.snapshot();
        let told = |op: &str| snapshot.ops.iter().find(|row| row.op == op).map_or(0, |row| row.bytes_at_peak);
        assert_eq!(
            [told("exp"), told("mul"), told("(program)")],
            [at_peak[0], at_peak[1], 400],
            "seed {seed}"
        );
    }
    Ok(())
}

#[test]
fn the_page_holds_the_snapshot() -> Result<()> {
    let _one = alone();
    let memory = profiler::memory();
    let _scope = profiler::scope("<!--<script></script>");
    let _kept = ones(7).exp()?;
    let snapshot = memory.snapshot();
    let mut page = Vec::new();
    snapshot.write_html(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let data = page.split_once("const snapshot = ").and_then(|(_, rest)| rest.split_once(";\n")).unwrap().0;
    assert_eq!(serde_json::from_str::<MemorySnapshot>(data).unwrap(), snapshot);
    assert!(!page.contains("http://") || page.matches("http://").count() == 1, "only the name of SVG");
    assert!(page.matches("</script>").count() == 1 && page.matches("<script").count() == 1);
    Ok(())
}
