//! The elements of a tensor for the host: accessors and slices.

use super::{TensorImpl, TensorRef};
use crate::base::dims::Dims;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::memory::bytes::Element;
use crate::memory::{Accessor, AccessorMut, AccessorRef, Shared, Storage, StridedElements};

/// The host type by which a tensor's elements are read or written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Reading,
    Writing,
}

#[cold]
fn composite(op: &'static str, tensor: &TensorImpl) -> Error {
    let reason =
        "consists of several tensors and has no storage of its own; make it strided with `to_dense()` first";
    Error::Layout { op, layout: tensor.layout(), reason }
}

impl TensorImpl {
    /// Whether the tensor, or a component of it, is in read-only memory.
    pub fn is_read_only(&self) -> bool {
        match self.storage() {
            Some(storage) => storage.is_read_only(),
            None => self.components().iter().any(|component| component.is_read_only()),
        }
    }

    /// As [`TensorImpl::is_read_only`], of a strided tensor.
    #[inline(always)]
    pub(crate) fn is_strided_read_only(&self) -> bool {
        self.storage().is_some_and(Storage::is_read_only)
    }

    /// Refuses a tensor in read-only memory.
    pub(crate) fn check_writable(&self, op: &'static str) -> Result<()> {
        match self.storage() {
            Some(storage) => storage.check_writable(op),
            None => self.components().iter().try_for_each(|component| component.check_writable(op)),
        }
    }

    /// The storage, for `op`.
    ///
    /// # Errors
    /// `Layout` for a composite tensor.
    pub fn storage_for(&self, op: &'static str) -> Result<&Storage> {
        self.storage().ok_or_else(|| composite(op, self))
    }

    /// Checks that the host type is that of the elements. Bytes of bool may be read as `u8`.
    fn check_type<T: Element>(&self, op: &'static str, wanted: Wanted) -> Result<()> {
        let dtype = self.dtype();
        let bytes = wanted == Wanted::Reading && dtype == DType::BOOL && T::DTYPE == DType::U8;
        if dtype == T::DTYPE || bytes {
            return Ok(());
        }
        Err(Error::DType { op, argument: "self", expected: T::DTYPE.to_string(), got: dtype })
    }

    /// Checks that the tensor is contiguous, so that its elements form a slice.
    fn check_contiguous(&self, op: &'static str) -> Result<()> {
        self.storage_for(op)?;
        if self.is_contiguous() {
            return Ok(());
        }
        Err(Error::Value {
            op,
            argument: "self",
            expected: "contiguous; call `contiguous()` first".to_string(),
            got: format!("sizes {:?} with strides {:?}", self.sizes(), self.strides()),
        })
    }

    /// Returns an accessor that copies elements, for a tensor that may be shared and changed.
    ///
    /// # Errors
    /// `DType`; `Value` for another number of dimensions; `NotOnHost`; `Layout` for a composite tensor.
    pub fn accessor<T: Element, const N: usize>(&self) -> Result<Accessor<'_, T, N>> {
        const OP: &str = "accessor";
        let storage = self.storage_for(OP)?;
        self.check_type::<T>(OP, Wanted::Reading)?;
        Accessor::new(OP, storage, OwnedElements::of(self).borrowed())
    }

    /// Returns an accessor by reference, of a uniquely owned tensor or of read-only memory.
    ///
    /// # Errors
    /// As [`TensorImpl::accessor`]; `Held`.
    pub fn accessor_ref<T: Element, const N: usize>(tensor: &mut TensorRef) -> Result<AccessorRef<'_, T, N>> {
        let elements = OwnedElements::of(tensor);
        reading("accessor_ref", tensor, &elements)
    }

    /// Returns an accessor by mutable reference, of a uniquely owned tensor.
    ///
    /// # Errors
    /// As [`TensorImpl::accessor`]; `Held`, `ReadOnly`; `Overlap` if elements overlap.
    pub fn accessor_mut<T: Element, const N: usize>(tensor: &mut TensorRef) -> Result<AccessorMut<'_, T, N>> {
        let elements = OwnedElements::of(tensor);
        writing("accessor_mut", tensor, &elements)
    }

    /// All elements of a contiguous tensor as a slice: of a uniquely owned tensor, or of read-only memory.
    ///
    /// # Errors
    /// As [`TensorImpl::accessor_ref`]; `Value` if the tensor is not contiguous.
    pub fn as_slice<T: Element>(tensor: &mut TensorRef) -> Result<&[T]> {
        const OP: &str = "as_slice";
        tensor.check_contiguous(OP)?;
        let row = OwnedElements::flattened(tensor);
        let accessor: AccessorRef<'_, T, 1> = reading(OP, tensor, &row)?;
        Ok(accessor.as_slice().unwrap_or_default())
    }

    /// As [`TensorImpl::as_slice`], mutably.
    ///
    /// # Errors
    /// As [`TensorImpl::accessor_mut`]; `Value` if the tensor is not contiguous.
    pub fn as_slice_mut<T: Element>(tensor: &mut TensorRef) -> Result<&mut [T]> {
        const OP: &str = "as_slice_mut";
        tensor.check_contiguous(OP)?;
        let row = OwnedElements::flattened(tensor);
        let accessor: AccessorMut<'_, T, 1> = writing(OP, tensor, &row)?;
        Ok(accessor.into_slice().unwrap_or_default())
    }
}

/// Offset, sizes and strides of elements, copied out of the tensor that is borrowed for them.
struct OwnedElements {
    offset: usize,
    sizes: Dims,
    strides: Dims,
    element: usize,
}

impl OwnedElements {
    fn of(tensor: &TensorImpl) -> OwnedElements {
        let (sizes, strides) = (Dims::from_slice(tensor.sizes()), Dims::from_slice(tensor.strides()));
        OwnedElements { offset: tensor.offset(), sizes, strides, element: tensor.dtype().size() }
    }

    /// The elements of a contiguous tensor, as one dimension.
    fn flattened(tensor: &TensorImpl) -> OwnedElements {
        let (sizes, strides) = (Dims::from_elem(tensor.numel(), 1), Dims::from_elem(1, 1));
        OwnedElements { offset: tensor.offset(), sizes, strides, element: tensor.dtype().size() }
    }

    fn borrowed(&self) -> StridedElements<'_> {
        StridedElements {
            offset: self.offset,
            sizes: &self.sizes,
            strides: &self.strides,
            element: self.element,
        }
    }
}

fn reading<'a, T: Element, const N: usize>(
    op: &'static str,
    tensor: &'a mut TensorRef,
    elements: &OwnedElements,
) -> Result<AccessorRef<'a, T, N>> {
    tensor.check_type::<T>(op, Wanted::Reading)?;
    if tensor.storage_for(op)?.is_read_only() {
        return AccessorRef::of_read_only(op, tensor.storage_for(op)?, elements.borrowed());
    }
    AccessorRef::of_exclusive(op, exclusive_storage(op, tensor)?, elements.borrowed())
}

fn writing<'a, T: Element, const N: usize>(
    op: &'static str,
    tensor: &'a mut TensorRef,
    elements: &OwnedElements,
) -> Result<AccessorMut<'a, T, N>> {
    tensor.check_type::<T>(op, Wanted::Writing)?;
    tensor.storage_for(op)?.check_writable(op)?;
    AccessorMut::of_exclusive(op, exclusive_storage(op, tensor)?, elements.borrowed())
}

/// The storage of a uniquely owned tensor, whose base, if it is a view, is uniquely owned too. The accessors check that the
/// storage is not shared; they must be created from this storage.
fn exclusive_storage<'a>(op: &'static str, tensor: &'a mut TensorRef) -> Result<&'a mut Storage> {
    let storages = tensor.storage_for(op)?.strong_count();
    let of_base = tensor.base().map_or(0, Shared::strong_count);
    let tensors = Shared::strong_count(tensor).max(of_base);
    let held = || Error::Held { op, tensors, storages };
    let alone = Shared::get_pinned_mut(tensor).ok_or_else(held)?;
    let storage = match &mut alone.view_of {
        Some(view) => Shared::get_pinned_mut(&mut view.base).ok_or_else(held)?.own_storage.as_mut(),
        None => alone.own_storage.as_mut(),
    };
    storage.ok_or_else(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dims::may_self_overlap;
    use crate::base::key::Device;
    use proptest::prelude::*;

    fn counting(n: usize) -> TensorRef {
        let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
        TensorImpl::strided(Storage::from_vec(values), 0, &[n], &[1], DType::F32).unwrap()
    }

    #[test]
    fn only_who_alone_holds_the_memory_may_write() {
        let mut t = counting(6);
        let version = t.version();
        TensorImpl::accessor_mut::<f32, 1>(&mut t).unwrap()[[2]] = 9.0;
        assert_eq!(t.version(), version + 1);
        assert_eq!(t.accessor::<f32, 1>().unwrap().get([2]), Some(9.0));
        let held = |t: &mut TensorRef| {
            let error = TensorImpl::accessor_mut::<f32, 1>(t).err().expect("another handle holds it");
            assert!(matches!(error, Error::Held { .. }), "{error}");
            error.to_string()
        };
        let clone = t.clone();
        assert!(held(&mut t).contains("2 clones"));
        drop(clone);
        let weak = Shared::downgrade(&t);
        assert!(held(&mut t).contains("a graph refers to"));
        drop(weak);
        let alias = t.shallow_copy();
        assert!(held(&mut t).contains("2 tensors share it"));
        drop(alias);
        let mut view = TensorImpl::view(&t, 2, &[2], Some(&[2]), false).unwrap();
        assert!(held(&mut t).contains("hold the tensor"));
        assert!(held(&mut view).contains("hold the tensor"));
        drop(t);
        let mut writer = TensorImpl::accessor_mut::<f32, 1>(&mut view).unwrap();
        writer[[1]] = 7.0;
        assert_eq!((writer[[0]], writer[[1]], writer.get([2])), (9.0, 7.0, None));
        let base = view.base().unwrap().clone();
        drop(view);
        assert_eq!(base.accessor::<f32, 1>().unwrap().get([4]), Some(7.0));
    }

    #[test]
    fn slices_are_of_contiguous_tensors() {
        let mut t = counting(6);
        TensorImpl::as_slice_mut::<f32>(&mut t).unwrap().reverse();
        assert_eq!(TensorImpl::as_slice::<f32>(&mut t).unwrap(), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let mut transposed = TensorImpl::view(&t, 0, &[3, 2], Some(&[1, 3]), false).unwrap();
        drop(t);
        let error = TensorImpl::as_slice::<f32>(&mut transposed).unwrap_err().to_string();
        assert!(error.contains("`contiguous()`") && error.contains("[1, 3]"), "{error}");
        let reader = TensorImpl::accessor_ref::<f32, 2>(&mut transposed).unwrap();
        assert!(reader.as_slice().is_none() && reader.row([0]).is_none());
        assert_eq!(reader[[2, 1]], 0.0);
        let mut none = TensorImpl::empty(&[0, 3], DType::F32, Device::CPU).unwrap();
        assert_eq!(TensorImpl::as_slice::<f32>(&mut none).unwrap(), [0f32; 0]);
    }

    #[test]
    fn another_type_rank_or_overlap_is_an_error() {
        let mut t = counting(6);
        let text = |error: Option<Error>| error.expect("refused").to_string();
        let error = text(t.accessor::<i64, 1>().err());
        assert!(error.contains("must be i64, but it is f32") && error.contains("`to_dtype`"), "{error}");
        let error = text(t.accessor::<f32, 2>().err());
        assert!(error.contains("`N` must be 1") && error.contains("got 2"), "{error}");
        let mut twice = TensorImpl::view(&t, 0, &[2, 3], Some(&[0, 1]), false).unwrap();
        t = counting(1);
        assert!(text(TensorImpl::accessor_mut::<f32, 2>(&mut twice).err()).contains("overlaps itself"));
        assert_eq!(TensorImpl::accessor_ref::<f32, 2>(&mut twice).unwrap()[[1, 2]], 2.0);
        let bools = TensorImpl::strided(Storage::from_vec(vec![true, false]), 0, &[2], &[1], DType::BOOL);
        let mut bools = bools.unwrap();
        assert_eq!(bools.accessor::<u8, 1>().unwrap().get([0]), Some(1));
        assert!(TensorImpl::accessor_mut::<u8, 1>(&mut bools).is_err());
        drop(t);
    }

    /// Sizes, strides and an offset within a storage.
    fn geometry() -> impl Strategy<Value = (usize, [usize; 3], [usize; 3])> {
        (0usize..9, prop::array::uniform3(0usize..5), prop::array::uniform3(0usize..9))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn accessors_find_what_the_strides_say((offset, sizes, strides) in geometry()) {
            let base = counting(9 + 3 * 4 * 9);
            let mut view = TensorImpl::view(&base, offset, &sizes, Some(&strides), false).unwrap();
            drop(base);
            let offset_of = |[i, j, k]: [usize; 3]| offset + i * strides[0] + j * strides[1] + k * strides[2];
            let all = || {
                (0..sizes[0]).flat_map(move |i| {
                    (0..sizes[1]).flat_map(move |j| (0..sizes[2]).map(move |k| [i, j, k]))
                })
            };
            let shared = view.accessor::<f32, 3>().unwrap();
            for at in all() {
                prop_assert_eq!(shared.get(at), Some(offset_of(at) as f32));
            }
            for at in [[sizes[0], 0, 0], [0, sizes[1], 0], [0, 0, sizes[2]], [usize::MAX; 3]] {
                prop_assert_eq!(shared.get(at), None);
            }
            let reader = TensorImpl::accessor_ref::<f32, 3>(&mut view).unwrap();
            for i in 0..sizes[0] {
                for j in 0..sizes[1] {
                    let row: Vec<f32> = (0..sizes[2]).map(|k| reader[[i, j, k]]).collect();
                    if strides[2] == 1 || sizes[2] < 2 {
                        prop_assert_eq!(reader.row([i, j]), Some(&row[..]));
                    } else {
                        prop_assert_eq!(reader.row([i, j]), None);
                    }
                }
            }
            prop_assert_eq!(reader.row([sizes[0], 0]), None);
            let overlaps = may_self_overlap(&sizes, &strides);
            match TensorImpl::accessor_mut::<f32, 3>(&mut view) {
                Err(error) => prop_assert!(overlaps, "{}", error),
                Ok(mut writer) => {
                    prop_assert!(!overlaps);
                    for at in all() {
                        prop_assert_eq!(writer[at], offset_of(at) as f32);
                        writer[at] = -1.0 - offset_of(at) as f32;
                    }
                    for at in all() {
                        prop_assert_eq!(view.accessor::<f32, 3>().unwrap().get(at), Some(-1.0 - offset_of(at) as f32));
                    }
                }
            }
        }
    }
}
