//! Accessors over storages without tensors, so that Miri can check each.

use super::accessor::*;
use super::{Blob, Storage, StridedElements, bytes};
use crate::base::dtype::DType;
use crate::base::error::Error;

fn six() -> Storage {
    Storage::from_vec(vec![0i32, 1, 2, 3, 4, 5])
}

const TRANSPOSED: StridedElements<'static> =
    StridedElements { offset: 1, sizes: &[2, 2], strides: &[1, 3], element: 4 };

#[test]
fn elements_are_found_by_their_strides_checked_and_not() {
    let mut storage = six();
    let shared = Accessor::<i32, 2>::new("t", &storage, TRANSPOSED).unwrap();
    assert_eq!([shared.get([0, 1]), shared.get([1, 1]), shared.get([2, 0])], [Some(4), Some(5), None]);
    // SAFETY: within the sizes; there are no writes while the reader lives.
    unsafe {
        assert_eq!(shared.get_unchecked([1, 0]), 2);
        let reader = shared.assume_unwritten();
        assert_eq!((reader[[0, 0]], *reader.get_unchecked([0, 1])), (1, 4));
    }
    let mut writer = AccessorMut::<i32, 2>::of_exclusive("t", &mut storage, TRANSPOSED).unwrap();
    writer[[0, 1]] += 10;
    // SAFETY: within the sizes.
    unsafe { *writer.get_unchecked_mut([1, 1]) += *writer.get_unchecked([0, 1]) };
    assert_eq!((writer[[0, 1]], writer[[1, 1]], writer.get_mut([0, 2])), (14, 19, None));
    assert_eq!((writer.as_ref().sizes(), writer.as_ref().strides()), ([2, 2], [1, 3]));
    assert_eq!(storage.version(), 1);
}

#[test]
fn rows_and_wholes_are_slices_where_they_lie_so() {
    let mut storage = six();
    let rows = StridedElements { offset: 0, sizes: &[2, 3], strides: &[3, 1], element: 4 };
    let mut writer = AccessorMut::<i32, 2>::of_exclusive("t", &mut storage, rows).unwrap();
    writer.row_mut([1]).unwrap().fill(7);
    assert!(writer.row_mut([2]).is_none());
    assert_eq!(writer.as_ref().row([0]), Some(&[0, 1, 2][..]));
    assert_eq!(writer.into_slice().unwrap(), [0, 1, 2, 7, 7, 7]);
    let transposed = AccessorRef::<i32, 2>::of_exclusive("t", &mut storage, TRANSPOSED).unwrap();
    assert!(transposed.row([0]).is_none() && transposed.as_slice().is_none());
    let none = StridedElements { offset: 9, sizes: &[2, 0], strides: &[1, 1], element: 4 };
    let none = AccessorRef::<i32, 2>::of_exclusive("t", &mut storage, none).unwrap();
    assert_eq!((none.row([1]), none.row([2]), none.as_slice()), (Some(&[][..]), None, Some(&[][..])));
}

#[test]
fn one_thread_may_write_while_another_waits_to_read() {
    let mut storage = six();
    let row = StridedElements { offset: 0, sizes: &[6], strides: &[1], element: 4 };
    let mut writer = AccessorMut::<i32, 1>::of_exclusive("t", &mut storage, row).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || writer[[5]] = 9);
    });
    let reader = AccessorRef::<i32, 1>::of_exclusive("t", &mut storage, row).unwrap();
    std::thread::scope(|scope| {
        let of = [scope.spawn(move || reader[[5]]), scope.spawn(move || reader[[0]])];
        assert_eq!(of.map(|thread| thread.join().unwrap()), [9, 0]);
    });
}

#[test]
fn what_does_not_fit_is_an_error() {
    let mut storage = six();
    let text = |error: Option<Error>| error.expect("refused").to_string();
    let outside = StridedElements { offset: 3, ..TRANSPOSED };
    assert!(text(Accessor::<i32, 2>::new("t", &storage, outside).err()).contains("24 bytes on cpu"));
    let huge = StridedElements { offset: usize::MAX / 2, ..TRANSPOSED };
    assert!(Accessor::<i32, 2>::new("t", &storage, huge).is_err());
    assert!(Accessor::<i64, 2>::new("t", &storage, TRANSPOSED).is_err());
    assert!(text(Accessor::<i32, 1>::new("t", &storage, TRANSPOSED).err()).contains("has 2 dimensions"));
    let other = storage.clone();
    assert!(AccessorMut::<i32, 2>::of_exclusive("t", &mut storage, TRANSPOSED).is_err());
    assert!(storage.as_bytes_mut().unwrap_err().to_string().contains("2 tensors share it"));
    drop(other);
    storage.as_bytes_mut().unwrap()[0] = 1;
    // SAFETY: nothing writes during the borrow.
    assert_eq!(unsafe { storage.as_bytes() }.unwrap()[..5], [1, 0, 0, 0, 1]);
    // Bytes that begin in the middle of an element.
    struct Part(Vec<u32>);
    impl AsRef<[u8]> for Part {
        fn as_ref(&self) -> &[u8] {
            &bytes::of(&self.0)[2..]
        }
    }
    let blob = Blob::from_owner(Part(vec![0; 3]));
    let storage = Storage::from_blob("t", blob, DType::U8).unwrap();
    let one = StridedElements { offset: 0, sizes: &[1], strides: &[1], element: 4 };
    assert!(text(Accessor::<i32, 1>::new("t", &storage, one).err()).contains("aligned to 4 bytes for i32"));
}

#[test]
#[should_panic(expected = "index [2, 0] is out of range for a tensor of shape [2, 2]")]
fn an_index_outside_panics_as_in_a_slice() {
    let mut storage = six();
    let mut writer = AccessorMut::<i32, 2>::of_exclusive("t", &mut storage, TRANSPOSED).unwrap();
    writer[[2, 0]] = 1;
}
