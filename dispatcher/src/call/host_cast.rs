//! Copies and casts of a plugin's dtype by the host itself, if no kernel supports them: through the conversion functions of
//! the dtype. Device memory is copied to and from the host.

use super::convert;
use super::ledger::{self, Served};
use super::outputs::{check_device, check_target};
use super::strides::choose_strides;
use crate::base::dims::{Dims, expanded_strides, is_dense};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::memory::{host_vec, read_bytes, write_bytes};
use crate::op::{Args, Call, Out, Outputs, Plan};
use crate::tensor::{TensorImpl, TensorRef};

/// Elements that are converted at a time.
const CHUNK: usize = 256;

/// Runs a call of `to_dtype`, `clone` or `copy` that involves a plugin's dtype; `None` for any other call.
#[cold]
pub(super) fn run(call: &Call<'_>, plan: &Plan) -> Result<Option<Outputs>> {
    let args = &call.args;
    let Some(known) = convert::known() else { return Ok(None) };
    let source = match args.op {
        op if std::ptr::eq(op, known.to_dtype) || std::ptr::eq(op, known.to_format) => args.tensor(0)?,
        op if std::ptr::eq(op, known.copy) => args.tensor(1)?,
        _ => return Ok(None),
    };
    let [spec] = &plan.outputs[..] else { return Ok(None) };
    if !source.is_strided() || !source.dtype().converts_by_host(spec.dtype) {
        return Ok(None);
    }
    let target = match call.out {
        Out::New => None,
        Out::InPlace => Some(args.tensor(0)?),
        Out::Given(&[target]) => Some(target),
        Out::Given(_) => return Ok(None),
    };
    let made = match target {
        Some(target) => {
            check_target(call.out, args, target, &spec.sizes, spec.dtype)?;
            check_device(call, target, source.device())?;
            if target.dtype() == spec.dtype {
                write(target, source)?;
            } else if spec.dtype.converts_by_host(target.dtype()) {
                // Rounded to the dtype of the result first.
                let result = new_output(args, plan, source)?;
                write(&result, source)?;
                write(target, &result)?;
            } else {
                return Ok(None);
            }
            target.bump_version();
            target.clone()
        }
        None => {
            let result = new_output(args, plan, source)?;
            write(&result, source)?;
            result
        }
    };
    ledger::set_served(Served::Host);
    Ok(Some(Outputs::from_iter([made])))
}

fn new_output(args: &Args<'_>, plan: &Plan, source: &TensorRef) -> Result<TensorRef> {
    let spec = &plan.outputs[0];
    match choose_strides(args, plan, spec) {
        None => TensorImpl::empty(&spec.sizes, spec.dtype, source.device()),
        Some(strides) => TensorImpl::empty_strided(spec.sizes.clone(), strides, spec.dtype, source.device()),
    }
}

/// The bytes from the first to the last element of a nonempty strided tensor.
fn read(t: &TensorRef) -> Result<Vec<u8>> {
    let size = t.dtype().size();
    let reach: usize = t.sizes().iter().zip(t.strides()).map(|(&n, &s)| (n - 1) * s).sum();
    let mut bytes = host_vec((reach + 1) * size)?;
    bytes.resize((reach + 1) * size, 0);
    if let Some(storage) = t.storage() {
        read_bytes(storage, t.offset() * size, &mut bytes)?;
    }
    Ok(bytes)
}

/// Offsets of the elements of a shape in row-major order.
struct Offsets<'a> {
    sizes: &'a [usize],
    strides: &'a [usize],
    index: Dims,
    at: usize,
}

impl<'a> Offsets<'a> {
    fn new(sizes: &'a [usize], strides: &'a [usize]) -> Offsets<'a> {
        Offsets { sizes, strides, index: Dims::from_elem(0, sizes.len()), at: 0 }
    }

    /// The offset of the present element; steps to the next.
    fn step(&mut self) -> usize {
        let now = self.at;
        for d in (0..self.sizes.len()).rev() {
            self.index[d] += 1;
            self.at += self.strides[d];
            if self.index[d] < self.sizes[d] {
                break;
            }
            self.at -= self.strides[d] * self.sizes[d];
            self.index[d] = 0;
        }
        now
    }
}

/// Writes `source`, broadcast and cast, over `target`. All of the source is read first, so the two may overlap.
fn write(target: &TensorRef, source: &TensorRef) -> Result<()> {
    let Some(storage) = target.storage().filter(|_| target.numel() > 0) else { return Ok(()) };
    let (from, to) = (source.dtype().size(), target.dtype().size());
    let (sizes, begin) = (target.sizes(), target.offset() * to);
    let bytes = read(source)?;
    let source_strides = expanded_strides(source.sizes(), source.strides(), sizes);
    let mut reads = Offsets::new(sizes, &source_strides);
    let mut writes = Offsets::new(sizes, target.strides());
    // Memory in the gaps of a strided target may belong to another tensor, so it is not written.
    let mut dense = match is_dense(sizes, target.strides()) {
        true => Some(host_vec::<u8>(target.numel() * to)?),
        false => None,
    };
    dense.iter_mut().for_each(|all| all.resize(target.numel() * to, 0));
    let (mut chunk, mut values) = ([0u8; 16 * CHUNK], [0f64; CHUNK]);
    let mut left = target.numel();
    while left > 0 {
        let n = left.min(CHUNK);
        for element in chunk[..n * from].chunks_exact_mut(from) {
            let at = reads.step() * from;
            element.copy_from_slice(&bytes[at..at + from]);
        }
        convert(source.dtype(), target.dtype(), &mut chunk, &mut values[..n])?;
        for element in chunk[..n * to].chunks_exact(to) {
            let at = writes.step() * to;
            match &mut dense {
                Some(all) => all[at..at + to].copy_from_slice(element),
                None => write_bytes(storage, begin + at, element)?,
            }
        }
        left -= n;
    }
    dense.map_or(Ok(()), |all| write_bytes(storage, begin, &all))
}

/// Casts the first `values.len()` elements of `bytes` in place.
fn convert(from: DType, to: DType, bytes: &mut [u8], values: &mut [f64]) -> Result<()> {
    if from == to {
        return Ok(());
    }
    let n = values.len();
    from.decode(&bytes[..n * from.size()], values)?;
    to.encode(values, &mut bytes[..n * to.size()])
}
