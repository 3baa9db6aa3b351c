//! Loss functions as modules of two inputs. Each calls the op of its name.

use super::ModuleError;
use crate::ops::loss::{NO_CLASS, Reduction};
use crate::{Result, Tensor};
use keyway_dispatcher::error::Error;

/// Refuses shapes that would silently broadcast.
pub(super) fn same_shape(owner: &'static str, input: &Tensor, target: &Tensor) -> Result<(), ModuleError> {
    if input.shape() == target.shape() {
        return Ok(());
    }
    let (expected, got) = (format!("of the target's shape {:?}", target.shape()), input.shape().to_vec());
    Err(ModuleError::Input { owner, expected, got })
}

/// Refuses a tensor `argument` whose shape is not that of the tensor `other`, with which it would silently broadcast.
pub(super) fn same_shape_as(
    op: &'static str,
    (argument, tensor): (&'static str, &Tensor),
    (other, like): (&str, &Tensor),
) -> Result<()> {
    if tensor.shape() == like.shape() {
        return Ok(());
    }
    let expected = format!("of the shape of `{other}`, {:?}", like.shape());
    Err(Error::Shape { op, argument, expected, got: tensor.shape().into() }.into())
}

macro_rules! loss_module {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr),* $(,)? } => |$self:ident, $input:ident, $target:ident| $call:expr, [$answers:literal, $targets:literal, $loss:literal];)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// The reduction over the losses of the elements.
            pub reduction: Reduction,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* reduction: Reduction::default() }
            }
        }

        impl $name {
            /// The loss of predictions against targets.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::", stringify!($name), "};\n",
                "let loss = ", stringify!($name), "::default().forward(&", $answers, ", &", $targets, ")?;\n",
                "assert!((loss.item::<f32>()? - ", $loss, ").abs() < 1e-6);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Incompatible shapes; a class out of range.
            pub fn forward(&$self, $input: &Tensor, $target: &Tensor) -> Result<Tensor> {
                $call
            }
        }
    )*};
}

loss_module! {
    /// [`Tensor::mse_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MseLoss};
    /// let loss = MseLoss::default().forward(&Tensor::new(1.0f32)?, &Tensor::new(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 4.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "MSELoss")]
    MseLoss {} => |self, input, target| {
        same_shape("mse_loss", input, target)?;
        input.mse_loss_with(target, self.reduction)
    }, ["Tensor::new([1.0f32, 2.0])?", "Tensor::new([3.0f32, 2.0])?", "2.0"];

    /// [`Tensor::l1_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::L1Loss};
    /// let loss = L1Loss::default().forward(&Tensor::new(1.0f32)?, &Tensor::new(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    L1Loss {} => |self, input, target| {
        same_shape("l1_loss", input, target)?;
        input.l1_loss_with(target, self.reduction)
    }, ["Tensor::new([1.0f32, 2.0])?", "Tensor::new([3.0f32, 2.0])?", "1.0"];

    /// [`Tensor::smooth_l1_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::SmoothL1Loss};
    /// let loss = SmoothL1Loss::default().forward(&Tensor::new(1.0f32)?, &Tensor::new(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 1.5);
    /// # Ok(()) }
    /// ```
    SmoothL1Loss {
        /// The distance at which the quadratic part ends.
        beta: f64 = 1.0,
    } => |self, input, target| {
        same_shape("smooth_l1_loss", input, target)?;
        input.smooth_l1_loss_with(target, self.beta, self.reduction)
    }, ["Tensor::new([1.0f32, 2.0])?", "Tensor::new([3.0f32, 2.0])?", "0.75"];

    /// [`Tensor::huber_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::HuberLoss};
    /// let loss = HuberLoss { delta: 0.5, ..Default::default() }.forward(&Tensor::new(1.0f32)?, &Tensor::new(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 0.875);
    /// # Ok(()) }
    /// ```
    HuberLoss {
        /// The distance at which the quadratic part ends.
        delta: f64 = 1.0,
    } => |self, input, target| {
        same_shape("huber_loss", input, target)?;
        input.huber_loss_with(target, self.delta, self.reduction)
    }, ["Tensor::new([1.0f32, 2.0])?", "Tensor::new([3.0f32, 2.0])?", "0.75"];

    /// [`Tensor::binary_cross_entropy`] as a module; the input is probabilities.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::BceLoss};
    /// let loss = BceLoss::default().forward(&Tensor::new(0.5f32)?, &Tensor::new(1.0f32)?)?;
    /// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "BCELoss")]
    BceLoss {
        /// A factor for each element, broadcast.
        weight: Option<Tensor> = None,
    } => |self, input, target| {
        same_shape("binary_cross_entropy", input, target)?;
        input.binary_cross_entropy_with(target, self.weight.as_ref(), self.reduction)
    }, ["Tensor::new([0.5f32, 0.5])?", "Tensor::new([1.0f32, 0.0])?", "2f32.ln()"];

    /// [`Tensor::binary_cross_entropy_with_logits`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::BceWithLogitsLoss};
    /// let loss = BceWithLogitsLoss::default().forward(&Tensor::new(-200.0f32)?, &Tensor::new(0.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "BCEWithLogitsLoss")]
    BceWithLogitsLoss {
        /// A factor for each element, broadcast.
        weight: Option<Tensor> = None,
        /// The weight of the positive part of the loss, broadcast.
        pos_weight: Option<Tensor> = None,
    } => |self, input, target| {
        same_shape("binary_cross_entropy_with_logits", input, target)?;
        let (weight, pos_weight) = (self.weight.as_ref(), self.pos_weight.as_ref());
        input.binary_cross_entropy_with_logits_with(target, weight, pos_weight, self.reduction)
    }, ["Tensor::new([0.0f32, 0.0])?", "Tensor::new([1.0f32, 0.0])?", "2f32.ln()"];

    /// [`Tensor::nll_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::NllLoss};
    /// let input = Tensor::from_vec(vec![-1.0f32, -2.0], (1, 2))?;
    /// assert_eq!(NllLoss::default().forward(&input, &Tensor::new([0i64])?)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "NLLLoss")]
    NllLoss {
        /// A factor for each class.
        weight: Option<Tensor> = None,
        /// The class whose targets are ignored.
        ignore_index: i64 = NO_CLASS,
    } => |self, input, target| {
        input.nll_loss_with(target, self.weight.as_ref(), self.ignore_index, self.reduction)
    }, ["Tensor::new([[-1.0f32, -2.0]])?", "Tensor::new([1i64])?", "2.0"];

    /// [`Tensor::cross_entropy`] as a module; the targets may also be probabilities of the input's shape.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::CrossEntropyLoss};
    /// let scores = Tensor::from_vec(vec![0.0f32; 8], (2, 4))?;
    /// let loss = CrossEntropyLoss { label_smoothing: 0.1, ignore_index: 3, ..Default::default() };
    /// let loss = loss.forward(&scores, &Tensor::new([2i64, 3])?)?.item::<f32>()?;
    /// assert!((loss - 4f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    CrossEntropyLoss {
        /// A factor for each class.
        weight: Option<Tensor> = None,
        /// The class whose targets are ignored.
        ignore_index: i64 = NO_CLASS,
        /// The share of the target distribution that is replaced by the uniform distribution.
        label_smoothing: f64 = 0.0,
    } => |self, input, target| {
        let (weight, reduction) = (self.weight.as_ref(), self.reduction);
        input.cross_entropy_with(target, weight, self.ignore_index, self.label_smoothing, reduction)
    }, ["Tensor::new([[0.0f32, 0.0]])?", "Tensor::new([1i64])?", "2f32.ln()"];

    /// [`Tensor::kl_div`] as a module; the input is log-probabilities.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::KlDivLoss};
    /// let same = Tensor::from_vec(vec![0.5f32; 2], (1, 2))?;
    /// assert_eq!(KlDivLoss::default().forward(&same.log()?, &same)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "KLDivLoss")]
    KlDivLoss {
        /// Whether the targets are log-probabilities too.
        log_target: bool = false,
    } => |self, input, target| {
        same_shape("kl_div", input, target)?;
        input.kl_div_with(target, self.log_target, self.reduction)
    }, ["Tensor::new([0.5f32, 0.5])?.log()?", "Tensor::new([1.0f32, 0.0])?", "2f32.ln() / 2.0"];

    /// [`Tensor::hinge_embedding_loss`] as a module; the input is distances, the targets are 1 and -1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::HingeEmbeddingLoss};
    /// let loss = HingeEmbeddingLoss { margin: 2.0, ..Default::default() };
    /// assert_eq!(loss.forward(&Tensor::new(0.5f32)?, &Tensor::new(-1.0f32)?)?.item::<f32>()?, 1.5);
    /// # Ok(()) }
    /// ```
    HingeEmbeddingLoss {
        /// The distance above which a target of -1 has no loss.
        margin: f64 = 1.0,
    } => |self, input, target| {
        same_shape("hinge_embedding_loss", input, target)?;
        input.hinge_embedding_loss_with(target, self.margin, self.reduction)
    }, ["Tensor::new([0.5f32, 0.25])?", "Tensor::new([1.0f32, -1.0])?", "0.625"];

    /// [`Tensor::soft_margin_loss`] as a module; the targets are 1 and -1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::SoftMarginLoss};
    /// let loss = SoftMarginLoss::default().forward(&Tensor::new(-200.0f32)?, &Tensor::new(1.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 200.0);
    /// # Ok(()) }
    /// ```
    SoftMarginLoss {} => |self, input, target| {
        same_shape("soft_margin_loss", input, target)?;
        input.soft_margin_loss_with(target, self.reduction)
    }, ["Tensor::new([0.0f32, 0.0])?", "Tensor::new([1.0f32, -1.0])?", "2f32.ln()"];

    /// [`Tensor::multi_margin_loss`] as a module; the targets are classes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MultiMarginLoss};
    /// let loss = MultiMarginLoss { p: 2, ..Default::default() };
    /// assert_eq!(loss.forward(&Tensor::new([[1.0f32, 2.0]])?, &Tensor::new([0i64])?)?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    MultiMarginLoss {
        /// The power of the hinge, 1 or 2.
        p: i64 = 1,
        /// The difference by which the target's score should exceed the others.
        margin: f64 = 1.0,
        /// A factor for each class.
        weight: Option<Tensor> = None,
    } => |self, input, target| {
        input.multi_margin_loss_with(target, self.p, self.margin, self.weight.as_ref(), self.reduction)
    }, ["Tensor::new([[1.0f32, 2.0]])?", "Tensor::new([0i64])?", "1.0"];

    /// [`Tensor::poisson_nll_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::PoissonNllLoss};
    /// let loss = PoissonNllLoss { log_input: false, ..Default::default() };
    /// assert_eq!(loss.forward(&Tensor::new(1.0f32)?, &Tensor::new(3.0f32)?)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "PoissonNLLLoss")]
    PoissonNllLoss {
        /// Whether the input is logarithms of expected values.
        log_input: bool = true,
        /// Whether the loss has the constant of the targets, by Stirling's approximation.
        full: bool = false,
        /// The number added to the input before the logarithm.
        eps: f64 = 1e-8,
    } => |self, input, target| {
        same_shape("poisson_nll_loss", input, target)?;
        input.poisson_nll_loss_with(target, self.log_input, self.full, self.eps, self.reduction)
    }, ["Tensor::new([0.0f32, 0.0])?", "Tensor::new([3.0f32, 1.0])?", "1.0"];
}
