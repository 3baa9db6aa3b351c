//! `test.keyway/pruned`: of each pair of adjacent elements the one of larger magnitude, the first of equal ones (structured
//! sparsity 1:2). The dropped elements are declared as a tolerance, and gradients are projected on the stored ones.

use keyway_cpu_loops::{CallExt, Contiguous, ViewExt};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Arg, Call, Error, Layout, LayoutGradient, LayoutOps, NameKind, Real, Tensor, Tolerance, intern,
    layout_api, layout_ops_api, new_composite, new_host_tensor,
};
use keyway_test_faults as faults;
use std::sync::OnceLock;

/// The description of the layout.
pub static API: LayoutApi = layout_api::<Pruned>();
/// The layout's operations on the CPU.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Requests the layout's code from the host.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, Pruned::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout that stores one element of each pair.
pub struct Pruned;

impl Layout for Pruned {
    const NAME: &'static str = "test.keyway/pruned";
    const COMPONENTS: &'static [RawStr] = &[RawStr::new("seconds"), RawStr::new("values")];
    // A dropped element has an error of its whole magnitude.
    const TOLERANCE: Tolerance = Tolerance { relative: 1.0, ..Tolerance::EXACT };
    const GRADIENT: LayoutGradient = LayoutGradient::Projected;
    const SAMPLES: &'static str =
        r#"[{"sizes": [4, 6]}, {"sizes": [10]}, {"sizes": [2, 3, 3], "dtype": "f64"}]"#;
}

/// Whether the second of each pair is stored, and the stored values.
struct Pairs<'a, T: Real> {
    seconds: Contiguous<'a, i8>,
    values: Contiguous<'a, T>,
}

impl<'a, T: Real> Pairs<'a, T> {
    fn read(tensor: &Tensor<'a>) -> Result<Self, Error> {
        let [seconds, values] = [tensor.component(0)?, tensor.component(1)?];
        Ok(Pairs { seconds: seconds.view()?.contiguous()?, values: values.view()?.contiguous()? })
    }
}

/// A tensor of this layout with these values.
fn made<T: Real>(
    sizes: &[i64],
    seconds: Arg<'_>,
    values: Vec<T>,
) -> Result<keyway_sdk::author::OwnedTensor, Error> {
    let number = NUMBER.get().ok_or_else(|| Error::Failed { detail: "the layout has no number".into() })?;
    let mut stored = new_host_tensor::<T>(&[values.len() as i64])?;
    stored.view_mut::<T>()?.assign(values);
    new_composite(*number, T::dtype(), sizes, &[seconds, Arg::Owned(&stored)], &[])
}

fn to_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let pairs = Pairs::<T>::read(&call.tensor(0)?)?;
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::ZERO);
    for (nth, pair) in out.chunks_exact_mut(2).enumerate() {
        pair[usize::from(pairs.seconds[nth] != 0)] = pairs.values[nth];
    }
    Ok(())
}

fn from_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let dense = call.contiguous::<T>(0)?;
    let second = |pair: &[T]| pair[1].to_f64().abs() > pair[0].to_f64().abs();
    let chosen: Vec<i8> = dense.chunks_exact(2).map(|pair| i8::from(second(pair))).collect();
    let values = dense.chunks_exact(2).zip(&chosen).map(|(pair, &second)| pair[second as usize]).collect();
    let mut seconds = new_host_tensor::<i8>(&[chosen.len() as i64])?;
    seconds.view_mut::<i8>()?.assign(chosen);
    call.set_output(0, made::<T>(tensor.sizes(), Arg::Owned(&seconds), values)?)
}

/// The gradient of the stored elements.
fn project<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let (grad, like) = (call.tensor(0)?, call.tensor(1)?);
    let pattern = Pairs::<T>::read(&like)?;
    let seconds = Arg::Tensor(like.component(0)?);
    if grad.n_components() > 0 {
        let values = Pairs::<T>::read(&grad)?.values.to_vec();
        return call.set_output(0, made::<T>(like.sizes(), seconds, values)?);
    }
    let dense = call.contiguous::<T>(0)?;
    let first = faults::is("pruned_gradient");
    let stored = |(nth, pair): (usize, &[T])| pair[usize::from(pattern.seconds[nth] != 0 && !first)];
    let mut values: Vec<T> = dense.chunks_exact(2).enumerate().map(stored).collect();
    if faults::is("pruned_gradient_lost") {
        values.iter_mut().next_back().into_iter().for_each(|last| *last = T::ZERO);
    }
    call.set_output(0, made::<T>(like.sizes(), seconds, values)?)
}

/// Runs the function for the dtype of argument 0.
macro_rules! by_dtype {
    ($call:ident, $run:ident) => {{
        match $call.tensor(0)?.dtype() {
            dtype::F32 => $run::<f32>($call),
            dtype::F64 => $run::<f64>($call),
            other => {
                Err(Error::Unsupported { what: format!("the layout test.keyway/pruned of dtype {other}") })
            }
        }
    }};
}

/// The layout in the host's memory.
pub struct OnCpu;

impl LayoutOps for OnCpu {
    type Layout = Pruned;
    const DEVICE: &'static str = "cpu";
    const SHAPES: &'static str = "of an even number of elements";
    const PROJECT: Option<fn(&Call<'_>) -> Result<(), Error>> = Some(|call| by_dtype!(call, project));

    fn accepts(sizes: &[i64]) -> bool {
        !sizes.is_empty() && sizes.iter().product::<i64>() % 2 == 0
    }

    fn validate(call: &Call<'_>) -> Result<(), Error> {
        let tensor = call.tensor(0)?;
        let (seconds, values) = (tensor.component(0)?, tensor.component(1)?);
        let (dtypes, sizes) = ((seconds.dtype(), values.dtype()), [tensor.numel() as i64 / 2]);
        if dtypes != (dtype::I8, tensor.dtype()) || seconds.sizes() != sizes || values.sizes() != sizes {
            let expected =
                format!("i8 of shape {sizes:?}, and `values` of the tensor's dtype and that shape");
            let got = format!("{dtypes:?} of shapes {:?} and {:?}", seconds.sizes(), values.sizes());
            return Err(Error::InvalidArgument { argument: "seconds", expected, got });
        }
        Ok(())
    }
    fn to_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, to_strided)
    }
    fn from_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, from_strided)
    }
}
