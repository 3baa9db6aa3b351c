//! A plugin with its own ops: an element-wise one, one of two outputs, one without any kernel, and some whose outputs have
//! other formats. The names begin with `plug_`. `KEYWAY_FAULT` selects bugs in some of them for the conformance suite, see
//! `wrong::FAULTS`.

mod wrong;

use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{
    Arg, Call, Compute, Elementwise, Error, Op, Placement, Real, RuleCall, call_op, op,
};
use keyway_sdk::{plugin, register_kernel};
use keyway_test_faults as faults;

/// x / (1 + |x|).
struct Softsign;

impl Op for Softsign {
    const SCHEMA: &'static str = "plug_softsign(Tensor self) -> Tensor";
    const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Float(0b1));
    const BACKWARD: &'static str = "plug_softsign_backward";
    const SAVES_OUTPUTS: u32 = 0;
    const SAMPLES: &'static str = r#"[
        {"args": [{"sizes": [2, 3]}]},
        {"args": [{"sizes": [4], "fill": {"values": [0, 1, -1, 3]}}], "smooth": false},
        {"args": [{"sizes": [2, 2], "fill": {"index": 5}, "dtype": "i64"}], "loosened": [2, "two roundings"]}
    ]"#;
    const REFERENCE: Option<fn(&Call<'_>) -> Result<(), Error>> = Some(softsign::<f64>);
}

/// The gradient of the output, then the input.
struct SoftsignBackward;

impl Op for SoftsignBackward {
    const SCHEMA: &'static str = "plug_softsign_backward(Tensor grad, Tensor self) -> Tensor";
    const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Promoted(0b11));
}

/// The sum and the difference of two tensors that broadcast.
struct SumDiff;

impl Op for SumDiff {
    const SCHEMA: &'static str =
        "plug_sum_diff(Tensor self, Tensor other) -> (Tensor sum, Tensor difference)";
    const BACKWARD: &'static str = "plug_sum_diff_backward";
    const SAVES: u32 = 0;
    const SAVES_OUTPUTS: u32 = 0;
    const BACKWARD_WANTS: bool = true;
    const SAMPLES: &'static str = r#"[{"args": [{"sizes": [3, 4]}, {"sizes": [3, 4]}]}, {"args": [{"sizes": [2, 1, 3]}, {"sizes": [2, 1, 3]}]}]"#;

    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let (a, b) = (call.tensor(0)?, call.tensor(1)?);
        // The computation is in f64 for any input.
        call.compute(Compute::of(dtype::F64).cast(0b11).broadcast(0b11))?;
        let sizes = if a.ndim() >= b.ndim() { a.sizes() } else { b.sizes() };
        call.state_as(0, dtype::F64, sizes, Placement::Preserve)?;
        call.state_as(1, dtype::F64, sizes, Placement::Preserve)
    }
}

/// The gradients of both outputs, with flags for the two wanted gradients: only these are computed.
struct SumDiffBackward;

impl Op for SumDiffBackward {
    const SCHEMA: &'static str =
        "plug_sum_diff_backward(Tensor grad_sum, Tensor grad_difference, int[] wanted) -> (Tensor, Tensor)";

    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let grad = call.tensor(0)?;
        for (i, wanted) in call.ints(2)?.iter().enumerate() {
            call.state(i, grad.dtype(), if *wanted == 1 { grad.sizes() } else { &[0] })?;
        }
        Ok(())
    }
}

/// `self + other * by`: there is a kernel for tensors of two dimensions, and the decomposition for all others.
struct ScaleAdd;

impl Op for ScaleAdd {
    const SCHEMA: &'static str = "plug_scale_add(Tensor self, Tensor other, float by) -> Tensor";
    const PARTS: &'static [RawStr] = &[RawStr::new("mul"), RawStr::new("add")];
    const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Promoted(0b11));
    const SAMPLES: &'static str = r#"[
        {"args": [{"sizes": [3, 4]}, {"sizes": [3, 4]}, 2.5]}, {"args": [{"sizes": [5]}, {"sizes": [5]}, -1.0]}
    ]"#;
    const DECOMPOSITION: Option<fn(&Call<'_>) -> Result<(), Error>> = Some(|call| {
        let scaled = call_op("mul", &[Arg::Tensor(call.tensor(1)?), Arg::Float(call.float(2)?)])?;
        let mut sum = call_op("add", &[Arg::Tensor(call.tensor(0)?), Arg::Owned(&scaled[0]), Arg::Int(1)])?;
        call.set_output(0, sum.remove(0))
    });
}

/// An image, channels_last or in the format of its argument.
struct Formats;

impl Op for Formats {
    const SCHEMA: &'static str = "plug_formats(Tensor image, str how) -> Tensor";
    const SAMPLES: &'static str = r#"[
        {"args": [{"sizes": [2, 3, 4, 5]}, "channels_last"]}, {"args": [{"sizes": [2, 3, 4, 5]}, "like"]}
    ]"#;

    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let image = call.tensor(0)?;
        let placement = match call.str(1)? {
            "channels_last" => Placement::ChannelsLast,
            "images" => Placement::Images(0b1),
            "like" => Placement::Like(0),
            "transposed" => Placement::Strides(&[1, 2]),
            "gaps" => Placement::Strides(&[4, 2]),
            _ => Placement::Contiguous,
        };
        call.state_as(0, image.dtype(), image.sizes(), placement)
    }
}

/// An op whose backward op belongs to another owner and returns one gradient where two are needed.
struct Wrong;

impl Op for Wrong {
    const SCHEMA: &'static str = "plug_wrong(Tensor self, Tensor other) -> Tensor";
    const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Promoted(0b11));
    const BACKWARD: &'static str = "mul";
    const SAVES: u32 = 0b1;
    const SAVES_OUTPUTS: u32 = 0;
}

/// An op whose rule returns one output of two.
struct Silent;

impl Op for Silent {
    const SCHEMA: &'static str = "plug_silent(Tensor self) -> (Tensor, Tensor)";
}

static OPS: [RawOp; 8] = [
    op::<Softsign>(),
    op::<SoftsignBackward>(),
    op::<SumDiff>(),
    op::<SumDiffBackward>(),
    op::<ScaleAdd>(),
    op::<Formats>(),
    op::<Wrong>(),
    op::<Silent>(),
];

fn softsign<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let x = call.view::<T>(0)?;
    if T::dtype() == dtype::F32 && faults::is("plugin_op_wrong") {
        call.out::<T>(0)?.assign(x.iter().map(|x| x / (T::ONE + x * x)));
        return Ok(());
    }
    if wrong::softsign(call, &x)? {
        return Ok(());
    }
    let stops = T::dtype() == dtype::F32 && faults::is("plugin_op_of_1000");
    let most = if stops { 1000 } else { usize::MAX };
    let softsign = |(nth, x): (usize, T)| if nth < most { x / (T::ONE + x.abs()) } else { T::ZERO };
    call.out::<T>(0)?.assign(x.iter().enumerate().map(softsign));
    Ok(())
}

fn softsign_backward<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let pairs = call.view::<T>(0)?.iter().zip(call.view::<T>(1)?.iter());
    call.out::<T>(0)?.assign(pairs.map(|(grad, x)| {
        let d = T::ONE + x.abs();
        let made = grad / (d * d);
        let narrow = T::dtype() == dtype::F32 && faults::is("plugin_op_gradient_f32");
        if narrow || faults::is("plugin_op_gradient") { made + made } else { made }
    }));
    Ok(())
}

fn sum_diff(call: &Call<'_>) -> Result<(), Error> {
    let (a, b) = (call.view::<f64>(0)?, call.view::<f64>(1)?);
    let strided = call.tensor(0)?.strides().windows(2).any(|pair| pair[0] < pair[1]);
    if strided && faults::is("plugin_op_strides") {
        let reversed: Vec<f64> = a.iter().collect();
        call.out::<f64>(0)?.assign(reversed.into_iter().rev());
        return Ok(());
    }
    call.out::<f64>(0)?.assign(a.iter().zip(b.iter()).map(|(a, b)| a + b));
    call.out::<f64>(1)?.assign(a.iter().zip(b.iter()).map(|(a, b)| a - b));
    Ok(())
}

fn sum_diff_backward(call: &Call<'_>) -> Result<(), Error> {
    let (sum, difference) = (call.view::<f64>(0)?, call.view::<f64>(1)?);
    for (i, sign) in [(0, 1.0), (1, -1.0)] {
        // Empty if the gradient is not wanted.
        call.out::<f64>(i)?.assign(sum.iter().zip(difference.iter()).map(|(s, d)| s + sign * d));
    }
    Ok(())
}

fn scale_add(call: &Call<'_>) -> Result<(), Error> {
    let refuses = call.tensor(0)?.ndim() != 2;
    if refuses && faults::is("plugin_op_late_refusal") {
        call.out::<f32>(0)?.assign(std::iter::repeat_n(9.0, 5));
    }
    if refuses || faults::is("plugin_op_never_called") {
        return Err(Error::Unsupported { what: "a tensor of other than two dimensions".to_string() });
    }
    let by = call.float(2)? as f32 * if faults::is("plugin_op_kernel") { 1.01 } else { 1.0 };
    let (a, b) = (call.view::<f32>(0)?, call.view::<f32>(1)?);
    call.out::<f32>(0)?.assign(a.iter().zip(b.iter()).map(|(a, b)| a + b * by));
    Ok(())
}

fn copy(call: &Call<'_>) -> Result<(), Error> {
    call.out::<f32>(0)?.assign(call.view::<f32>(0)?.iter());
    Ok(())
}

fn wrong(call: &Call<'_>) -> Result<(), Error> {
    call.out::<f64>(0)?.assign(call.view::<f64>(0)?.iter());
    Ok(())
}

register_kernel! {
    op: "plug_softsign", signature: "T>T", device: "cpu", layout: "strided",
    f32 => softsign::<f32>,
    f64 => softsign::<f64>,
}
register_kernel! {
    op: "plug_softsign_backward", signature: "TT>T", device: "cpu", layout: "strided",
    f32 => softsign_backward::<f32>,
    f64 => softsign_backward::<f64>,
}
register_kernel! {
    op: "plug_sum_diff", signature: "TT>TT", device: "cpu", layout: "strided",
    f64 => sum_diff,
}
register_kernel! {
    op: "plug_sum_diff_backward", signature: "TTI>TT", device: "cpu", layout: "strided",
    f64 => sum_diff_backward,
}
register_kernel! {
    op: "plug_scale_add", signature: "TTf>T", device: "cpu", layout: "strided",
    f32 => scale_add,
}
register_kernel! {
    op: "plug_formats", signature: "TS>T", device: "cpu", layout: "strided",
    f32 => copy,
}
register_kernel! {
    op: "plug_wrong", signature: "TT>T", device: "cpu", layout: "strided",
    f64 => wrong,
}

plugin! {
    name: "keyway.test/ops",
    version: env!("CARGO_PKG_VERSION"),
    description: "Ops of its own",
    devices: ["cpu"],
    layouts: ["strided"],
    setup: |contents| {
        faults::announce(wrong::FAULTS).map_err(|detail| Error::Failed { detail })?;
        OPS.iter().for_each(|op| {
            contents.op(op);
        });
        Ok(())
    },
}
