//! Loss functions as modules of three inputs. Each calls the op of its name.

use super::loss::same_shape_as;
use crate::ops::loss::{Reduction, TripletMarginOptions};
use crate::{Result, Tensor};

macro_rules! loss_module {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr),* $(,)? } => |$self:ident, $first:ident, $second:ident, $third:ident| $call:expr, [$a:literal, $b:literal, $c:literal, $loss:literal];)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// The reduction over the losses.
            pub reduction: Reduction,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* reduction: Reduction::default() }
            }
        }

        impl $name {
            /// The loss of these tensors.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::", stringify!($name), "};\n",
                "let (a, b, c) = (", $a, ", ", $b, ", ", $c, ");\n",
                "let loss = ", stringify!($name), "::default().forward(&a, &b, &c)?;\n",
                "assert!((loss.item::<f32>()? - ", $loss, ").abs() < 1e-5);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Those of the method; shapes that would silently broadcast.
            pub fn forward(&$self, $first: &Tensor, $second: &Tensor, $third: &Tensor) -> Result<Tensor> {
                $call
            }
        }
    )*};
}

loss_module! {
    /// [`Tensor::triplet_margin_loss`] as a module of anchors, positives and negatives.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::TripletMarginLoss};
    /// let (anchor, positive) = (Tensor::new([[0.0f32, 0.0]])?, Tensor::new([[0.0f32, 1.0]])?);
    /// let loss = TripletMarginLoss { margin: 0.5, ..Default::default() };
    /// let loss = loss.forward(&anchor, &positive, &positive)?;
    /// assert!((loss.item::<f32>()? - 0.5).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    TripletMarginLoss {
        /// The minimum desired difference between the negative's distance and the positive's, above 0.
        margin: f64 = 1.0,
        /// The `p` of the norm.
        p: f64 = 2.0,
        /// The number added to each difference.
        eps: f64 = 1e-6,
        /// Whether the distance from positive to negative replaces that from anchor to negative if it is smaller.
        swap: bool = false,
    } => |self, anchor, positive, negative| {
        same_shape_as("triplet_margin_loss", ("positive", positive), ("anchor", anchor))?;
        same_shape_as("triplet_margin_loss", ("negative", negative), ("anchor", anchor))?;
        let (margin, p, eps, swap, reduction) = (self.margin, self.p, self.eps, self.swap, self.reduction);
        let options = TripletMarginOptions { margin, p, eps, swap, reduction };
        anchor.triplet_margin_loss_with(positive, negative, options)
    }, ["Tensor::new([[0.0f32, 0.0]])?", "Tensor::new([[0.0f32, 1.0]])?", "Tensor::new([[0.0f32, 1.5]])?", "0.5"];

    /// [`Tensor::cosine_embedding_loss`] as a module of two inputs and targets of 1 and -1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::CosineEmbeddingLoss};
    /// let (a, target) = (Tensor::new([[2.0f32, 0.0]])?, Tensor::new([-1i64])?);
    /// let loss = CosineEmbeddingLoss { margin: 0.25, ..Default::default() };
    /// assert_eq!(loss.forward(&a, &a, &target)?.item::<f32>()?, 0.75);
    /// # Ok(()) }
    /// ```
    CosineEmbeddingLoss {
        /// The cosine below which a target of -1 has no loss.
        margin: f64 = 0.0,
    } => |self, first, second, target| {
        same_shape_as("cosine_embedding_loss", ("second", second), ("first", first))?;
        first.cosine_embedding_loss_with(second, target, self.margin, self.reduction)
    }, ["Tensor::new([[2.0f32, 0.0]])?", "Tensor::new([[0.0f32, 3.0]])?", "Tensor::new([1i64])?", "1.0"];

    /// [`Tensor::margin_ranking_loss`] as a module of two scores and targets of 1 and -1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MarginRankingLoss};
    /// let (a, b, target) = (Tensor::new([3.0f32])?, Tensor::new([2.5f32])?, Tensor::new([1.0f32])?);
    /// let loss = MarginRankingLoss { margin: 1.0, ..Default::default() };
    /// assert_eq!(loss.forward(&a, &b, &target)?.item::<f32>()?, 0.5);
    /// # Ok(()) }
    /// ```
    MarginRankingLoss {
        /// The difference above which a correct ranking has no loss.
        margin: f64 = 0.0,
    } => |self, first, second, target| {
        same_shape_as("margin_ranking_loss", ("second", second), ("first", first))?;
        same_shape_as("margin_ranking_loss", ("target", target), ("first", first))?;
        first.margin_ranking_loss_with(second, target, self.margin, self.reduction)
    }, ["Tensor::new([3.0f32, 1.0])?", "Tensor::new([1.0f32, 2.0])?", "Tensor::new([1.0f32, 1.0])?", "0.5"];

    /// [`Tensor::gaussian_nll_loss`] as a module of expected values, targets and variances.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::GaussianNllLoss};
    /// let (x, target, var) = (Tensor::new([2.0f32])?, Tensor::new([4.0f32])?, Tensor::new([0.0f32])?);
    /// let loss = GaussianNllLoss { eps: 1.0, ..Default::default() };
    /// assert_eq!(loss.forward(&x, &target, &var)?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "GaussianNLLLoss")]
    GaussianNllLoss {
        /// Whether the loss has the constant `log(2 pi) / 2`.
        full: bool = false,
        /// The smallest variance; smaller ones are clamped.
        eps: f64 = 1e-6,
    } => |self, input, target, var| {
        same_shape_as("gaussian_nll_loss", ("target", target), ("input", input))?;
        input.gaussian_nll_loss_with(target, var, self.full, self.eps, self.reduction)
    }, ["Tensor::new([1.0f32, 2.0])?", "Tensor::new([1.0f32, 4.0])?", "Tensor::new([1.0f32, 1.0])?", "1.0"];
}
