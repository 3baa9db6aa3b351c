//! Losses: how far a model's answers are from what they should be, as functions and as modules of two inputs.

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
    fn of(self, losses: &Tensor) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(losses.clone()),
            Reduction::Mean => losses.mean(),
            Reduction::Sum => losses.sum(),
        }
    }
}

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
    reduction.of(&input.sub(target)?.square()?)
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
    reduction.of(&input.sub(target)?.abs()?)
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
    let linear = input.relu()?.sub(&input.mul(target)?)?;
    reduction.of(&linear.add(&input.abs()?.neg()?.exp()?.log1p()?)?)
}

/// The negative of the target class's entry in `input`, the logarithms of probabilities, `[rows, classes]`; the targets are
/// classes as i64, `[rows]`.
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
    let (&[rows, _], &[targets]) = (input.sizes(), target.sizes()) else {
        let expected =
            format!("`[rows, classes]` for targets of shape {:?}, which must be `[rows]`", target.sizes());
        return Err(ModuleError::Input { owner: "nll_loss", expected, got: input.sizes().to_vec() }.into());
    };
    if rows != targets {
        let expected = format!("of {targets} rows, as there are targets");
        return Err(ModuleError::Input { owner: "nll_loss", expected, got: input.sizes().to_vec() }.into());
    }
    let chosen = input.gather(1, &target.reshape(&[-1, 1])?)?;
    reduction.of(&chosen.reshape_as_sizes(&[rows])?.neg()?)
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
    nll_loss(&input.log_softmax(1)?, target, reduction)
}

macro_rules! loss_module {
    ($($(#[$doc:meta])* $name:ident => $function:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            /// What becomes of the losses of the elements.
            pub reduction: Reduction,
        }

        impl $name {
            /// The loss of a model's answers.
            ///
            /// # Errors
            /// As the function of the same name.
            pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
                $function(input, target, self.reduction)
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
    MseLoss => mse_loss;
    /// [`l1_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::L1Loss};
    /// let loss = L1Loss::default().forward(&Tensor::scalar(1.0f32)?, &Tensor::scalar(3.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    L1Loss => l1_loss;
    /// [`binary_cross_entropy_with_logits`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::BceWithLogitsLoss};
    /// let loss = BceWithLogitsLoss::default().forward(&Tensor::scalar(-200.0f32)?, &Tensor::scalar(0.0f32)?)?;
    /// assert_eq!(loss.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    BceWithLogitsLoss => binary_cross_entropy_with_logits;
    /// [`nll_loss`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::NllLoss};
    /// let input = Tensor::from_vec(vec![-1.0f32, -2.0], &[1, 2])?;
    /// assert_eq!(NllLoss::default().forward(&input, &Tensor::from_slice(&[0i64])?)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    NllLoss => nll_loss;
    /// [`cross_entropy`] as a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::CrossEntropyLoss};
    /// let scores = Tensor::from_vec(vec![0.0f32; 4], &[1, 4])?;
    /// let loss = CrossEntropyLoss::default().forward(&scores, &Tensor::from_slice(&[2i64])?)?.item::<f32>()?;
    /// assert!((loss - 4f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    CrossEntropyLoss => cross_entropy;
}
