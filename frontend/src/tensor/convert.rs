//! Values back to the host.

use super::Tensor;
use crate::error::{Error, Result};
use keyway_dispatcher::dtype::Category;
use keyway_dispatcher::memory::{bytes::Plain, read_bytes};
use keyway_dispatcher::registry::layout_ops;
use keyway_dispatcher::{DType, Device};

/// A host type that [`Tensor::item`] gives.
pub trait Item: Plain {}
impl<T: Plain> Item for T {}

impl Tensor {
    /// All elements in row-major order, as a vector of the tensor's own type.
    ///
    /// # Errors
    /// A host type that is not the tensor's dtype.
    pub fn to_vec<T: Plain>(&self) -> Result<Vec<T>> {
        self.check_host_type("to_vec", T::DTYPE)?;
        let mut out = Vec::with_capacity(self.numel());
        self.visit_bytes(|bytes| out.push(T::read(bytes)))?;
        Ok(out)
    }

    /// The one element of a tensor that has one.
    ///
    /// # Errors
    /// More or fewer elements than one; a host type that is not the tensor's dtype.
    pub fn item<T: Item>(&self) -> Result<T> {
        if self.numel() != 1 {
            return Err(Error::Length {
                op: "item",
                sizes: self.sizes().to_vec(),
                expected: self.numel(),
                got: 1,
            });
        }
        self.check_host_type("item", T::DTYPE)?;
        if let Some(storage) = self.inner.storage() {
            let mut buffer = [0u8; 16];
            let size = self.dtype().size();
            read_bytes(storage, self.inner.offset() * size, &mut buffer[..size])?;
            return Ok(T::read(&buffer[..size]));
        }
        let mut value = None;
        self.visit_bytes(|bytes| value = Some(T::read(bytes)))?;
        value.ok_or(Error::Length { op: "item", sizes: self.sizes().to_vec(), expected: 0, got: 1 })
    }

    /// All elements in row-major order as f64, whatever the dtype; large integers are rounded. A plugin's dtype is read
    /// with the conversion that the plugin brings.
    ///
    /// # Errors
    /// A dtype that is no real number.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        use half::{bf16, f16};
        macro_rules! widen {
            ($type:ty) => {
                self.to_vec::<$type>()?.into_iter().map(|v| v as f64).collect()
            };
        }
        Ok(match self.dtype() {
            DType::F64 => self.to_vec::<f64>()?,
            DType::F32 => widen!(f32),
            DType::F16 => self.to_vec::<f16>()?.into_iter().map(f16::to_f64).collect(),
            DType::BF16 => self.to_vec::<bf16>()?.into_iter().map(bf16::to_f64).collect(),
            DType::I64 => widen!(i64),
            DType::I32 => widen!(i32),
            DType::I16 => widen!(i16),
            DType::I8 => widen!(i8),
            DType::U64 => widen!(u64),
            DType::U32 => widen!(u32),
            DType::U16 => widen!(u16),
            DType::U8 => widen!(u8),
            DType::BOOL => self.to_vec::<bool>()?.into_iter().map(|v| f64::from(u8::from(v))).collect(),
            other if other.is_built_in() || other.category() == Category::Complex => {
                return Err(Error::HostType { op: "to_f64_vec", expected: DType::F64, got: other });
            }
            other => {
                let mut values = vec![0.0; self.numel()];
                other.decode(&self.to_bytes()?, &mut values)?;
                values
            }
        })
    }

    fn check_host_type(&self, op: &'static str, expected: DType) -> Result<()> {
        if self.dtype() == expected {
            return Ok(());
        }
        Err(Error::HostType { op, expected, got: self.dtype() })
    }

    /// The elements' bytes in row-major order without gaps.
    ///
    /// # Errors
    /// A layout that cannot become strided; what the device reports.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(self.numel() * self.dtype().size());
        self.visit_bytes(|bytes| out.extend_from_slice(bytes))?;
        Ok(out)
    }

    /// Shows each element's bytes in row-major order. Needs no backend: the host iterates over the strides.
    fn visit_bytes(&self, mut visit: impl FnMut(&[u8])) -> Result<()> {
        // A composite tensor is converted where it is if somebody can, else in the host's memory.
        let served = layout_ops(self.layout(), self.device().kind).is_some();
        let home = match self.inner.is_strided() || served {
            true => self.clone(),
            false => self.detach().to_device(Device::CPU)?,
        };
        let strided = keyway_dispatcher::layouts::to_strided(&home.inner)?;
        let Some(storage) = strided.storage() else { return Ok(()) };
        let (sizes, strides) = (strided.sizes(), strided.strides());
        if strided.numel() == 0 {
            return Ok(());
        }
        let size = self.dtype().size();
        let reach: usize = sizes.iter().zip(strides).map(|(&n, &s)| (n - 1) * s).sum();
        let mut bytes = vec![0u8; (reach + 1) * size];
        read_bytes(storage, strided.offset() * size, &mut bytes)?;
        if strided.is_contiguous() {
            bytes.chunks_exact(size).for_each(visit);
            return Ok(());
        }
        let mut index = vec![0usize; sizes.len()];
        let mut at = 0usize;
        for _ in 0..strided.numel() {
            visit(&bytes[at * size..(at + 1) * size]);
            for d in (0..sizes.len()).rev() {
                index[d] += 1;
                at += strides[d];
                if index[d] < sizes[d] {
                    break;
                }
                at -= strides[d] * sizes[d];
                index[d] = 0;
            }
        }
        Ok(())
    }
}
