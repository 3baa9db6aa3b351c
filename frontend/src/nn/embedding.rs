//! Embedding tables, and sums, means or maxima over bags of indices.

use super::parameter::Parameter;
use super::{Module, ModuleError, ModuleVisitor, init};
use crate::autograd::no_grad;
use crate::error::called;
use crate::ops::index::embedding_bag::{BagMode, BagOptions};
use crate::tensor::Int;
use crate::{Result, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::shown;

/// A matrix with PyTorch's initial values: normal with mean 0 and standard deviation 1.
fn rows(count: usize, columns: usize) -> Result<Parameter> {
    Parameter::new(init::normal((count, columns), 1.0)?)
}

/// Sets a row to 0 and returns its non-negative index.
fn blank(owner: &'static str, weight: &Parameter, row: i64) -> Result<i64> {
    let weight = weight.get();
    let rows = weight.shape().first().copied().unwrap_or(0);
    let wrong = |_| {
        let got = format!("{} of {rows}", shown(row));
        ModuleError::Option { owner, option: "padding_idx", expected: "a row of the weight", got }
    };
    let row = wrap_dim(owner, row, rows).map_err(wrong)? as i64;
    let _off = no_grad();
    weight.select(0, row)?.zero_()?;
    Ok(row)
}

/// [`Tensor::embedding`] with a learned weight: indices of any shape to `[.., columns]`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Embedding, Module}};
/// let words = Embedding::new(10, 3)?.padding_idx(0)?;
/// let y = words.forward(&Tensor::new([4i64, 0])?)?;
/// assert_eq!(y.shape(), [2, 3]);
/// assert_eq!(y.i(1)?.to_vec::<f32>()?, [0.0; 3]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Embedding {
    pub(super) weight: Parameter,
    padding_idx: Option<i64>,
    sparse: bool,
}

impl Embedding {
    /// A module with a weight `[count, columns]`, initially standard normal.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Embedding, Module};
    /// assert_eq!(Embedding::new(10, 3)?.state_dict()["weight"].shape(), [10, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn new(count: usize, columns: usize) -> Result<Embedding> {
        let weight = called("Embedding", &["count", "columns"], || rows(count, columns))?;
        Ok(Embedding { weight, padding_idx: None, sparse: false })
    }

    /// A module with this weight, `[rows, columns]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Embedding, Module}};
    /// let words = Embedding::from_tensor(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?)?;
    /// assert_eq!(words.forward(&Tensor::new([1i64, 0])?)?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that cannot require gradients.
    #[doc(alias = "from_pretrained")]
    pub fn from_tensor(weight: Tensor) -> Result<Embedding> {
        let weight = called("Embedding", &["weight"], || Parameter::new(weight))?;
        Ok(Embedding { weight, padding_idx: None, sparse: false })
    }

    /// Sets the padding row: initialized to 0 and excluded from the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Embedding, Module}};
    /// let words = Embedding::from_tensor(Tensor::new([[1.0f32], [2.0]])?)?.padding_idx(-1)?;
    /// words.forward(&Tensor::new([0i64, 1])?)?.sum_all()?.backward()?;
    /// assert_eq!(words.state_dict()["weight"].to_vec::<f32>()?, [1.0, 0.0]);
    /// assert_eq!(words.parameters()[0].grad().unwrap().to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A row index out of range.
    pub fn padding_idx(mut self, row: impl Int) -> Result<Embedding> {
        self.padding_idx = Some(blank("Embedding", &self.weight, row.to_i64())?);
        Ok(self)
    }

    /// Whether the gradient of the weight is sparse, see [`Tensor::embedding_sparse`].
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Embedding, Module}};
    /// let words = Embedding::new(1_000, 8)?.sparse(true);
    /// words.forward(&Tensor::new([5i64, 7])?)?.sum_all()?.backward()?;
    /// assert_eq!(words.parameters()[0].grad().unwrap().nnz()?, 2);
    /// # Ok(()) }
    /// ```
    pub fn sparse(mut self, sparse: bool) -> Embedding {
        self.sparse = sparse;
        self
    }
}

impl Module for Embedding {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        match self.sparse {
            true => self.weight.get().embedding_sparse_with(input, self.padding_idx),
            false => self.weight.get().embedding_with(input, self.padding_idx),
        }
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.parameter("weight", &self.weight);
    }
}

/// [`Tensor::embedding_bag`] with a learned weight: a matrix of indices, each row a bag, to `[bags, columns]`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{BagMode, EmbeddingBag, Module}};
/// let bags = EmbeddingBag::new(10, 3)?.mode(BagMode::Sum);
/// assert_eq!(bags.forward(&Tensor::from_vec(vec![4i64, 0, 1, 1], (2, 2))?)?.shape(), [2, 3]);
/// let (at, offsets) = (Tensor::new([4i64, 0, 1])?, Tensor::new([0i64, 1])?);
/// assert_eq!(bags.forward_bags(&at, &offsets, None)?.shape(), [2, 3]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct EmbeddingBag {
    pub(super) weight: Parameter,
    mode: BagMode,
    padding_idx: Option<i64>,
    sparse: bool,
}

impl EmbeddingBag {
    /// A module with a weight `[count, columns]`, initially standard normal, that computes means.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{EmbeddingBag, Module};
    /// assert_eq!(EmbeddingBag::new(10, 3)?.state_dict()["weight"].shape(), [10, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn new(count: usize, columns: usize) -> Result<EmbeddingBag> {
        Ok(EmbeddingBag {
            weight: called("EmbeddingBag", &["count", "columns"], || rows(count, columns))?,
            mode: BagMode::Mean,
            padding_idx: None,
            sparse: false,
        })
    }

    /// A module with this weight, `[rows, columns]`, that computes means.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{EmbeddingBag, Module}};
    /// let bags = EmbeddingBag::from_tensor(Tensor::new([[1.0f32], [4.0]])?)?;
    /// assert_eq!(bags.forward(&Tensor::new([[0i64, 1, 1]])?)?.to_vec::<f32>()?, [3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that cannot require gradients.
    #[doc(alias = "from_pretrained")]
    pub fn from_tensor(weight: Tensor) -> Result<EmbeddingBag> {
        let weight = called("EmbeddingBag", &["weight"], || Parameter::new(weight))?;
        Ok(EmbeddingBag { weight, mode: BagMode::Mean, padding_idx: None, sparse: false })
    }

    /// Sets the reduction over the rows of a bag.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{BagMode, EmbeddingBag, Module}};
    /// let bags = EmbeddingBag::from_tensor(Tensor::new([[1.0f32], [4.0]])?)?.mode(BagMode::Sum);
    /// assert_eq!(bags.forward(&Tensor::new([[0i64, 1, 1]])?)?.to_vec::<f32>()?, [9.0]);
    /// # Ok(()) }
    /// ```
    pub fn mode(mut self, mode: BagMode) -> EmbeddingBag {
        self.mode = mode;
        self
    }

    /// Sets the padding row: initialized to 0, excluded from the reduction and from the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{EmbeddingBag, Module}};
    /// let bags = EmbeddingBag::from_tensor(Tensor::new([[1.0f32], [4.0]])?)?.padding_idx(0)?;
    /// assert_eq!(bags.forward(&Tensor::new([[0i64, 1, 1]])?)?.to_vec::<f32>()?, [4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A row index out of range.
    pub fn padding_idx(mut self, row: impl Int) -> Result<EmbeddingBag> {
        self.padding_idx = Some(blank("EmbeddingBag", &self.weight, row.to_i64())?);
        Ok(self)
    }

    /// Whether the gradient of the weight is sparse, see [`Tensor::embedding_sparse`].
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{EmbeddingBag, Module}};
    /// let bags = EmbeddingBag::new(1_000, 8)?.sparse(true);
    /// bags.forward(&Tensor::new([[5i64, 7]])?)?.sum_all()?.backward()?;
    /// assert_eq!(bags.parameters()[0].grad().unwrap().nnz()?, 2);
    /// # Ok(()) }
    /// ```
    pub fn sparse(mut self, sparse: bool) -> EmbeddingBag {
        self.sparse = sparse;
        self
    }

    /// [`Tensor::embedding_bag`] of one-dimensional indices with bags that start at `offsets`, and a factor for each index if
    /// the mode is the sum.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{BagMode, EmbeddingBag}};
    /// let bags = EmbeddingBag::from_tensor(Tensor::new([[1.0f32], [4.0]])?)?.mode(BagMode::Sum);
    /// let (at, offsets) = (Tensor::new([0i64, 1, 1])?, Tensor::new([0i64, 1])?);
    /// let factors = Tensor::new([1.0f32, 10.0, 100.0])?;
    /// assert_eq!(bags.forward_bags(&at, &offsets, Some(&factors))?.to_vec::<f32>()?, [1.0, 440.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::embedding_bag`].
    pub fn forward_bags(&self, input: &Tensor, offsets: &Tensor, factors: Option<&Tensor>) -> Result<Tensor> {
        let options = BagOptions { offsets: Some(offsets), per_sample_weights: factors, ..self.options() };
        self.weight.get().embedding_bag_with(input, options)
    }

    fn options(&self) -> BagOptions<'static> {
        BagOptions {
            mode: self.mode,
            padding_idx: self.padding_idx,
            sparse: self.sparse,
            ..BagOptions::default()
        }
    }
}

impl Module for EmbeddingBag {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.weight.get().embedding_bag_with(input, self.options())
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.parameter("weight", &self.weight);
    }
}
