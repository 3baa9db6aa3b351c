//! Ops that a plugin brings: on a par with those defined here.

use keyway::autograd::{BackwardOptions, grad};
use keyway::ops::by_name::{self, call, call_in_place, call_out};
use keyway::ops::sample::{Fill, Role, SampleArg};
use keyway::{Arg, DType, Tensor, runtime};
use std::sync::OnceLock;

fn start() {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(|| {
        let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
        let paths = ["keyway_backend_cpu", "keyway_test_ops"].map(|name| {
            folder.join(format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
        });
        let loaded = runtime::load_backends(&paths).unwrap();
        assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    });
}

fn vec64(t: &Tensor) -> Vec<f64> {
    t.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

fn leaf(values: &[f64]) -> Tensor {
    Tensor::new(values).unwrap().requires_grad_(true).unwrap()
}

#[test]
fn an_element_wise_op_promotes_and_keeps_strides_and_has_every_form() {
    start();
    let x = Tensor::from_vec(vec![1i64, -3, 0, 1], [2, 2]).unwrap();
    let y = call("plug_softsign", &[(&x).into()]).unwrap().remove(0);
    assert_eq!((y.dtype(), vec64(&y)), (DType::F32, vec![0.5, -0.75, 0.0, 0.5]));
    let t = y.t().unwrap();
    assert_eq!(call("plug_softsign", &[(&t).into()]).unwrap()[0].strides(), t.strides());

    let z = Tensor::new([1.0f64, -3.0]).unwrap();
    let back = call_in_place("plug_softsign", &[(&z).into()]).unwrap();
    assert_eq!((vec64(&z), vec64(&back)), (vec![0.5, -0.75], vec![0.5, -0.75]));
    let out = Tensor::new([0.0f64, 0.0]).unwrap();
    call_out("plug_softsign", &[(&z).into()], &[&out]).unwrap();
    assert_eq!(vec64(&out)[0], 1.0 / 3.0);
    let text = call_out("plug_softsign", &[(&z).into()], &[&out, &z]).unwrap_err().to_string();
    assert!(text.contains("`out`") && text.contains("1 tensors"), "{text}");
    let text = call_in_place("plug_sum_diff", &[(&z).into(), (&z).into()]).unwrap_err().to_string();
    assert!(text.contains("one output"), "{text}");
}

#[test]
fn gradients_go_through_the_backward_op_which_takes_what_was_saved() {
    start();
    let x = leaf(&[-3.0, 0.0, 1.0]);
    let y = call("plug_softsign", &[(&x).into()]).unwrap().remove(0);
    y.sum_all().unwrap().backward().unwrap();
    assert_eq!(vec64(&x.grad().unwrap()), [0.0625, 1.0, 0.25]);
    // The input was saved, and the output was not: only a change of the first is refused.
    let x = leaf(&[1.0, 2.0]);
    let inner = x.mul(1.0).unwrap();
    let y = call("plug_softsign", &[(&inner).into()]).unwrap().remove(0);
    let total = y.sum_all().unwrap();
    y.detach().mul_(5.0).unwrap();
    total.backward().unwrap();
    let y = call("plug_softsign", &[(&inner).into()]).unwrap().remove(0);
    inner.detach().mul_(5.0).unwrap();
    assert!(y.sum_all().unwrap().backward().is_err());
}

#[test]
fn several_outputs_of_a_stated_dtype_and_only_the_gradients_that_are_wanted() {
    start();
    let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2]).unwrap().requires_grad_(true).unwrap();
    let b = Tensor::new([10.0f32, 20.0]).unwrap();
    let made = call("plug_sum_diff", &[(&a).into(), (&b).into()]).unwrap();
    assert_eq!((made[0].dtype(), vec64(&made[0])), (DType::F64, vec![11.0, 22.0, 13.0, 24.0]));
    assert_eq!(vec64(&made[1]), [-9.0, -18.0, -7.0, -16.0]);
    // Only `a` wants one: the other gradient is never made.
    made[0].add(&made[1].mul(2.0).unwrap()).unwrap().sum_all().unwrap().backward().unwrap();
    let gradient = a.grad().unwrap();
    assert_eq!((gradient.dtype(), vec64(&gradient)), (DType::F32, vec![3.0; 4]));

    let b = leaf(&[10.0, 20.0]);
    let made = call("plug_sum_diff", &[(&a).into(), (&b).into()]).unwrap();
    let total = made[1].sum_all().unwrap();
    // Summed over what was broadcast.
    let found = grad(&[total], std::slice::from_ref(&b), BackwardOptions::default()).unwrap();
    assert_eq!(vec64(found[0].as_ref().unwrap()), [-2.0, -2.0]);
}

#[test]
fn a_decomposition_serves_where_no_kernel_does_and_carries_gradients() {
    start();
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[10.0, 20.0]));
    let y = call("plug_scale_add", &[(&a).into(), (&b).into(), Arg::Float(0.5)]).unwrap().remove(0);
    assert_eq!(vec64(&y), [6.0, 12.0]);
    y.sum_all().unwrap().backward().unwrap();
    assert_eq!((vec64(&a.grad().unwrap()), vec64(&b.grad().unwrap())), (vec![1.0; 2], vec![0.5; 2]));
    let out = Tensor::new([0.0f64, 0.0]).unwrap();
    let (a, b) = (a.detach(), b.detach());
    call_out("plug_scale_add", &[(&a).into(), (&b).into(), Arg::Float(0.5)], &[&out]).unwrap();
    assert_eq!(vec64(&out), [6.0, 12.0]);
    let op = keyway::dispatcher::registry::find_op("plug_scale_add").unwrap();
    let parts: Vec<&str> = op.spec.decomposition.unwrap().parts.iter().map(|part| part.op).collect();
    assert_eq!(parts, ["mul", "add"]);
}

#[test]
fn outputs_lie_as_the_rule_states() {
    start();
    let image = Tensor::from_vec((0..24).map(|v| v as f32).collect(), [1, 2, 3, 4]).unwrap();
    let made =
        |t: &Tensor, how: &str| call("plug_formats", &[t.into(), Arg::Str(how)]).map(|mut m| m.remove(0));
    let last = made(&image, "channels_last").unwrap();
    assert_eq!((last.strides(), vec64(&last)), (&[24, 1, 8, 2][..], vec64(&image)));
    for how in ["images", "like"] {
        assert_eq!(made(&last, how).unwrap().strides(), last.strides(), "{how}");
        assert_eq!(made(&image, how).unwrap().strides(), image.strides(), "{how}");
    }
    let square = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2]).unwrap();
    let turned = made(&square, "transposed").unwrap();
    assert_eq!((turned.strides(), vec64(&turned)), (&[1, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
    for (t, how, part) in [
        (&square, "gaps", "an offset of its own for each element and no gaps"),
        (&square, "channels_last", "3 to 5, for the format channels_last"),
        (&image, "transposed", "argument `strides`: expected 4 strides, got 2"),
    ] {
        let text = made(t, how).unwrap_err().to_string();
        assert!(text.contains(part) && text.contains("keyway.test/ops"), "{how}: {text}");
    }
}

#[test]
fn samples_and_a_reference_come_with_the_op() {
    start();
    let samples = by_name::samples("plug_softsign").unwrap();
    assert_eq!(samples.len(), 3);
    let tensors: Vec<_> = samples
        .iter()
        .map(|s| match &s.args[..] {
            [SampleArg::Tensor(t)] => t.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((tensors[0].fill.clone(), tensors[0].sizes.clone()), (Fill::Uniform(-2.0, 2.0), vec![2, 3]));
    assert_eq!(tensors[1].fill, Fill::Values(vec![0.0, 1.0, -1.0, 3.0]));
    assert_eq!((tensors[2].fill.clone(), tensors[2].role), (Fill::Index(5), Role::Fixed(DType::I64)));
    assert_eq!((samples[1].smooth, samples[2].tolerance_factor), (false, Some((2.0, "two roundings"))));
    // The samples of a built-in op are available too.
    assert!(!by_name::samples("add").unwrap().is_empty());
    assert!(by_name::foreign().unwrap().contains(&"plug_softsign"));

    let x = Tensor::new([1.0f64, -3.0]).unwrap();
    let made = by_name::reference("plug_softsign", &[(&x).into()]).unwrap().unwrap();
    assert_eq!(vec64(&made[0]), [0.5, -0.75]);
    assert!(by_name::reference("plug_formats", &[(&x).into(), Arg::Str("")]).unwrap().is_none());
}

#[test]
fn what_the_plugin_gets_wrong_is_named() {
    start();
    let (a, b) = (leaf(&[1.0]), leaf(&[2.0]));
    let y = call("plug_wrong", &[(&a).into(), (&b).into()]).unwrap().remove(0);
    let text = y.sum_all().unwrap().backward().unwrap_err().to_string();
    for part in ["`mul`, the `backward` of `plug_wrong` by `keyway.test/ops`", "2", "1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = call("plug_silent", &[(&b.detach()).into()]).unwrap_err().to_string();
    assert!(
        text.contains("`rule` stated 1 outputs, but the schema has 2") && text.contains("keyway.test/ops"),
        "{text}"
    );
}
