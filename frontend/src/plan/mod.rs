//! Memory-format planning: which calls of a module use channels_last images, which contiguous ones, and where to convert.
//!
//! [`plan`] runs the forward function of a module once and records its calls and the tensors that flow between them. It
//! measures each call with images among its arguments (tensors of four or five dimensions) in both formats, and each
//! conversion, and chooses the formats with the minimum total time of calls and conversions. [`Plan::apply`] returns a module
//! that uses them. With [`Costs::Declared`] nothing is measured: the costs are estimates with the relative times that plugins
//! declare, which [`preferences`] lists. Results and gradients are equal up to rounding: a format changes strides, never a value. Planning is
//! explicit; nothing is planned by default.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::Tensor;
//! use keyway::nn::{Conv2d, MaxPool2d, Module, Relu, Sequential};
//! let model = Sequential::new().push(Conv2d::new(3, 8, 3)?).push(Relu).push(MaxPool2d::new(2));
//! let images = Tensor::randn((2, 3, 18, 18))?;
//! let expected = model.forward(&images)?;
//! let plan = keyway::plan::plan(&model, &images)?;
//! for step in &plan.steps {
//!     println!("{} {}: {:?}", step.path, step.op, step.format);
//! }
//! let planned = plan.apply(model)?;
//! assert!(planned.forward(&images)?.allclose_with(&expected, 1e-4, 1e-5, false)?);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - the choice is a minimum cut of the graph of calls (`cut.rs` names the source), exact for two formats on any graph. TVM
//!   (`ConvertLayout`) and PyTorch convert by rules per op, and oneDNN uses the preference of each primitive alone, so that the
//!   cost of conversions between them is ignored; a dynamic program along the graph is exact only for chains;
//! - the unit is a call of an op, not a module, since sums and activations between modules have formats too. A plan is matched
//!   by the order of calls: if a later forward pass calls other ops, it converts nothing more, and its results are still
//!   correct;
//! - a tensor that two calls need converted is converted twice: caching it would hold its memory for the whole pass;
//! - declared costs are ratios to row-major order, since a plugin cannot know the sizes and the machine. The estimate that they
//!   multiply is a roofline model, because a conversion costs as much as an element-wise op and little beside a convolution;
//!   one unit per call would convert images for pools alone;
//! - only the two memory formats are planned, layouts of plugins are not.

mod choose;
mod cut;
mod declared;
mod follow;
mod order;
mod record;

pub use declared::{ESTIMATED_BANDWIDTH, ESTIMATED_BYTES_PER_PRODUCT, Preference, preferences};
pub use follow::Planned;

use crate::autograd::no_grad;
use crate::nn::Module;
use crate::rng::generator::Places;
use crate::{Device, MemoryFormat, Result, Tensor};
use follow::record;
use order::FORMATS;
use record::{Node, Origin, Recorded};

/// The number of times that [`plan`] runs each call, after one warm-up run; the minimum time counts.
pub const ROUNDS: usize = 5;

/// An operation whose cost a plan depends on.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::plan::{Costs, Work, plan_with};
/// use keyway::{Device, Tensor, nn::Relu};
/// let seconds = |work: &Work<'_>| match work {
///     Work::Op { op, device, shape, .. } => {
///         assert_eq!((*op, *device, *shape), ("relu", Device::CPU, &[1, 3, 8, 8][..]));
///         1.0
///     }
///     _ => 0.5,
/// };
/// plan_with(&Relu, &Tensor::ones((1, 3, 8, 8))?, Costs::Given(&seconds))?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Work<'a> {
    /// A call of an op.
    Op {
        /// The op.
        op: &'a str,
        /// The device of the first image among its arguments.
        device: Device,
        /// The format of all images among its arguments.
        format: MemoryFormat,
        /// The shape of the first result.
        shape: &'a [usize],
        /// The size of the images among its arguments, in bytes.
        bytes: u64,
    },
    /// A conversion of one tensor.
    Conversion {
        /// The current format; `None` for another stride order.
        from: Option<MemoryFormat>,
        /// The target format.
        to: MemoryFormat,
        /// The size of the elements, in bytes.
        bytes: u64,
    },
}

/// The source of the costs of a plan.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::Conv2d;
/// use keyway::plan::{Costs, Work, plan_with};
/// use keyway::{MemoryFormat, Tensor};
/// // Convolutions take half the time in channels_last, conversions cost next to nothing.
/// let seconds = |work: &Work<'_>| match work {
///     Work::Op { format: MemoryFormat::ChannelsLast, .. } => 1.0,
///     Work::Op { .. } => 2.0,
///     _ => 0.1,
/// };
/// let plan = plan_with(&Conv2d::new(3, 8, 3)?, &Tensor::ones((1, 3, 8, 8))?, Costs::Given(&seconds))?;
/// assert_eq!(plan.steps[0].format, Some(MemoryFormat::ChannelsLast));
/// assert_eq!((plan.before, plan.after), (2.0, 1.1));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Costs<'a> {
    /// Measured: each call and conversion runs this number of times after one warm-up run; the minimum time counts.
    Measured(usize),
    /// Declared by plugins and estimated, without measurements, so that the same program plans the same on each machine.
    ///
    /// A call in row-major order takes the time to move its images and its first result once at [`ESTIMATED_BANDWIDTH`], plus
    /// that of [`ESTIMATED_BYTES_PER_PRODUCT`] for each multiply-add of a convolution. In another format it takes this time
    /// multiplied by the cost that a plugin declares for the op on that device ([`preferences`]), or the same time if none does.
    /// A conversion takes the time to read and write the tensor once. Only ratios of these times are meaningful.
    Declared,
    /// The seconds that this function returns; a negative or NaN cost counts as 0, and infinity excludes a format.
    Given(&'a dyn Fn(&Work<'_>) -> f64),
}

/// A conversion that a plan inserts.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::Conv2d;
/// use keyway::plan::{Costs, Work, plan_with};
/// use keyway::{MemoryFormat, Tensor};
/// let seconds = |work: &Work<'_>| f64::from(matches!(work, Work::Op { format: MemoryFormat::Contiguous, .. }));
/// let plan = plan_with(&Conv2d::new(3, 8, 3)?, &Tensor::ones((1, 3, 8, 8))?, Costs::Given(&seconds))?;
/// let conversion = &plan.steps[0].conversions[0];
/// assert_eq!((conversion.argument, conversion.to), (0, MemoryFormat::ChannelsLast));
/// assert_eq!(conversion.bytes, 3 * 8 * 8 * 4);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Conversion {
    /// The index of the converted tensor among the call's tensor arguments, from 0.
    pub argument: usize,
    /// The current format; `None` for another stride order.
    pub from: Option<MemoryFormat>,
    /// The target format.
    pub to: MemoryFormat,
    /// The size of the elements, in bytes.
    pub bytes: u64,
    /// The time of the conversion, in seconds.
    pub seconds: f64,
}

/// A call of a forward pass, with the choices of a plan.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::nn::{Flatten, Sequential};
/// let plan = keyway::plan::plan(&Sequential::new().push(Flatten::default()), &Tensor::ones((1, 3, 8, 8))?)?;
/// assert_eq!((plan.steps[0].path.as_str(), plan.steps[0].shape.as_slice()), ("0", &[1, 192][..]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The path of enclosing module names, separated by dots; empty if there are none.
    pub path: String,
    /// The op.
    pub op: &'static str,
    /// Whether the call writes to its first argument.
    pub in_place: bool,
    /// The shape of the first result.
    pub shape: Vec<usize>,
    /// The format of the first image among the arguments without the plan; `None` without images, or for another stride order.
    pub from: Option<MemoryFormat>,
    /// The format that was chosen for the images; `None` if there is no choice.
    pub format: Option<MemoryFormat>,
    /// Whether the op depends on the strides of its arguments, which are then passed in their original format.
    by_strides: bool,
    /// The time without the plan, in seconds.
    pub before: f64,
    /// The time with the plan, excluding conversions, in seconds.
    pub after: f64,
    /// The conversions that are inserted before the call.
    pub conversions: Vec<Conversion>,
}

impl Step {
    /// The time with the plan, including conversions, in seconds.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Relu};
    /// let plan = keyway::plan::plan(&Relu, &Tensor::ones((1, 3, 8, 8))?)?;
    /// assert!(plan.steps[0].seconds() >= plan.steps[0].after);
    /// # Ok(()) }
    /// ```
    pub fn seconds(&self) -> f64 {
        self.after + self.conversions.iter().map(|conversion| conversion.seconds).sum::<f64>()
    }
}

/// The formats chosen for the calls and parameters of a module, with their costs.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::nn::{Linear, Relu, Sequential};
/// // Nothing to choose without images.
/// let model = Sequential::new().push(Linear::new(4, 2)?).push(Relu);
/// let plan = keyway::plan::plan(&model, &Tensor::ones((1, 4))?)?;
/// assert!(plan.steps.iter().all(|step| step.format.is_none()) && plan.parameters.is_empty());
/// assert!(plan.conversions() == 0 && plan.before == plan.after);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The calls, in the order of the forward function.
    pub steps: Vec<Step>,
    /// The formats of parameters, by name.
    pub parameters: Vec<(String, MemoryFormat)>,
    /// The time of all calls without the plan, in seconds.
    pub before: f64,
    /// The time of all calls with the plan, including conversions, in seconds.
    pub after: f64,
}

impl Plan {
    /// The number of inserted conversions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Relu};
    /// let plan = keyway::plan::plan(&Relu, &Tensor::ones((1, 4))?)?;
    /// assert_eq!(plan.conversions(), 0);
    /// # Ok(()) }
    /// ```
    pub fn conversions(&self) -> usize {
        self.steps.iter().map(|step| step.conversions.len()).sum()
    }
}

/// Plans the memory formats of a module for inputs like this one, with measured costs. See the [module](self).
///
/// Runs the forward function once without gradients, in the module's current mode, and additionally each call [`ROUNDS`] times
/// in each format, on copies of its arguments. Buffers and generators, the default ones too, are restored. The plan applies to forward passes in the
/// same mode.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::Conv2d};
/// let plan = keyway::plan::plan(&Conv2d::new(3, 8, 3)?, &Tensor::ones((1, 3, 8, 8))?)?;
/// assert_eq!((plan.steps[0].op, plan.parameters[0].0.as_str()), ("conv", "weight"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// The errors of the forward function; a call that depends on strides of neither format.
pub fn plan<M: Module + ?Sized>(module: &M, input: &Tensor) -> Result<Plan> {
    plan_with(module, input, Costs::Measured(ROUNDS))
}

/// [`plan`] with given or declared costs, or another number of measurements.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::plan::{Costs, plan_with};
/// use keyway::{MemoryFormat, Tensor, nn::Relu};
/// let images = Tensor::ones((1, 3, 8, 8))?;
/// let plan = plan_with(&Relu, &images, Costs::Given(&|_| 1.0))?;
/// assert_eq!(plan.steps[0].format, Some(MemoryFormat::Contiguous), "as it is, where nothing is gained");
/// // No plugin declares a format for `relu`.
/// let error = plan_with(&Relu, &images, Costs::Declared).unwrap_err().to_string();
/// assert!(error.contains("declare a memory format"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`plan`]; with [`Costs::Declared`], calls on images for none of which a plugin declares a memory format.
pub fn plan_with<M: Module + ?Sized>(module: &M, input: &Tensor, costs: Costs<'_>) -> Result<Plan> {
    let _off = no_grad();
    let rounds = if let Costs::Measured(rounds) = costs { rounds.max(1) } else { 0 };
    let buffers: Vec<Tensor> =
        module.named_buffers().iter().map(|(_, buffer)| buffer.copy()).collect::<Result<_>>()?;
    let states: Vec<_> = module.named_generators().iter().map(|(_, generator)| generator.state()).collect();
    let recorded = Places::now().replay(|| record(rounds, module, input));
    for ((_, buffer), was) in std::iter::zip(module.named_buffers(), &buffers) {
        buffer.copy_(was)?;
    }
    for ((_, generator), was) in std::iter::zip(module.named_generators(), states) {
        generator.set_state(was);
    }
    let mut nodes = recorded?;
    match costs {
        Costs::Measured(_) => {}
        Costs::Declared => declared::price(&mut nodes)?,
        Costs::Given(seconds) => nodes.iter_mut().for_each(|node| price(node, seconds)),
    }
    let labels = choose::problem(&nodes).solve();
    Ok(choose::plan(&nodes, &labels))
}

/// Replaces the costs of a call by those of a function.
fn price(node: &mut Node, seconds: &dyn Fn(&Work<'_>) -> f64) {
    let Origin::Call(call) = &mut node.origin else { return };
    let positive = |cost: f64| if cost > 0.0 { cost } else { 0.0 };
    let Recorded { op, device, shape, bytes, inputs, .. } = call;
    for input in inputs.iter_mut() {
        for (from, costs) in input.conversion.iter_mut().enumerate() {
            for (to, cost) in costs.iter_mut().enumerate().filter(|(to, _)| from != *to) {
                let from = FORMATS.get(from).copied();
                *cost = positive(seconds(&Work::Conversion { from, to: FORMATS[to], bytes: input.bytes }));
            }
        }
    }
    for (cost, format) in std::iter::zip(&mut call.seconds, FORMATS) {
        // A call that fails in a format remains excluded.
        if cost.is_finite() {
            *cost = match inputs.is_empty() {
                true => 0.0,
                false => positive(seconds(&Work::Op { op, device: *device, format, shape, bytes: *bytes })),
            };
        }
    }
    call.set_as_given();
}
