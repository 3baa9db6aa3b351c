//! Tensors of more than 2^31 elements, for which 32-bit indices do not suffice. Run on demand: a case takes gigabytes.

use super::{Context, Family, Scope};
use crate::case::Case;
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::memory::{Storage, read_bytes, write_bytes};
use keyway::dispatcher::tensor::TensorImpl;
use keyway::{DType, Device, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "huge", about: "more than 2^31 elements; only with --huge", cases, run };

/// The number of one-byte elements.
const COUNT: usize = (1 << 31) + 1000;
/// The number of elements read and written in one step.
const CHUNK: usize = 1 << 26;
/// The index of the only different value, above 2^31.
const MARK: usize = COUNT - 7;

/// Calls an op on [`made`], and checks its result.
type Check = fn(&Tensor) -> Steps;

/// The cases, by op.
const CASES: [(&str, Check); 6] = [
    ("add", |large| check(&large.add(large)?, COUNT, |position| 2 * expected(position))),
    ("sum", |large| number("the sum", COUNT as i64 + 2, &large.sum_all()?)),
    ("argmax", |large| number("the index of the largest", MARK as i64, &large.argmax_all()?)),
    ("clone", |large| check(&large.copy()?, COUNT, expected)),
    ("index_select", |large| {
        let positions = [MARK as i64, 0, COUNT as i64 - 1];
        let positions = Tensor::new(positions)?.to_device(large.device())?;
        check(&large.index_select(0, &positions)?, 3, |position| [3, 1, 1][position])
    }),
    ("cat", |large| {
        let tail = large.narrow(0, MARK, 3)?;
        let both = Tensor::cat(&[large, &tail], 0)?;
        check(&both, COUNT + 3, |position| if position == COUNT { 3 } else { expected(position) })
    }),
];

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    if scope.huge {
        let there = |name: &str| scope.ops.iter().any(|op| op.def.name() == name);
        let ops = CASES.iter().map(|(op, _)| *op).filter(|op| there(op));
        cases.extend(ops.map(|op| Case::about(FAMILY.name, op, "")));
    }
}

/// 1 everywhere, and 3 at the mark.
fn expected(position: usize) -> u8 {
    if position == MARK { 3 } else { 1 }
}

fn made(device: Device) -> Steps<Tensor> {
    let storage = Storage::allocate(device, COUNT)?;
    let mut chunk = vec![1u8; CHUNK];
    for from in (0..COUNT).step_by(CHUNK) {
        let length = CHUNK.min(COUNT - from);
        let mark = MARK.checked_sub(from).filter(|&at| at < length);
        mark.iter().for_each(|&at| chunk[at] = 3);
        write_bytes(&storage, from, &chunk[..length])?;
        mark.iter().for_each(|&at| chunk[at] = 1);
    }
    Ok(Tensor::from_ref(TensorImpl::strided(storage, 0, &[COUNT], &[1], DType::U8)?))
}

/// Checks each byte of a result with one-byte elements.
fn check(got: &Tensor, count: usize, expected: impl Fn(usize) -> u8) -> Steps {
    let storage = got.as_ref().storage().ok_or_else(|| Stop::Skipped("the result is not strided".into()))?;
    if got.elem_count() != count || got.dtype() != DType::U8 {
        let got = format!("{} of {}", got.elem_count(), got.dtype());
        return Err(Failure::new("the result", format!("{count} of u8"), got).into());
    }
    let mut chunk = vec![0u8; CHUNK];
    for from in (0..count).step_by(CHUNK) {
        let part = &mut chunk[..CHUNK.min(count - from)];
        read_bytes(storage, got.storage_offset() + from, part)?;
        if let Some(at) = (0..part.len()).find(|&at| part[at] != expected(from + at)) {
            let position = from + at;
            let (e, g) = (expected(position).to_string(), part[at].to_string());
            return Err(Failure::new(format!("element {position}"), e, g).into());
        }
    }
    Ok(())
}

fn number(what: &str, expected: i64, got: &Tensor) -> Steps {
    let got = got.item::<i64>()?;
    if got == expected {
        return Ok(());
    }
    Err(Failure::new(what.to_string(), expected.to_string(), got.to_string()).into())
}

fn run(context: &Context<'_>) -> Steps {
    let op = &context.case.subject;
    match CASES.iter().find(|(name, _)| name == op) {
        Some((_, case)) => case(&made(context.target.device)?),
        None => Err(Stop::Skipped(format!("there is no case for `{op}`"))),
    }
}
