//! The losses as functions.

use crate::nn::loss::{same_shape, same_shape_as};
use crate::{Result, Tensor};

macro_rules! losses {
    ($($(#[$example:meta])+ $name:ident;)*) => {$(
        #[doc = concat!("[`Tensor::", stringify!($name), "`] of two tensors of one shape.")]
        ///
        $(#[$example])+
        ///
        /// # Errors
        /// Those of the method; a target of another shape.
        pub fn $name(input: &Tensor, target: &Tensor) -> Result<Tensor> {
            same_shape(stringify!($name), input, target)?;
            input.$name(target)
        }
    )*};
}

losses! {
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let loss = F::binary_cross_entropy(&Tensor::new([0.5f32])?, &Tensor::new([1.0f32])?)?;
    /// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    binary_cross_entropy;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (logits, target) = (Tensor::new([-200.0f32, 3.0])?, Tensor::new([0.0f32])?);
    /// assert_eq!(F::binary_cross_entropy_with_logits(&logits.narrow(0, 0, 1)?, &target)?.item::<f32>()?, 0.0);
    /// assert!(F::binary_cross_entropy_with_logits(&logits, &target).is_err(), "no broadcasting");
    /// # Ok(()) }
    /// ```
    binary_cross_entropy_with_logits;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, target) = (Tensor::new([1.0f32, 4.0])?, Tensor::new([1.0f32, 2.0])?);
    /// assert_eq!(F::huber_loss(&x, &target)?.item::<f32>()?, 0.75);
    /// # Ok(()) }
    /// ```
    huber_loss;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let p = Tensor::new([0.5f32, 0.5])?;
    /// assert_eq!(F::kl_div(&p.log()?, &p)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    kl_div;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, target) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([3.0f32, 2.0])?);
    /// assert_eq!(F::l1_loss(&x, &target)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    l1_loss;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, target) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([3.0f32, 2.0])?);
    /// assert_eq!(F::mse_loss(&x, &target)?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    mse_loss;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, target) = (Tensor::new([1.0f32])?, Tensor::new([3.0f32])?);
    /// assert_eq!(F::smooth_l1_loss(&x, &target)?.item::<f32>()?, 1.5);
    /// # Ok(()) }
    /// ```
    smooth_l1_loss;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, target) = (Tensor::new([0.5f32, 0.25])?, Tensor::new([1i64, -1])?);
    /// assert_eq!(F::hinge_embedding_loss(&x, &target)?.item::<f32>()?, 0.625);
    /// # Ok(()) }
    /// ```
    hinge_embedding_loss;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, target) = (Tensor::new([-200.0f32])?, Tensor::new([1.0f32])?);
    /// assert_eq!(F::soft_margin_loss(&x, &target)?.item::<f32>()?, 200.0);
    /// # Ok(()) }
    /// ```
    soft_margin_loss;
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, target) = (Tensor::new([0.0f32, 0.0])?, Tensor::new([3.0f32, 1.0])?);
    /// assert_eq!(F::poisson_nll_loss(&x, &target)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    poisson_nll_loss;
}

/// [`Tensor::triplet_margin_loss`] of three tensors of one shape.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::functional as F};
/// let (anchor, positive) = (Tensor::new([[0.0f32, 0.0]])?, Tensor::new([[0.0f32, 1.0]])?);
/// let loss = F::triplet_margin_loss(&anchor, &positive, &Tensor::new([[0.0f32, 1.5]])?)?;
/// assert!((loss.item::<f32>()? - 0.5).abs() < 1e-5);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of the method; another shape.
pub fn triplet_margin_loss(anchor: &Tensor, positive: &Tensor, negative: &Tensor) -> Result<Tensor> {
    same_shape_as("triplet_margin_loss", ("positive", positive), ("anchor", anchor))?;
    same_shape_as("triplet_margin_loss", ("negative", negative), ("anchor", anchor))?;
    anchor.triplet_margin_loss(positive, negative)
}

/// [`Tensor::cosine_embedding_loss`] of two inputs of one shape.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::functional as F};
/// let (a, b) = (Tensor::new([[2.0f32, 0.0]])?, Tensor::new([[0.0f32, 3.0]])?);
/// assert_eq!(F::cosine_embedding_loss(&a, &b, &Tensor::new([1i64])?)?.item::<f32>()?, 1.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of the method; inputs of different shapes.
pub fn cosine_embedding_loss(input1: &Tensor, input2: &Tensor, target: &Tensor) -> Result<Tensor> {
    same_shape_as("cosine_embedding_loss", ("input2", input2), ("input1", input1))?;
    input1.cosine_embedding_loss(input2, target)
}

/// [`Tensor::margin_ranking_loss`] of three tensors of one shape.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::functional as F};
/// let (a, b) = (Tensor::new([3.0f32, 1.0])?, Tensor::new([1.0f32, 2.0])?);
/// assert_eq!(F::margin_ranking_loss(&a, &b, &Tensor::new([1i64, 1])?)?.item::<f32>()?, 0.5);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of the method; another shape.
pub fn margin_ranking_loss(input1: &Tensor, input2: &Tensor, target: &Tensor) -> Result<Tensor> {
    same_shape_as("margin_ranking_loss", ("input2", input2), ("input1", input1))?;
    same_shape_as("margin_ranking_loss", ("target", target), ("input1", input1))?;
    input1.margin_ranking_loss(input2, target)
}

/// [`Tensor::gaussian_nll_loss`] of an input and a target of one shape.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::functional as F};
/// let (x, target) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([1.0f32, 4.0])?);
/// assert_eq!(F::gaussian_nll_loss(&x, &target, &Tensor::new([1.0f32])?)?.item::<f32>()?, 1.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of the method; a target of another shape.
pub fn gaussian_nll_loss(input: &Tensor, target: &Tensor, var: &Tensor) -> Result<Tensor> {
    same_shape_as("gaussian_nll_loss", ("target", target), ("input", input))?;
    input.gaussian_nll_loss(target, var)
}

/// [`Tensor::multi_margin_loss`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::functional as F};
/// let (x, target) = (Tensor::new([[1.0f32, 2.0]])?, Tensor::new([0i64])?);
/// assert_eq!(F::multi_margin_loss(&x, &target)?.item::<f32>()?, 1.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of the method.
pub fn multi_margin_loss(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    input.multi_margin_loss(target)
}

/// [`Tensor::pairwise_distance`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::functional as F};
/// let (a, b) = (Tensor::new([0.0f32, 0.0])?, Tensor::new([3.0f32, 4.0])?);
/// assert!((F::pairwise_distance(&a, &b)?.item::<f32>()? - 5.0).abs() < 1e-5);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of the method.
pub fn pairwise_distance(x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
    x1.pairwise_distance(x2)
}
