//! Pooling, interpolation, and the gradients of those that are sums: the elements of each output position are listed in
//! tables, which are computed here.

use super::launch::{Dims, Divisor, launch};
use super::nets::{Image, ROW_THREADS, counted, dim, three, unsupported, with_scratch};
use super::tables::{Mode, Spacing, Table};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Error};
use std::ops::Range;

family!("resample");

/// `Table` in resample.cu.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Lists {
    ends: u64,
    elements: u64,
    weights: u64,
    divisors: u64,
}

/// `Resample` in resample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ResampleArgument {
    out: u64,
    places: u64,
    input: u64,
    table: [Lists; 3],
    size: [u64; 3],
    stride: [i64; 3],
    count: u64,
    divides: u32,
    results: Dims<6>,
}
// SAFETY: `Resample` has these fields.
unsafe impl Argument for ResampleArgument {}

/// Runs the kernel `name` from an image to one or two outputs.
fn run(
    call: &Call<'_>,
    kernel: Kernel,
    name: &str,
    input: &Image,
    tables: &[Table; 3],
    divides: bool,
) -> Result<(), Error> {
    let out = Image::output(call, 0)?;
    let places = if call.n_outputs() > 1 { Some(Image::output(call, 1)?) } else { None };
    if out.is_empty() {
        return Ok(());
    }
    let count: usize = out.sizes.iter().product();
    counted(count)?;
    let places_strides = places.map_or([0; 5], |places| places.strides);
    let result = |d: usize| {
        let from = if d < 2 { input.strides[d] } else { 0 };
        let mut strides = [out.strides[d], places_strides[d], from, 0, 0, 0];
        if let Some(own) = d.checked_sub(2) {
            strides[3 + own] = 1;
        }
        dim(out.sizes[d], strides)
    };
    let mut bytes = Vec::new();
    let mut lists = [Lists::default(); 3];
    for (list, table) in lists.iter_mut().zip(tables) {
        *list = append(&mut bytes, table, kernel.dtype == "f64")?;
    }
    let (gpu, stream) = (device_of(call)?, call.stream());
    with_scratch((gpu, stream), bytes.len() as u64, |at| {
        // SAFETY: ordinary memory, which is valid for the call.
        unsafe { gpu.context.copy_in(at, bytes.as_ptr().cast(), bytes.len() as u64, stream)? };
        let argument = ResampleArgument {
            out: out.data,
            places: places.map_or(0, |places| places.data),
            input: input.data,
            table: lists.map(|list| Lists {
                ends: list.ends + at,
                elements: list.elements + at,
                weights: list.weights + at,
                divisors: list.divisors + at,
            }),
            size: [2, 3, 4].map(|d| input.sizes[d] as u64),
            stride: [2, 3, 4].map(|d| input.strides[d]),
            count: count as u64,
            divides: u32::from(divides),
            results: Dims::new(&[0, 1, 2, 3, 4].map(result)),
        };
        let entry = format_args!("{name}_{}", kernel.dtype);
        let grid = ([count.div_ceil(ROW_THREADS), 1], ROW_THREADS as u32);
        launch(gpu, kernel, entry, grid, &argument, stream)
    })
}

/// Appends the lists of a table in the kernel's format, and returns their offsets.
fn append(bytes: &mut Vec<u8>, table: &Table, is_f64: bool) -> Result<Lists, Error> {
    let numbers = |bytes: &mut Vec<u8>, list: &[usize]| -> Result<u64, Error> {
        let begin = bytes.len() as u64;
        for &number in list {
            bytes.extend_from_slice(&counted(number)?.to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        Ok(begin)
    };
    let wide = |bytes: &mut Vec<u8>, list: &[f64]| {
        let begin = bytes.len() as u64;
        for number in list {
            match is_f64 {
                true => bytes.extend_from_slice(&number.to_le_bytes()),
                false => bytes.extend_from_slice(&(*number as f32).to_le_bytes()),
            }
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        begin
    };
    Ok(Lists {
        ends: numbers(bytes, &table.ends)?,
        elements: numbers(bytes, &table.elements)?,
        weights: wide(bytes, &table.weights),
        divisors: wide(bytes, &table.divisors),
    })
}

/// The tables of three dimensions.
fn tables(of: impl FnMut(usize) -> Result<Table, Error>) -> Result<[Table; 3], Error> {
    let mut of = of;
    Ok([of(0)?, of(1)?, of(2)?])
}

/// The parameters of a pooling window.
struct Window {
    kernel: [i64; 3],
    stride: [i64; 3],
    padding: [i64; 3],
}

impl Window {
    /// Reads kernel, stride and padding from arguments `at` to `at + 2`.
    fn of(call: &Call<'_>, at: usize) -> Result<Window, Error> {
        let (kernel, stride) = (three(call.ints(at)?, 1), three(call.ints(at + 1)?, 1));
        Ok(Window { kernel, stride, padding: three(call.ints(at + 2)?, 0) })
    }

    /// The range of elements of the window at an output position, in a padded image; the padding comes first.
    fn elements(&self, d: usize, (size, border): (usize, i64), place: usize) -> Range<usize> {
        let first = (place as i64).saturating_mul(self.stride[d]).saturating_add(border - self.padding[d]);
        let all = size as i64 + 2 * border;
        let [begin, end] = [first, first.saturating_add(self.kernel[d])].map(|at| at.clamp(0, all) as usize);
        begin..end
    }
}

/// `Pool` in resample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct PoolArgument {
    out: u64,
    places: u64,
    input: u64,
    count: u64,
    stride: [i64; 3],
    out_stride: [i64; 3],
    places_stride: [i64; 3],
    size: [u32; 3],
    window: [u32; 3],
    step: [u32; 3],
    padding: [u32; 3],
    dilation: [u32; 3],
    results: [Divisor; 3],
    planes: Dims<3>,
}
// SAFETY: `Pool` has these fields.
unsafe impl Argument for PoolArgument {}

/// `max_pool` and, with one output, `max_pool_values`.
fn max_pool(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    let places = match call.n_outputs() {
        1 => Image { data: 0, ..out },
        _ => Image::output(call, 1)?,
    };
    let window = Window::of(call, 1)?;
    if out.is_empty() {
        return Ok(());
    }
    let count: usize = out.sizes.iter().product();
    counted(count)?;
    // The padded image and the window are counted in 32 bits. A larger step is never taken.
    let dilation = three(call.ints(4)?, 1);
    for (d, each) in dilation.iter().enumerate() {
        counted(input.sizes[d + 2].saturating_add((window.padding[d].max(0) as usize).saturating_mul(2)))?;
        counted((window.kernel[d] - 1).max(0).saturating_mul(*each) as usize)?;
    }
    let held = |n: i64| n.clamp(0, i64::from(i32::MAX)) as u32;
    let spatial = |strides: [i64; 5]| [2, 3, 4].map(|d| strides[d]);
    let lead = [0, 1].map(|d| out.sizes[d] as i64);
    let planes = Strided::new(&lead, [&out.strides[..2], &places.strides[..2], &input.strides[..2]])?;
    let argument = PoolArgument {
        out: out.data,
        places: places.data,
        input: input.data,
        count: count as u64,
        stride: spatial(input.strides),
        out_stride: spatial(out.strides),
        places_stride: spatial(places.strides),
        size: [2, 3, 4].map(|d| input.sizes[d] as u32),
        window: window.kernel.map(held),
        step: window.stride.map(held),
        padding: window.padding.map(held),
        dilation: dilation.map(held),
        results: [2, 3, 4].map(|d| Divisor::new(out.sizes[d] as u32)),
        planes: Dims::of(&planes)?,
    };
    let grid = ([count.div_ceil(ROW_THREADS), 1], ROW_THREADS as u32);
    let entry = format_args!("max_pool_{}", kernel.dtype);
    launch(device_of(call)?, kernel, entry, grid, &argument, call.stream())
}

/// The divisor of the sum at each output position: per position in the last dimensions, or constant.
fn divisors(
    call: &Call<'_>,
    at: usize,
    window: &Window,
    d: usize,
    size: usize,
    place: usize,
) -> Result<f64, Error> {
    if !call.is_none(at + 1)? {
        return Ok(if d == 0 { call.int(at + 1)?.max(1) as f64 } else { 1.0 });
    }
    let border = if call.bool(at)? { window.padding[d] } else { 0 };
    Ok(window.elements(d, (size, border), place).len() as f64)
}

fn avg_pool(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    let window = Window::of(call, 1)?;
    let tables = tables(|d| {
        let size = input.sizes[d + 2];
        let mut table = Table::new(out.sizes[d + 2], |place| {
            (window.elements(d, (size, 0), place).map(|at| (at, 1.0)).collect(), 1.0)
        })?;
        for place in 0..out.sizes[d + 2] {
            table.divisors[place] = divisors(call, 5, &window, d, size, place)?;
        }
        Ok(table)
    })?;
    run(call, kernel, "weighted", &input, &tables, false)
}

fn avg_pool_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    let window = Window::of(call, 2)?;
    let tables = tables(|d| {
        let (size, count) = (out.sizes[d + 2], grad.sizes[d + 2]);
        let counts: Result<Vec<f64>, Error> =
            (0..count).map(|place| divisors(call, 6, &window, d, size, place)).collect();
        let counts = counts?;
        let table = Table::new(count, |place| {
            (window.elements(d, (size, 0), place).map(|at| (at, counts[place])).collect(), 1.0)
        })?;
        Ok(table.transposed(size))
    })?;
    run(call, kernel, "weighted", &grad, &tables, true)
}

/// The range of input elements in window `i` of `count` over a dimension of `size` elements.
fn adaptive(size: usize, count: usize, i: usize) -> Range<usize> {
    let (size, count, i) = (size as u128, count.max(1) as u128, i as u128);
    (i * size / count) as usize..((i + 1) * size).div_ceil(count) as usize
}

fn adaptive_max_pool(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    let tables = tables(|d| adaptive_table(input.sizes[d + 2], out.sizes[d + 2], false))?;
    run(call, kernel, "largest", &input, &tables, false)
}

/// The table of adaptive pooling: with weights of the mean, or of the elements alone.
fn adaptive_table(size: usize, count: usize, mean: bool) -> Result<Table, Error> {
    Table::new(count, |place| {
        let elements = adaptive(size, count, place);
        let divisor = if mean { elements.len() as f64 } else { 1.0 };
        (elements.map(|at| (at, 1.0)).collect(), divisor)
    })
}

fn adaptive_avg_pool(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    let tables = tables(|d| adaptive_table(input.sizes[d + 2], out.sizes[d + 2], true))?;
    run(call, kernel, "weighted", &input, &tables, false)
}

fn adaptive_avg_pool_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    let tables = tables(|d| {
        let (size, count) = (out.sizes[d + 2], grad.sizes[d + 2]);
        let table = Table::new(count, |place| {
            let elements = adaptive(size, count, place);
            let each = elements.len() as f64;
            (elements.map(|at| (at, each)).collect(), 1.0)
        })?;
        Ok(table.transposed(size))
    })?;
    run(call, kernel, "weighted", &grad, &tables, true)
}

/// The tables of `interpolate` between these sizes; the mode and its options are arguments 2 to 4.
fn interpolation(call: &Call<'_>, from: &Image, to: &Image) -> Result<[Table; 3], Error> {
    let (name, align_corners, scales) = (call.str(2)?, call.bool(3)?, call.floats(4)?);
    let mode = match name {
        "nearest" => Mode::Nearest,
        "nearest-exact" => Mode::NearestExact,
        "linear" => Mode::Linear,
        "cubic" => Mode::Cubic,
        other => return Err(unsupported(format!("interpolation by `{other}`"))),
    };
    // Missing dimensions of the image come first and have size 1.
    let lacking = 3 - call.ints(1)?.len().min(3);
    tables(|d| {
        let Some(own) = d.checked_sub(lacking) else { return Table::new(1, |_| (vec![(0, 1.0)], 1.0)) };
        let scale = scales.get(own).copied();
        Spacing { size: from.sizes[d + 2], count: to.sizes[d + 2], align_corners, scale }.table(mode)
    })
}

fn interpolate(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    run(call, kernel, "weighted", &input, &interpolation(call, &input, &out)?, false)
}

fn interpolate_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, out) = (Image::argument(call, 0)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    let tables = interpolation(call, &out, &grad)?;
    let tables = [0, 1, 2].map(|d| tables[d].transposed(out.sizes[d + 2]));
    run(call, kernel, "weighted", &grad, &tables, false)
}
