//! Storages as objects, tensors over owners' memory, accessors and slices, through the loaded CPU backend.

use keyway::autograd::{AutogradError, no_grad};
use keyway::storage::{Blob, Storage};
use keyway::{DType, Device, Error, Result, Tensor};
use keyway_dispatcher::Error as DispatchError;
use proptest::prelude::*;
use std::sync::Arc;

fn counting(sizes: &[usize]) -> Tensor {
    let n = sizes.iter().product::<usize>();
    Tensor::from_vec((0..n).map(|i| i as f32).collect(), sizes).unwrap()
}

/// Checks that the error message contains all of `parts`.
fn refused<T>(result: Result<T>, parts: &[&str]) -> Error {
    let error = result.err().expect("this is refused");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{text}` does not say `{part}`");
    }
    error
}

#[test]
fn a_storage_tells_who_gave_it_and_who_holds_it() -> Result<()> {
    let x = counting(&[2, 3]);
    let y = x.add(1.0)?;
    let s = y.storage()?;
    assert_eq!((s.bytes(), s.device(), s.strong_count()), (24, Device::CPU, 1));
    assert_eq!(s.allocator(), "keyway-cpu");
    assert!(s.is_host_accessible() && !s.is_read_only() && !y.is_read_only());
    let row = y.narrow(0, 1, 1)?;
    assert!(row.shares_storage(&y) && !x.shares_storage(&y));
    assert_eq!(row.data_ptr().addr(), y.data_ptr().addr() + 12);
    assert_eq!(row.storage()?.data_ptr(), s.data_ptr());
    assert_eq!(s.strong_count(), 1, "a view holds the tensor");
    let alias = y.detach();
    assert_eq!(s.strong_count(), 2);
    drop(alias);
    let handle: Storage = s.clone();
    let version = handle.version();
    row.zero_()?;
    assert!(handle.version() > version);
    drop((y, row));
    assert_eq!(handle.strong_count(), 1);
    assert_eq!(handle.to_bytes()?[8..12], 3.0f32.to_ne_bytes());
    let mut handle = handle;
    handle.as_bytes_mut()?[..4].copy_from_slice(&9.0f32.to_ne_bytes());
    assert_eq!(handle.to_bytes()?[..4], 9.0f32.to_ne_bytes());
    Ok(())
}

#[test]
fn memory_of_an_arc_is_shared_read_only_and_dropped_last() -> Result<()> {
    let weights: Arc<[f32]> = (0..6).map(|i| i as f32).collect();
    let x = Tensor::from_owner(weights.clone(), [2, 3])?;
    assert_eq!(x.data_ptr(), weights.as_ptr().cast());
    assert!(x.is_read_only() && x.storage()?.allocator().contains("Arc"));
    assert_eq!(Arc::strong_count(&weights), 2);
    assert_eq!(x.mm(&x.t()?)?.to_vec::<f32>()?, [5.0, 14.0, 14.0, 50.0]);
    let fresh = counting(&[2, 3]);
    let mut target = x.clone();
    // Every way to write: in place, a view, an alias, `out=`, a cast, a copy, several in one call.
    for result in [
        x.add_(&fresh).map(drop),
        x.zero_().map(drop),
        x.narrow(0, 0, 1)?.fill_(1.0).map(drop),
        x.t()?.mul_(2.0).map(drop),
        x.detach().sub_(1.0).map(drop),
        x.copy_(&fresh).map(drop),
        x.copy_(&fresh.to_dtype(DType::F64)?).map(drop),
        x.view([6])?.uniform_(0.0, 1.0).map(drop),
        fresh.add_out(&fresh, &mut target).map(drop),
        fresh.product_into(&mut target),
    ] {
        let error = refused(result, &["read-only", "Arc", "`copy()`"]);
        assert!(matches!(error, Error::Dispatch(DispatchError::ReadOnly { .. })), "{error:?}");
    }
    assert!(refused(target.as_slice_mut::<f32>(), &["read-only"]).to_string().starts_with("as_slice_mut"));
    assert!(keyway_dispatcher::memory::write_bytes(x.storage()?, 0, &[1]).is_err());
    assert_eq!(&weights[..], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(x.copy()?.add_(1.0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    // Read-only memory may be read by reference though others hold it.
    assert_eq!(target.as_slice::<f32>()?, &weights[..]);
    assert_eq!(target.accessor_ref::<f32, 2>()?[[1, 0]], 3.0);
    let other = std::thread::spawn(move || drop((x, target)));
    other.join().unwrap();
    assert_eq!(Arc::strong_count(&weights), 1);
    refused(Tensor::from_owner(weights, [7]), &["from_owner", "7 elements", "6 values"]);
    Ok(())
}

/// A call whose kernel is no element-wise one.
trait Product {
    fn product_into(&self, out: &mut Tensor) -> Result<()>;
}

impl Product for Tensor {
    fn product_into(&self, out: &mut Tensor) -> Result<()> {
        let square = self.mm(&self.t()?)?;
        square.mm_out(self, out).map(drop)
    }
}

#[test]
fn an_owner_of_its_memory_alone_is_written_to() -> Result<()> {
    let values: Box<[i64]> = vec![1, 2, 3, 4].into();
    let at = values.as_ptr();
    let x = Tensor::from_blob(Blob::from_owner_mut(values).named("boxed"), [2, 2], DType::I64)?;
    assert_eq!((x.data_ptr(), x.storage()?.allocator()), (at.cast(), "boxed"));
    assert_eq!(x.add_(1)?.to_vec::<i64>()?, [2, 3, 4, 5]);
    Ok(())
}

#[test]
fn geometry_that_does_not_fit_is_an_error() {
    let blob = || Blob::from_owner_mut(vec![0f32; 6]);
    let strided =
        |sizes: &[usize], strides: &[usize], dtype| Tensor::from_blob_strided(blob(), sizes, strides, dtype);
    refused(Tensor::from_blob(blob(), [7], DType::F32), &["from_blob", "24 bytes", "[7]"]);
    refused(Tensor::from_blob(blob(), [4], DType::F64), &["from_blob", "24 bytes", "f64"]);
    refused(
        Tensor::from_blob(blob(), [1usize << 40, 1 << 40], DType::F32),
        &["from_blob", "more elements or bytes than"],
    );
    refused(strided(&[2, 3], &[4, 1], DType::F32), &["within the storage's 24 bytes", "[4, 1]"]);
    refused(strided(&[2], &[usize::MAX], DType::F32), &["from_blob", "within"]);
    refused(strided(&[2, 3], &[1], DType::F32), &["2 strides, one for each size", "[1]"]);
    refused(Tensor::from_blob(Blob::from_owner(vec![0u8, 2]), [2], DType::BOOL), &["0 or 1", "2 at byte 1"]);
    // An element that is shown twice can be read, and not written to.
    let twice = strided(&[2, 3], &[0, 1], DType::F32).unwrap();
    assert_eq!(twice.sum_all().unwrap().item::<f32>().unwrap(), 0.0);
    refused(twice.add_(1.0), &["overlaps itself"]);
    assert_eq!(Tensor::from_blob(blob(), [0, 5], DType::F32).unwrap().elem_count(), 0);
}

#[test]
fn an_accessor_names_what_it_expected() -> Result<()> {
    let mut x = counting(&[2, 3]);
    refused(x.accessor::<i32, 2>(), &["accessor", "must be i32", "is f32", "to_dtype"]);
    refused(x.accessor::<f32, 3>(), &["`N` must be 2", "got 3"]);
    refused(x.accessor_mut::<f64, 2>(), &["accessor_mut", "must be f64"]);
    let mut transposed = x.t()?;
    refused(transposed.as_slice::<f32>(), &["as_slice", "contiguous()", "[1, 3]"]);
    let error = refused(x.as_slice::<f32>(), &["as_slice", "2 clones, views or graphs", "`copy()`"]);
    assert!(matches!(error, Error::Dispatch(DispatchError::Held { .. })));
    drop(transposed);
    assert_eq!(x.as_slice::<f32>()?[5], 5.0);
    Ok(())
}

#[test]
fn what_is_written_by_hand_is_counted_and_never_lost_in_a_graph() -> Result<()> {
    let mut x = counting(&[3]);
    let w = Tensor::new([1.0f32, 2.0, 3.0])?.requires_grad_(true)?;
    let y = w.mul(&x)?;
    let error = refused(x.as_slice_mut::<f32>(), &["graph"]);
    assert!(matches!(error, Error::Dispatch(DispatchError::Held { .. })), "the graph saved it");
    y.sum_all()?.backward()?;
    drop(y);
    let version = x.version();
    x.as_slice_mut::<f32>()?[0] = 8.0;
    assert_eq!(x.version(), version + 1);
    assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [0.0, 1.0, 2.0]);
    let mut leaf = counting(&[2]).requires_grad_(true)?;
    let error = refused(leaf.accessor_mut::<f32, 1>(), &["accessor_mut", "no_grad"]);
    assert!(matches!(error, Error::Autograd(AutogradError::WrittenByHand { .. })));
    let _off = no_grad();
    leaf.accessor_mut::<f32, 1>()?[[0]] = 5.0;
    assert_eq!(leaf.to_vec::<f32>()?, [5.0, 1.0]);
    Ok(())
}

#[test]
fn a_view_that_outlives_its_base_may_be_written_to() -> Result<()> {
    let base = counting(&[3, 4]);
    let mut column = base.narrow(1, 2, 1)?;
    assert!(column.accessor_mut::<f32, 2>().is_err());
    drop(base);
    let mut a = column.accessor_mut::<f32, 2>()?;
    for i in 0..3 {
        a[[i, 0]] *= 10.0;
    }
    assert_eq!(column.to_vec::<f32>()?, [20.0, 60.0, 100.0]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn accessors_see_what_to_vec_sees(
        sizes in prop::array::uniform4(0usize..4),
        turn in Just([0i64, 1, 2, 3]).prop_shuffle(),
        start in 0i64..2,
        step in 1i64..3,
    ) {
        let whole = counting(&sizes).permute(turn).unwrap();
        let start = start.min(whole.shape()[1] as i64);
        let mut x = whole.slice(1, Some(start), None, step).unwrap();
        drop(whole);
        let expected = x.to_vec::<f32>().unwrap();
        let [a, b, c, d] = *<&[usize; 4]>::try_from(x.shape()).unwrap();
        let all = (0..a).flat_map(|i| (0..b).flat_map(move |j| {
            (0..c).flat_map(move |k| (0..d).map(move |l| [i, j, k, l]))
        }));
        let got: Vec<f32> = all.clone().map(|at| x.accessor::<f32, 4>().unwrap().get(at).unwrap()).collect();
        prop_assert_eq!(&got, &expected);
        let mut writer = x.accessor_mut::<f32, 4>().unwrap();
        all.for_each(|at| writer[at] += 0.5);
        let changed: Vec<f32> = expected.iter().map(|v| v + 0.5).collect();
        prop_assert_eq!(x.to_vec::<f32>().unwrap(), changed);
    }
}

/// Memory that an earlier tensor had is not seen through a new one.
#[test]
fn new_tensors_without_values_are_zero_in_host_memory() -> Result<()> {
    for size in [1, 7, 1000, 100_000] {
        let like = Tensor::full((size, 2), 7.0)?;
        let makers: [&dyn Fn() -> Result<Tensor>; 5] = [
            &|| Tensor::empty((size, 2)),
            &|| Tensor::empty_strided((size, 2), (1, size)),
            &|| like.empty_like(),
            &|| like.new_empty((size, 2)),
            &|| Tensor::full((size, 1), 7.0)?.resize_((size, 2)),
        ];
        for make in makers {
            drop(Tensor::full((size, 2), 7.0)?);
            let made = make()?.to_vec::<f32>()?;
            // `resize_` preserves the old elements.
            assert!(made.iter().skip(size).all(|&v| v == 0.0), "{made:?}");
        }
    }
    Ok(())
}
