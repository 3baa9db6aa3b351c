//! Copies of values to the host.

use super::Tensor;
use crate::error::{Error, Result, called};
use keyway_dispatcher::dtype::Category;
use keyway_dispatcher::memory::{ElementReader, StridedElements, bytes::Plain, host_vec, read_bytes};
use keyway_dispatcher::registry::layout_ops;
use keyway_dispatcher::{DType, Device};

/// The number of bytes read in one step; a multiple of every element's size.
const CHUNK: usize = 1 << 16;

/// A host type that [`Tensor::item`] returns.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// fn sum<T: keyway::tensor::Item + std::ops::Add<Output = T>>(a: &Tensor, b: &Tensor) -> keyway::Result<T> {
///     Ok(a.item::<T>()? + b.item::<T>()?)
/// }
/// use keyway::Tensor;
/// assert_eq!(sum::<i64>(&Tensor::new(1i64)?, &Tensor::new(2i64)?)?, 3);
/// # Ok(()) }
/// ```
pub trait Item: Plain {}
impl<T: Plain> Item for T {}

impl Tensor {
    /// All elements in row-major order, as a vector of the tensor's own type.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.t()?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// assert!(x.to_vec::<f32>().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A host type that is not the tensor's dtype; host memory that does not suffice.
    #[doc(alias = "numpy")]
    #[doc(alias = "tolist")]
    pub fn to_vec<T: Plain>(&self) -> Result<Vec<T>> {
        called("to_vec", &["self"], || {
            self.check_host_type("to_vec", T::DTYPE)?;
            let mut out = host_vec(self.elem_count())?;
            self.for_each_chunk(|bytes| {
                out.extend(bytes.chunks_exact(size_of::<T>()).map(T::read));
                Ok(())
            })?;
            Ok(out)
        })
    }

    /// [`Tensor::to_vec`] of a one-dimensional tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.to_vec1::<i64>()?, [1, 2]);
    /// assert!(Tensor::new([[1i64, 2]])?.to_vec1::<i64>().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`]; another rank. The same applies to the next two.
    pub fn to_vec1<T: Plain>(&self) -> Result<Vec<T>> {
        called("to_vec1", &["self"], || {
            self.dims1()?;
            self.to_vec()
        })
    }

    /// The rows of a tensor of two dimensions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::new([[1, 2], [3, 4]])?.t()?;
    /// assert_eq!(x.to_vec2::<i32>()?, [[1, 3], [2, 4]]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn to_vec2<T: Plain>(&self) -> Result<Vec<Vec<T>>> {
        called("to_vec2", &["self"], || {
            let (rows, columns) = self.dims2()?;
            rows_of(&self.to_vec()?, rows, columns)
        })
    }

    /// The matrices of a tensor of three dimensions, by rows.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[[1i64, 2]], [[3, 4]]])?;
    /// assert_eq!(x.to_vec3::<i64>()?, [[[1, 2]], [[3, 4]]]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn to_vec3<T: Plain>(&self) -> Result<Vec<Vec<Vec<T>>>> {
        called("to_vec3", &["self"], || {
            let (count, rows, columns) = self.dims3()?;
            let values = self.to_vec()?;
            let size = rows * columns;
            let mut matrices = host_vec(count)?;
            for i in 0..count {
                matrices.push(rows_of(&values[i * size..(i + 1) * size], rows, columns)?);
            }
            Ok(matrices)
        })
    }

    /// The one element of a tensor that has one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[2.5f32]])?.item::<f32>()?, 2.5);
    /// assert!(Tensor::new([1.0f32, 2.0])?.item::<f32>().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// More or fewer elements than one; a host type that is not the tensor's dtype.
    #[doc(alias = "to_vec0")]
    #[doc(alias = "to_scalar")]
    pub fn item<T: Item>(&self) -> Result<T> {
        called("item", &["self"], || {
            let wrong = |got| Error::NotOneElement { op: "item", sizes: self.shape().to_vec(), got };
            if self.elem_count() != 1 {
                return Err(wrong(self.elem_count()));
            }
            self.check_host_type("item", T::DTYPE)?;
            if let Some(storage) = self.inner.storage() {
                let mut buffer = [0u8; 16];
                let size = self.dtype().size();
                read_bytes(storage, self.inner.offset() * size, &mut buffer[..size])?;
                return Ok(T::read(&buffer[..size]));
            }
            let mut value = None;
            self.for_each_chunk(|bytes| {
                value = Some(T::read(bytes));
                Ok(())
            })?;
            value.ok_or_else(|| wrong(0))
        })
    }

    /// All elements in row-major order as f64, for any real dtype; large integers are rounded. A plugin's dtype is converted by
    /// the plugin.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.to_vec_f64()?, [1.0, 2.0]);
    /// assert_eq!(Tensor::new([true, false])?.to_vec_f64()?, [1.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not real.
    pub fn to_vec_f64(&self) -> Result<Vec<f64>> {
        called("to_vec_f64", &["self"], || {
            use half::{bf16, f16};
            let mut out = host_vec(self.elem_count())?;
            macro_rules! widen {
                ($type:ty, $widen:expr) => {{
                    let widen = |bytes: &[u8]| $widen(<$type>::read(bytes));
                    self.for_each_chunk(|bytes| {
                        out.extend(bytes.chunks_exact(size_of::<$type>()).map(widen));
                        Ok(())
                    })?
                }};
            }
            match self.dtype() {
                DType::F64 => return self.to_vec(),
                DType::F32 => widen!(f32, f64::from),
                DType::F16 => widen!(f16, f16::to_f64),
                DType::BF16 => widen!(bf16, bf16::to_f64),
                DType::I64 => widen!(i64, |v| v as f64),
                DType::I32 => widen!(i32, f64::from),
                DType::I16 => widen!(i16, f64::from),
                DType::I8 => widen!(i8, f64::from),
                DType::U64 => widen!(u64, |v| v as f64),
                DType::U32 => widen!(u32, f64::from),
                DType::U16 => widen!(u16, f64::from),
                DType::U8 => widen!(u8, f64::from),
                DType::BOOL => widen!(bool, |v| f64::from(u8::from(v))),
                other if other.is_built_in() || other.category() == Category::Complex => {
                    return Err(Error::HostType { op: "to_vec_f64", expected: DType::F64, got: other });
                }
                other => self.for_each_chunk(|bytes| {
                    let begin = out.len();
                    out.resize(begin + bytes.len() / other.size(), 0.0);
                    Ok(other.decode(bytes, &mut out[begin..])?)
                })?,
            }
            Ok(out)
        })
    }

    fn check_host_type(&self, op: &'static str, expected: DType) -> Result<()> {
        if self.dtype() == expected {
            return Ok(());
        }
        Err(Error::HostType { op, expected, got: self.dtype() })
    }

    /// The bytes of the elements in row-major order without gaps.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1i32, 2])?;
    /// assert_eq!(x.to_bytes()?, [1i32.to_ne_bytes(), 2i32.to_ne_bytes()].concat());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout that cannot be converted to strided; insufficient host memory; errors of the device.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        called("to_bytes", &["self"], || {
            let mut out = host_vec(self.elem_count().saturating_mul(self.dtype().size()))?;
            self.for_each_chunk(|bytes| {
                out.extend_from_slice(bytes);
                Ok(())
            })?;
            Ok(out)
        })
    }

    /// Passes the bytes of the elements to `visit` in row-major order, in chunks of whole elements. Needs no backend: the host
    /// iterates over the strides.
    pub(crate) fn for_each_chunk(&self, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // A composite tensor is converted on its device if that has a kernel, otherwise in host memory.
        let served = layout_ops(self.layout(), self.device().kind).is_some();
        let home = match self.inner.is_strided() || served {
            true => self.clone(),
            false => self.detach().to_device(Device::CPU)?,
        };
        let strided = keyway_dispatcher::layouts::to_strided(&home.inner)?;
        let Some(storage) = strided.storage().filter(|_| strided.numel() > 0) else { return Ok(()) };
        let element = self.dtype().size();
        let (offset, sizes, strides) = (strided.offset(), strided.sizes(), strided.strides());
        let mut elements = ElementReader::new(storage, StridedElements { offset, sizes, strides, element })?;
        let mut buffer = vec![0u8; strided.numel().min(CHUNK / element) * element];
        while elements.left() > 0 {
            let bytes = elements.left().saturating_mul(element).min(buffer.len());
            elements.read(&mut buffer[..bytes])?;
            visit(&buffer[..bytes])?;
        }
        Ok(())
    }
}

fn rows_of<T: Plain>(values: &[T], rows: usize, columns: usize) -> Result<Vec<Vec<T>>> {
    let mut all = host_vec(rows)?;
    for row in 0..rows {
        let mut own = host_vec(columns)?;
        own.extend_from_slice(&values[row * columns..(row + 1) * columns]);
        all.push(own);
    }
    Ok(all)
}
