//! Samples of the Gumbel-softmax distribution.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::Int;
use keyway_dispatcher::error::Error;

impl Tensor {
    /// Samples of the Gumbel-softmax distribution of these logits along `dim`: the softmax of the logits plus Gumbel noise,
    /// divided by the temperature `tau`. With `hard`, the one-hot vectors of the largest elements, with the gradient of the softmax
    /// (E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let logits = Tensor::new([[0.0f32, 40.0]])?;
    /// assert_eq!(logits.gumbel_softmax(1.0, true, -1)?.to_vec2::<f32>()?, [[0.0, 1.0]]);
    /// assert!((logits.gumbel_softmax(1.0, false, -1)?.sum_all()?.item::<f32>()? - 1.0).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range; a `tau` that is not above 0.
    pub fn gumbel_softmax(&self, tau: f64, hard: bool, dim: impl Int) -> Result<Tensor> {
        const NAME: &str = "gumbel_softmax";
        called(NAME, &["self", "tau", "hard", "dim"], || {
            if tau.is_nan() || tau <= 0.0 {
                let (expected, got) = ("above 0".to_string(), tau.to_string());
                return Err(Error::Value { op: NAME, argument: "tau", expected, got }.into());
            }
            let dim = dim.to_i64();
            let noise = self.detach().empty_like()?.exponential_(1.0)?.log()?;
            let soft = self.sub(&noise)?.div(tau)?.softmax(dim)?;
            if !hard || soft.elem_count() == 0 {
                return Ok(soft);
            }
            let (_, largest) = soft.detach().max_keepdim(dim)?;
            let one_hot = soft.detach().zeros_like()?.scatter(dim, &largest, 1)?;
            // The value is that of `one_hot`, the gradient that of `soft`.
            one_hot.add(&soft.sub(&soft.detach())?)
        })
    }
}
