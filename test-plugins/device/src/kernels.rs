//! The kernels of this device. Each captures what it needs of the call and is executed later.

use crate::memory::Opened;
use crate::queue;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::strided::{Reduction, Strided};
use keyway_sdk::author::{Call, Element, Error, Op, Real, RuleCall, Tensor, op};
use keyway_sdk::register_kernel;

/// The source of an operand's elements.
enum Place<T> {
    Device(usize),
    /// The value of a host scalar, read during the call.
    Value(T),
}

/// A tensor of a call, captured for later execution.
struct Operand<T> {
    place: Place<T>,
    sizes: Vec<i64>,
    strides: Vec<i64>,
}

impl<T: Element> Operand<T> {
    fn new(tensor: &Tensor<'_>) -> Result<Self, Error> {
        let place = if tensor.is_host_scalar() {
            let first = tensor.view::<T>()?.get(&vec![0; tensor.ndim()]);
            Place::Value(first.unwrap_or_default())
        } else {
            if tensor.dtype() != T::dtype() || tensor.n_components() > 0 {
                let expected = format!("a strided tensor of {}", T::NAME);
                return Err(Error::InvalidArgument {
                    argument: "tensor",
                    expected,
                    got: format!("dtype {}", tensor.dtype()),
                });
            }
            Place::Device(tensor.data_ptr() as usize)
        };
        Ok(Operand { place, sizes: tensor.sizes().to_vec(), strides: tensor.strides().to_vec() })
    }

    fn numel(&self) -> usize {
        self.sizes.iter().product::<i64>() as usize
    }

    /// Opens the memory for this thread.
    fn open(&self) -> Result<Option<Opened>, String> {
        match self.place {
            Place::Device(at) if self.numel() > 0 => Opened::new(at).map(Some),
            _ => Ok(None),
        }
    }

    fn get(&self, offset: usize) -> T {
        match self.place {
            // SAFETY: the pages are open and the offset is that of an index within the sizes.
            Place::Device(at) => unsafe { T::load((at as *const T).add(offset)) },
            Place::Value(value) => value,
        }
    }

    fn set(&self, offset: usize, value: T) {
        if let Place::Device(at) = self.place {
            // SAFETY: as in `get`; outputs are written by this device's thread alone.
            unsafe { (at as *mut T).add(offset).write(value) };
        }
    }
}

fn submit(
    call: &Call<'_>,
    work: impl Fn() -> Result<(), String> + Send + Sync + 'static,
) -> Result<(), Error> {
    let index = u32::from(call.output(0)?.device_index());
    let stream = if keyway_test_faults::is("device_wrong_stream") { 0 } else { call.stream() as usize };
    queue::submit(index, stream, work);
    Ok(())
}

fn map1<A: Element, T: Element>(
    call: &Call<'_>,
    input: usize,
    f: impl Fn(A) -> T + Send + Sync + 'static,
) -> Result<(), Error> {
    let (a, out) = (Operand::<A>::new(&call.tensor(input)?)?, Operand::<T>::new(&call.output(0)?)?);
    let both = Strided::new(&out.sizes, [&out.strides, &a.strides])?;
    submit(call, move || {
        let _open = (a.open()?, out.open()?);
        both.offsets().for_each(|[o, i]| out.set(o, f(a.get(i))));
        Ok(())
    })
}

fn map2<T: Element>(call: &Call<'_>, f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Result<(), Error> {
    let (a, b) = (Operand::<T>::new(&call.tensor(0)?)?, Operand::<T>::new(&call.tensor(1)?)?);
    let out = Operand::<T>::new(&call.output(0)?)?;
    let all = Strided::new(&out.sizes, [&out.strides, &a.strides, &b.strides])?;
    submit(call, move || {
        let _open = (a.open()?, b.open()?, out.open()?);
        all.offsets().for_each(|[o, i, j]| out.set(o, f(a.get(i), b.get(j))));
        Ok(())
    })
}

/// Refuses calls that the active fault refuses.
fn check(op: &str, call: &Call<'_>) -> Result<(), Error> {
    let is = keyway_test_faults::is;
    let fault = keyway_test_faults::chosen();
    let refused = match op {
        "sum" => is("empty_refused") && call.tensor(0)?.sizes().contains(&0),
        "mul" => is("no_dims_refused") && call.output(0)?.sizes().is_empty(),
        "exp" => is("five_dims_refused") && call.output(0)?.sizes().len() > 4,
        _ => false,
    };
    if refused { Err(Error::Unsupported { what: format!("{op} under {fault}") }) } else { Ok(()) }
}

fn add<T: Real>(call: &Call) -> Result<(), Error> {
    let alpha: T = call.scalar(2)?;
    map2(call, move |a: T, b: T| a + alpha * b)
}

fn mul<T: Real>(call: &Call) -> Result<(), Error> {
    let second = call.output(0)?.device_index() == 1 && call.output(0)?.numel() > 100;
    if second && keyway_test_faults::is("second_device_wrong") {
        return map2(call, |a: T, b: T| a * b + T::from_f64(1.0));
    }
    map2(call, |a: T, b: T| a * b)
}

fn exp<T: Real>(call: &Call) -> Result<(), Error> {
    map1(call, 0, |a: T| a.exp())
}

fn fill<T: Real>(call: &Call) -> Result<(), Error> {
    let value: T = call.scalar(1)?;
    map1(call, 0, move |_: T| value)
}

/// Casts argument `source`, of either of the dtypes that this device supports.
fn cast<T: Real>(call: &Call, source: usize) -> Result<(), Error> {
    match call.tensor(source)?.dtype() {
        dtype::F32 => map1(call, source, |x: f32| T::from_f64(f64::from(x))),
        dtype::F64 => map1(call, source, |x: f64| T::from_f64(x)),
        other => Err(Error::Unsupported {
            what: format!("a cast from dtype {other} to {} on this device", T::NAME),
        }),
    }
}

fn clone<T: Real>(call: &Call) -> Result<(), Error> {
    cast::<T>(call, 0)
}

fn copy<T: Real>(call: &Call) -> Result<(), Error> {
    cast::<T>(call, 1)
}

fn sum<T: Real>(call: &Call) -> Result<(), Error> {
    let (a, out) = (Operand::<T>::new(&call.tensor(0)?)?, Operand::<T>::new(&call.output(0)?)?);
    let dims = if call.is_none(1)? { None } else { Some(call.ints(1)?) };
    let over = Reduction::new(&a.sizes, &a.strides, dims, call.bool(2)?, &out.strides)?;
    submit(call, move || {
        let _open = (a.open()?, out.open()?);
        for [o, start] in over.outputs.offsets() {
            let terms = over.terms.offsets().map(|[_, term]| a.get(start + term));
            out.set(o, terms.fold(T::ZERO, |sum, value| sum + value));
        }
        Ok(())
    })
}

fn mm<T: Real>(call: &Call) -> Result<(), Error> {
    let (a, b) = (Operand::<T>::new(&call.tensor(0)?)?, Operand::<T>::new(&call.tensor(1)?)?);
    let out = Operand::<T>::new(&call.output(0)?)?;
    submit(call, move || {
        let _open = (a.open()?, b.open()?, out.open()?);
        let at = |operand: &Operand<T>, row: i64, column: i64| {
            (row * operand.strides[0] + column * operand.strides[1]) as usize
        };
        for i in 0..out.sizes[0] {
            for j in 0..out.sizes[1] {
                let term = |k| a.get(at(&a, i, k)) * b.get(at(&b, k, j));
                let total = (0..a.sizes[1]).fold(T::ZERO, |sum, k| sum + term(k));
                out.set(at(&out, i, j), total);
            }
        }
        Ok(())
    })
}

/// `remote_pause`: copies its values after a delay.
pub static PAUSE: RawOp = op::<Pause>();
/// `remote_fail`: queued work that fails.
pub static FAIL: RawOp = op::<Fail>();

/// See [`PAUSE`].
pub struct Pause;
/// See [`FAIL`].
pub struct Fail;

fn like_first(call: &RuleCall<'_>) -> Result<(), Error> {
    let first = call.tensor(0)?;
    call.state(0, first.dtype(), first.sizes())
}

impl Op for Pause {
    const SCHEMA: &'static str = "remote_pause(Tensor self, int milliseconds) -> Tensor";
    const SAMPLES: &'static str = r#"[{"args": [{"sizes": [2, 3]}, 1]}]"#;
    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        like_first(call)
    }
}

impl Op for Fail {
    const SCHEMA: &'static str = "remote_fail(Tensor self) -> Tensor";
    const SAMPLES: &'static str = r#"[{"args": [{"sizes": [2, 3]}]}]"#;
    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        like_first(call)
    }
}

fn pause<T: Real>(call: &Call) -> Result<(), Error> {
    let time = std::time::Duration::from_millis(call.int(1)?.clamp(0, 10_000) as u64);
    let slept = std::sync::Once::new();
    map1(call, 0, move |a: T| {
        slept.call_once(|| std::thread::sleep(time));
        a
    })
}

// Registered for each type like a kernel that works.
#[allow(clippy::extra_unused_type_parameters)]
fn fail<T: Real>(call: &Call) -> Result<(), Error> {
    submit(call, || Err("told to fail on the device".to_string()))
}

macro_rules! kernel {
    ($op:literal, $signature:literal, $run:ident) => {
        register_kernel! {
            op: $op, signature: $signature, device: "test.keyway/remote", layout: "strided",
            f32 => |call| check($op, call).and_then(|()| $run::<f32>(call)),
            f64 => |call| check($op, call).and_then(|()| $run::<f64>(call)),
        }
    };
}
kernel!("add", "TTs>T", add);
kernel!("mul", "TT>T", mul);
kernel!("exp", "T>T", exp);
kernel!("fill", "Ts>T", fill);
kernel!("clone", "TS>T", clone);
kernel!("copy", "TT>T", copy);
kernel!("to_dtype", "Td>T", clone);
kernel!("sum", "TIb>T", sum);
kernel!("mm", "TT>T", mm);
kernel!("remote_pause", "Ti>T", pause);
kernel!("remote_fail", "T>T", fail);
