//! Memory that kernels need while they run: where there is no more, the call is an error and the program goes on. The limit
//! holds for the whole process, so this test has one of its own.

use keyway::{DType, Device, Error, Result, Tensor};
use keyway_dispatcher::device::{memory_stats, set_memory_limit};

/// A call that needs memory of its own beside its outputs.
type Case = (&'static str, usize, Box<dyn Fn() -> Result<()>>);

fn zeros(sizes: &[usize], dtype: DType) -> Tensor {
    Tensor::zeros_with(sizes, dtype).unwrap()
}

#[test]
fn scratch_memory_that_does_not_suffice_is_an_error() {
    const MIB: usize = 1 << 20;
    let bytes = zeros(&[4 * MIB], DType::U8);
    let halves = zeros(&[1, 4 * MIB], DType::F16);
    let tall = zeros(&[MIB, 4], DType::F16);
    let (row, column) = (zeros(&[1, 2048], DType::I64), zeros(&[2048, 1], DType::I64));
    // Numbers near each other would be counted.
    let words = Tensor::arange(0, 4 << 20).unwrap().to_dtype(DType::I32).unwrap();
    let small = zeros(&[4, 4], DType::U8);
    let weight = zeros(&[4 * MIB], DType::F16);
    // The name, the bytes of the outputs, the call.
    let cases: Vec<Case> = vec![
        ("sort", 36 * MIB, {
            let bytes = bytes.clone();
            Box::new(move || bytes.sort_with(0, false, true).map(drop))
        }),
        ("topk", 0, {
            let bytes = bytes.clone();
            Box::new(move || bytes.topk(1000, 0).map(drop))
        }),
        ("unique", 0, {
            let words = words.clone();
            Box::new(move || words.unique().map(drop))
        }),
        ("softmax", 8 * MIB, {
            let halves = halves.clone();
            Box::new(move || halves.softmax(1).map(drop))
        }),
        ("softmax of columns", 8 * MIB, {
            let tall = tall.clone();
            Box::new(move || tall.softmax(0).map(drop))
        }),
        ("layer_norm", 8 * MIB, {
            let halves = halves.clone();
            Box::new(move || halves.layer_norm([4 << 20], Some(&weight), None).map(drop))
        }),
        ("index", 4 * MIB, {
            let (small, row, column) = (small.clone(), row.clone(), column.clone());
            Box::new(move || small.index(&[Some(&row), Some(&column)]).map(drop))
        }),
    ];
    for (name, outputs, call) in cases {
        // Cached memory counts too.
        keyway_dispatcher::device::empty_cache(Device::CPU).unwrap();
        let held = memory_stats(Device::CPU).unwrap().unwrap().held as usize;
        set_memory_limit(Device::CPU, (held + outputs + 9 * MIB) as u64).unwrap();
        let error = call().expect_err(name);
        set_memory_limit(Device::CPU, 0).unwrap();
        assert!(
            matches!(&error, Error::Dispatch(keyway_dispatcher::Error::OutOfMemory { .. })),
            "{name}: {error:?}"
        );
        let text = error.to_string();
        let digits = text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0usize)).max();
        assert!(digits >= Some(8 * MIB), "{name} does not say how much was asked for: {text}");
        assert_eq!(text.matches("out of memory").count(), 1, "{name}: {text}");
        call().expect(name);
    }
}
