//! The caller's mistakes: each is an error that names what was expected and what came, and nothing else
//! happens.

use keyway::nn::PadMode;
use keyway::{DType, Device, Error, Tensor};
use keyway_dispatcher::Error as Call;

/// The error of a call that must fail, whose message holds each of `parts`.
fn failure<T>(result: Result<T, Error>, parts: &[&str]) -> Error {
    let Err(error) = result else { panic!("the call succeeded") };
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
    error
}

fn floats(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|v| v as f32).collect(), sizes).unwrap()
}

#[test]
fn shapes_that_do_not_broadcast() {
    let error = failure(floats(&[2, 3]).add(&floats(&[4])), &["add", "[2, 3]", "[4]", "3", "4"]);
    assert!(
        matches!(error, Error::Dispatch(Call::Broadcast { dim: -1, left_size: 3, right_size: 4, .. })),
        "{error:?}"
    );
}

#[test]
fn a_matrix_product_of_sizes_that_do_not_fit() {
    let error = failure(floats(&[2, 3]).mm(&floats(&[4, 2])), &["mm", "`other`", "3 rows", "[4, 2]"]);
    assert!(matches!(error, Error::Dispatch(Call::Shape { argument: "other", .. })), "{error:?}");
}

#[test]
fn a_wrong_dtype() {
    let at = floats(&[2]);
    let error = failure(floats(&[3]).index_select(0, &at), &["index_select", "`index`", "integers", "f32"]);
    assert!(matches!(error, Error::Dispatch(Call::DType { got: DType::F32, .. })), "{error:?}");
    let mask = Tensor::new([1i64, 0, 1]).unwrap();
    let error = failure(floats(&[3]).masked_fill(&mask, 0), &["masked_fill", "`mask`", "bool", "i64"]);
    assert!(matches!(error, Error::Dispatch(Call::DType { got: DType::I64, .. })), "{error:?}");
}

#[test]
fn a_host_type_that_is_not_the_dtype() {
    let error = failure(floats(&[3]).to_vec::<i64>(), &["to_vec", "f32", "i64"]);
    assert!(matches!(error, Error::HostType { expected: DType::I64, got: DType::F32, .. }), "{error:?}");
}

#[test]
fn an_integer_result_that_cannot_hold_floats() {
    let target = Tensor::new([1i64, 2]).unwrap();
    let error = failure(target.add_(&floats(&[2])), &["add", "f32", "i64"]);
    assert!(matches!(error, Error::Dispatch(Call::DType { got: DType::I64, .. })), "{error:?}");
    assert_eq!(target.to_vec::<i64>().unwrap(), [1, 2]);
}

#[test]
fn a_device_that_is_not_there() {
    let nowhere = Device::parse("nowhere").unwrap();
    let parts = ["no backend for device `nowhere", "one that is there (`cpu`", "install"];
    let error = failure(floats(&[2]).to_device(nowhere), &parts);
    assert!(matches!(error, Error::Dispatch(Call::NoDevice { device }) if device == nowhere), "{error:?}");
    let error = failure(floats(&[2]).to("gpu0"), &["`kind:index`", "`gpu:0`", "`gpu0`"]);
    assert!(matches!(error, Error::Dispatch(Call::Value { .. })), "{error:?}");
}

#[test]
fn a_dimension_out_of_range() {
    for dim in [2, -3] {
        let error = failure(floats(&[2, 3]).sum(dim), &["sum", &dim.to_string(), "-2..=1"]);
        assert!(matches!(error, Error::Dispatch(Call::Dim { ndim: 2, dim: d, .. }) if d == dim), "{error:?}");
    }
    let error = failure(floats(&[3]).flip([1]), &["flip", "dimension 1", "-1..=0"]);
    assert!(matches!(error, Error::Dispatch(Call::Dim { dim: 1, ndim: 1, .. })), "{error:?}");
    let error = failure(floats(&[2, 3]).transpose(0, 5), &["transpose", "dimension 5", "-2..=1"]);
    assert!(matches!(error, Error::Dispatch(Call::Dim { dim: 5, ndim: 2, .. })), "{error:?}");
}

#[test]
fn a_dimension_without_elements_has_no_middle() {
    failure(floats(&[2, 0]).kthvalue(1, 1), &["kthvalue: ", "not empty in the dimension", "[2, 0]"]);
    failure(floats(&[2, 0]).median(1), &["median: ", "not empty in the dimension", "[2, 0]"]);
}

#[test]
fn an_index_out_of_range_changes_nothing() {
    let target = floats(&[2, 3]);
    let at = Tensor::new([0i64, 2]).unwrap();
    let is_rejected = |error: &Error| matches!(error, Error::Dispatch(Call::Rejected { .. }));
    let parts = ["index 2", "0..2", "dimension 0 of size 2"];
    assert!(is_rejected(&failure(target.index_select(0, &at), &parts)));
    assert!(is_rejected(&failure(target.embedding(&at), &parts)));
    assert!(is_rejected(&failure(target.index_add_(0, &at, &floats(&[2, 3])), &parts)));
    assert!(is_rejected(&failure(target.index_copy_(0, &at, 7.0), &parts)));
    let wide = Tensor::from_vec(vec![0i64, 0, 2], [1, 3]).unwrap();
    assert!(is_rejected(&failure(target.gather(0, &wide), &parts)));
    assert!(is_rejected(&failure(target.scatter_(0, &wide, 7.0), &parts)));
    assert!(is_rejected(&failure(target.scatter_add_(0, &wide, &floats(&[1, 3])), &parts)));
    let parts = ["index 2", "-2..2", "dimension 0 of size 2"];
    assert!(is_rejected(&failure(target.index(&[Some(&at)]), &parts)));
    assert!(is_rejected(&failure(target.index_put_(&[Some(&at)], 7.0), &parts)));
    assert!(is_rejected(&failure(target.index_put_with_(&[Some(&at)], 7.0, true), &parts)));
    assert_eq!(target.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn more_indices_than_dimensions() {
    let at = Tensor::new([0i64]).unwrap();
    let error = failure(floats(&[2]).index(&[Some(&at), Some(&at)]), &["index", "at most the 1 dimensions"]);
    assert!(matches!(error, Error::Dispatch(Call::Value { argument: "indices", .. })), "{error:?}");
}

#[test]
fn a_view_of_the_wrong_size() {
    let error = failure(floats(&[6]).view([4, 2]), &["view", "6 elements", "[4, 2]"]);
    assert!(matches!(error, Error::Dispatch(Call::Value { .. })), "{error:?}");
    let error = failure(floats(&[6]).reshape([-1, 4]), &["reshape", "6 elements", "[-1, 4]"]);
    assert!(matches!(error, Error::Dispatch(Call::Value { .. })), "{error:?}");
    let error = failure(floats(&[2, 3]).transpose(0, 1).unwrap().view([6]), &["view", "[3, 2]", "reshape"]);
    assert!(matches!(error, Error::Dispatch(Call::Value { .. })), "{error:?}");
    let error = failure(floats(&[3]).expand([4]), &["expand", "[3]", "[4]"]);
    assert!(matches!(error, Error::Dispatch(Call::Value { .. })), "{error:?}");
}

#[test]
fn sizes_whose_product_overflows() {
    let huge = [1usize << 40, 1usize << 40];
    let error = failure(Tensor::empty(huge), &["1099511627776", "more elements or bytes than"]);
    assert!(matches!(error, Error::Dispatch(Call::SizeOverflow { .. })), "{error:?}");
    let error = failure(Tensor::from_vec(vec![0f32], huge), &["from_vec", "1099511627776"]);
    assert!(matches!(error, Error::Dispatch(Call::SizeOverflow { .. })), "{error:?}");
    let error = failure(floats(&[1]).repeat([1usize << 40, 1usize << 40]), &["more elements or bytes than"]);
    assert!(matches!(error, Error::Dispatch(Call::SizeOverflow { .. })), "{error:?}");
}

#[test]
fn an_allocation_that_does_not_fit() {
    let error =
        failure(Tensor::empty_with([1usize << 50], DType::U8), &["out of memory", "cpu", "1125899906842624"]);
    assert!(
        matches!(error, Error::Dispatch(Call::OutOfMemory { requested, .. }) if requested == 1 << 50),
        "{error:?}"
    );
    assert_eq!(floats(&[2]).add(1.0).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn the_item_of_many_elements() {
    let error = failure(floats(&[2, 3]).item::<f32>(), &["item", "[2, 3]", "one element, got 6"]);
    assert!(matches!(error, Error::NotOneElement { op: "item", .. }), "{error:?}");
    let error = failure(floats(&[0]).item::<f32>(), &["item", "[0]"]);
    assert!(matches!(error, Error::NotOneElement { op: "item", .. }), "{error:?}");
}

#[test]
fn values_of_a_wrong_length() {
    let error = failure(Tensor::from_vec(vec![1.0f32; 5], [2, 3]), &["from_vec", "[2, 3]", "6", "5"]);
    assert!(matches!(error, Error::Length { op: "from_vec", expected: 6, got: 5, .. }), "{error:?}");
}

#[test]
fn tensors_that_cannot_be_joined() {
    let error = failure(Tensor::cat(&[&floats(&[2, 3]), &floats(&[2, 4])], 0), &["cat", "[2, 3]", "[2, 4]"]);
    assert!(matches!(error, Error::Dispatch(Call::Shape { .. })), "{error:?}");
    let error = failure(Tensor::cat::<Tensor>(&[], 0), &["cat", "one tensor at least", "0 tensors"]);
    assert!(matches!(error, Error::Dispatch(Call::Value { .. })), "{error:?}");
}

#[test]
fn what_only_a_kernel_sees_is_still_the_callers_mistake() {
    let x = Tensor::new([1i64, 2]).unwrap();
    let zeros = Tensor::new([1i64, 0]).unwrap();
    let blames = |error: Error| {
        let text = error.to_string();
        assert!(matches!(error, Error::Dispatch(Call::Rejected { .. })), "{error:?}");
        assert!(!text.contains("failed"), "{text}");
    };
    for divisor in [(&zeros).into(), keyway_dispatcher::op::Arg::Int(0)] {
        blames(failure(
            x.floor_divide(divisor),
            &["floor_divide: argument `other`", "divided by zero", "replace the zeros"],
        ));
        blames(failure(x.remainder(divisor), &["remainder: argument `other`", "divided by zero"]));
        blames(failure(x.fmod(divisor), &["fmod: argument `other`", "divided by zero"]));
    }
    let minus = Tensor::new([1i64, -1]).unwrap();
    blames(failure(x.pow(&minus), &["pow: argument `exponent`", "0 or more for integers", "to_dtype"]));
}

#[test]
fn composite_ops_name_themselves() {
    let x = floats(&[2, 3]);
    let named = |result: Result<Tensor, Error>, name: &str, parts: &[&str]| {
        let text = failure(result, parts).to_string();
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
    };
    // The class is found to be out of range by the kernel of a part.
    let classes = Tensor::new([0i64, 7]).unwrap();
    named(x.cross_entropy(&classes), "cross_entropy", &["`target`", "7"]);
    named(x.nll_loss(&classes), "nll_loss", &["`target`", "7"]);
    let at = Tensor::new([5i64]).unwrap();
    named(floats(&[2, 3]).take_along_dim(&at.reshape([1, 1]).unwrap(), 1), "take_along_dim", &["index 5"]);
    let bytes = Tensor::new([1i8]).unwrap();
    named(bytes.pad_with([1, 1], PadMode::Constant, 300), "pad", &["`value`", "a number that i8 holds"]);
    let integers = Tensor::new([1i64]).unwrap();
    let zero = Tensor::new([0i64]).unwrap();
    named(integers.floor_divide(&zero), "floor_divide", &["`other`"]);
    named(Tensor::einsum("ij,jk->ik", &[&x, &x]), "einsum", &["einsum"]);
}

#[test]
fn views_are_written_to_tensors_that_are_given() -> keyway::Result<()> {
    use keyway::ops::by_name;
    let x = Tensor::arange(1, 7)?.reshape((2, 3))?;
    let targets = |n: usize, sizes: &[usize]| -> keyway::Result<Vec<Tensor>> {
        (0..n).map(|_| Tensor::full_with(sizes, 99, DType::I64)).collect()
    };
    let unbound = targets(2, &[3])?;
    by_name::call_out("unbind", &[(&x).into(), keyway::Arg::Int(0)], &unbound)?;
    let values: Vec<Vec<i64>> = unbound.iter().map(Tensor::to_vec).collect::<keyway::Result<_>>()?;
    assert_eq!(values, [[1, 2, 3], [4, 5, 6]]);
    let refused = |out: &[Tensor]| {
        by_name::call_out("unbind", &[(&x).into(), keyway::Arg::Int(0)], out).unwrap_err().to_string()
    };
    assert!(refused(&[]).contains("2 tensors, one for each result"));
    assert!(refused(&targets(2, &[7])?).contains("[7]"));
    let one = targets(1, &[3])?.remove(0);
    assert!(refused(&[one.clone(), one]).contains("overlaps"));
    Ok(())
}

#[test]
fn numbers_at_the_end_of_their_range_do_not_overflow() -> keyway::Result<()> {
    use keyway::optim::lr_scheduler::{LrScheduler, StepLr};
    use keyway::optim::{Sgd, SgdOptions};
    let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
    x.pow(i64::MIN)?.sum_all()?.backward()?;
    assert_eq!(x.grad().unwrap().item::<f32>()?, 0.0);
    x.zero_grad();
    Tensor::new([1.0f32])?.sub_with(&x, i64::MIN)?.sum_all()?.backward()?;
    assert_eq!(x.grad().unwrap().item::<f32>()?, 2f32.powi(63));
    let mut optimizer = Sgd::new(vec![x], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    let mut schedule = StepLr::new(&optimizer, 3, 0.5)?;
    schedule.seek(u64::MAX, &mut optimizer)?;
    schedule.step(&mut optimizer)?;
    assert_eq!(schedule.epoch(), u64::MAX);
    Ok(())
}

#[test]
fn what_would_spoil_a_training_is_refused() -> keyway::Result<()> {
    use keyway::nn::init;
    use keyway::optim::{Adam, AdamOptions, GradScaler, GradScalerOptions, Optimizer};
    let w = Tensor::new([1.0f32])?.requires_grad_(true)?;
    let mut optimizer = Adam::new(vec![w.clone()], AdamOptions::default())?;
    w.square()?.sum_all()?.backward()?;
    optimizer.step()?;
    let good = optimizer.state_dict()?;
    for steps in [-5.0, f64::NAN, 0.5, f64::INFINITY] {
        let mut state = good.clone();
        state.insert("state.0.step".to_string(), Tensor::new(steps)?);
        let error = optimizer.load_state_dict(&state).unwrap_err().to_string();
        assert!(error.contains("step") && error.contains("an integer of 0 or more"), "{error}");
    }
    optimizer.load_state_dict(&good)?;
    assert!(init::uniform(2, f64::NAN).is_err() && init::xavier_uniform_with((2, 2), f64::NAN).is_err());
    assert!(init::normal(2, -1.0).is_err() && init::normal(2, f64::INFINITY).is_err());
    for init_scale in [1e-60, 0.0, f64::NAN, 1e39] {
        assert!(GradScaler::new(GradScalerOptions { init_scale, ..Default::default() }).is_err());
    }
    // The gradient of NaN is NaN.
    let x = Tensor::new([f32::NAN, 1.0])?.requires_grad_(true)?;
    x.huber_loss(&Tensor::zeros(2)?)?.backward()?;
    let grad = x.grad().unwrap().to_vec::<f32>()?;
    assert!(grad[0].is_nan() && grad[1] == 0.5, "{grad:?}");
    Ok(())
}
