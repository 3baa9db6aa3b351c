//! A plugin with ops of its own: an element-wise one, one of two outputs, one without any kernel, and some that state
//! their outputs in other formats. The names begin with `plug_`.

use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{
    Arg, Call, Compute, Elementwise, Error, Op, Placement, Real, RuleCall, call_op, op,
};
use keyway_sdk::{plugin, register_kernel};

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

    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let (a, b) = (call.tensor(0)?, call.tensor(1)?);
        // Whatever came, the work is done in f64.
        call.compute(Compute::of(dtype::F64).cast(0b11).broadcast(0b11))?;
        let sizes = if a.ndim() >= b.ndim() { a.sizes() } else { b.sizes() };
        call.state_as(0, dtype::F64, sizes, Placement::Preserve)?;
        call.state_as(1, dtype::F64, sizes, Placement::Preserve)
    }
}

/// The gradients of both outputs, and which of the two are wanted: only these are computed.
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

/// self + other * by: there is no kernel anywhere.
struct ScaleAdd;

impl Op for ScaleAdd {
    const SCHEMA: &'static str = "plug_scale_add(Tensor self, Tensor other, float by) -> Tensor";
    const PARTS: &'static [RawStr] = &[RawStr::new("mul"), RawStr::new("add")];
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

/// Its backward op is one of another owner, which returns one gradient where two are needed.
struct Wrong;

impl Op for Wrong {
    const SCHEMA: &'static str = "plug_wrong(Tensor self, Tensor other) -> Tensor";
    const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Promoted(0b11));
    const BACKWARD: &'static str = "mul";
    const SAVES: u32 = 0b1;
    const SAVES_OUTPUTS: u32 = 0;
}

/// Its rule states one output of two.
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
    call.out::<T>(0)?.assign(x.iter().map(|x| x / (T::ONE + x.abs())));
    Ok(())
}

fn softsign_backward<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let pairs = call.view::<T>(0)?.iter().zip(call.view::<T>(1)?.iter());
    call.out::<T>(0)?.assign(pairs.map(|(grad, x)| {
        let d = T::ONE + x.abs();
        grad / (d * d)
    }));
    Ok(())
}

fn sum_diff(call: &Call<'_>) -> Result<(), Error> {
    let (a, b) = (call.view::<f64>(0)?, call.view::<f64>(1)?);
    call.out::<f64>(0)?.assign(a.iter().zip(b.iter()).map(|(a, b)| a + b));
    call.out::<f64>(1)?.assign(a.iter().zip(b.iter()).map(|(a, b)| a - b));
    Ok(())
}

fn sum_diff_backward(call: &Call<'_>) -> Result<(), Error> {
    let (sum, difference) = (call.view::<f64>(0)?, call.view::<f64>(1)?);
    for (i, sign) in [(0, 1.0), (1, -1.0)] {
        // Of no elements where the gradient is not wanted.
        call.out::<f64>(i)?.assign(sum.iter().zip(difference.iter()).map(|(s, d)| s + sign * d));
    }
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
        OPS.iter().for_each(|op| {
            contents.op(op);
        });
        Ok(())
    },
}
