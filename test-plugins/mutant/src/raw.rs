//! Tensors of a raw call, element by element.

use keyway_sdk::abi::codes::{dtype, tensor_flag};
use keyway_sdk::abi::tensor::RawTensor;
use keyway_sdk::author::{Element, c64, c128};
use keyway_sdk::half::{bf16, f16};

/// The strided elements of a tensor that a call lends. Elements are numbered in row-major order.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    raw: &'a RawTensor,
}

/// Runs `$body` with `$type` the Rust type of a dtype's elements.
macro_rules! typed {
    ($code:expr, $type:ident => $body:expr) => {
        match $code {
            dtype::F64 => {
                type $type = f64;
                $body
            }
            dtype::F32 => {
                type $type = f32;
                $body
            }
            dtype::F16 => {
                type $type = f16;
                $body
            }
            dtype::BF16 => {
                type $type = bf16;
                $body
            }
            dtype::I64 => {
                type $type = i64;
                $body
            }
            dtype::I32 => {
                type $type = i32;
                $body
            }
            dtype::I16 => {
                type $type = i16;
                $body
            }
            dtype::I8 => {
                type $type = i8;
                $body
            }
            dtype::U64 => {
                type $type = u64;
                $body
            }
            dtype::U32 => {
                type $type = u32;
                $body
            }
            dtype::U16 => {
                type $type = u16;
                $body
            }
            dtype::BOOL => {
                type $type = bool;
                $body
            }
            dtype::C64 => {
                type $type = c64;
                $body
            }
            dtype::C128 => {
                type $type = c128;
                $body
            }
            _ => {
                type $type = u8;
                $body
            }
        }
    };
}

impl<'a> Elements<'a> {
    /// The elements of a tensor.
    ///
    /// # Safety
    /// `raw` must be a strided tensor that the host lends for `'a`, of a dtype that the SDK supports. Writing is allowed
    /// for outputs, or for a fault that is about writing elsewhere.
    pub unsafe fn new(raw: &'a RawTensor) -> Elements<'a> {
        Elements { raw }
    }

    fn list(&self, pointer: *const i64) -> &'a [i64] {
        if self.raw.ndim == 0 || pointer.is_null() {
            return &[];
        }
        // SAFETY: sizes and strides have `ndim` entries while the tensor lives; the host upholds this.
        unsafe { std::slice::from_raw_parts(pointer, self.raw.ndim as usize) }
    }

    /// The tensor itself.
    pub fn raw(&self) -> &'a RawTensor {
        self.raw
    }

    /// The sizes.
    pub fn sizes(&self) -> &'a [i64] {
        self.list(self.raw.sizes)
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &'a [i64] {
        self.list(self.raw.strides)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.raw.numel.max(0) as usize
    }

    /// The dtype code.
    pub fn dtype(&self) -> u16 {
        self.raw.dtype
    }

    /// The size of one element in bytes.
    pub fn width(&self) -> usize {
        typed!(self.raw.dtype, T => size_of::<T>())
    }

    /// The address of the first element.
    pub fn address(&self) -> usize {
        self.raw.data as usize
    }

    /// Whether elements are row-major without gaps; the strides of dimensions of size 1 are ignored.
    pub fn is_row_major(&self) -> bool {
        let mut next = 1;
        self.sizes().iter().zip(self.strides()).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == next;
            next *= size;
            fits
        })
    }

    /// Whether some elements share memory.
    pub fn is_expanded(&self) -> bool {
        self.sizes().iter().zip(self.strides()).any(|(&size, &stride)| size > 1 && stride == 0)
    }

    /// The number of elements from the first to the last in memory, including gaps.
    pub fn extent(&self) -> i64 {
        self.offset(&self.sizes().iter().map(|n| (n - 1).max(0)).collect::<Vec<_>>()) + 1
    }

    /// The index of an element.
    pub fn index(&self, nth: usize) -> Vec<i64> {
        let mut index = vec![0; self.sizes().len()];
        let mut rest = nth as i64;
        for (place, &size) in index.iter_mut().zip(self.sizes()).rev() {
            *place = rest % size.max(1);
            rest /= size.max(1);
        }
        index
    }

    /// The offset of an element from the first, in elements.
    pub fn offset(&self, index: &[i64]) -> i64 {
        index.iter().zip(self.strides()).map(|(i, stride)| i * stride).sum()
    }

    /// The element at an offset from the first, in elements.
    pub fn peek(&self, offset: i64) -> f64 {
        // SAFETY: the offset is within the tensor's storage, as `new` demands of each fault.
        typed!(self.raw.dtype, T => unsafe { T::load(self.raw.data.cast::<T>().offset(offset as isize)) }.to_f64())
    }

    /// Writes the element at an offset from the first, in elements.
    pub fn poke(&self, offset: i64, value: f64) {
        // SAFETY: as for `peek`; the element may be written, see `new`.
        typed!(self.raw.dtype, T => unsafe {
            self.raw.data.cast::<T>().offset(offset as isize).write(T::from_f64(value));
        });
    }

    /// Writes one byte, at a byte offset from the first element.
    pub fn poke_byte(&self, byte: usize, value: u8) {
        // SAFETY: as for `poke`.
        unsafe { self.raw.data.cast::<u8>().add(byte).write(value) };
    }

    /// An element by its row-major index, in `f64`: integers beyond 2^53 are rounded.
    pub fn get(&self, nth: usize) -> f64 {
        self.peek(self.offset(&self.index(nth)))
    }

    /// Writes an element by its row-major index.
    pub fn set(&self, nth: usize, value: f64) {
        self.poke(self.offset(&self.index(nth)), value);
    }

    /// An element by its index.
    pub fn at(&self, index: &[i64]) -> f64 {
        self.peek(self.offset(index))
    }

    /// Writes an element by its index.
    pub fn set_at(&self, index: &[i64], value: f64) {
        self.poke(self.offset(index), value);
    }

    /// A complex number.
    pub fn complex(&self, nth: usize) -> c128 {
        let offset = self.offset(&self.index(nth)) as isize;
        // SAFETY: an element of the tensor.
        unsafe {
            match self.raw.dtype {
                dtype::C64 => {
                    let z = c64::load(self.raw.data.cast::<c64>().offset(offset));
                    c128::new(z.re.into(), z.im.into())
                }
                _ => c128::load(self.raw.data.cast::<c128>().offset(offset)),
            }
        }
    }

    /// Writes a complex number, rounded to the dtype.
    pub fn set_complex(&self, nth: usize, value: c128) {
        let offset = self.offset(&self.index(nth)) as isize;
        // SAFETY: an element of the tensor, which may be written according to `new`.
        typed!(self.raw.dtype, T => unsafe {
            self.raw.data.cast::<T>().offset(offset).write(T::from_complex(value));
        });
    }

    /// An integer, exactly.
    pub fn int(&self, nth: usize) -> i64 {
        let offset = self.offset(&self.index(nth)) as isize;
        // SAFETY: an element of the tensor.
        typed!(self.raw.dtype, T => unsafe { T::load(self.raw.data.cast::<T>().offset(offset)) }.to_i64())
    }

    /// Writes an integer, exactly.
    pub fn set_int(&self, nth: usize, value: i64) {
        let offset = self.offset(&self.index(nth)) as isize;
        // SAFETY: an element of the tensor, which may be written according to `new`.
        typed!(self.raw.dtype, T => unsafe {
            self.raw.data.cast::<T>().offset(offset).write(T::from_i64(value));
        });
    }

    /// Every element.
    pub fn values(&self) -> Vec<f64> {
        (0..self.len()).map(|nth| self.get(nth)).collect()
    }

    /// Changes every element.
    pub fn map(&self, change: impl Fn(f64) -> f64) {
        (0..self.len()).for_each(|nth| self.set(nth, change(self.get(nth))));
    }
}

/// A row-major tensor of this plugin, which replaces one of the host.
pub struct Staged {
    raw: RawTensor,
    // The memory that `raw` points to.
    _memory: Vec<u128>,
    _sizes: Vec<i64>,
    _strides: Vec<i64>,
}

impl Staged {
    /// A tensor like `like`, whose elements are read at the offsets that `place` returns for an element's row-major index.
    pub fn gathered(like: &Elements<'_>, place: impl Fn(usize) -> i64) -> Staged {
        let (sizes, width) = (like.sizes().to_vec(), like.width());
        let mut strides = vec![1; sizes.len()];
        for dim in (1..sizes.len()).rev() {
            strides[dim - 1] = strides[dim] * sizes[dim].max(1);
        }
        let mut memory = vec![0u128; (like.len() * width).div_ceil(size_of::<u128>()).max(1)];
        for nth in 0..like.len() {
            let from = like.address() as isize + place(nth) as isize * width as isize;
            // SAFETY: the offsets are within the tensor's storage; the copy has capacity for every element.
            unsafe {
                let to = memory.as_mut_ptr().cast::<u8>().add(nth * width);
                std::ptr::copy_nonoverlapping(from as *const u8, to, width);
            }
        }
        let raw = RawTensor {
            flags: tensor_flag::CONTIGUOUS,
            data: memory.as_mut_ptr().cast(),
            sizes: sizes.as_ptr(),
            strides: strides.as_ptr(),
            handle: std::ptr::null(),
            ..*like.raw
        };
        Staged { raw, _memory: memory, _sizes: sizes, _strides: strides }
    }

    /// A copy.
    pub fn copy(of: &Elements<'_>) -> Staged {
        Staged::gathered(of, |nth| of.offset(&of.index(nth)))
    }

    /// The elements of the tensor.
    pub fn elements(&self) -> Elements<'_> {
        // SAFETY: the tensor and all that it points to are this structure's own.
        unsafe { Elements::new(&self.raw) }
    }
}
