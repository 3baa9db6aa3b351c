//! Histograms of floats.

use crate::error::{Result, called};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The number of elements in each of `bins` bins of equal width from the smallest to the largest element, in this dtype. All
    /// dimensions are counted together; the last bin includes its upper bound. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, 2.0, 1.0, 5.0])?.histc(4)?.to_vec::<f32>()?, [2.0, 1.0, 0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; no bins; elements that are not finite.
    pub fn histc(&self, bins: usize) -> Result<Tensor> {
        self.histc_with(bins, 0.0, 0.0)
    }

    /// [`Tensor::histc`] of the elements from `min` to `max`; others and NaN are not counted. If both are equal, they are the
    /// smallest and the largest element.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, 2.0, 1.0, 9.0])?.histc_with(2, 0.0, 3.0)?.to_vec::<f32>()?, [2.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; bounds that are not finite or not ascending.
    pub fn histc_with(&self, bins: usize, min: f64, max: f64) -> Result<Tensor> {
        const NAME: &str = "histc";
        called(NAME, &["self", "bins", "min", "max"], || {
            let x = floats(NAME, self, bins)?;
            let (mut low, mut high) =
                if min == max { extent(NAME, &x)?.unwrap_or((min, max)) } else { (min, max) };
            ascending(NAME, "max", low, high)?;
            if low == high {
                (low, high) = (low - 1.0, high + 1.0);
            }
            let x = if matches!(x.dtype(), DType::F16 | DType::BF16) { x.to_dtype(DType::F32)? } else { x };
            let inside = x.ge(low)?.logical_and(&x.le(high)?)?;
            let at = x.sub(low)?.mul(bins as f64)?.div(high - low)?.clamp(0, bins as f64 - 1.0)?;
            // Elements that are not counted belong to one more bin.
            let at = inside.where_cond(&at, bins as f64)?.to_dtype(DType::I64)?;
            at.bincount_with(None, bins + 1)?.narrow(0, 0, bins)?.to_dtype(self.dtype())
        })
    }

    /// The number of elements in each of `bins` bins of equal width, and the `bins + 1` edges of the bins, both in this dtype. All
    /// dimensions are counted together; a bin includes its lower edge, the last one also its upper edge. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (counts, edges) = Tensor::new([1.0f32, 2.0, 1.0, 5.0])?.histogram(2)?;
    /// assert_eq!(counts.to_vec::<f32>()?, [3.0, 1.0]);
    /// assert_eq!(edges.to_vec::<f32>()?, [1.0, 3.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is neither f32 nor f64; no bins; elements that are not finite.
    pub fn histogram(&self, bins: usize) -> Result<(Tensor, Tensor)> {
        self.histogram_with(bins, None, None, false)
    }

    /// [`Tensor::histogram`] over a range instead of that of the elements; the sum of the `weight` of the elements of a bin instead
    /// of their number; and with `density` divided by the total and by the width, so that the integral is 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0.5f32, 1.5, 9.0])?;
    /// let weight = Tensor::new([1.0f32, 3.0, 7.0])?;
    /// let (sums, _) = x.histogram_with(2, Some((0.0, 2.0)), Some(&weight), false)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [1.0, 3.0]);
    /// let (density, _) = x.histogram_with(2, Some((0.0, 2.0)), Some(&weight), true)?;
    /// assert_eq!(density.to_vec::<f32>()?, [0.25, 0.75]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; bounds that are not finite or not ascending; a `weight` of another shape or dtype.
    pub fn histogram_with(
        &self,
        bins: usize,
        range: Option<(f64, f64)>,
        weight: Option<&Tensor>,
        density: bool,
    ) -> Result<(Tensor, Tensor)> {
        const NAME: &str = "histogram";
        called(NAME, &["self", "bins", "range", "weight", "density"], || {
            let x = floats(NAME, self, bins)?;
            let (mut low, mut high) = match range {
                Some(range) => range,
                None => extent(NAME, &x)?.unwrap_or((0.0, 1.0)),
            };
            ascending(NAME, "range", low, high)?;
            if low == high {
                (low, high) = (low - 0.5, high + 0.5);
            }
            let edges = Tensor::linspace_with(low, high, bins + 1, (self.dtype(), self.device()))?;
            Ok((counted(NAME, self, &edges, weight, density)?, edges))
        })
    }

    /// [`Tensor::histogram_with`] of bins between these ascending edges.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let edges = Tensor::new([0.0f32, 1.0, 5.0])?;
    /// let counts = Tensor::new([0.5f32, 1.0, 5.0, 6.0])?.histogram_between(&edges, None, false)?;
    /// assert_eq!(counts.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; edges that are no vector of at least 2 elements in this dtype.
    pub fn histogram_between(
        &self,
        edges: &Tensor,
        weight: Option<&Tensor>,
        density: bool,
    ) -> Result<Tensor> {
        const NAME: &str = "histogram_between";
        called(NAME, &["self", "edges", "weight", "density"], || {
            floats(NAME, self, 1)?;
            if edges.rank() != 1 || edges.elem_count() < 2 {
                let (expected, got) = ("a vector of at least 2 edges".to_string(), edges.shape().into());
                return Err(Error::Shape { op: NAME, argument: "edges", expected, got }.into());
            }
            same_dtype(NAME, "edges", edges, self)?;
            counted(NAME, self, edges, weight, density)
        })
    }
}

/// The vector of all elements of a tensor of floats, without a graph.
fn floats(op: &'static str, t: &Tensor, bins: usize) -> Result<Tensor> {
    if !t.dtype().is_float() {
        let expected = "a float dtype".to_string();
        return Err(Error::DType { op, argument: "self", expected, got: t.dtype() }.into());
    }
    if bins == 0 || bins > isize::MAX as usize / 16 {
        let expected = "1 or more, as many as memory holds".to_string();
        return Err(Error::Value { op, argument: "bins", expected, got: bins.to_string() }.into());
    }
    t.detach().reshape(-1)
}

fn same_dtype(op: &'static str, argument: &'static str, t: &Tensor, like: &Tensor) -> Result<()> {
    if t.dtype() == like.dtype() {
        return Ok(());
    }
    let expected = format!("{}, the dtype of `self`", like.dtype());
    Err(Error::DType { op, argument, expected, got: t.dtype() }.into())
}

/// The smallest and the largest element; `None` without elements.
fn extent(op: &'static str, x: &Tensor) -> Result<Option<(f64, f64)>> {
    if x.elem_count() == 0 {
        return Ok(None);
    }
    let (low, high) = x.to_dtype(DType::F64)?.aminmax(..)?;
    let (low, high) = (low.item::<f64>()?, high.item::<f64>()?);
    if low.is_finite() && high.is_finite() {
        return Ok(Some((low, high)));
    }
    let (expected, got) = ("finite elements, or bounds of the bins".to_string(), format!("{low} to {high}"));
    Err(Error::Value { op, argument: "self", expected, got }.into())
}

fn ascending(op: &'static str, argument: &'static str, low: f64, high: f64) -> Result<()> {
    if low.is_finite() && high.is_finite() && low <= high {
        return Ok(());
    }
    let (expected, got) = ("finite bounds, ascending".to_string(), format!("{low} to {high}"));
    Err(Error::Value { op, argument, expected, got }.into())
}

/// The counts or sums of weights of the elements between each two edges.
fn counted(
    op: &'static str,
    t: &Tensor,
    edges: &Tensor,
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Tensor> {
    if let Some(weight) = weight {
        same_dtype(op, "weight", weight, t)?;
        if weight.shape() != t.shape() {
            let (expected, got) = (format!("{:?}, the shape of `self`", t.shape()), weight.shape().into());
            return Err(Error::Shape { op, argument: "weight", expected, got }.into());
        }
    }
    let (x, edges) = (t.detach().reshape(-1)?, edges.detach());
    let bins = edges.elem_count() - 1;
    let (first, last) = (edges.narrow(0, 0, 1)?, edges.narrow(0, bins, 1)?);
    let inside = x.ge(&first)?.logical_and(&x.le(&last)?)?;
    let at = edges.searchsorted_with(&x, true)?.sub(1)?.clamp(0, bins as i64 - 1)?;
    // Elements that are not counted belong to one more bin.
    let at = inside.where_cond(&at, bins as i64)?;
    let weight = weight.map(|weight| weight.detach().reshape(-1)).transpose()?;
    let made = at.bincount_with(weight.as_ref(), bins + 1)?.narrow(0, 0, bins)?.to_dtype(t.dtype())?;
    if !density {
        return made.contiguous();
    }
    let widths = edges.narrow(0, 1, bins)?.sub(&edges.narrow(0, 0, bins)?)?;
    made.div(&made.sum_all()?)?.div(&widths)
}
