//! Who holds how much memory. What other threads make counts too, so the tests take turns.

use keyway::nn::{Linear, Module, Sequential};
use keyway::profiler::{self, MemorySnapshot};
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
    found.map_or((0, 0, 0), |row| (row.held.made_bytes, row.held.bytes, row.held.peak_bytes))
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
    let (device, held) = &snapshot.devices[0];
    assert_eq!((device.as_str(), held.bytes, held.peak_bytes), ("cpu", 4000, 12000));
    assert_eq!((held.made_bytes, held.storages, held.made), (24000, 1, 6));
    assert_eq!(snapshot.holders.len(), 1);
    let holder = &snapshot.holders[0];
    assert_eq!((holder.op.as_str(), holder.allocator.as_str(), holder.storages), ("exp", "keyway-cpu", 1));
    drop(kept);
    assert!(memory.snapshot().holders.is_empty());
    Ok(())
}

#[test]
fn modules_and_the_backward_pass_are_told_apart() -> Result<()> {
    let _one = alone();
    let model =
        Sequential::new().push_named("first", Linear::new(8, 16)?).push_named("last", Linear::new(16, 4)?);
    let memory = profiler::memory();
    let y = model.forward(&ones(32).view([4, 8])?)?;
    let modules: Vec<_> = memory.snapshot().holders.into_iter().map(|h| h.module).collect();
    assert!(modules.iter().any(|m| m.contains("last")), "{modules:?}");
    y.sum_all()?.backward()?;
    let snapshot = memory.snapshot();
    let gradients = 4 * (8 * 16 + 16 + 16 * 4 + 4);
    // One number more was made: what the pass starts from.
    assert_eq!(of(&snapshot, "(backward)"), (gradients + 4, gradients, gradients), "{snapshot:#?}");
    model.parameters().iter().for_each(Tensor::zero_grad);
    assert_eq!(of(&memory.snapshot(), "(backward)"), (gradients + 4, 0, gradients));
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
    assert_eq!(snapshot.devices[0].1.bytes, 12000);
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
