//! In-place changes of views and of their bases: the gradients are those of PyTorch.

use keyway::autograd::{self, AutogradError};
use keyway::{Error, Result, Tensor};

fn leaf(sizes: &[usize]) -> Tensor {
    let count: usize = sizes.iter().product();
    let values = (1..=count).map(|i| i as f64).collect();
    Tensor::from_vec(values, sizes).unwrap().requires_grad_(true).unwrap()
}

/// Backward from the sum of the elements times -1, -0.5, 0, ...; then the gradients and the values.
fn check(out: &Tensor, value: &[f64], expected: &[(&Tensor, &[f64])]) {
    let weights = (0..out.elem_count()).map(|i| i as f64 * 0.5 - 1.0).collect();
    let weights = Tensor::from_vec(weights, out.shape()).unwrap();
    out.mul(&weights).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), value);
    for (leaf, grad) in expected {
        assert_eq!(leaf.grad().unwrap().to_vec::<f64>().unwrap(), *grad);
    }
}

fn refused(result: Result<Tensor>, part: &str) {
    match result {
        Err(Error::Autograd(error @ AutogradError::ViewInPlace { .. })) => {
            assert!(error.to_string().contains(part), "{error}");
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_row_times_a_number() -> Result<()> {
    let x = leaf(&[2, 3]);
    let y = x.mul(2)?;
    y.select(0, 0)?.mul_(3)?;
    check(&y, &[6.0, 12.0, 18.0, 8.0, 10.0, 12.0], &[(&x, &[-6.0, -3.0, 0.0, 1.0, 2.0, 3.0])]);
    Ok(())
}

#[test]
fn a_column_plus_a_tensor() -> Result<()> {
    let (x, b) = (leaf(&[2, 3]), leaf(&[2]));
    let y = x.mul(2)?;
    y.select(1, 1)?.add_(&b)?;
    check(
        &y,
        &[2.0, 5.0, 6.0, 8.0, 12.0, 12.0],
        &[(&x, &[-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]), (&b, &[-0.5, 1.0])],
    );
    Ok(())
}

#[test]
fn a_copy_into_a_slice_of_a_transpose() -> Result<()> {
    let (x, b) = (leaf(&[2, 3]), leaf(&[2, 2]));
    let y = x.mul(&x)?;
    y.t()?.slice(0, Some(1), None, 1)?.copy_(&b.mul(&b)?)?;
    let of_b: &[f64] = &[-1.0, 4.0, 0.0, 12.0];
    check(&y, &[1.0, 1.0, 9.0, 16.0, 4.0, 16.0], &[(&x, &[-2.0, 0.0, 0.0, 4.0, 0.0, 0.0]), (&b, of_b)]);
    Ok(())
}

#[test]
fn a_chain_of_views() -> Result<()> {
    let (x, b) = (leaf(&[2, 3, 2]), leaf(&[2]));
    let y = x.mul(2)?;
    y.transpose(0, 2)?.select(1, 1)?.mul_(&b)?;
    let of_x: &[f64] = &[-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 12.0, 14.0, 8.0, 9.0];
    let value = [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 36.0, 40.0, 22.0, 24.0];
    check(&y, &value, &[(&x, of_x), (&b, &[4.0, 124.0])]);
    Ok(())
}

#[test]
fn the_view_itself_after_its_change() -> Result<()> {
    let x = leaf(&[4]);
    let v = x.mul(2)?.slice(0, Some(1), Some(3), 1)?;
    v.mul_(&x.detach().slice(0, Some(0), Some(2), 1)?.add(1)?)?;
    check(&v, &[8.0, 18.0], &[(&x, &[0.0, -4.0, -3.0, 0.0])]);
    Ok(())
}

#[test]
fn a_view_after_its_base_was_changed() -> Result<()> {
    let x = leaf(&[4]);
    let y = x.mul(2)?;
    let v = y.slice(0, Some(1), Some(3), 1)?;
    y.mul_(5)?;
    check(&v, &[20.0, 30.0], &[(&x, &[0.0, -10.0, -5.0, 0.0])]);
    Ok(())
}

#[test]
fn a_view_of_a_view_after_the_base_was_changed_by_a_tensor() -> Result<()> {
    let (x, b) = (leaf(&[4]), leaf(&[4]));
    let y = x.mul(2)?;
    let v = y.view([2, 2])?;
    y.mul_(&b)?;
    let expected: &[f64] = &[-2.0, 0.0, -3.0, 4.0];
    check(&v.t()?.mul(1)?, &[2.0, 18.0, 8.0, 32.0], &[(&x, expected), (&b, expected)]);
    Ok(())
}

#[test]
fn two_views_that_meet_changed_in_turn() -> Result<()> {
    let x = leaf(&[5]);
    let y = x.mul(1)?;
    let (a, c) = (y.slice(0, None, Some(3), 1)?, y.slice(0, Some(2), None, 1)?);
    a.mul_(2)?;
    c.mul_(&a.detach().copy()?)?;
    check(&y, &[2.0, 4.0, 12.0, 16.0, 30.0], &[(&x, &[-2.0, -1.0, 0.0, 2.0, 6.0])]);
    Ok(())
}

#[test]
fn another_view_sees_the_change() -> Result<()> {
    let x = leaf(&[5]);
    let y = x.mul(1)?;
    let (a, c) = (y.slice(0, None, Some(3), 1)?, y.slice(0, Some(2), None, 1)?);
    a.mul_(4)?;
    check(&c, &[12.0, 4.0, 5.0], &[(&x, &[0.0, 0.0, -4.0, -0.5, 0.0])]);
    Ok(())
}

#[test]
fn a_copy_into_a_part_of_zeros_brings_the_gradient() -> Result<()> {
    let b = leaf(&[2]);
    let base = Tensor::new([0.0f64; 4])?;
    base.slice(0, Some(1), Some(3), 1)?.copy_(&b.mul(3)?)?;
    assert!(base.requires_grad());
    check(&base, &[0.0, 3.0, 6.0, 0.0], &[(&b, &[-1.5, 0.0])]);
    Ok(())
}

#[test]
fn a_part_set_to_zero_has_no_gradient() -> Result<()> {
    let x = leaf(&[2, 2]);
    let y = x.mul(3)?;
    y.select(0, 1)?.zero_()?;
    check(&y, &[3.0, 6.0, 0.0, 0.0], &[(&x, &[-3.0, -1.5, 0.0, 0.0])]);
    Ok(())
}

#[test]
fn an_op_that_saves_its_result() -> Result<()> {
    let x = leaf(&[2, 2]);
    let y = x.mul(0.5)?;
    y.select(0, 0)?.exp_()?;
    y.sum_all()?.backward()?;
    let got = x.grad().unwrap().to_vec::<f64>()?;
    let expected = [0.5 * 0.5f64.exp(), 0.5 * 1f64.exp(), 0.5, 0.5];
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() < 1e-15, "{got:?}");
    }
    Ok(())
}

#[test]
fn a_view_above_a_changed_view() -> Result<()> {
    let x = leaf(&[3, 2]);
    let v = x.mul(2)?.slice(0, Some(1), None, 1)?;
    v.select(0, 0)?.mul_(10)?;
    check(&v, &[60.0, 80.0, 10.0, 12.0], &[(&x, &[0.0, 0.0, -20.0, -10.0, 0.0, 1.0])]);
    Ok(())
}

#[test]
fn a_diagonal() -> Result<()> {
    let x = leaf(&[3, 3]);
    let y = x.mul(1)?;
    y.diagonal()?.mul_(7)?;
    let value = [7.0, 2.0, 3.0, 4.0, 35.0, 6.0, 7.0, 8.0, 63.0];
    check(&y, &value, &[(&x, &[-7.0, -0.5, 0.0, 0.5, 7.0, 1.5, 2.0, 2.5, 21.0])]);
    Ok(())
}

#[test]
fn views_that_repeat_elements_gather_their_gradients() -> Result<()> {
    let x = leaf(&[2, 1]);
    let y = x.mul(1)?;
    let repeated = y.expand([2, 3])?;
    y.mul_(3)?;
    check(&repeated, &[3.0, 3.0, 3.0, 6.0, 6.0, 6.0], &[(&x, &[-4.5, 9.0])]);
    let x = leaf(&[4]);
    let y = x.mul(1)?;
    let windows = y.unfold(0, 2, 1)?;
    y.mul_(2)?;
    check(&windows, &[2.0, 4.0, 4.0, 6.0, 6.0, 8.0], &[(&x, &[-2.0, -1.0, 3.0, 3.0])]);
    Ok(())
}

#[test]
fn the_second_derivative_goes_through_a_changed_view() -> Result<()> {
    let x = leaf(&[3]);
    let y = x.mul(&x)?;
    let tail = |t: &Tensor| t.slice(0, Some(1), None, 1);
    tail(&y)?.mul_(&tail(&x)?)?;
    let options = autograd::BackwardOptions { create_graph: true, ..Default::default() };
    y.sum_all()?.backward_with(options)?;
    let first = x.grad().unwrap();
    assert_eq!(first.to_vec::<f64>()?, [2.0, 12.0, 27.0]);
    x.zero_grad();
    first.sum_all()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0, 12.0, 18.0]);
    Ok(())
}

#[test]
fn views_that_no_graph_could_follow_are_refused() -> Result<()> {
    let x = leaf(&[3]);
    refused(x.slice(0, None, Some(2), 1)?.mul_(2), "leaf that requires grad");
    let y = leaf(&[2, 2]).mul(1)?;
    refused(y.unbind(0)?[0].mul_(2), "several outputs");
    let v = {
        let _off = autograd::no_grad();
        y.select(0, 0)?
    };
    refused(v.mul_(2), "graph was off");
    Ok(())
}

#[test]
fn a_saved_base_changed_through_a_view_is_found() -> Result<()> {
    let y = leaf(&[3]).mul(1)?;
    let z = y.mul(&y)?;
    y.slice(0, None, Some(1), 1)?.mul_(2)?;
    let error = z.sum_all()?.backward().unwrap_err();
    assert!(matches!(error, Error::Autograd(AutogradError::SavedChanged { .. })), "{error}");
    Ok(())
}

#[test]
fn outside_the_graph_a_change_leaves_the_gradient_alone() -> Result<()> {
    let x = leaf(&[3]);
    let y = x.mul(1)?;
    {
        let _off = autograd::no_grad();
        y.slice(0, None, Some(2), 1)?.mul_(10)?;
    }
    check(&y, &[10.0, 20.0, 3.0], &[(&x, &[-1.0, -0.5, 0.0])]);
    let x = leaf(&[4]);
    let y = x.mul(1)?;
    y.detach().slice(0, None, Some(2), 1)?.mul_(10)?;
    check(&y, &[10.0, 20.0, 3.0, 4.0], &[(&x, &[-1.0, -0.5, 0.0, 0.5])]);
    Ok(())
}

#[test]
fn outputs_of_an_op_of_several_views_follow_their_base() -> Result<()> {
    let x = leaf(&[2, 2]);
    let y = x.mul(1)?;
    let rows = y.unbind(0)?;
    y.mul_(5)?;
    check(&rows[1], &[15.0, 20.0], &[(&x, &[0.0, 0.0, -5.0, -2.5])]);
    Ok(())
}

/// A function that returns part of its input `y`.
type Part = fn(&Tensor) -> Result<Tensor>;

/// Returns a part of the input's memory, with ten times the gradient of a view.
struct Tenfold {
    part: Part,
    saves: bool,
}

impl autograd::Function for Tenfold {
    fn name(&self) -> &'static str {
        "tenfold"
    }
    fn forward(&self, context: &mut autograd::Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        if self.saves {
            context.save(&[&inputs[0]]);
        }
        Ok(vec![(self.part)(&inputs[0])?])
    }
    fn backward(&self, _: &autograd::Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].reshape([2, 2])?.mul(10)?)])
    }
}

const PARTS: [(&str, Part); 4] = [
    ("itself", |y| Ok(y.clone())),
    ("a view", |y| y.reshape(4)),
    ("a view of a view", |y| y.t()?.t()),
    ("the memory alone", |y| Ok(y.detach())),
];

#[test]
fn a_function_that_returns_a_view_follows_a_change_of_its_input() -> Result<()> {
    for (name, part) in PARTS {
        let x = leaf(&[2, 2]);
        let y = x.mul(1)?;
        let v = autograd::apply(Tenfold { part, saves: false }, std::slice::from_ref(&y))?.remove(0);
        let (w, before) = (v.reshape(-1)?, v.mul(3)?);
        y.mul_(2)?;
        assert_eq!(v.to_vec::<f64>()?, [2.0, 4.0, 6.0, 8.0]);
        // Twenty each for the tensor and for a view of it, thirty for what was computed before the change.
        v.sum_all()?.add(&w.sum_all()?)?.add(&before.sum_all()?)?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [70.0; 4], "{name}");
    }
    Ok(())
}

#[test]
fn functions_of_each_others_views_follow_a_change_of_the_first_input() -> Result<()> {
    for (name, part) in PARTS {
        let x = leaf(&[2, 2]);
        let y = x.mul(1)?;
        let view = y.reshape(4)?.reshape([2, 2])?;
        let first = autograd::apply(Tenfold { part, saves: false }, &[view])?.remove(0);
        let second = autograd::apply(Tenfold { part, saves: false }, &[first.reshape([2, 2])?])?.remove(0);
        y.select(0, 0)?.mul_(2)?;
        second.sum_all()?.backward()?;
        let mut grad = x.grad().unwrap().to_vec::<f64>()?;
        grad.sort_by(f64::total_cmp);
        assert_eq!(grad, [100.0, 100.0, 200.0, 200.0], "{name}");
    }
    Ok(())
}

#[test]
fn a_view_from_a_function_is_not_changed_in_place() -> Result<()> {
    for (name, part) in PARTS {
        let y = leaf(&[2, 2]).mul(1)?;
        let v = autograd::apply(Tenfold { part, saves: false }, std::slice::from_ref(&y))?.remove(0);
        let before = y.to_vec::<f64>()?;
        refused(v.mul_(2), "shares memory");
        refused(v.reshape(4)?.mul_(2), "shares memory");
        assert_eq!(y.to_vec::<f64>()?, before, "{name}");
    }
    Ok(())
}

#[test]
fn a_function_that_saved_its_changed_input_is_refused() -> Result<()> {
    let y = leaf(&[2, 2]).mul(1)?;
    let v = autograd::apply(Tenfold { part: |y| y.t(), saves: true }, std::slice::from_ref(&y))?.remove(0);
    y.mul_(2)?;
    let error = v.sum_all()?.backward().unwrap_err();
    assert!(matches!(error, Error::Autograd(AutogradError::SavedChanged { .. })), "{error}");
    Ok(())
}

#[test]
fn a_view_of_memory_that_a_function_made_is_a_result_like_others() -> Result<()> {
    let x = leaf(&[2, 2]);
    let part: Part = |y| y.mul(1)?.t();
    let v = autograd::apply(Tenfold { part, saves: true }, std::slice::from_ref(&x))?.remove(0);
    v.mul_(2)?;
    v.sum_all()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [20.0; 4]);
    Ok(())
}

type Values = Vec<f64>;

/// Gradients that a hook saw, and the one that was retained.
fn watched(view: &Tensor, after: impl FnOnce() -> Result<Tensor>) -> Result<(Vec<Values>, Option<Values>)> {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = seen.clone();
    let _handle = view.register_hook(move |grad| {
        list.lock().unwrap().push(grad.to_vec::<f64>()?);
        Ok(None)
    })?;
    view.retain_grad()?;
    after()?.sum_all()?.backward()?;
    let seen = seen.lock().unwrap().clone();
    Ok((seen, view.grad().map(|grad| grad.to_vec::<f64>()).transpose()?))
}

#[test]
fn hooks_of_a_view_stay_when_its_base_is_changed() -> Result<()> {
    let changes: [fn(&Tensor) -> Result<Tensor>; 3] =
        [|y| y.mul_(3), |y| y.reshape(4)?.mul_(3), |y| y.mul_(2).and_then(|y| y.reshape(4)?.mul_(1.5))];
    for change in changes {
        let y = leaf(&[4]).mul(1)?;
        let v = y.slice(0, None, Some(2), 1)?;
        let (seen, retained) = watched(&v, || {
            change(&y)?;
            v.mul(5)
        })?;
        assert_eq!((seen, retained), (vec![vec![5.0, 5.0]], Some(vec![5.0, 5.0])));
    }
    Ok(())
}

/// As for any tensor that is changed in place: a hook applies to the values before, the retained gradient to those after.
#[test]
fn hooks_of_a_view_see_the_gradient_before_its_own_change() -> Result<()> {
    let x = leaf(&[4]);
    let y = x.mul(1)?;
    let v = y.slice(0, None, Some(2), 1)?;
    let (seen, retained) = watched(&v, || {
        v.mul_(3)?;
        v.mul(5)
    })?;
    assert_eq!((seen, retained), (vec![vec![15.0, 15.0]], Some(vec![5.0, 5.0])));
    let y = leaf(&[4]).mul(1)?;
    let v = y.slice(0, None, Some(2), 1)?;
    let (seen, _) = watched(&v, || {
        v.mul_(2)?;
        y.mul(7)
    })?;
    assert_eq!(seen, [[14.0, 14.0]]);
    Ok(())
}

#[test]
fn a_dropped_hook_of_a_view_is_gone_after_a_change_too() -> Result<()> {
    let x = leaf(&[4]);
    let y = x.mul(1)?;
    let v = y.slice(0, None, Some(2), 1)?;
    let handle = v.register_hook(|grad| grad.mul(100).map(Some))?;
    y.mul_(3)?;
    let before = v.mul(1)?;
    y.mul_(2)?;
    let after = v.mul(1)?;
    drop(handle);
    before.sum_all()?.add(&after.sum_all()?)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [9.0, 9.0, 0.0, 0.0]);
    Ok(())
}

/// Triples its first input in place.
struct Writes;

impl keyway::autograd::Function for Writes {
    fn name(&self) -> &'static str {
        "writes"
    }

    fn forward(&self, _: &mut keyway::autograd::Context, inputs: &[Tensor]) -> keyway::Result<Vec<Tensor>> {
        inputs[0].mul_(3.0)?;
        Ok(vec![inputs[0].copy()?])
    }

    fn backward(
        &self,
        _: &keyway::autograd::Context,
        grads: &[Tensor],
    ) -> keyway::Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].clone())])
    }
}

#[test]
fn a_function_that_changes_an_input_is_refused_where_its_gradient_is_wanted() {
    let x = Tensor::new([1.0f32, 2.0]).unwrap().requires_grad_(true).unwrap();
    let h = x.mul(1.0).unwrap();
    let text = keyway::autograd::apply(Writes, &[h]).unwrap_err().to_string();
    assert!(
        text.contains("writes: expected `forward` to leave its inputs") && text.contains("`copy()`"),
        "{text}"
    );
    // Without a graph there is nothing to be wrong.
    let plain = Tensor::new([1.0f32, 2.0]).unwrap();
    let made = keyway::autograd::apply(Writes, &[plain]).unwrap();
    assert_eq!(made[0].to_vec::<f32>().unwrap(), [3.0, 6.0]);
}
