//! `conv_act`
//!
//! Arguments:
//! - `input`: `[batch, channels, spatial..]`.
//! - `weight`: `[output channels, channels / groups, kernel..]`.
//! - `bias`: one value for each output channel, or None.
//! - `add`: added to the result before the activation, of the result's shape.
//! - `activation`: `none`, `relu`, `relu6`, `hardswish` or `silu`.

use super::calls::{prepared, unbatched};
use super::geometry::{Case, cases};
use super::options::ConvOptions;
use super::{conv, conv::output_sizes};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{cast, one, optional, tensor, whole, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{FIRST_THREE, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

/// The activation that [`Tensor::conv2d_act`] applies to the convolution's result.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Activation, ConvOptions}};
/// let (x, weight) = (Tensor::new([[[[-1.0f32, 9.0]]]])?, Tensor::ones((1, 1, 1, 1))?);
/// let y = x.conv2d_act(&weight, None, None, Activation::Relu6, ConvOptions::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 6.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// [`Tensor::relu`].
    Relu,
    /// `clamp(x, 0, 6)`.
    Relu6,
    /// [`Tensor::hardswish`].
    Hardswish,
    /// [`Tensor::silu`].
    Silu,
}

/// The names in calls, in the order of the variants.
const NAMES: [&str; 5] = ["none", "relu", "relu6", "hardswish", "silu"];

impl From<Activation> for Arg<'_> {
    fn from(activation: Activation) -> Self {
        Arg::Str(NAMES[activation as usize])
    }
}

impl Tensor {
    /// `activation(conv1d(self) + add)`, as [`Tensor::conv2d_act`] for signals.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Activation, ConvOptions}};
    /// let (x, weight) = (Tensor::new([[[1.0f32, -5.0, 3.0]]])?, Tensor::ones((1, 1, 2))?);
    /// let y = x.conv1d_act(&weight, None, Some(&Tensor::ones((1, 1, 2))?), Activation::Relu, ConvOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0]);
    /// let y = x.conv1d_act(&weight, Some(&Tensor::new([4.0f32])?), None, Activation::Relu, ConvOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv2d_act`].
    pub fn conv1d_act(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        add: Option<&Tensor>,
        activation: Activation,
        options: ConvOptions<1>,
    ) -> Result<Tensor> {
        convolve("conv1d_act", self, (weight, bias, add), activation, options)
    }

    /// `activation(conv2d(self) + add)` in one call: a convolution with bias, an optional tensor of the result's shape that is
    /// added (such as the shortcut of a residual network), and an activation. A fused kernel writes the result once; without
    /// one, or if a gradient is required, the steps are separate calls. f16 and bf16 are rounded once, so the steps are
    /// computed in f32, which may take longer than three calls in these dtypes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Activation, ConvOptions}};
    /// let x = Tensor::from_vec(vec![1.0f32, -2.0, 3.0, -4.0], (1, 1, 2, 2))?;
    /// let twice = Tensor::from_vec(vec![2.0f32], (1, 1, 1, 1))?;
    /// let y = x.conv2d_act(&twice, None, Some(&x), Activation::Relu, ConvOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 0.0, 9.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv2d`]; an `add` whose shape is not the result's.
    #[doc(alias = "conv_relu")]
    #[doc(alias = "cudnn_convolution_add_relu")]
    pub fn conv2d_act(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        add: Option<&Tensor>,
        activation: Activation,
        options: ConvOptions<2>,
    ) -> Result<Tensor> {
        convolve("conv2d_act", self, (weight, bias, add), activation, options)
    }

    /// `activation(conv3d(self) + add)`, as [`Tensor::conv2d_act`] for volumes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Activation, ConvOptions}};
    /// let (x, weight) = (Tensor::ones((1, 1, 2, 2, 2))?, Tensor::ones((1, 1, 2, 2, 2))?);
    /// let bias = Tensor::new([-6.0f32])?;
    /// let y = x.conv3d_act(&weight, Some(&bias), None, Activation::Relu, ConvOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv2d_act`].
    pub fn conv3d_act(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        add: Option<&Tensor>,
        activation: Activation,
        options: ConvOptions<3>,
    ) -> Result<Tensor> {
        convolve("conv3d_act", self, (weight, bias, add), activation, options)
    }
}

fn convolve<const N: usize>(
    op: &'static str,
    input: &Tensor,
    (weight, bias, add): (&Tensor, Option<&Tensor>, Option<&Tensor>),
    activation: Activation,
    options: ConvOptions<N>,
) -> Result<Tensor> {
    called(
        op,
        &["self", "weight", "bias", "stride", "padding", "dilation", "groups", "add", "activation"],
        || {
            let (x, had_batch, padding) = prepared(op, input, weight, &options)?;
            let add = match add {
                Some(add) if !had_batch => Some(add.unsqueeze(0)?),
                add => add.cloned(),
            };
            let (stride, dilation) = (options.stride.ints(), options.dilation.ints());
            let made = DEF.run(&[
                (&x).into(),
                weight.into(),
                Arg::optional(bias),
                Arg::Ints(&stride),
                Arg::Ints(&padding),
                Arg::Ints(&dilation),
                whole(options.groups),
                Arg::optional(add.as_ref()),
                activation.into(),
            ])?;
            unbatched(made, had_batch)
        },
    )
}

/// The arguments that are promoted.
const OPERANDS: u32 = FIRST_THREE | 1 << 7;

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let sizes = output_sizes(args)?;
    match args.optional_tensor(7)? {
        Some(add) if add.sizes() != &sizes[..] => {
            return Err(wrong_shape(args, 7, format!("of the result's shape {sizes:?}"), add.sizes()));
        }
        _ => {}
    }
    if !NAMES.contains(&args.str(8)?) {
        return Err(wrong_value(args, 8, format!("`{}`", NAMES.join("`, `"))));
    }
    conv::product_plan(args, OPERANDS, sizes)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (dtype, activation, add) = (args.promote(OPERANDS)?, args.str(8)?, optional(args, 7)?);
    // Rounding an intermediate sum before it cancels or passes a nonlinear activation would exceed the rounding error of the
    // result.
    let is_one_step = add.is_none() && matches!(activation, "none" | "relu" | "relu6");
    let operand = |t: Tensor| {
        let t = cast(t, dtype)?;
        if is_one_step { Ok(t) } else { widened(&t) }
    };
    let (x, weight) = (operand(tensor(args, 0)?)?, operand(tensor(args, 1)?)?);
    let bias = optional(args, 2)?.map(operand).transpose()?;
    let [stride, padding, dilation, groups] = [3, 4, 5, 6].map(|i| args.get(i));
    let bias = Arg::optional(bias.as_ref());
    let mut made =
        conv::DEF.run(&[(&x).into(), (&weight).into(), bias, stride, padding, dilation, groups])?;
    // In place, since no derivative reads the previous value.
    if let Some(add) = add {
        made = made.add_(&operand(add)?)?;
    }
    let made = match activation {
        "relu" => made.relu_()?,
        // `relu6` has the gradient 0 at its bounds, unlike `clamp`.
        "relu6" if made.requires_grad() => made.relu6()?,
        "relu6" => made.clamp(0.0, 6.0)?,
        "hardswish" => made.hardswish()?,
        "silu" => made.silu()?,
        _ => made,
    };
    cast(made, dtype)
}

/// The arguments of a case: bias, tensor to add, activation.
fn arguments(case: Case, bias: bool, add: bool, activation: &'static str) -> impl Iterator<Item = SampleArg> {
    let given = |is: bool, sizes: &[usize]| if is { plain(sizes) } else { SampleArg::None };
    let bias = given(bias, &case.weight[..1]);
    let last = [given(add, &case.output), SampleArg::Str(activation)];
    [plain(&case.input), plain(&case.weight), bias].into_iter().chain(case.moves).chain(last)
}

fn samples() -> Vec<Sample> {
    // Each activation with and without a bias and an added tensor.
    let call = |(i, case)| sample(arguments(case, i % 3 != 1, i % 2 == 0, NAMES[(i + 1) % NAMES.len()]));
    cases().into_iter().enumerate().map(call).collect()
}

fn errors() -> Vec<ErrorSample> {
    let case = || cases().swap_remove(3);
    let wrong = |i: usize, by: SampleArg, message| {
        let mut all: Vec<SampleArg> = arguments(case(), true, true, "relu").collect();
        all[i] = by;
        error(all, message)
    };
    vec![
        wrong(7, plain(&[1]), "of the result's shape"),
        wrong(7, plain(&case().input), "of the result's shape"),
        wrong(8, SampleArg::Str("tanh"), "`hardswish`"),
        wrong(2, plain(&[2]), "of shape [3]"),
        wrong(6, SampleArg::Int(0), "1 or more groups"),
    ]
}

/// `conv_act`: `activation(conv(input) + add)`, for an activation `none`, `relu`, `relu6`, `hardswish` or `silu`.
pub static DEF: OpDef = OpDef::new(
    "conv_act(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, \
     int groups, Tensor? add, str activation) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST);
