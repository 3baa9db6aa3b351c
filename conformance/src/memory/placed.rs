//! Tensors in memory that the suite arranges and checks itself.
//!
//! Each has its own storage between guard bands of a fixed pattern; gaps between its elements contain the pattern too. So a
//! write outside the elements, or into an input, is detected.

use crate::array::{Array, Number, Offsets};
use crate::axis_order::Strides;
use crate::encode;
use keyway::dispatcher::memory::{Storage, read_bytes, write_bytes};
use keyway::dispatcher::tensor::TensorImpl;
use keyway::{DType, Device, Result, Tensor};
use serde::Serialize;

/// Elements before and after the outermost elements of a tensor that is watched.
pub const GUARD: usize = 64;
/// The byte that guard bands and gaps are filled with. As a float it is a small negative number, as an integer one far from
/// zero, so that reading it is visible in a result; as a bool it is invalid.
const PATTERN: u8 = 0xA5;

/// Arrangement of a tensor's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrangement {
    /// Row-major without gaps.
    Contiguous,
    /// The dimensions in reverse order in memory.
    Transposed,
    /// Row-major with gaps after each row, so that it is a slice of something larger.
    Sliced,
    /// Every second element of a dimension twice as long.
    Stepped,
    /// Strides 0 along the first dimension; its elements must repeat.
    Expanded,
    /// Channels innermost; three to five dimensions.
    ChannelsLast,
    /// Channels innermost, with gaps after them, so that it is a slice of channels.
    ChannelsSlice,
    /// Row-major, but the strides of dimensions of size 1 are odd numbers.
    OddUnits,
    /// Row-major, from an address with only the element's alignment, as that of `x[1..]`.
    Shifted,
}

impl Arrangement {
    /// All that differ from row-major.
    pub const STRIDED: [Arrangement; 7] = [
        Arrangement::Transposed,
        Arrangement::Sliced,
        Arrangement::Stepped,
        Arrangement::Expanded,
        Arrangement::ChannelsLast,
        Arrangement::OddUnits,
        Arrangement::Shifted,
    ];

    /// The arrangement's name in case ids.
    pub fn name(self) -> &'static str {
        match self {
            Arrangement::Contiguous => "contiguous",
            Arrangement::Transposed => "transposed",
            Arrangement::Sliced => "sliced",
            Arrangement::Stepped => "stepped",
            Arrangement::Expanded => "expanded",
            Arrangement::ChannelsLast => "channels_last",
            Arrangement::ChannelsSlice => "channels_slice",
            Arrangement::OddUnits => "odd_units",
            Arrangement::Shifted => "shifted",
        }
    }

    /// The arrangement of this name.
    pub fn from_name(name: &str) -> Option<Arrangement> {
        [Arrangement::Contiguous].into_iter().chain(Arrangement::STRIDED).find(|a| a.name() == name)
    }

    /// Whether it applies to a tensor of these sizes.
    pub fn suits(self, sizes: &[usize]) -> bool {
        let longer = sizes.iter().filter(|&&s| s > 1).count();
        match self {
            Arrangement::Contiguous => true,
            Arrangement::Transposed => longer > 1,
            Arrangement::Sliced | Arrangement::Stepped | Arrangement::Shifted => longer > 0,
            Arrangement::Expanded => sizes.first().is_some_and(|&s| s > 1),
            Arrangement::ChannelsLast | Arrangement::ChannelsSlice => {
                (3..=5).contains(&sizes.len()) && longer > 1
            }
            Arrangement::OddUnits => sizes.contains(&1),
        }
    }

    /// This arrangement, or row-major if it does not apply to a tensor of these sizes.
    pub fn where_it_suits(self, sizes: &[usize]) -> Arrangement {
        if self.suits(sizes) { self } else { Arrangement::Contiguous }
    }

    /// Strides in elements.
    pub fn strides(self, sizes: &[usize]) -> Vec<usize> {
        let ordered = |order: &[usize], gap: usize| {
            let mut strides = vec![0; sizes.len()];
            let mut next = 1;
            for (nth, &dim) in order.iter().enumerate() {
                strides[dim] = next;
                next *= sizes[dim].max(1);
                next += if nth == 0 { gap } else { 0 };
            }
            strides
        };
        let ndim = sizes.len();
        let rows: Vec<usize> = (0..ndim).rev().collect();
        match self {
            Arrangement::Contiguous | Arrangement::Shifted => ordered(&rows, 0),
            Arrangement::Transposed => ordered(&(0..ndim).collect::<Vec<_>>(), 0),
            Arrangement::Sliced => ordered(&rows, 3),
            Arrangement::Stepped => ordered(&rows, 0).into_iter().map(|s| 2 * s).collect(),
            Arrangement::Expanded => {
                let mut strides = vec![0];
                strides.extend(Arrangement::Contiguous.strides(&sizes[1..]));
                strides
            }
            Arrangement::ChannelsLast | Arrangement::ChannelsSlice => {
                let mut order = vec![1];
                order.extend((2..ndim).rev());
                order.push(0);
                ordered(&order, if self == Arrangement::ChannelsSlice { 3 } else { 0 })
            }
            Arrangement::OddUnits => {
                let mut strides = ordered(&rows, 0);
                strides.iter_mut().zip(sizes).filter(|(_, size)| **size == 1).for_each(|(s, _)| *s = 7);
                strides
            }
        }
    }
}

/// The first slice along the first dimension, repeated: the values of an expanded tensor.
pub fn repeated(array: &Array) -> Array {
    let zeroed = |index: &[usize]| {
        let mut index = index.to_vec();
        index[0] = 0;
        index
    };
    Array::from_fn(array.dtype, array.sizes.clone(), |index| array.at(&zeroed(index)))
}

/// A tensor with the original contents of its storage.
#[derive(Debug)]
pub struct Placed {
    /// The tensor.
    pub tensor: Tensor,
    storage: Storage,
    image: Vec<u8>,
    guard: usize,
    /// Byte ranges of the elements in `image`, in row-major order.
    offsets: Vec<usize>,
}

/// Unexpected writes to the memory of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A guard band or a gap was written, at this byte offset from the first element.
    Outside(isize),
    /// An element changed: its row-major index.
    Element(usize),
}

impl Placed {
    /// Writes values between guard bands.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(array: &Array, arrangement: Arrangement, device: Device) -> Result<Placed> {
        Placed::guarded(array, arrangement, device, GUARD)
    }

    /// Writes values between guard bands of `guard` elements.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn guarded(array: &Array, arrangement: Arrangement, device: Device, guard: usize) -> Result<Placed> {
        let offset = usize::from(arrangement == Arrangement::Shifted);
        let strides = Strides { strides: arrangement.strides(&array.sizes), offset };
        Placed::strided(array, &strides, device, guard)
    }

    /// Writes values with these strides between guard bands of `guard` elements.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn strided(array: &Array, strides: &Strides, device: Device, guard: usize) -> Result<Placed> {
        let (size, dtype) = (array.dtype.size(), array.dtype);
        let Strides { strides, offset } = strides;
        let reach: usize =
            array.sizes.iter().zip(strides).map(|(&n, &s)| n.saturating_sub(1) * s).sum::<usize>() + 1;
        let behind = guard;
        let guard = guard + offset;
        let mut image = vec![PATTERN; (guard + reach + behind) * size];
        let offsets: Vec<usize> =
            Offsets::new(&array.sizes, strides, guard).map(|element| element * size).collect();
        for (&at, &value) in offsets.iter().zip(&array.values) {
            image[at..at + size].copy_from_slice(&encode::bytes(value, dtype));
        }
        let storage = Storage::allocate(device, image.len())?;
        write_bytes(&storage, 0, &image)?;
        let tensor = Tensor::from_ref(TensorImpl::strided(storage, guard, &array.sizes, strides, dtype)?);
        let storage = tensor.storage()?.clone();
        Ok(Placed { tensor, storage, image, guard, offsets })
    }

    /// A target for `out=`, its elements filled with the pattern's bytes: not a valid result.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn garbage(
        sizes: &[usize],
        dtype: DType,
        arrangement: Arrangement,
        device: Device,
    ) -> Result<Placed> {
        Placed::new(&Placed::filler(sizes, dtype), arrangement, device)
    }

    /// As [`Placed::garbage`], without guard bands.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn garbage_bare(
        sizes: &[usize],
        dtype: DType,
        arrangement: Arrangement,
        device: Device,
    ) -> Result<Placed> {
        Placed::guarded(&Placed::filler(sizes, dtype), arrangement, device, 0)
    }

    /// As [`Placed::garbage`], with these strides.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn garbage_at(sizes: &[usize], dtype: DType, strides: &Strides, device: Device) -> Result<Placed> {
        Placed::strided(&Placed::filler(sizes, dtype), strides, device, GUARD)
    }

    /// Elements of the pattern's bytes.
    fn filler(sizes: &[usize], dtype: DType) -> Array {
        let filler = if dtype == DType::BOOL {
            Number::Bool(true)
        } else {
            encode::number(&[PATTERN; 16][..dtype.size()], dtype).unwrap_or(Number::Any)
        };
        Array::from_fn(dtype, sizes, |_| filler)
    }

    fn now(&self) -> Result<Vec<u8>> {
        let mut now = vec![0; self.image.len()];
        read_bytes(&self.storage, 0, &mut now)?;
        Ok(now)
    }

    /// The first changed byte outside the elements; with `elements`, also the first changed element.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn damage(&self, elements: bool) -> Result<Option<Damage>> {
        let (now, size) = (self.now()?, self.tensor.dtype().size());
        if now == self.image {
            return Ok(None);
        }
        let mut inside = vec![false; now.len()];
        for (nth, &at) in self.offsets.iter().enumerate() {
            inside[at..at + size].fill(true);
            if elements && now[at..at + size] != self.image[at..at + size] {
                return Ok(Some(Damage::Element(nth)));
            }
        }
        let outside = (0..now.len()).find(|&i| !inside[i] && now[i] != self.image[i]);
        Ok(outside.map(|i| Damage::Outside(i as isize - (self.guard * size) as isize)))
    }
}

/// As [`read`](super::read); a layout that the suite does not know is converted by its backend.
///
/// # Errors
/// As [`read`](super::read).
pub fn read_strided(tensor: &Tensor) -> Result<Option<Array>> {
    let bytes = tensor.detach().to_bytes()?;
    let dtype = tensor.dtype();
    let values: Option<Vec<Number>> =
        bytes.chunks_exact(dtype.size().max(1)).map(|b| encode::number(b, dtype)).collect();
    Ok(values.map(|values| Array::new(dtype, tensor.shape(), values)))
}
