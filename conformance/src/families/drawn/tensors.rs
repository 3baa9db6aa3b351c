//! Large tensors of drawn values. The suite stores only their bytes, and decodes the elements that it needs.

use super::call::Order;
use crate::array::{Array, Number, Offsets};
use crate::call::damaged;
use crate::encode;
use crate::memory::{Damage, GUARD};
use crate::outcome::{Failure, Steps};
use keyway::dispatcher::memory::{Storage, read_bytes, write_bytes};
use keyway::dispatcher::tensor::TensorImpl;
use keyway::{DType, Device, Tensor};

/// The byte pattern of guard bands, gaps and outputs: not a valid result.
const PATTERN: u8 = 0xA5;

/// A tensor, with a copy of its bytes at its creation.
pub struct Large {
    /// The tensor.
    pub tensor: Tensor,
    storage: Storage,
    image: Vec<u8>,
    sizes: Vec<usize>,
    strides: Vec<usize>,
    start: usize,
    dtype: DType,
}

impl Large {
    /// A tensor of these sizes, with strides of 0 in the dimensions of `expanded`; `element` returns each stored element by its
    /// row-major index.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        (sizes, expanded): (&[usize], &[bool]),
        order: Order,
        dtype: DType,
        device: Device,
        mut element: impl FnMut(usize) -> Number,
    ) -> keyway::Result<Large> {
        let is_expanded = |dim: usize| expanded.get(dim) == Some(&true);
        let stored: Vec<usize> =
            sizes.iter().enumerate().map(|(dim, &n)| if is_expanded(dim) { 1 } else { n }).collect();
        let laid = order.strides(&stored);
        let (size, start) = (dtype.size(), GUARD + laid.offset);
        let reach: usize = stored.iter().zip(&laid.strides).map(|(&n, &s)| (n - 1) * s).sum::<usize>() + 1;
        let mut image = vec![PATTERN; (start + reach + GUARD) * size];
        for (nth, position) in Offsets::new(&stored, &laid.strides, start).enumerate() {
            image[position * size..(position + 1) * size]
                .copy_from_slice(&encode::bytes(element(nth), dtype));
        }
        let strides: Vec<usize> =
            laid.strides.iter().enumerate().map(|(dim, &s)| if is_expanded(dim) { 0 } else { s }).collect();
        let storage = Storage::allocate(device, image.len())?;
        write_bytes(&storage, 0, &image)?;
        let tensor = Tensor::from_ref(TensorImpl::strided(storage, start, sizes, &strides, dtype)?);
        let storage = tensor.storage()?.clone();
        Ok(Large { tensor, storage, image, sizes: sizes.to_vec(), strides, start, dtype })
    }

    /// A target for `out=`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn garbage(sizes: &[usize], order: Order, dtype: DType, device: Device) -> keyway::Result<Large> {
        let filler = encode::number(&[PATTERN; 8][..dtype.size()], dtype).unwrap_or(Number::Bool(true));
        Large::new((sizes, &[]), order, dtype, device, |_| filler)
    }

    /// The element that a coordinate of the result reads: dimensions of size 1 are broadcast.
    pub fn at(&self, coordinates: &[usize]) -> Number {
        let own = coordinates.iter().zip(self.sizes.iter().zip(&self.strides));
        self.read(own.map(|(&at, (&size, &stride))| if size == 1 { 0 } else { at * stride }).sum())
    }

    fn read(&self, offset: usize) -> Number {
        let size = self.dtype.size();
        let from = (self.start + offset) * size;
        encode::number(&self.image[from..from + size], self.dtype).unwrap_or(Number::Any)
    }

    /// Every element, in row-major order.
    pub fn floats(&self) -> Vec<f64> {
        Offsets::new(&self.sizes, &self.strides, 0).map(|offset| self.read(offset).float()).collect()
    }

    /// All elements, as an array of the oracle.
    pub fn array(&self) -> Array {
        let values = Offsets::new(&self.sizes, &self.strides, 0).map(|offset| self.read(offset)).collect();
        Array::new(self.dtype, self.sizes.clone(), values)
    }

    /// Refuses a call that wrote to gaps or guard bands, or to the elements if it should not have.
    ///
    /// # Errors
    /// The damage; errors of the device.
    pub fn check(&self, whose: &str, written: bool) -> Steps {
        let mut now = vec![0; self.image.len()];
        read_bytes(&self.storage, 0, &mut now)?;
        let size = self.dtype.size();
        if written {
            for position in Offsets::new(&self.sizes, &self.strides, self.start) {
                let bytes = position * size..(position + 1) * size;
                now[bytes.clone()].copy_from_slice(&self.image[bytes]);
            }
        }
        match now.iter().zip(&self.image).position(|(now, before)| now != before) {
            None => Ok(()),
            Some(byte) => {
                let outside = Damage::Outside(byte as isize - (self.start * size) as isize);
                Err(damaged(whose, outside).into())
            }
        }
    }
}

/// A result: its bytes in row-major order.
pub struct Result {
    bytes: Vec<u8>,
    dtype: DType,
}

impl Result {
    /// Reads a tensor of these sizes and this dtype.
    ///
    /// # Errors
    /// Another shape or dtype; errors of the device.
    pub fn of(tensor: &Tensor, sizes: &[usize], dtype: DType) -> Steps<Result> {
        if tensor.dtype() != dtype || tensor.shape() != sizes {
            let got = format!("{} {:?}", tensor.dtype(), tensor.shape());
            return Err(Failure::new(
                "the result has the wrong shape or dtype",
                format!("{dtype} {sizes:?}"),
                got,
            )
            .into());
        }
        Ok(Result { bytes: tensor.detach().to_bytes()?, dtype })
    }

    /// The element at a row-major index; `None` for bytes that are invalid in the dtype.
    pub fn at(&self, position: usize) -> Option<Number> {
        let size = self.dtype.size();
        encode::number(self.bytes.get(position * size..(position + 1) * size)?, self.dtype)
    }

    /// Every element.
    pub fn floats(&self) -> Vec<f64> {
        let of = |bytes: &[u8]| encode::number(bytes, self.dtype).map_or(f64::NAN, Number::float);
        self.bytes.chunks_exact(self.dtype.size()).map(of).collect()
    }
}
