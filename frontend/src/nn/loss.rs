//! Losses: how far a model's answers are from what they should be, as functions and as modules of two inputs. Each calls
//! the op of its name; the modules have all its options.

use super::ModuleError;
use crate::{Result, Tensor};

/// What becomes of the losses of the elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// They stay as they are.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    /// As the ops' argument has it.
    fn name(self) -> &'static str {
        match self {
            Reduction::None => "none",
            Reduction::Mean => "mean",
            Reduction::Sum => "sum",
        }
    }
}

/// The class that counts nothing unless another is given, as in PyTorch.
const NO_CLASS: i64 = -100;

/// Refuses shapes that would silently broadcast.
fn same_shape(owner: &'static str, input: &Tensor, target: &Tensor) -> Result<(), ModuleError> {
    if input.sizes() == target.sizes() {
        return Ok(());
    }
    let (expected, got) = (format!("of the target's shape {:?}", target.sizes()), input.sizes().to_vec());
    Err(ModuleError::Input { owner, expected, got })
}

/// The squared difference.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Reduction, loss}};
/// let (a, b) = (Tensor::from_slice(&[1.0f32, 2.0])?, Tensor::from_slice(&[1.0f32, 4.0])?);
/// assert_eq!(loss::mse_loss(&a, &b, Reduction::Mean)?.item::<f32>()?, 2.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Different shapes.
pub fn mse_loss(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    same_shape("mse_loss", input, target)?;
    input.mse_loss(target, reduction.name())
}

/// The size of the difference.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Reduction, loss}};
/// let (a, b) = (Tensor::from_slice(&[1.0f32, 2.0])?, Tensor::from_slice(&[1.0f32, 4.0])?);
/// assert_eq!(loss::l1_loss(&a, &b, Reduction::Sum)?.item::<f32>()?, 2.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Different shapes.
pub fn l1_loss(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    same_shape("l1_loss", input, target)?;
    input.l1_loss(target, reduction.name())
}

/// The binary cross-entropy of scores, without the detour by probabilities, which would overflow:
/// `max(x, 0) - x * y + log(1 + exp(-|x|))` for a score `x` and a target `y` in 0..=1.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Reduction, loss}};
/// let (score, target) = (Tensor::from_slice(&[0.0f32])?, Tensor::from_slice(&[1.0f32])?);
/// let l = loss::binary_cross_entropy_with_logits(&score, &target, Reduction::Mean)?.item::<f32>()?;
/// assert!((l - 2f32.ln()).abs() < 1e-6);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Different shapes.
pub fn binary_cross_entropy_with_logits(
    input: &Tensor,
    target: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    same_shape("binary_cross_entropy_with_logits", input, target)?;
    input.binary_cross_entropy_with_logits(target, None, None, reduction.name())
}

/// The negative of the target class's entry in `input`, the logarithms of probabilities: `[rows, classes]` for classes
/// `[rows]` as integers, or with more dimensions behind in both. Rows of the class -100 count nothing.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Reduction, loss}};
/// let log_probabilities = Tensor::from_vec(vec![-1.0f32, -2.0], &[1, 2])?;
/// let l = loss::nll_loss(&log_probabilities, &Tensor::from_slice(&[1i64])?, Reduction::Mean)?;
/// assert_eq!(l.item::<f32>()?, 2.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Shapes that do not fit; a class out of range.
pub fn nll_loss(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    input.nll_loss(target, None, NO_CLASS, reduction.name())
}

/// [`nll_loss`] of scores: they are made logarithms of probabilities first.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Reduction, loss}};
/// let scores = Tensor::from_vec(vec![3.0f32, 3.0], &[1, 2])?;
/// let l = loss::cross_entropy(&scores, &Tensor::from_slice(&[0i64])?, Reduction::Mean)?.item::<f32>()?;
/// assert!((l - 2f32.ln()).abs() < 1e-6);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Shapes that do not fit; a class out of range.
pub fn cross_entropy(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    input.cross_entropy(target, None, NO_CLASS, 0.0, reduction.name())
}

macro_rules! loss_module {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr),* $(,)? } => |$self:ident, $input:ident, $target:ident| $call:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// What becomes of the losses of the elements.
            pub reduction: Reduction,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* reduction: Reduction::default() }
            }
        }

        impl $name {
            /// The loss of a model's answers.
            ///
            /// # Errors
            /// Shapes that do not fit; a class out of range.
            pub fn forward(&$self, $input: &Tensor, $target: &Tensor) -> Result<Tensor> {
                $call
            }
        }
    )*};
}

loss_module! {
    /// [`mse_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MseLoss};
    /// let loss = MseLoss::default().forward(&Tensor::scalar(1.0f32)?, &Tensor::scalar(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 4.0);
    /// # Ok(()) }
    /// ```
    MseLoss {} => |self, input, target| mse_loss(input, target, self.reduction);

    /// [`l1_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::L1Loss};
    /// let loss = L1Loss::default().forward(&Tensor::scalar(1.0f32)?, &Tensor::scalar(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    L1Loss {} => |self, input, target| l1_loss(input, target, self.reduction);

    /// [`Tensor::smooth_l1_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::SmoothL1Loss};
    /// let loss = SmoothL1Loss::default().forward(&Tensor::scalar(1.0f32)?, &Tensor::scalar(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 1.5);
    /// # Ok(()) }
    /// ```
    SmoothL1Loss {
        /// Where the parabola ends.
        beta: f64 = 1.0,
    } => |self, input, target| {
        same_shape("smooth_l1_loss", input, target)?;
        input.smooth_l1_loss(target, self.beta, self.reduction.name())
    };

    /// [`Tensor::binary_cross_entropy`] of probabilities as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::BceLoss};
    /// let loss = BceLoss::default().forward(&Tensor::scalar(0.5f32)?, &Tensor::scalar(1.0f32)?)?;
    /// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    BceLoss {
        /// A factor for each element, broadcast.
        weight: Option<Tensor> = None,
    } => |self, input, target| {
        same_shape("binary_cross_entropy", input, target)?;
        input.binary_cross_entropy(target, self.weight.as_ref(), self.reduction.name())
    };

    /// [`binary_cross_entropy_with_logits`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::BceWithLogitsLoss};
    /// let loss = BceWithLogitsLoss::default().forward(&Tensor::scalar(-200.0f32)?, &Tensor::scalar(0.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    BceWithLogitsLoss {
        /// A factor for each element, broadcast.
        weight: Option<Tensor> = None,
        /// A factor for the part of the targets, broadcast.
        pos_weight: Option<Tensor> = None,
    } => |self, input, target| {
        same_shape("binary_cross_entropy_with_logits", input, target)?;
        let (weight, pos_weight) = (self.weight.as_ref(), self.pos_weight.as_ref());
        input.binary_cross_entropy_with_logits(target, weight, pos_weight, self.reduction.name())
    };

    /// [`nll_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::NllLoss};
    /// let input = Tensor::from_vec(vec![-1.0f32, -2.0], &[1, 2])?;
    /// assert_eq!(NllLoss::default().forward(&input, &Tensor::from_slice(&[0i64])?)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    NllLoss {
        /// A factor for each class.
        weight: Option<Tensor> = None,
        /// The class that counts nothing.
        ignore_index: i64 = NO_CLASS,
    } => |self, input, target| {
        input.nll_loss(target, self.weight.as_ref(), self.ignore_index, self.reduction.name())
    };

    /// [`cross_entropy`] as a module; the targets may also be probabilities of the input's shape.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::CrossEntropyLoss};
    /// let scores = Tensor::from_vec(vec![0.0f32; 8], &[2, 4])?;
    /// let loss = CrossEntropyLoss { label_smoothing: 0.1, ignore_index: 3, ..Default::default() };
    /// let loss = loss.forward(&scores, &Tensor::from_slice(&[2i64, 3])?)?.item::<f32>()?;
    /// assert!((loss - 4f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    CrossEntropyLoss {
        /// A factor for each class.
        weight: Option<Tensor> = None,
        /// The class that counts nothing.
        ignore_index: i64 = NO_CLASS,
        /// The share of the target that is spread evenly over all classes.
        label_smoothing: f64 = 0.0,
    } => |self, input, target| {
        let (weight, reduction) = (self.weight.as_ref(), self.reduction.name());
        input.cross_entropy(target, weight, self.ignore_index, self.label_smoothing, reduction)
    };

    /// [`Tensor::kl_div`] of the logarithms of probabilities as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::KlDivLoss};
    /// let same = Tensor::from_vec(vec![0.5f32; 2], &[1, 2])?;
    /// assert_eq!(KlDivLoss::default().forward(&same.log()?, &same)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    KlDivLoss {
        /// Whether the targets are logarithms too.
        log_target: bool = false,
        /// Whether a mean is the sum over the size of dimension 0, as the divergence is defined, and not over the number
        /// of elements.
        batch_mean: bool = false,
    } => |self, input, target| {
        same_shape("kl_div", input, target)?;
        let over_batch = self.batch_mean && self.reduction == Reduction::Mean;
        input.kl_div(target, self.log_target, if over_batch { "batchmean" } else { self.reduction.name() })
    };
}
