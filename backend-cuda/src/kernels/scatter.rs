//! `scatter`, `index_copy`, `scatter_add`, `index_add`, `index_put`, `scatter_reduce` and `index_reduce`: elements written,
//! added or reduced at indices.

use super::elements::{Taken, wide_scalar};
use super::indices::{Checked, Offsets, checked, layout};
use super::launch::{DIMS, Dims, Operand, POSITIONS, launch, pieces};
use super::order::sorted;
use super::scratch::{On, Scratch, copy};
use super::space::{Laid, countable, dense, each, in_order, wrapped};
use super::{Kernel, device_of};
use crate::checks::Bounds;
use crate::driver::Argument;
use keyway_sdk::author::strided::Dim;
use keyway_sdk::author::{Call, Error};

family!("scatter");

/// `Place` in scatter.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct PlaceArgument {
    index: Operand,
    places: u64,
    order: u64,
    base: u64,
    stride: i64,
    first: u64,
    count: u64,
    dims: Dims<2>,
}
// SAFETY: `Place` has these fields.
unsafe impl Argument for PlaceArgument {}

/// `Put` in scatter.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct PutArgument {
    out: u64,
    target: Operand,
    source: Operand,
    places: u64,
    order: u64,
    base: u64,
    sources_count: u64,
    alpha: u64,
    reduction: u32,
    include: u32,
    count: u64,
    dims: Dims<4>,
    sources: Dims<1>,
}
// SAFETY: `Put` has these fields.
unsafe impl Argument for PutArgument {}

/// Sources and their targets. A target is an element of the output, or a slice of it.
struct Writes {
    out: Laid,
    target: Laid,
    /// The indices, and the stride of an index in targets.
    index: Operand,
    _checked: Option<Checked>,
    stride: i64,
    /// The indices' dimensions in row-major order, with the strides of index and target.
    space: Vec<Dim<2>>,
    /// The source, and its dimensions along the indices.
    source: Operand,
    sources: Vec<Dim<1>>,
    /// Along the output's dimensions: the strides of the target, and of the source in a slice.
    place: Vec<i64>,
    across: Vec<i64>,
    /// Number of targets.
    places: usize,
}

/// The reduction of sources and previous values: with the scale `alpha`, or by a code of scatter.cu.
#[derive(Clone, Copy, Default)]
struct How {
    alpha: u64,
    reduction: u32,
    include: bool,
}

impl How {
    /// Reads the reduction and `include_self` from arguments 4 and 5.
    fn of(call: &Call<'_>) -> Result<How, Error> {
        let name = call.str(4)?;
        let at = ["sum", "prod", "mean", "amax", "amin"].iter().position(|each| *each == name);
        let at =
            at.ok_or_else(|| Error::Unsupported { what: format!("the reduction `{name}` on this device") })?;
        Ok(How { alpha: 0, reduction: at as u32, include: call.bool(5)? })
    }
}

/// The source broadcast to a shape, as its address and strides: a copy if it overlaps the output, or has more dimensions
/// than kernels support.
fn source_in(
    on: On,
    source: &Laid,
    shape: &[i64],
    out: &Laid,
    copied: &mut Option<Scratch>,
) -> Result<(Operand, Vec<i64>), Error> {
    let strides = match source.sizes.len() {
        n if n == shape.len() => source.strides.clone(),
        _ => source.expanded(shape),
    };
    let meets = source.operand.data != 0 && source.operand.data == out.operand.data;
    if !meets && in_order(shape, [&strides]).len() <= DIMS {
        return Ok((source.operand, strides));
    }
    let own = dense(shape);
    let scratch = copied.insert(Scratch::new(on, shape.iter().product::<i64>() as usize, source.bytes)?);
    copy(on, source.bytes, shape, (scratch.operand(), &own), (source.operand, &strides))?;
    Ok((scratch.operand(), own))
}

/// Reads a call `(self, dim, index, source)`, with an index per element, or a 1-d index of whole slices.
fn along(
    on: On,
    (op, call): (&'static str, &Call<'_>),
    (slices, taken): (bool, Taken),
    copied: &mut Option<Scratch>,
) -> Result<Writes, Error> {
    let (out, target) = (Laid::output(call, 0)?.with_dim(), Laid::argument(call, 0, taken)?.with_dim());
    let index = Laid::argument(call, 2, Taken::Raw)?.with_dim();
    let source = Laid::argument(call, 3, taken)?;
    let dim = wrapped(call.int(1)?, target.sizes.len());
    let checked = checked(on, index, Bounds::of_dim(op, "index", dim, target.sizes[dim]))?;
    let index = checked.laid.clone();
    let ndim = target.sizes.len();
    let only =
        |at: usize, value: i64| -> Vec<i64> { (0..ndim).map(|d| if d == at { value } else { 0 }).collect() };
    let mut shape = if slices { target.sizes.clone() } else { index.sizes.clone() };
    if slices {
        shape[dim] = index.sizes[0];
    }
    // A larger source is read in the index's shape, with its own strides.
    let (source, strides) = source_in(on, &source, &shape, &out, copied)?;
    if slices {
        let mut across = strides.clone();
        across[dim] = 0;
        return Ok(Writes {
            index: index.operand,
            _checked: Some(checked),
            stride: 1,
            space: in_order(&index.sizes, [&index.strides, &[0]]),
            source,
            sources: in_order(&index.sizes, [&[strides[dim]]]),
            place: only(dim, 1),
            across,
            places: target.sizes[dim] as usize,
            out,
            target,
        });
    }
    let place = dense(&target.sizes);
    let mut base = place.clone();
    base[dim] = 0;
    Ok(Writes {
        index: index.operand,
        _checked: Some(checked),
        stride: place[dim],
        space: in_order(&shape, [&index.strides, &base]),
        source,
        sources: in_order(&shape, [&strides]),
        across: vec![0; ndim],
        places: target.numel(),
        place,
        out,
        target,
    })
}

impl Writes {
    fn count(&self) -> usize {
        self.space.iter().map(|dim| dim.size).product()
    }

    /// Writes the target index of each source.
    fn number(&self, on: On, entry: &str, places: u64, order: u64) -> Result<(), Error> {
        let mut first = 0;
        for piece in pieces(&self.space, POSITIONS) {
            let argument = PlaceArgument {
                index: self.index.shifted(piece.offsets[0], 8),
                places,
                order,
                base: piece.offsets[1] as u64,
                stride: self.stride,
                first,
                count: piece.count as u64,
                dims: Dims::new(&piece.dims),
            };
            let kernel = Kernel { family: "scatter", name: "places", dtype: "u64" };
            launch(on.0, kernel, format_args!("{entry}"), each(piece.count), &argument, on.1)?;
            first += piece.count as u64;
        }
        Ok(())
    }

    /// Writes the output by the kernel of this name.
    fn put(
        &self,
        on: On,
        entry: &str,
        (places, order, sources_count): (u64, u64, usize),
        how: How,
    ) -> Result<(), Error> {
        let strides: [&[i64]; 4] = [&self.out.strides, &self.target.strides, &self.place, &self.across];
        for piece in pieces(&in_order(&self.out.sizes, strides), POSITIONS) {
            let [out, target, place, across] = piece.offsets;
            let argument = PutArgument {
                out: self.out.operand.shifted(out, self.out.bytes).data,
                target: self.target.operand.shifted(target, self.out.bytes),
                source: self.source.shifted(across, self.out.bytes),
                places,
                order,
                base: place as u64,
                sources_count: sources_count as u64,
                alpha: how.alpha,
                reduction: how.reduction,
                include: u32::from(how.include),
                count: piece.count as u64,
                dims: Dims::new(&piece.dims),
                sources: Dims::new(&self.sources),
            };
            let kernel = Kernel { family: "scatter", name: "put", dtype: "" };
            launch(on.0, kernel, format_args!("{entry}"), each(piece.count), &argument, on.1)?;
        }
        Ok(())
    }

    /// The last source of each target overwrites it.
    fn write(&self, on: On) -> Result<(), Error> {
        if self.out.numel() == 0 {
            return Ok(());
        }
        countable(self.count(), "indices")?;
        let last = Scratch::filled(on, self.places, 0)?;
        self.number(on, "last_u64", last.at(), 0)?;
        let bits = self.out.bytes * 8;
        self.put(on, &format!("put_b{bits}"), (last.at(), 0, 0), How::default())
    }

    /// Adds `alpha` times the sources of each target to it, in order.
    fn add(&self, on: On, dtype: &str, alpha: u64) -> Result<(), Error> {
        self.join(on, &format!("put_sum_{dtype}"), How { alpha, ..How::default() })
    }

    /// Reduces the sources of each target by the named kernel, in order.
    fn join(&self, on: On, entry: &str, how: How) -> Result<(), Error> {
        if self.out.numel() == 0 {
            return Ok(());
        }
        let count = countable(self.count(), "indices")?;
        let (places, order) = (Scratch::new(on, count, 8)?, Scratch::new(on, count, 4)?);
        self.number(on, "places_u64", places.at(), order.at())?;
        let bits = u64::BITS - (self.places as u64).leading_zeros();
        let (places, order) = sorted(on, (places, order), (count, count), bits)?;
        self.put(on, entry, (places.at(), order.at(), count), how)
    }
}

fn scatter(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, mut copied) = ((device_of(call)?, call.stream()), None);
    along(on, (kernel.name, call), (false, Taken::Raw), &mut copied)?.write(on)
}

fn index_copy(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, mut copied) = ((device_of(call)?, call.stream()), None);
    along(on, (kernel.name, call), (true, Taken::Raw), &mut copied)?.write(on)
}

/// 1 in the accumulation type, which is f32 for bool.
fn one(dtype: &str) -> u64 {
    match dtype {
        "f64" => 1f64.to_bits(),
        "f16" | "bf16" | "f32" | "bool" => u64::from(1f32.to_bits()),
        _ => 1,
    }
}

fn scatter_add(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, mut copied) = ((device_of(call)?, call.stream()), None);
    along(on, (kernel.name, call), (false, Taken::Rounded), &mut copied)?.add(
        on,
        kernel.dtype,
        one(kernel.dtype),
    )
}

fn index_add(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, mut copied) = ((device_of(call)?, call.stream()), None);
    let alpha = wide_scalar(call, 4, if kernel.dtype == "bool" { "f32" } else { kernel.dtype })?;
    along(on, (kernel.name, call), (true, Taken::Rounded), &mut copied)?.add(on, kernel.dtype, alpha)
}

fn scatter_reduce(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    reduced(call, kernel, false)
}

fn index_reduce(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    reduced(call, kernel, true)
}

fn reduced(call: &Call<'_>, kernel: Kernel, slices: bool) -> Result<(), Error> {
    let (on, mut copied) = ((device_of(call)?, call.stream()), None);
    let (entry, how) = (format!("put_reduced_{}", kernel.dtype), How::of(call)?);
    along(on, (kernel.name, call), (slices, Taken::Rounded), &mut copied)?.join(on, &entry, how)
}

fn index_put(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, mut copied) = ((device_of(call)?, call.stream()), None);
    let (dims, accumulate) = (call.ints(2)?, call.bool(4)?);
    let taken = if accumulate { Taken::Rounded } else { Taken::Raw };
    let (out, target) = (Laid::output(call, 0)?, Laid::argument(call, 0, taken)?);
    let values = Laid::argument(call, 3, taken)?;
    // Targets have row-major indices over the indexed dimensions.
    let indexed: Vec<i64> = dims.iter().map(|&d| target.sizes[d as usize]).collect();
    let mut place = vec![0; target.sizes.len()];
    dims.iter().zip(dense(&indexed)).for_each(|(&d, stride)| place[d as usize] = stride);
    let at = Offsets::new(on, (kernel.name, call, 1), dims, &target.sizes, &place)?;
    let layout = layout(target.sizes.len(), dims, at.sizes.len());
    let size = |&(is_index, d): &(bool, usize)| if is_index { at.sizes[d] } else { target.sizes[d] };
    let shape: Vec<i64> = layout.iter().map(size).collect();
    let expanded = Laid { strides: values.expanded(&shape), sizes: shape.clone(), ..values };
    let (source, strides) = source_in(on, &expanded, &shape, &out, &mut copied)?;
    let (mut across, mut lines) = (vec![0; target.sizes.len()], vec![0; at.sizes.len()]);
    for (&(is_index, d), stride) in layout.iter().zip(strides) {
        if is_index { lines[d] = stride } else { across[d] = stride }
    }
    let own = dense(&at.sizes);
    let writes = Writes {
        index: at.values.operand(),
        _checked: None,
        stride: 1,
        space: in_order(&at.sizes, [&own, &vec![0; own.len()]]),
        source,
        sources: in_order(&at.sizes, [&lines]),
        places: indexed.iter().product::<i64>() as usize,
        place,
        across,
        out,
        target,
    };
    if accumulate { writes.add(on, kernel.dtype, one(kernel.dtype)) } else { writes.write(on) }
}
