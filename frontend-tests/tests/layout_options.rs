//! Options of the conversion to a layout, attributes of every type, and a layout that loses digits: blocks of 8-bit integers
//! with scales, brought by a plugin.

mod rehearsal_support;

use keyway::io::safetensors;
use keyway::nn::StateDict;
use keyway::ops::by_name;
use keyway::optim::{Optimizer, Sgd};
use keyway::{Arg, DType, Layout, LayoutOptions, LayoutValue, Tensor};
use keyway_dispatcher::registry::layouts;
use rehearsal_support::*;

const PLUGINS: &[&str] = &["keyway_test_int8", "keyway_test_device", "keyway_test_csr"];

fn int8() -> Layout {
    Layout::from_name("test.keyway/int8").expect("the plugin is loaded")
}

/// Values without a pattern, of magnitudes up to 2.
fn values(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let value = |i: usize| ((i * 37 + 11) % 101) as f32 / 25.0 - 2.0;
    Tensor::from_vec((0..count).map(value).collect(), sizes).unwrap()
}

fn option(name: &str, value: impl Into<LayoutValue>) -> LayoutOptions {
    LayoutOptions::new().set(name, value)
}

#[track_caller]
fn refused<T>(result: keyway::Result<T>, parts: &[&str]) {
    let text = message(result);
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn options_reach_the_plugin_and_attributes_come_back_in_their_types() {
    let _one = load(PLUGINS);
    let x = values(&[4, 64]);
    let q = x.to_layout(int8()).unwrap();
    assert_eq!(q.attr("block"), Some(LayoutValue::Int(32)), "the default");
    assert_eq!(q.component("scales").unwrap().shape(), [4, 2]);

    let q = x.to_layout_with(int8(), &option("block", 16)).unwrap();
    assert_eq!(q.component("codes").unwrap().shape(), [4, 4, 16]);
    assert_eq!(q.attr("mode"), Some("absmax".into()));
    assert_eq!((q.attr("grid"), q.attr("scale")), (Some([4, 4].into()), Some(0.0.into())));
    assert!(q.attr("nothing").is_none() && x.attr("block").is_none());
    assert_eq!(&q.attrs()[..1], [16]);

    // An integer is taken for a float; a later value of a name counts.
    let fixed = x.to_layout_with(int8(), &option("scale", 3).set("scale", 1)).unwrap();
    assert_eq!((fixed.attr("scale"), fixed.attr("mode")), (Some(1.0.into()), Some("fixed".into())));
    let rounded: Vec<f32> = x.to_vec::<f32>().unwrap().iter().map(|v| v.round_ties_even()).collect();
    assert_eq!(fixed.to_vec::<f32>().unwrap(), rounded);
    let text = fixed.to_string();
    assert!(
        text.contains("scale=1.0") && text.contains("mode=\"fixed\"") && text.contains("grid=[4, 2]"),
        "{text}"
    );

    // Converted again where options are given, and only then.
    assert!(q.to_layout(int8()).unwrap().ptr_eq(&q));
    let again = q.to_layout_with(int8(), &option("block", 64)).unwrap();
    assert_eq!(again.attr("block"), Some(64.into()));
    // The same options by name, as text; calls written before options existed stay valid.
    let by_text = [Arg::from(x.as_ref()), Arg::Str("test.keyway/int8"), Arg::Str("block=8, scale=0.5")];
    let by_text = by_name::call("to_layout", &by_text).unwrap().remove(0);
    assert_eq!((by_text.attr("block"), by_text.attr("scale")), (Some(8.into()), Some(0.5.into())));
    let short =
        by_name::call("to_layout", &[x.as_ref().into(), Arg::Str("test.keyway/int8")]).unwrap().remove(0);
    assert_eq!(short.attr("block"), Some(32.into()));
}

#[test]
fn wrong_options_are_errors_that_list_the_right_ones() {
    let _one = load(PLUGINS);
    let x = values(&[4, 64]);
    let with = |options: LayoutOptions| x.to_layout_with(int8(), &options);
    let listed = "options of layout `test.keyway/int8`: block (int, default 32), scale (float)";
    refused(with(option("blok", 16)), &[listed, "`blok=16`"]);
    refused(with(option("block", 0.5)), &["`block (int, default 32)`", "`block=0.5`"]);
    refused(with(option("block", [4, 4])), &["`block=[4, 4]`"]);
    refused(with(option("block", 0)), &["1 to 65,536 elements"]);
    refused(with(option("block", usize::MAX)), &["1 to 65,536 elements"]);
    refused(with(option("scale", f64::NAN)), &["at least"]);
    refused(with(option("scale", 1e-3)), &["at least"]);
    refused(x.to_layout_with(Layout::STRIDED, &option("block", 16)), &["empty for the layout `strided`"]);
    let csr = Layout::from_name("test.keyway/csr").unwrap();
    refused(x.to_layout_with(csr, &option("block", 16)), &["`test.keyway/csr` has no options", "`block=16`"]);
    let text = [x.as_ref().into(), Arg::Str("test.keyway/int8"), Arg::Str("block 16")];
    refused(by_name::call("to_layout", &text), &["options such as", "`block 16`"]);
}

#[test]
fn typed_attributes_survive_moving_saving_and_other_components() {
    let _one = load(PLUGINS);
    let x = values(&[3, 70]);
    let options = option("block", 7).set("scale", 1.0 / 3.0);
    let q = x.to_layout_with(int8(), &options).unwrap();
    let same = |other: &Tensor| {
        let names = ["block", "scale", "mode", "grid", "range"];
        assert!(names.iter().all(|name| q.attr(name).is_some() && q.attr(name) == other.attr(name)));
        assert_eq!(q.to_vec::<f32>().unwrap(), other.to_vec::<f32>().unwrap());
    };
    same(&q.to_device(remote(0)).unwrap().to_device(keyway::Device::CPU).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.safetensors");
    let tensors: StateDict = [("w".to_string(), q.clone())].into_iter().collect();
    safetensors::save(&path, &tensors).unwrap();
    same(&safetensors::load(&path).unwrap()["w"]);

    let attrs: Vec<LayoutValue> =
        ["block", "scale", "mode", "grid", "range"].iter().map(|name| q.attr(name).unwrap()).collect();
    let parts = q.components().unwrap();
    let make =
        |attrs: &[LayoutValue]| Tensor::from_components_with(int8(), &[3, 70], DType::F32, &parts, attrs);
    same(&make(&attrs).unwrap());
    let changed = |at: usize, value: LayoutValue| {
        let mut attrs = attrs.clone();
        attrs[at] = value;
        make(&attrs)
    };
    refused(changed(1, "x".into()), &["`scale` is of type float", "\"x\", of type str"]);
    refused(changed(3, [3.5].into()), &["`grid` is of type int[]"]);
    refused(changed(2, "other".into()), &["`absmax` or `fixed`", "`other`"]);
    refused(changed(0, 8.into()), &["grid"]);
    refused(make(&attrs[..4]), &["2 components and 5 attributes", "2 and 4"]);
    refused(
        Tensor::from_components(int8(), &[3, 70], DType::F32, &parts, &[7, 0, 0, 0, 0]),
        &["`mode` is of type str"],
    );
}

#[test]
fn components_may_have_any_shape_that_the_plugin_validates() {
    let _one = load(PLUGINS);
    let attrs = |block: i64, grid: [i64; 2]| -> Vec<LayoutValue> {
        vec![block.into(), 0.0.into(), "absmax".into(), grid.into(), Vec::<f64>::new().into()]
    };
    let make = |sizes: &[usize], codes: Tensor, scales: Tensor, attrs: &[LayoutValue]| {
        Tensor::from_components_with(int8(), sizes, DType::F32, &[codes, scales], attrs)
    };
    let codes = |sizes: &[usize]| {
        let count = sizes.iter().product::<usize>() as i64;
        Tensor::arange(0i64, count).unwrap().to_dtype(DType::I8).unwrap().reshape(sizes).unwrap()
    };
    // Of another rank than the tensor, and with more elements.
    let made =
        make(&[5], codes(&[1, 2, 4]), Tensor::new([[1.0f32, 10.0]]).unwrap(), &attrs(4, [1, 2])).unwrap();
    assert_eq!(made.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 40.0]);
    // Without elements; with elements that share memory; transposed in memory.
    let none = make(&[0, 3], codes(&[0, 1, 4]), Tensor::zeros((0, 1)).unwrap(), &attrs(4, [0, 1])).unwrap();
    assert!(none.to_vec::<f32>().unwrap().is_empty());
    let shared = Tensor::new([[2.0f32]]).unwrap().expand((3, 1)).unwrap();
    let transposed = codes(&[2, 1, 3]).transpose(0, 2).unwrap();
    let made = make(&[3, 2], transposed.clone(), shared, &attrs(2, [3, 1])).unwrap();
    let wanted: Vec<f32> =
        transposed.to_vec::<i8>().unwrap().iter().map(|&code| 2.0 * f32::from(code)).collect();
    assert_eq!(made.to_vec::<f32>().unwrap(), wanted);
    assert_eq!(made.to_device(remote(0)).unwrap().to_vec::<f32>().unwrap(), wanted);
    // Errors of the plugin are reported.
    refused(
        make(&[5], codes(&[8]), Tensor::ones((1, 2)).unwrap(), &attrs(4, [1, 2])),
        &["codes", "[1, 2] x 4"],
    );
    refused(make(&[5], codes(&[1, 2, 4]), Tensor::ones(()).unwrap(), &attrs(4, [1, 2])), &["codes"]);
    refused(
        make(&[], codes(&[1, 1, 4]), Tensor::ones((1, 1)).unwrap(), &attrs(4, [1, 1])),
        &["at least one dimension"],
    );
    refused(make(&[5], codes(&[1, 2, 4]), Tensor::ones((1, 2)).unwrap(), &attrs(0, [1, 2])), &["at least 1"]);
}

#[test]
fn the_declared_tolerance_bounds_what_a_lossy_layout_loses() {
    let _one = load(PLUGINS);
    let entry = layouts().into_iter().find(|entry| entry.layout == int8()).unwrap();
    let tolerance = entry.conversion.tolerance;
    assert!(
        !tolerance.is_exact() && !entry.conversion.projects_gradients && !entry.conversion.samples.is_empty()
    );
    for (sizes, block) in [(&[4, 64][..], 32), (&[3, 70], 16), (&[7], 3)] {
        let x = values(sizes);
        let back = x.to_layout_with(int8(), &option("block", block)).unwrap().to_strided().unwrap();
        let (x, back) = (x.to_vec::<f32>().unwrap(), back.to_vec::<f32>().unwrap());
        let max = x.iter().fold(0.0, |max: f32, v| max.max(v.abs()));
        let off: Vec<f64> = x.iter().zip(&back).map(|(x, back)| f64::from((x - back).abs())).collect();
        assert!(off.iter().zip(&x).all(|(off, x)| *off <= tolerance.bound(f64::from(*x), f64::from(max))));
        assert!(off.iter().any(|off| *off > 0.0), "digits are lost");
    }
    refused(Tensor::new([1.0f32, f32::NAN]).unwrap().to_layout(int8()), &["finite values", "NaN"]);
}

#[test]
fn a_net_trains_through_quantised_weights_and_runs_on_them() {
    let _one = load(PLUGINS);
    let (x, wanted) = (values(&[16, 8]), values(&[16, 4]));
    let hidden = values(&[8, 32]).mul(0.2).unwrap().requires_grad_(true).unwrap();
    let last = values(&[32, 4]).mul(0.1).unwrap().requires_grad_(true).unwrap();
    let quantised = |w: &Tensor| w.to_layout_with(int8(), &option("block", 4)).unwrap();
    let run = |a: &Tensor, b: &Tensor| x.mm(a).unwrap().relu().unwrap().mm(b).unwrap();
    let loss = |y: &Tensor| y.sub(&wanted).unwrap().square().unwrap().mean_all().unwrap();
    let first = loss(&run(&quantised(&hidden), &quantised(&last))).item::<f32>().unwrap();
    let mut optimizer = Sgd::new(vec![hidden.clone(), last.clone()], 0.1).unwrap();
    for _ in 0..100 {
        // Quantisation-aware training: weights are quantised in each step, and gradients pass straight through.
        let step = loss(&run(&quantised(&hidden), &quantised(&last)));
        optimizer.zero_grad();
        step.backward().unwrap();
        optimizer.step().unwrap();
    }
    let grad = hidden.grad().unwrap();
    assert!(grad.as_ref().is_strided());
    let (a, b) = (quantised(&hidden.detach()), quantised(&last.detach()));
    let trained = loss(&run(&a, &b)).item::<f32>().unwrap();
    assert!(trained < 0.7 * first, "{first} to {trained}");
    // The kernel agrees with the product of dequantised weights.
    let exact = run(&a.to_strided().unwrap(), &b.to_strided().unwrap()).to_vec::<f32>().unwrap();
    for (got, wanted) in run(&a, &b).to_vec::<f32>().unwrap().iter().zip(&exact) {
        assert!((got - wanted).abs() <= 1e-4 * wanted.abs().max(1.0), "{got} and {wanted}");
    }
}

#[test]
fn gradients_pass_straight_through() {
    let _one = load(PLUGINS);
    let w = values(&[4, 8]).requires_grad_(true).unwrap();
    let start = values(&[4, 8]).mul(3.0).unwrap();
    let y = w.to_layout(int8()).unwrap().to_strided().unwrap();
    y.mul(&start).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec::<f32>().unwrap(), start.to_vec::<f32>().unwrap());
}

#[test]
fn projected_gradients_reach_stored_elements_alone() {
    let _one = load(PLUGINS);
    let pruned = Layout::from_name("test.keyway/pruned").expect("the plugin is loaded");
    let w = Tensor::new([1.0f32, -2.0, 3.0, 0.5, 4.0, 4.0]).unwrap().requires_grad_(true).unwrap();
    let p = w.to_layout(pruned).unwrap();
    assert_eq!(p.to_vec::<f32>().unwrap(), [0.0, -2.0, 3.0, 0.0, 4.0, 0.0]);
    let start = Tensor::new([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    p.to_strided().unwrap().mul(&start).unwrap().sum_all().unwrap().backward().unwrap();
    let grad = w.grad().unwrap();
    assert!(grad.as_ref().is_strided());
    assert_eq!(grad.to_vec::<f32>().unwrap(), [0.0, 2.0, 3.0, 0.0, 5.0, 0.0]);
    refused(Tensor::zeros(3).unwrap().to_layout(pruned), &["of an even number of elements"]);
}
