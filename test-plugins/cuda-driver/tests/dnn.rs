//! Convolutions by the stand-in for cuDNN, compared with the CPU backend, and the fallback without it.

mod support;

use keyway::autograd::{self, BackwardOptions};
use keyway::nn::{ConvOptions, ConvTransposeOptions};
use keyway::{DType, Device, MemoryFormat, Tensor, graph};
use keyway_dispatcher::device::{memory_stats, set_memory_limit, synchronize};
use keyway_test_cuda_driver::{blas, dnn};
use support::{
    counted, cuda, doubles, each_fails, is_stand_in, load, loses_the_device, message, near, numbers, of, run,
    said_once, stand_in,
};

const VARIABLE: &str = "KEYWAY_CUDA_DNN";
/// The dtypes for which cuDNN is used.
const GIVEN: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("values") => values(),
        Some("left") => left(),
        Some("kinds") => kinds(),
        Some("memory") => memory(),
        Some("recorded") => recorded(),
        Some("once") => once(),
        Some("work") => work(),
        Some("lost") => lost(),
        Some(other) => panic!("there is no scenario {other}"),
    }
}

/// A convolution of an image, a kernel and a bias.
type Make = fn(&Tensor, &Tensor, Option<&Tensor>) -> keyway::Result<Tensor>;

struct Case {
    name: &'static str,
    image: &'static [usize],
    kernel: &'static [usize],
    make: Make,
}

fn case(name: &'static str, image: &'static [usize], kernel: &'static [usize], make: Make) -> Case {
    Case { name, image, kernel, make }
}

/// Convolutions that cuDNN serves, as are their gradients of image and kernel.
fn served() -> Vec<Case> {
    vec![
        case("plain", &[2, 16, 16, 14], &[16, 16, 3, 3], |x, w, b| x.conv2d(w, b)),
        case("all options", &[3, 16, 25, 22], &[16, 8, 3, 2], |x, w, b| {
            let options = ConvOptions::default().stride([2, 1]).padding([1, 0]).dilation([1, 3]).groups(2);
            x.conv2d_with(w, b, options)
        }),
        case("one channel a group", &[4, 32, 22, 22], &[32, 1, 3, 3], |x, w, b| {
            x.conv2d_with(w, b, ConvOptions::default().padding(1).groups(32))
        }),
        case("one channel", &[4, 1, 38, 38], &[12, 1, 3, 3], |x, w, b| x.conv2d(w, b)),
        case("kernels of one element", &[2, 40, 13, 13], &[40, 40, 1, 1], |x, w, b| x.conv2d(w, b)),
        case("one dimension", &[3, 24, 140], &[24, 24, 5], |x, w, b| {
            x.conv1d_with(w, b, ConvOptions::default().padding(2).stride(2))
        }),
        case("three dimensions", &[2, 8, 7, 9, 8], &[12, 8, 3, 3, 3], |x, w, b| {
            x.conv3d_with(w, b, ConvOptions::default().padding(1).stride([2, 1, 1]))
        }),
        case("every second sample", &[4, 16, 16, 14], &[16, 16, 3, 3], |x, w, b| {
            x.unflatten(0, [2, 2])?.select(1, 0)?.conv2d(w, b)
        }),
        case("transposed", &[2, 24, 10, 9], &[24, 16, 3, 3], |x, w, b| {
            let options = ConvTransposeOptions::default().stride(2).padding(1).output_padding(1);
            x.conv_transpose2d_with(w, b, options)
        }),
    ]
}

/// Convolutions that cuDNN does not serve.
fn not_served() -> Vec<Case> {
    vec![case("few multiplications", &[1, 3, 8, 8], &[4, 3, 3, 3], |x, w, b| x.conv2d(w, b))]
}

/// The memory formats of images, of kernels, and of incoming gradients.
const ORDERS: [[MemoryFormat; 3]; 4] = [
    [MemoryFormat::Contiguous, MemoryFormat::Contiguous, MemoryFormat::Contiguous],
    [MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast],
    [MemoryFormat::ChannelsLast, MemoryFormat::Contiguous, MemoryFormat::ChannelsLast],
    [MemoryFormat::Contiguous, MemoryFormat::Contiguous, MemoryFormat::ChannelsLast],
];

/// A convolution and the gradients of image, kernel and bias.
fn convolution(
    device: Device,
    dtype: DType,
    case: &Case,
    [image, kernel, result]: [MemoryFormat; 3],
) -> keyway::Result<Vec<Tensor>> {
    let of = |sizes: &[usize]| numbers(device, dtype, sizes);
    let in_order = |t: Tensor, format| if t.rank() == 4 { t.to(format) } else { Ok(t) };
    let x = in_order(of(case.image), image)?.requires_grad_(true)?;
    let w = in_order(of(case.kernel).mul(0.25)?, kernel)?.requires_grad_(true)?;
    let channels = (case.make)(&x.detach(), &w.detach(), None)?.shape()[1];
    let b = of(&[channels]).requires_grad_(true)?;
    let y = (case.make)(&x, &w, Some(&b))?;
    let grad = in_order(of(y.shape()).mul(0.5)?, result)?;
    let options = BackwardOptions { gradients: Some(vec![grad]), ..BackwardOptions::default() };
    let grads = autograd::grad(&[&y], &[&x, &w, &b], options)?;
    Ok(std::iter::once(y.detach()).chain(grads.into_iter().flatten()).collect())
}

/// The memory formats of a case: those of images have two spatial dimensions.
fn orders(case: &Case) -> &'static [[MemoryFormat; 3]] {
    if case.image.len() == 4 { &ORDERS } else { &ORDERS[..1] }
}

/// Checks that results on the device equal those on the CPU, and are the same twice.
fn compare(cases: &[Case], dtypes: &[DType]) {
    load();
    for case in cases {
        for (orders, dtype) in
            orders(case).iter().flat_map(|orders| dtypes.iter().map(move |dtype| (*orders, *dtype)))
        {
            let on = |device| convolution(device, dtype, case, orders).unwrap();
            let (expected, got, again) = (on(Device::CPU), on(cuda(0)), on(cuda(0)));
            for (which, (expected, got)) in expected.iter().zip(&got).enumerate() {
                let name = format!("{} in {orders:?}, {which}", case.name);
                assert_eq!((got.shape(), got.dtype()), (expected.shape(), expected.dtype()), "{name}");
                near(&name, dtype, &doubles(expected), &doubles(got));
                let bits = |t: &Tensor| doubles(t).iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
                assert!(bits(got) == bits(&again[which]), "{name} in {dtype}: other bits the second time");
            }
        }
    }
}

fn values() {
    compare(&served(), &GIVEN);
}

fn left() {
    compare(&served()[..1], &[DType::F64]);
    compare(&not_served(), &GIVEN);
}

/// More kinds of convolutions than are cached.
const KINDS: usize = 260;

fn kinds() {
    load();
    for round in 0..2 {
        let ones = |sizes: [usize; 4]| Tensor::ones_with(sizes, cuda(0)).unwrap();
        let (x, w) = (ones([1, 128, 8, 8]), ones([64, 128, 1, 1]));
        for apart in 1..=KINDS {
            // With a kernel of one element the library runs another kind of convolution, with the same result.
            let made = x.conv2d_with(&w, None, ConvOptions::default().dilation(apart)).unwrap();
            let first: f32 = made.flatten_all().unwrap().select(0, 0).unwrap().item().unwrap();
            assert_eq!(first, 128.0, "round {round}");
        }
    }
}

/// A convolution of f32 that cuDNN serves.
fn one(device: Device) -> keyway::Result<Tensor> {
    let of = |sizes: &[usize]| numbers(device, DType::F32, sizes);
    of(&[2, 16, 16, 14]).conv2d(&of(&[16, 16, 3, 3]), Some(&of(&[16])))
}

fn memory() {
    load();
    let d = cuda(0);
    let stats = || {
        synchronize(d).unwrap();
        memory_stats(d).unwrap().unwrap()
    };
    let made = one(d).unwrap();
    let of = |sizes: &[usize]| numbers(d, DType::F32, sizes);
    let (x, w) = (of(&[2, 16, 16, 14]), of(&[16, 16, 3, 3]));
    let before = stats().in_use;
    if !is_stand_in() {
        return println!("skipped: how large a workspace is, the stand-in alone says");
    }
    // Without a workspace it is an error, and nothing is leaked.
    let result = 2 * 16 * 14 * 12 * 4;
    set_memory_limit(d, before + result + 1023).unwrap();
    let text = message(x.conv2d(&w, None));
    assert!(text.contains("out of memory") && text.contains("1024"), "{text}");
    assert_eq!(stats().in_use, before);
    set_memory_limit(d, 0).unwrap();
    x.conv2d(&w, None).unwrap();
    drop(made);
}

/// A convolution and its gradients, recorded.
fn recorded() {
    load();
    let case = &served()[0];
    let work = || {
        let of = |sizes: &[usize]| Tensor::ones_with(sizes, (DType::F32, cuda(0)));
        let (x, w, b) = (of(case.image)?, of(case.kernel)?.requires_grad_(true)?, of(&case.kernel[..1])?);
        let y = (case.make)(&x, &w, Some(&b))?;
        let grads = autograd::grad(&[&y.sum_all()?], &[&w], BackwardOptions::default())?;
        Ok([y.detach(), grads.into_iter().flatten().next().unwrap()])
    };
    let expected = work().unwrap().map(|made| doubles(&made));
    let (made, graph) = graph::capture(cuda(0), work).unwrap();
    for _ in 0..3 {
        made.iter().for_each(|made| drop(made.zero_().unwrap()));
        graph.replay().unwrap();
        assert!(made.iter().map(doubles).eq(expected.iter().cloned()));
    }
}

/// Convolutions with another driver or library than usual; messages go to standard error.
fn once() {
    load();
    let expected = doubles(&one(Device::CPU).unwrap());
    for _ in 0..2 {
        near("a convolution", DType::F32, &expected, &doubles(&one(cuda(0)).unwrap()));
    }
}

/// A convolution; each of its steps may fail.
fn work() {
    load();
    match one(cuda(0)) {
        Ok(_) => println!("RESULT all is well"),
        Err(error) => {
            println!("RESULT {error}");
            one(cuda(0)).map(drop).unwrap_or_else(|error| println!("LASTING {error}"));
        }
    }
    assert_eq!(memory_stats(cuda(0)).unwrap().unwrap().in_use, 0, "memory is left behind");
}

/// A convolution loses the device: the error names it, and is the same from then on.
fn lost() {
    load();
    let of = |sizes: &[usize]| numbers(cuda(0), DType::F32, sizes);
    let (x, w) = (of(&[2, 16, 16, 14]), of(&[16, 16, 3, 3]));
    let text = message(x.conv2d(&w, None).and_then(|made| made.flatten_all()?.to_vec::<f32>()));
    for part in ["CUDA_ERROR_ILLEGAL_ADDRESS (700)", "newest first: cudnnBackendExecute", "started anew"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(message(x.conv2d(&w, None)).contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}

/// The number of convolutions of [`compare`]: one to check the channels, result and two gradients, twice; without the
/// gradient of a depthwise kernel for f16 and bf16.
fn given() -> usize {
    let left = |case: &Case| if case.name == "one channel a group" { 2 } else { 0 };
    served().iter().map(|case| orders(case).len() * 2 * (GIVEN.len() * 4 - left(case))).sum()
}

#[test]
fn convolutions_are_those_of_the_cpu_in_every_order() {
    let Some(driver) = stand_in() else { return };
    let library = dnn(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    for machine in [
        vec![named, ("KEYWAY_STAND_IN_SEED", "2"), ("KEYWAY_CUDA_ALLOCATOR", "pool")],
        vec![named, ("KEYWAY_STAND_IN_DNN_LACKS", "best")],
    ] {
        let counts = counted("values", &driver, &machine);
        assert_eq!(of(&counts, "cudnnBackendExecute"), given(), "{machine:?}");
        assert_eq!(of(&counts, "cudnnCreate"), 1, "one handle a device");
    }
}

#[test]
fn what_the_library_does_not_take_is_left_to_own_kernels() {
    let Some(driver) = stand_in() else { return };
    let library = dnn(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    assert_eq!(of(&counted("left", &driver, &[named]), "cudnnBackendExecute"), 0);
    let none = ("KEYWAY_STAND_IN_DNN_LACKS", "all");
    let products = blas(&driver);
    for machine in [vec![named, none], vec![named, none, ("KEYWAY_CUDA_BLAS", products.to_str().unwrap())]] {
        let counts = counted("once", &driver, &machine);
        assert_eq!(of(&counts, "cudnnBackendExecute"), 0);
        assert!(of(&counts, "cudnnBackendFinalize") > 0);
        assert_eq!(of(&counts, "cublasLtMatmul") > 0, machine.len() == 3);
    }
}

#[test]
fn kinds_are_kept_up_to_a_bound() {
    let Some(driver) = stand_in() else { return };
    let counts = counted("kinds", &driver, &[(VARIABLE, dnn(&driver).to_str().unwrap())]);
    assert_eq!(of(&counts, "cudnnBackendExecute"), 2 * KINDS);
    let left = of(&counts, "cudnnBackendCreateDescriptor") - of(&counts, "cudnnBackendDestroyDescriptor");
    // For each cached entry: a plan and the descriptors that it was created from.
    assert_eq!(left, 256 * 9);
}

#[test]
fn the_workspace_is_memory_of_the_device() {
    let Some(driver) = stand_in() else { return };
    let library = dnn(&driver);
    for allocator in ["", "pool"] {
        let allocator = ("KEYWAY_CUDA_ALLOCATOR", allocator);
        run("memory", &driver, &[(VARIABLE, library.to_str().unwrap()), allocator]);
    }
}

#[test]
fn convolutions_of_the_library_are_recorded() {
    let Some(driver) = stand_in() else { return };
    let library = dnn(&driver);
    for seed in ["1", "2"] {
        let machine = [(VARIABLE, library.to_str().unwrap()), ("KEYWAY_STAND_IN_SEED", seed)];
        let counts = counted("recorded", &driver, &machine);
        assert_eq!(of(&counts, "cudnnBackendExecute"), 4, "made once, and recorded once");
    }
}

/// Without the library, or with an unsuitable one, the backend's own kernels compute convolutions, which is logged once.
#[test]
fn without_the_library_own_kernels_serve_and_it_is_said_once() {
    let Some(driver) = stand_in() else { return };
    let library = dnn(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    let said = |machine: &[(&str, &str)], parts: &[&str]| said_once("cuDNN", &driver, machine, parts);
    said(&[(VARIABLE, "off")], &[]);
    said(&[named], &[]);
    said(
        &[],
        &["warning", "convolutions", "the driver is a named file", VARIABLE, "nvidia-cudnn-cu13", "`off`"],
    );
    said(&[(VARIABLE, "/no/such/libcudnn.so.9")], &["/no/such/libcudnn.so.9", "cannot be read", "mend it"]);
    said(&[(VARIABLE, driver.to_str().unwrap())], &["has no cudnnGetVersion"]);
    said(&[named, ("KEYWAY_STAND_IN_DNN_VERSION", "8907")], &["is of version 0.89.7", "9.0 or newer"]);
    said(
        &[named, ("KEYWAY_STAND_IN_DNN_CUDA", "99010")],
        &["is built for CUDA 99.1", "the driver serves CUDA"],
    );
}

/// Every call of the library fails once: an error that names the function, no leak, and the program continues.
#[test]
fn every_call_of_the_library_may_fail() {
    let Some(driver) = stand_in() else { return };
    let library = dnn(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    // Each source location that sets an attribute; some iterations of those in loops.
    let is_tried = |name: &str, n: usize, count: usize| {
        name == "cudnnBackendSetAttribute" || n <= 9 || n.is_multiple_of(5) || n == count
    };
    let failures = each_fails(("cudnn", "CUDNN_STATUS_INTERNAL_ERROR (4000)"), &driver, named, is_tried);
    assert!(failures >= 80, "{failures}: fewer calls than conformance/README.md says");
}

#[test]
fn a_convolution_that_loses_the_device_is_named() {
    let Some(driver) = stand_in() else { return };
    let library = dnn(&driver);
    loses_the_device(&driver, (VARIABLE, library.to_str().unwrap()), "KEYWAY_STAND_IN_DNN_BREAKS");
}
