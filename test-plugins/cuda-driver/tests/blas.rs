//! Matrix products by the stand-in for cuBLASLt, compared with the CPU backend, and the fallback without it.

mod support;

use keyway::autograd::{self, BackwardOptions};
use keyway::nn::ConvOptions;
use keyway::{DType, Device, MemoryFormat, Tensor};
use keyway_dispatcher::device::{Event, Stream, memory_stats, reset_peak, set_memory_limit, synchronize};
use keyway_test_cuda_driver::blas;
use std::path::Path;
use support::{
    FLOATS, counted, cuda, doubles, each_fails, is_known, is_stand_in, linked, load, loses_the_device,
    message, near, numbers, of, run, said_once, stand_in, start, texts,
};

const VARIABLE: &str = "KEYWAY_CUDA_BLAS";

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("values") => values(),
        Some("left") => left(),
        Some("streams") => streams(),
        Some("threads") => threads(),
        Some("kinds") => kinds(),
        Some("convolutions") => convolutions(),
        Some("memory") => memory(),
        Some("once") => once(),
        Some("work") => work(),
        Some("lost") => lost(),
        Some(other) => panic!("there is no scenario {other}"),
    }
}

type Make = fn(&dyn Fn(&[usize]) -> Tensor) -> keyway::Result<Tensor>;

/// Products that cuBLASLt serves, with one call each.
const SERVED: &[(&str, Make)] = &[
    ("mm", |of| of(&[70, 40]).mm(&of(&[40, 130]))),
    ("mm of a row", |of| of(&[1, 9]).mm(&of(&[9, 33]))),
    ("mm of a column", |of| of(&[33, 9]).mm(&of(&[9, 1]))),
    ("an outer product", |of| of(&[7, 1]).mm(&of(&[1, 5]))),
    ("odd sizes", |of| of(&[13, 17]).mm(&of(&[17, 11]))),
    ("the left side transposed", |of| of(&[17, 13]).t()?.mm(&of(&[17, 11]))),
    ("the right side transposed", |of| of(&[13, 17]).mm(&of(&[11, 17]).t()?)),
    ("both transposed", |of| of(&[17, 13]).t()?.mm(&of(&[11, 17]).t()?)),
    ("columns of a wider matrix", |of| of(&[13, 30]).narrow(1, 3, 17)?.mm(&of(&[17, 11]))),
    ("rows from an odd place", |of| of(&[20, 17]).narrow(0, 3, 13)?.mm(&of(&[20, 11]).narrow(0, 1, 17)?)),
    ("many terms in a workspace", |of| of(&[6, 1500]).mm(&of(&[1500, 10]))),
    ("mv", |of| of(&[90, 300]).mv(&of(&[300]))),
    ("mv transposed", |of| of(&[300, 90]).t()?.mv(&of(&[300]))),
    ("mv by every third", |of| of(&[9, 8]).mv(&of(&[8, 3]).select(1, 1)?)),
    ("bmm", |of| of(&[3, 20, 70]).bmm(&of(&[3, 70, 6]))),
    ("bmm transposed", |of| of(&[3, 70, 20]).transpose(1, 2)?.bmm(&of(&[3, 6, 70]).transpose(1, 2)?)),
    ("bmm with one right side", |of| of(&[3, 20, 7]).bmm(&of(&[1, 7, 6]).expand([3, 7, 6])?)),
    ("bmm by the second dimension", |of| {
        of(&[20, 3, 7]).transpose(0, 1)?.bmm(&of(&[7, 3, 6]).transpose(0, 1)?)
    }),
    ("bmm with a workspace", |of| of(&[3, 4, 700]).bmm(&of(&[3, 700, 5]))),
    ("a bias", |of| of(&[11]).addmm(&of(&[13, 17]), &of(&[17, 11]))),
    ("a bias that is not aligned", |of| of(&[12]).narrow(0, 1, 11)?.addmm(&of(&[13, 17]), &of(&[17, 11]))),
    ("a bias of many terms", |of| of(&[10]).addmm(&of(&[6, 900]), &of(&[10, 900]).t()?)),
    ("a bias times a factor", |of| of(&[11]).addmm_with(&of(&[13, 17]), &of(&[17, 11]), 0.5, 2.0)),
    ("a column is added", |of| of(&[13, 1]).addmm(&of(&[13, 17]), &of(&[17, 11]))),
    ("a number is added", |of| of(&[]).addmm_with(&of(&[13, 17]), &of(&[17, 11]), -1.0, 1.0)),
    ("a matrix is added", |of| of(&[13, 11]).addmm_with(&of(&[13, 17]), &of(&[17, 11]), 2.0, 0.5)),
    ("a transposed matrix is added", |of| of(&[11, 13]).t()?.addmm(&of(&[13, 17]), &of(&[17, 11]))),
    ("baddbmm", |of| of(&[3, 20, 6]).baddbmm_with(&of(&[3, 20, 7]), &of(&[3, 7, 6]), 0.5, -1.0)),
    ("baddbmm with one matrix", |of| of(&[20, 6]).baddbmm(&of(&[3, 20, 7]), &of(&[3, 7, 6]))),
    ("baddbmm with a bias", |of| of(&[6]).baddbmm(&of(&[3, 20, 7]), &of(&[3, 7, 6]))),
    ("baddbmm with one of each", |of| of(&[3, 1, 1]).baddbmm(&of(&[3, 20, 7]), &of(&[3, 7, 6]))),
    ("in place", |of| of(&[13, 11]).addmm_(&of(&[13, 17]), &of(&[17, 11]))),
    ("a factor of 0 takes nothing of what is no number", |of| {
        let nan = of(&[13, 11]).mul(f64::NAN)?;
        nan.addmm_with(&of(&[13, 17]), &of(&[17, 11]), 0.0, 1.0)
    }),
    ("a result that lies transposed", |of| {
        let mut out = of(&[11, 13]).t()?;
        of(&[13, 17]).mm_out(&of(&[17, 11]), &mut out)?;
        Ok(out)
    }),
    ("a result within a wider one", |of| {
        let whole = of(&[13, 20]);
        of(&[13, 17]).mm_out(&of(&[17, 11]), &mut whole.narrow(1, 4, 11)?)?;
        Ok(whole)
    }),
];

/// Products that cuBLASLt does not serve.
const LEFT: &[(&str, Make)] = &[
    ("no terms", |of| of(&[4, 0]).mm(&of(&[0, 5]))),
    ("no terms and a bias", |of| of(&[5]).addmm(&of(&[4, 0]), &of(&[0, 5]))),
    ("no rows", |of| of(&[0, 3]).mm(&of(&[3, 5]))),
    ("one result", |of| of(&[1, 300]).mm(&of(&[300, 1]))),
    ("dot", |of| of(&[300]).dot(&of(&[300]))),
    ("a factor of 0 and infinity", |of| {
        of(&[5]).addmm_with(&of(&[4, 3]).mul(f64::INFINITY)?, &of(&[3, 5]), 1.0, 0.0)
    }),
    ("two strides", |of| of(&[4, 3, 2]).select(2, 0)?.mm(&of(&[3, 5]))),
    ("one row for all", |of| of(&[1, 3]).expand([4, 3])?.mm(&of(&[3, 5]))),
    ("integers", |of| {
        of(&[4, 3]).mul(9.0)?.to_dtype(DType::I32)?.mm(&of(&[3, 5]).mul(9.0)?.to_dtype(DType::I32)?)
    }),
];

/// The result of `make` on the device equals that on the CPU, and is the same twice.
#[track_caller]
fn compare(name: &str, dtype: DType, make: Make) {
    let on = |device| make(&|sizes| numbers(device, dtype, sizes)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (expected, got) = (on(Device::CPU), on(cuda(0)));
    assert_eq!((got.shape(), got.dtype()), (expected.shape(), expected.dtype()), "{name}");
    let (expected, got) = (doubles(&expected), doubles(&got));
    near(name, dtype, &expected, &got);
    let again = doubles(&on(cuda(0)));
    let bits = |all: &[f64]| all.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
    assert!(bits(&got) == bits(&again), "{name} in {dtype}: other bits the second time");
}

fn compare_all(all: &[(&str, Make)]) {
    load();
    for dtype in FLOATS {
        for (name, make) in all {
            compare(name, dtype, *make);
        }
    }
}

fn values() {
    compare_all(SERVED);
}

fn left() {
    compare_all(LEFT);
}

/// Strides, padding and dilation of the kernels of [`convolutions`], and their widths.
const MOVES: [([usize; 3], usize); 4] = [([1, 1, 1], 3), ([2, 1, 1], 3), ([1, 2, 2], 3), ([1, 0, 1], 1)];
/// Images for each of them, and images that are processed in parts.
const IMAGES: [[usize; 4]; 2] = [[3, 16, 20, 18], [32, 16, 0, 0]];
const PARTS: [[usize; 4]; 2] = [[20, 16, 40, 40], [8, 16, 0, 0]];

/// A convolution and the gradients of image, kernel and bias.
fn convolution(
    device: Device,
    dtype: DType,
    format: MemoryFormat,
    [image, kernel]: [[usize; 4]; 2],
    ([stride, padding, dilation], width): ([usize; 3], usize),
) -> keyway::Result<Vec<Tensor>> {
    let of = |sizes: &[usize]| numbers(device, dtype, sizes);
    let leaf = |t: Tensor| t.to(format)?.requires_grad_(true);
    let (x, w) = (leaf(of(&image))?, leaf(of(&[kernel[0], kernel[1], width, width]))?);
    let b = of(&kernel[..1]).requires_grad_(true)?;
    let options = ConvOptions::default().stride(stride).padding(padding).dilation(dilation);
    let y = x.conv2d_with(&w, Some(&b), options)?;
    let grad = of(y.shape()).mul(0.5)?.to(format)?;
    let options = BackwardOptions { gradients: Some(vec![grad]), ..BackwardOptions::default() };
    let grads = autograd::grad(&[&y], &[&x, &w, &b], options)?;
    Ok(std::iter::once(y.detach()).chain(grads.into_iter().flatten()).collect())
}

/// Convolutions that are lowered to products, in both formats, and their gradients.
fn convolutions() {
    load();
    let check = |name: &str, dtype: DType, make: &dyn Fn(Device) -> keyway::Result<Vec<Tensor>>| {
        let (expected, got) = (make(Device::CPU).unwrap(), make(cuda(0)).unwrap());
        for (which, (expected, got)) in expected.iter().zip(&got).enumerate() {
            assert_eq!((got.shape(), got.dtype()), (expected.shape(), expected.dtype()), "{name} {which}");
            near(&format!("{name} {which}"), dtype, &doubles(expected), &doubles(got));
        }
    };
    for format in [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast] {
        for (moves, dtype) in MOVES.iter().flat_map(|moves| FLOATS.map(|dtype| (*moves, dtype))) {
            let make = |device| convolution(device, dtype, format, IMAGES, moves);
            check(&format!("{moves:?} in {format:?}"), dtype, &make);
        }
    }
    let make = |device| convolution(device, DType::F64, MemoryFormat::Contiguous, PARTS, MOVES[0]);
    check("in parts", DType::F64, &make);
}

/// Products on two streams, executed in random orders: an event orders them.
fn streams() {
    load();
    let d = cuda(0);
    let of = |sizes: &[usize]| numbers(d, DType::F32, sizes);
    let (first, second) = (Stream::new(d).unwrap(), Stream::new(d).unwrap());
    let wanted = {
        let of = |sizes: &[usize]| numbers(Device::CPU, DType::F32, sizes);
        doubles(&of(&[8, 200]).mm(&of(&[200, 12])).unwrap().mm(&of(&[12, 9])).unwrap())
    };
    for round in 0..40 {
        let (a, b, c) = (of(&[8, 200]), of(&[200, 12]), of(&[12, 9]));
        let (before, after) = (Event::new(d).unwrap(), Event::new(d).unwrap());
        before.record(&Stream::current(d).unwrap()).unwrap();
        let product = {
            let _on = first.enter();
            first.wait(&before).unwrap();
            let product = a.mm(&b).unwrap();
            after.record(&first).unwrap();
            product
        };
        let product = {
            let _on = second.enter();
            second.wait(&after).unwrap();
            // A separate workspace of this stream, while the first one's work is pending.
            let other = a.mm(&b).unwrap();
            let made = product.mm(&c).unwrap();
            drop(other);
            made
        };
        second.synchronize().unwrap();
        for (own, wanted) in doubles(&product).iter().zip(&wanted) {
            assert!((own - wanted).abs() < 1e-3, "round {round}: {own}, not {wanted}");
        }
    }
}

/// Both devices alternately, and several threads concurrently.
fn threads() {
    load();
    let sides = [0, 1].map(|index| {
        let of = |sizes: &[usize]| numbers(cuda(index), DType::F32, sizes);
        (of(&[5, 300]), of(&[300, 4]))
    });
    // Memory is served from the cache from the second round on, so that only the product needs the driver.
    for _ in 0..4 {
        sides.iter().for_each(|(a, b)| drop(a.mm(b).unwrap()));
    }
    std::thread::scope(|scope| {
        for index in 0..4u16 {
            scope.spawn(move || {
                let d = cuda(index % 2);
                for round in 0..20 {
                    let make = |device| {
                        let of = |sizes: &[usize]| numbers(device, DType::F32, sizes);
                        let size = 3 + (usize::from(index) * 7 + round) % 9;
                        doubles(&of(&[size]).addmm(&of(&[5, 150]), &of(&[150, size])).unwrap())
                    };
                    for (own, wanted) in make(d).iter().zip(make(Device::CPU)) {
                        assert!((own - wanted).abs() < 1e-3, "{own}, not {wanted}");
                    }
                }
            });
        }
    });
}

/// More kinds of products than are cached.
const KINDS: usize = 300;

fn kinds() {
    load();
    let d = cuda(0);
    for round in 0..2 {
        for rows in 2..2 + KINDS {
            let (left, right) = (Tensor::ones_with([rows, 3], d), Tensor::ones_with([3, 2], d));
            let product = left.unwrap().mm(&right.unwrap()).unwrap();
            assert_eq!(product.to_vec::<f32>().unwrap(), vec![3.0; rows * 2], "round {round}");
        }
    }
}

fn memory() {
    load();
    let d = cuda(0);
    let of = |sizes: &[usize]| numbers(d, DType::F32, sizes);
    let (a, b) = (of(&[64, 2000]), of(&[2000, 64]));
    let stats = || {
        synchronize(d).unwrap();
        memory_stats(d).unwrap().unwrap()
    };
    reset_peak(d).unwrap();
    let before = stats().in_use;
    let product = a.mm(&b).unwrap();
    let result = 64 * 64 * 4;
    assert_eq!(stats().in_use, before + result);
    let workspace = stats().peak_in_use - before - result;
    drop(product);
    if is_stand_in() {
        assert_eq!(workspace, 4 * 64 * 64 * 4, "the workspace is counted");
    } else if workspace == 0 {
        return println!("skipped: the library's algorithm takes no workspace here");
    }
    // Without a workspace it is an error, and no other algorithm gives other bits.
    set_memory_limit(d, before + result + workspace - 1).unwrap();
    let text = message(a.mm(&b));
    assert!(text.contains("out of memory") && text.contains(&workspace.to_string()), "{text}");
    assert_eq!(stats().in_use, before);
    set_memory_limit(d, 0).unwrap();
    a.mm(&b).unwrap();
}

/// Products with another driver or library than usual; messages go to standard error.
fn once() {
    load();
    for _ in 0..3 {
        for dtype in FLOATS {
            compare("mm", dtype, |of| of(&[7, 200]).mm(&of(&[200, 5])));
            compare("addmm", dtype, |of| of(&[5]).addmm(&of(&[7, 20]), &of(&[20, 5])));
        }
    }
}

/// Products of each kind, each step of which may fail.
fn work() {
    load();
    let d = cuda(0);
    let some = || -> keyway::Result<()> {
        let of = |sizes: &[usize]| numbers(d, DType::F32, sizes);
        let products = [
            of(&[5, 300]).mm(&of(&[300, 4]))?,
            of(&[4]).addmm(&of(&[5, 7]), &of(&[7, 4]))?,
            of(&[5, 1]).addmm(&of(&[5, 7]), &of(&[7, 4]))?,
            of(&[3, 5, 7]).bmm(&of(&[3, 7, 4]))?,
        ];
        assert_eq!(products.iter().map(|p| p.to_vec::<f32>().unwrap().len()).sum::<usize>(), 120);
        Ok(())
    };
    match some() {
        Ok(()) => println!("RESULT all is well"),
        Err(error) => {
            println!("RESULT {error}");
            some().unwrap_or_else(|error| println!("LASTING {error}"));
        }
    }
    assert_eq!(memory_stats(d).unwrap().unwrap().in_use, 0, "memory is left behind");
}

/// A product loses the device: the error names it, and is the same from then on.
fn lost() {
    load();
    let d = cuda(0);
    let of = |sizes: &[usize]| numbers(d, DType::F32, sizes);
    let (a, b) = (of(&[5, 7]), of(&[7, 4]));
    let text = message(a.mm(&b).and_then(|made| made.to_vec::<f32>()));
    for part in ["CUDA_ERROR_ILLEGAL_ADDRESS (700)", "newest first: cublasLtMatmul", "started anew"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(message(a.mm(&b)).contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}

#[test]
fn products_are_those_of_the_cpu_in_every_order() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    for seed in ["1", "2", "3"] {
        let seed = ("KEYWAY_STAND_IN_SEED", seed);
        let counts = counted("values", &driver, &[named, seed]);
        assert_eq!(of(&counts, "cublasLtMatmul"), SERVED.len() * FLOATS.len() * 2);
        // The heuristic is queried once for each kind.
        let asked = of(&counts, "cublasLtMatmulAlgoGetHeuristic");
        assert!(asked <= SERVED.len() * FLOATS.len(), "{asked}");
        run("values", &driver, &[named, seed, ("KEYWAY_CUDA_ALLOCATOR", "pool")]);
        run("streams", &driver, &[named, seed]);
        run("streams", &driver, &[named, seed, ("KEYWAY_CUDA_ALLOCATOR", "pool")]);
        run("threads", &driver, &[named, seed]);
    }
}

#[test]
fn convolutions_are_those_of_the_cpu() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    let counts = counted("convolutions", &driver, &[named, ("KEYWAY_STAND_IN_SEED", "2")]);
    // For convolutions in parts, result and gradient of the kernel take two products each.
    assert_eq!(of(&counts, "cublasLtMatmul"), MOVES.len() * FLOATS.len() * 2 * 3 + 5);
    run("convolutions", &driver, &[named, ("KEYWAY_STAND_IN_BLAS_LACKS", "all")]);
}

#[test]
fn what_the_library_does_not_take_is_left_to_own_kernels() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    let counts = counted("left", &driver, &[named]);
    assert_eq!(of(&counts, "cublasLtMatmul"), 0);
    // Nor products without an algorithm.
    let counts = counted("values", &driver, &[named, ("KEYWAY_STAND_IN_BLAS_LACKS", "all")]);
    assert_eq!(of(&counts, "cublasLtMatmul"), 0);
    assert!(of(&counts, "cublasLtMatmulAlgoGetHeuristic") > 0);
    // A bias that the library cannot add is copied to the result first.
    let counts = counted("values", &driver, &[named, ("KEYWAY_STAND_IN_BLAS_LACKS", "bias")]);
    assert_eq!(of(&counts, "cublasLtMatmul"), SERVED.len() * FLOATS.len() * 2);
}

#[test]
fn kinds_are_kept_up_to_a_bound() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    let counts = counted("kinds", &driver, &[(VARIABLE, library.to_str().unwrap())]);
    assert_eq!(of(&counts, "cublasLtMatmul"), 2 * KINDS);
    let left = |what: &str| {
        of(&counts, &format!("cublasLt{what}Create")) - of(&counts, &format!("cublasLt{what}Destroy"))
    };
    assert_eq!((left("MatmulDesc"), left("MatrixLayout")), (256, 4 * 256));
    assert_eq!(of(&counts, "cublasLtCreate"), 1, "one handle a device");
}

#[test]
fn the_workspace_is_memory_of_the_device() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    for allocator in ["", "pool"] {
        let allocator = ("KEYWAY_CUDA_ALLOCATOR", allocator);
        run("memory", &driver, &[(VARIABLE, library.to_str().unwrap()), allocator]);
    }
}

/// Without the library, or with an unsuitable one, the backend's own kernels compute the products, which is logged once.
#[test]
fn without_the_library_own_kernels_serve_and_it_is_said_once() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    let said = |machine: &[(&str, &str)], parts: &[&str]| said_once("cuBLASLt", &driver, machine, parts);
    said(&[(VARIABLE, "off")], &[]);
    said(&[(VARIABLE, library.to_str().unwrap())], &[]);
    said(&[], &["warning", "the driver is a named file", VARIABLE, "nvidia-cublas", "`off`"]);
    said(
        &[(VARIABLE, "/no/such/libcublasLt.so.12")],
        &["/no/such/libcublasLt.so.12", "cannot be read", "mend it"],
    );
    said(&[(VARIABLE, "libcublasLt.so.12")], &["is no absolute path"]);
    said(&[(VARIABLE, driver.to_str().unwrap())], &["has no cublasLtGetVersion"]);
    let old = ("KEYWAY_STAND_IN_BLAS_VERSION", "111103");
    said(&[(VARIABLE, library.to_str().unwrap()), old], &["is of version 11.11.3", "12.0 or newer"]);
}

/// Every call of the library fails once: an error that names the function, no leak, and the program continues.
#[test]
fn every_call_of_the_library_may_fail() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    let named = (VARIABLE, library.to_str().unwrap());
    let failures =
        each_fails(("cublasLt", "CUBLAS_STATUS_INTERNAL_ERROR (14)"), &driver, named, |_, _, _| true);
    assert!(failures >= 75, "{failures}: fewer calls than conformance/README.md says");
}

#[test]
fn a_product_that_loses_the_device_is_named() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    loses_the_device(&driver, (VARIABLE, library.to_str().unwrap()), "KEYWAY_STAND_IN_BLAS_BREAKS");
}

/// With a driver that the system's loader finds: the loader's library, a toolkit's, and that of the PyPI package.
#[cfg(unix)]
#[test]
fn the_library_is_found_where_it_is_looked_for() {
    let Some(driver) = stand_in() else { return };
    if is_known(c"libcublasLt.so.12") || is_known(c"libcublasLt.so.13") {
        return eprintln!("skipped: this system has a cuBLASLt of its own");
    }
    let root = driver.with_file_name(format!("places-{}", std::process::id()));
    let library = blas(&driver);
    let kernels = driver.with_file_name("libkeyway_cuda_kernels.so");
    let (system, toolkit, python) = (root.join("system"), root.join("toolkit"), root.join("python"));
    linked(&system, &[&driver, &kernels]);
    linked(&toolkit.join("lib64"), &[&driver, &library]);
    linked(&python.join("lib/python3.11/site-packages/nvidia/cublas/lib"), &[&driver, &library]);
    let text = |path: &Path| path.to_str().unwrap().to_string();
    let (own, system, toolkit, python) =
        (text(driver.parent().unwrap()), text(&system), text(&toolkit), text(&python));
    let path = "LD_LIBRARY_PATH";
    for machine in [
        vec![(path, own.as_str())],
        vec![(path, system.as_str()), ("CUDA_HOME", toolkit.as_str())],
        vec![(path, system.as_str()), ("VIRTUAL_ENV", python.as_str())],
    ] {
        let mut machine = machine;
        machine.push(("KEYWAY_CUDA_DRIVER", ""));
        let counts = counted("once", &driver, &machine);
        assert!(of(&counts, "cublasLtMatmul") > 0, "{machine:?}");
    }
    let output = start("once", &driver, &[(path, system.as_str()), ("KEYWAY_CUDA_DRIVER", "")]);
    let text = texts(&output);
    let said = ["libcublasLt.so.13 cannot be loaded", "looked into /usr/local/cuda/lib64"];
    assert!(output.status.success() && said.iter().all(|part| text.contains(part)), "{text}");
    std::fs::remove_dir_all(&root).unwrap();
}
