//! Softmax and log_softmax.

use super::launch::{Dims, launch};
use super::nets::{Array, Sharing, along, in_pieces, wide_bytes};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Error};

family!("softmax");

/// `Softmax` in softmax.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SoftmaxArgument {
    out: u64,
    input: u64,
    sharing: Sharing,
    rows: Dims<2>,
    out_step: i64,
    in_step: i64,
}
// SAFETY: `Softmax` has these fields.
unsafe impl Argument for SoftmaxArgument {}

/// `SoftmaxGradient` in softmax.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct GradientArgument {
    out: u64,
    grad: u64,
    made: u64,
    sharing: Sharing,
    rows: Dims<3>,
    step: [i64; 3],
    logs: u64,
}
// SAFETY: `SoftmaxGradient` has these fields.
unsafe impl Argument for GradientArgument {}

/// Operands of one shape as rows along a dimension; the last operand is read most often.
struct Rows<const N: usize> {
    sharing: Sharing,
    rows: Dims<N>,
    /// The strides along a row.
    step: [i64; N],
    /// Suffix of the kernel's name.
    end: &'static str,
}

impl<const N: usize> Rows<N> {
    fn new(of: [Array<'_>; N], dim: i64) -> Result<Rows<N>, Error> {
        let last = of[N - 1];
        let own = along(last.sizes.len(), dim)?;
        let others = |list: &[i64]| -> Vec<i64> {
            list.iter().enumerate().filter(|(d, _)| Some(*d) != own).map(|(_, &n)| n).collect()
        };
        let strides = of.map(|array| others(array.strides));
        let rows = Strided::new(&others(last.sizes), std::array::from_fn(|k| strides[k].as_slice()))?;
        let step = of.map(|array| own.map_or(0, |d| array.strides[d]));
        let terms = Strided::new(&[own.map_or(1, |d| last.sizes[d])], [&[step[N - 1]]])?;
        let sharing = Sharing::new((&rows, N - 1), (&terms, 0))?;
        let steps: Vec<i64> =
            rows.dims().iter().flat_map(|dim| dim.strides.map(|stride| stride as i64)).collect();
        let in_whole = of.iter().all(|array| in_pieces(array.data, array.bytes, &steps));
        let kept =
            (in_whole && step == [1; N]).then(|| sharing.kept(last.bytes, wide_bytes(last.bytes))).flatten();
        let (sharing, end) = kept.map_or((sharing, ""), |sharing| (sharing, "_kept"));
        Ok(Rows { sharing, rows: Dims::of(&rows)?, step, end })
    }

    fn launch<A: Argument>(
        &self,
        call: &Call<'_>,
        (kernel, name): (Kernel, &str),
        argument: &A,
    ) -> Result<(), Error> {
        let grid = ([self.sharing.blocks(), 1], self.sharing.threads());
        let entry = format_args!("{name}_{}{}", kernel.dtype, self.end);
        launch(device_of(call)?, kernel, entry, grid, argument, call.stream())
    }
}

/// `softmax` and `log_softmax`.
fn softmax(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, out) = (Array::argument(call, 0)?, Array::output(call, 0)?);
    if input.numel() == 0 {
        return Ok(());
    }
    let made = Rows::new([out, input], call.int(1)?)?;
    let Rows { sharing, rows, step: [out_step, in_step], .. } = made;
    let argument = SoftmaxArgument { out: out.data, input: input.data, sharing, rows, out_step, in_step };
    made.launch(call, (kernel, kernel.name), &argument)
}

/// `softmax_backward` and `log_softmax_backward`.
fn softmax_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, given, out) = (Array::argument(call, 0)?, Array::argument(call, 1)?, Array::output(call, 0)?);
    if given.numel() == 0 {
        return Ok(());
    }
    let made = Rows::new([out, grad, given], call.int(2)?)?;
    let Rows { sharing, rows, step, .. } = made;
    let logs = u64::from(kernel.name == "log_softmax_backward");
    let argument =
        GradientArgument { out: out.data, grad: grad.data, made: given.data, sharing, rows, step, logs };
    made.launch(call, (kernel, "softmax_backward"), &argument)
}
