//! The layout: its components, options and attributes, its conversions, and its validity.

use crate::blocks::{Blocks, rows_and_columns};
use keyway_cpu_loops::CallExt;
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{
    Arg, Call, Error, Layout, LayoutOps, NameKind, Real, Tolerance, intern, layout_api, layout_ops_api,
    new_composite_of, new_host_tensor,
};
use keyway_test_faults as faults;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The description of the layout.
pub static API: LayoutApi = layout_api::<Int8>();
/// The layout's operations on the CPU.
pub static OPS: LayoutOpsApi = layout_ops_api::<OnCpu>();

static NUMBER: OnceLock<u16> = OnceLock::new();

/// Requests the layout's code from the host.
pub fn learn_number() -> Result<(), Error> {
    let number = intern(NameKind::Layout, Int8::NAME)?;
    NUMBER.get_or_init(|| number);
    Ok(())
}

/// The layout's code.
pub fn number() -> Option<u16> {
    NUMBER.get().copied()
}

/// Blocks of 8-bit integers.
pub struct Int8;

impl Layout for Int8 {
    const NAME: &'static str = "test.keyway/int8";
    const COMPONENTS: &'static [RawStr] = &[RawStr::new("codes"), RawStr::new("scales")];
    const ATTRS: &'static [RawStr] = &[
        RawStr::new("block"),
        RawStr::new("scale"),
        RawStr::new("mode"),
        RawStr::new("grid"),
        RawStr::new("range"),
    ];
    const ATTR_TYPES: &'static str = "int, float, str, int[], float[]";
    const OPTIONS: &'static str = "int block=32, float? scale=None";
    // Values are rounded to the nearest multiple of a scale of at most max / 127, which is rounded to f32.
    const TOLERANCE: Tolerance = Tolerance { relative_to_max: 0.5 / 127.0 + 1e-6, ..Tolerance::EXACT };
    const SAMPLES: &'static str = r#"[
        {"sizes": [4, 64]}, {"sizes": [3, 70]}, {"sizes": [5]}, {"sizes": [2, 3, 33], "dtype": "f64"},
        {"sizes": [4, 64], "options": "block=16"}, {"sizes": [8, 8], "options": "block=3"}, {"sizes": [0, 4]},
        {"sizes": [4, 8], "options": "block=4, scale=0.5", "tolerance": [0.25, 0, 0]}
    ]"#;
}

fn wrong(argument: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Error {
    Error::InvalidArgument { argument, expected: expected.into(), got: got.into() }
}

fn to_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let (rows, columns) = rows_and_columns(tensor.sizes());
    let blocks = Blocks::read(&tensor)?;
    let mut out = call.contiguous_out::<T>(0)?;
    out.iter_mut().zip(blocks.values::<T>(rows)).for_each(|(place, value)| *place = value);
    if faults::is("int8_tail_lost") && columns > blocks.block {
        let whole = columns / blocks.block * blocks.block;
        out.chunks_mut(columns).for_each(|row| row[whole..].fill(T::ZERO));
    }
    Ok(())
}

/// The largest magnitude of values that are all finite.
fn largest(values: &[f64]) -> Result<f64, Error> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(wrong("self", "finite values", value.to_string())),
        None => Ok(values.iter().fold(0.0, |max, value| value.abs().max(max))),
    }
}

fn code(value: f64, scale: f32) -> i8 {
    let quotient = if scale > 0.0 { value / f64::from(scale) } else { 0.0 };
    let rounded = if faults::is("int8_truncates") { quotient.trunc() } else { quotient.round_ties_even() };
    let most = if faults::is("int8_saturates") { 120.0 } else { 127.0 };
    rounded.clamp(-most, most) as i8
}

/// Copies the codes to a buffer of all threads and back; another thread may write to it in between.
fn through_shared(codes: &mut [i8]) {
    static SCRATCH: Mutex<Vec<i8>> = Mutex::new(Vec::new());
    let scratch = || SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut scratch = scratch();
        scratch.clear();
        scratch.extend_from_slice(codes);
    }
    std::thread::yield_now();
    for (nth, code) in codes.iter_mut().enumerate() {
        *code = scratch().get(nth).copied().unwrap_or(0);
    }
}

fn from_strided<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let asked = if faults::is("int8_block_ignored") { 32 } else { call.int(1)? };
    let block = usize::try_from(asked).ok().filter(|block| (1..=1 << 16).contains(block));
    let block = block.ok_or_else(|| wrong("block", "1 to 65,536 elements", asked.to_string()))?;
    let fixed = if call.is_none(2)? { None } else { Some(call.float(2)?) };
    let (rows, columns) = rows_and_columns(tensor.sizes());
    let per_row = columns.div_ceil(block);
    let values: Vec<f64> = call.contiguous::<T>(0)?.iter().map(|value| value.to_f64()).collect();
    let max = largest(&values)?;
    if let Some(scale) = fixed.filter(|scale| !(scale.is_finite() && *scale > 0.0 && max <= 127.5 * scale)) {
        return Err(wrong("scale", format!("at least {} for these values", max / 127.0), scale.to_string()));
    }
    let mut codes = vec![0i8; rows * per_row * block];
    let mut scales = vec![0f32; rows * per_row];
    for row in 0..rows {
        for (nth, part) in values[row * columns..][..columns].chunks(block).enumerate() {
            let at = row * per_row + nth;
            scales[at] = fixed.map_or(largest(part)? / 127.0, |scale| scale) as f32;
            let scale = scales[at];
            if !scale.is_finite() {
                return Err(wrong(
                    "self",
                    "values up to 127 times the largest f32",
                    largest(part)?.to_string(),
                ));
            }
            let to = &mut codes[at * block..][..part.len()];
            to.iter_mut().zip(part).for_each(|(to, value)| *to = code(*value, scale));
        }
    }
    if faults::is("int8_last_scale") && scales.len() > 1 {
        let first = scales[0];
        scales.iter_mut().next_back().into_iter().for_each(|last| *last = first);
    }
    if faults::is("int8_scratch_shared") {
        through_shared(&mut codes);
    }
    let grid = [rows as i64, per_row as i64];
    let mut stored = new_host_tensor::<i8>(&[grid[0], grid[1], block as i64])?;
    stored.view_mut::<i8>()?.assign(codes);
    let mut of_blocks = new_host_tensor::<f32>(&grid)?;
    of_blocks.view_mut::<f32>()?.assign(scales);
    let range = values.iter().fold([0.0, 0.0], |[low, high]: [f64; 2], v| [low.min(*v), high.max(*v)]);
    let attrs = [
        Arg::Int(block as i64),
        Arg::Float(fixed.filter(|_| !faults::is("int8_scale_lost")).unwrap_or(0.0)),
        Arg::Str(if fixed.is_some() { "fixed" } else { "absmax" }),
        Arg::Ints(&grid),
        Arg::Floats(&range),
    ];
    let number = number().ok_or_else(|| Error::Failed { detail: "the layout has no number".into() })?;
    let components = [Arg::Owned(&stored), Arg::Owned(&of_blocks)];
    call.set_output(0, new_composite_of(number, T::dtype(), tensor.sizes(), &components, &attrs)?)
}

/// Runs the function for the dtype of argument 0.
macro_rules! by_dtype {
    ($call:ident, $run:ident) => {{
        match $call.tensor(0)?.dtype() {
            dtype::F32 => $run::<f32>($call),
            dtype::F64 => $run::<f64>($call),
            other => {
                Err(Error::Unsupported { what: format!("the layout test.keyway/int8 of dtype {other}") })
            }
        }
    }};
}

/// The layout in the host's memory.
pub struct OnCpu;

impl LayoutOps for OnCpu {
    type Layout = Int8;
    const DEVICE: &'static str = "cpu";
    const SHAPES: &'static str = "of at least one dimension";

    fn accepts(sizes: &[i64]) -> bool {
        !sizes.is_empty()
    }

    fn validate(call: &Call<'_>) -> Result<(), Error> {
        let tensor = call.tensor(0)?;
        let (codes, scales) = (tensor.component(0)?, tensor.component(1)?);
        if codes.dtype() != dtype::I8 || scales.dtype() != dtype::F32 {
            let got = format!("{} and {}", codes.dtype(), scales.dtype());
            return Err(wrong("codes", "of dtype i8, and `scales` of f32", got));
        }
        let (rows, columns) = rows_and_columns(tensor.sizes());
        let (block, grid) = (tensor.attr_int(0)?, tensor.attr_ints(3)?);
        let per_row = columns.div_ceil(block.max(1) as usize) as i64;
        if block < 1 || grid != [rows as i64, per_row] {
            let expected = format!("[{rows}, {per_row}] for blocks of {block}, at least 1");
            return Err(wrong("grid", expected, format!("{grid:?}")));
        }
        if codes.sizes() != [grid[0], grid[1], block] || scales.sizes() != grid {
            let got = format!("{:?} and {:?}", codes.sizes(), scales.sizes());
            return Err(wrong(
                "codes",
                format!("of shape {grid:?} x {block}, and `scales` of {grid:?}"),
                got,
            ));
        }
        match tensor.attr_str(2)? {
            "absmax" | "fixed" => Ok(()),
            other => Err(wrong("mode", "`absmax` or `fixed`", format!("`{other}`"))),
        }
    }
    fn to_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, to_strided)
    }
    fn from_strided(call: &Call<'_>) -> Result<(), Error> {
        by_dtype!(call, from_strided)
    }
}
