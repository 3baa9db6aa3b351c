//! Names of other libraries that are near to the name of another op here. For each the compiler would propose that op, and the
//! program would be built and compute something else: `sqrt` for candle's `sqr`. So they are there, and say what to write. Other
//! names of other libraries stand in the guides and among the aliases of the documentation alone.

use super::Tensor;
use crate::DType;
use crate::error::{Result, called};

impl Tensor {
    /// candle's [`Tensor::square`].
    #[doc(hidden)]
    #[deprecated(note = "the square is `square`; `sqrt` is the root")]
    #[allow(clippy::missing_errors_doc)]
    pub fn sqr(&self) -> Result<Tensor> {
        self.square()
    }

    /// candle's element of the first dimension, [`Tensor::select`].
    #[doc(hidden)]
    #[deprecated(note = "an element of the first dimension is `select(0, i)` or `i(i)`; `ge` compares")]
    #[allow(clippy::missing_errors_doc)]
    pub fn get(&self, i: usize) -> Result<Tensor> {
        called("get", &["self", "i"], || self.select(0, i))
    }

    /// PyTorch's conversion to i64, [`Tensor::to_dtype`].
    #[doc(hidden)]
    #[deprecated(note = "the conversion is `to_dtype(DType::I64)`; `log` is the logarithm")]
    #[allow(clippy::missing_errors_doc)]
    pub fn long(&self) -> Result<Tensor> {
        self.to_dtype(DType::I64)
    }
}
