//! Builds call arguments from the description of a sample.

use super::def::OpDef;
use super::sample::{Fill, Role, SampleArg, TensorSample};
use crate::error::Result;
use crate::{DType, Device, Tensor};
use keyway_dispatcher::op::{Arg, Out};

/// A call built from a sample. Its tensors are flattened, in the order of the arguments.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::ops::{build::build, sample::{index, plain}};
/// use keyway::DType;
/// let built = build(&[plain(&[2]), index(&[2], 3)], DType::F64, 0)?;
/// assert_eq!((built.tensors.len(), &built.tested[..]), (2, &[true, false][..]));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Built {
    args: Vec<SampleArg>,
    /// Every tensor argument, lists flattened.
    pub tensors: Vec<Tensor>,
    /// Whether the tensor has the dtype under test, and so may be differentiated.
    pub tested: Vec<bool>,
}

/// SplitMix64, a small generator with one fixed definition, so that a sample is the same on every platform.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A uniform value in `0..1`.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The values of a fill for a tensor of these sizes, in row-major order.
///
/// ```
/// use keyway::ops::{build::values, sample::Fill};
/// let first = values(&Fill::Uniform(0.0, 1.0), &[3], 7);
/// assert_eq!(first, values(&Fill::Uniform(0.0, 1.0), &[3], 7));
/// assert_ne!(first, values(&Fill::Uniform(0.0, 1.0), &[3], 8));
/// ```
pub fn values(fill: &Fill, sizes: &[usize], seed: u64) -> Vec<f64> {
    let (mut generator, count) = (Generator(seed), sizes.iter().product::<usize>());
    match fill {
        Fill::Uniform(low, high) => (0..count).map(|_| low + (high - low) * generator.unit()).collect(),
        Fill::AwayFrom(low, high, gap) => (0..count)
            .map(|_| {
                loop {
                    let x = low + (high - low) * generator.unit();
                    // The distance to the nearest integer, since the kinks of rounding and sign are at integers.
                    if (x - x.round()).abs() >= *gap {
                        break x;
                    }
                }
            })
            .collect(),
        Fill::Distinct(low, high) => {
            let step = (high - low) / count.max(1) as f64;
            let mut all: Vec<f64> = (0..count).map(|i| low + step * (i as f64 + 0.5)).collect();
            for i in (1..count).rev() {
                all.swap(i, (generator.next() % (i as u64 + 1)) as usize);
            }
            all
        }
        Fill::Definite | Fill::Permuted => {
            let n = sizes.last().copied().unwrap_or(1);
            let uniform: Vec<f64> = (0..count).map(|_| 2.0 * generator.unit() - 1.0).collect();
            let large = large_elements(fill, n);
            uniform.into_iter().enumerate().map(|(i, v)| if large(i) { v + n as f64 } else { v }).collect()
        }
        Fill::Index(size) => (0..count).map(|_| (generator.next() % (*size).max(1) as u64) as f64).collect(),
        Fill::Values(given) => given.iter().copied().cycle().take(count).collect(),
    }
}

/// Whether a fill by matrices of `n` columns has its large value at this row-major position. Rows beyond the columns of a tall
/// matrix continue the pattern.
fn large_elements(fill: &Fill, n: usize) -> impl Fn(usize) -> bool {
    let (n, shift) = (n.max(1), usize::from(matches!(fill, Fill::Permuted)));
    move |position| position % n == (position / n + shift) % n
}

fn tensor(sample: &TensorSample, tested: DType, seed: u64) -> Result<Tensor> {
    let dtype = match sample.role {
        Role::Tested => tested,
        Role::Fixed(dtype) => dtype,
    };
    // Refuses sizes whose product overflows.
    keyway_dispatcher::dims::numel("sample", &sample.sizes)?;
    let values = values(&sample.fill, &sample.sizes, seed);
    if dtype == DType::I64 {
        return Tensor::from_vec(values.into_iter().map(|v| v as i64).collect(), &sample.sizes);
    }
    Tensor::from_vec(values, &sample.sizes)?.to_dtype(dtype)
}

/// Builds the arguments of a sample on the host, with the tested tensors of dtype `tested`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::ops::{build::build, sample::{index, plain}};
/// use keyway::DType;
/// let built = build(&[plain(&[2]), index(&[2], 3)], DType::F64, 0)?;
/// assert_eq!((built.tensors[0].dtype(), built.tensors[1].dtype()), (DType::F64, DType::I64));
/// # Ok(()) }
/// ```
///
/// # Errors
/// A dtype that values cannot be cast to.
pub fn build(args: &[SampleArg], tested: DType, seed: u64) -> Result<Built> {
    let mut built = Built { args: args.to_vec(), tensors: Vec::new(), tested: Vec::new() };
    let mut push = |sample: &TensorSample| -> Result<()> {
        let seed = seed.wrapping_mul(1000) + built.tensors.len() as u64;
        built.tensors.push(tensor(sample, tested, seed)?);
        built.tested.push(sample.role == Role::Tested);
        Ok(())
    };
    for arg in args {
        match arg {
            SampleArg::Tensor(t) => push(t)?,
            SampleArg::Tensors(list) => list.iter().try_for_each(&mut push)?,
            _ => {}
        }
    }
    Ok(built)
}

impl Built {
    /// Moves all tensors to a device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::ops::{build::build, sample::{index, plain}};
    /// use keyway::DType;
    /// let built = build(&[plain(&[2]), index(&[2], 3)], DType::F64, 0)?;
    /// assert_eq!(built.to_device(keyway::Device::CPU)?.tensors.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn to_device(mut self, device: Device) -> Result<Built> {
        for tensor in &mut self.tensors {
            *tensor = tensor.to_device(device)?;
        }
        Ok(self)
    }

    /// Calls the op with `tensors` instead of the built ones.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, ops::{build::build, pointwise::exp, sample::plain}};
    /// let built = build(&[plain(&[2])], DType::F32, 0)?;
    /// let made = built.call(&exp::DEF, &built.tensors)?;
    /// assert_eq!(made[0].to_vec::<f32>()?, built.tensors[0].exp()?.to_vec::<f32>()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of the op.
    pub fn call(&self, def: &'static OpDef, tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        self.with_values(tensors, |values| {
            Ok(def.call(values, Out::New)?.into_iter().map(Tensor::from_ref).collect())
        })
    }

    /// Calls `run` with the arguments, with `tensors` instead of the built ones.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Arg;
    /// use keyway::ops::{build::build, sample::{index, plain}};
    /// use keyway::DType;
    /// let built = build(&[plain(&[2]), index(&[2], 3)], DType::F64, 0)?;
    /// let count = built.with_values(&built.tensors, |values| values.iter().filter(|v| matches!(v, Arg::Tensor(_))).count());
    /// assert_eq!(count, 2);
    /// # Ok(()) }
    /// ```
    pub fn with_values<R>(&self, tensors: &[Tensor], run: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        let mut lists: Vec<Vec<&keyway_dispatcher::tensor::TensorRef>> = Vec::new();
        let mut at = 0;
        for arg in &self.args {
            let count = match arg {
                SampleArg::Tensor(_) => 1,
                SampleArg::Tensors(list) => list.len(),
                _ => 0,
            };
            lists.push(tensors[at..at + count].iter().map(AsRef::as_ref).collect());
            at += count;
        }
        let values: Vec<Arg<'_>> = self
            .args
            .iter()
            .zip(&lists)
            .map(|(arg, list)| match arg {
                SampleArg::Tensor(_) => Arg::Tensor(list[0]),
                SampleArg::Tensors(_) => Arg::Tensors(list),
                SampleArg::None => Arg::None,
                SampleArg::Int(v) => Arg::Int(*v),
                SampleArg::Float(v) => Arg::Float(*v),
                SampleArg::Bool(v) => Arg::Bool(*v),
                SampleArg::Ints(v) => Arg::Ints(v),
                SampleArg::Floats(v) => Arg::Floats(v),
                SampleArg::Str(v) => Arg::Str(v),
                SampleArg::DType(v) => Arg::DType(*v),
            })
            .collect();
        run(&values)
    }
}
