//! `unique`

use super::cells::Cells;
use super::order::{Key, Places, Ranking};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

/// Gives the elements in order: whether one differs from that before it, and its place.
fn for_each_in_order<T: Key>(
    places: &Places<'_>,
    read: impl Fn(usize) -> T,
    mut visit: impl FnMut(bool, usize),
) {
    let mut last = None;
    places.each(|_, i| {
        // NaN differs from itself, so each is a value of its own.
        let value = Some(read(i));
        visit(value != last, i);
        last = value;
    });
}

/// The values of a byte: with as many elements, each value is counted rather than the elements sorted.
const BYTES: usize = 256;

/// As [`unique`] of elements of one byte.
fn of_bytes<T: Key>(call: &Call, n: usize, read: impl Fn(usize) -> T) -> Result<(), Error> {
    let mut found = [(0i64, None); BYTES];
    for i in 0..n {
        let value = read(i);
        let (count, first) = &mut found[value.key() as usize];
        *count += 1;
        *first = Some(value);
    }
    let total = found.iter().filter(|(count, _)| *count > 0).count() as i64;
    let given = call.tensor(0)?;
    let wanted = (call.bool(1)?, call.bool(2)?);
    let mut values = call.new_tensor::<T>(&[total])?;
    let mut inverse = call.new_tensor::<i64>(if wanted.0 { given.sizes() } else { &[0] })?;
    let mut counts = call.new_tensor::<i64>(&[if wanted.1 { total } else { 0 }])?;
    {
        let mut ranks = [0i64; BYTES];
        let (mut values, mut counts) = (values.view_mut::<T>()?, counts.view_mut::<i64>()?);
        let (values, counts) = (values.lanes(), counts.lanes());
        let mut rank = 0;
        for (key, (count, value)) in found.into_iter().enumerate() {
            if let Some(value) = value {
                ranks[key] = rank;
                // SAFETY: there is a place for each value that was found.
                unsafe {
                    values.write(rank as usize, value);
                    if wanted.1 {
                        counts.write(rank as usize, count);
                    }
                }
                rank += 1;
            }
        }
        if wanted.0 {
            let mut inverse = inverse.view_mut::<i64>()?;
            let inverse = inverse.lanes();
            // SAFETY: the inverse has as many elements.
            (0..n).for_each(|i| unsafe { inverse.write(i, ranks[read(i).key() as usize]) });
        }
    }
    call.set_output(0, values)?;
    call.set_output(1, inverse)?;
    call.set_output(2, counts)
}

fn unique<T: Key>(call: &Call) -> Result<(), Error> {
    let from = Cells::<T>::argument(call, 0)?;
    let n = from.numel();
    // SAFETY: the plan makes the argument contiguous, so its elements are the `n` at this address.
    let read = |i: usize| unsafe { from.lanes.read(i) };
    if size_of::<T>() == 1 && call.tensor(0)?.numel() >= BYTES {
        return of_bytes(call, n, read);
    }
    let mut ranking = Ranking::new::<T>(n)?;
    let places = ranking.rank(n, false, read);
    let mut count = 0;
    for_each_in_order(&places, read, |new, _| count += i64::from(new));

    let given = call.tensor(0)?;
    let wanted = (call.bool(1)?, call.bool(2)?);
    let mut values = call.new_tensor::<T>(&[count])?;
    let mut inverse = call.new_tensor::<i64>(if wanted.0 { given.sizes() } else { &[0] })?;
    let mut counts = call.new_tensor::<i64>(&[if wanted.1 { count } else { 0 }])?;
    {
        let (mut values, mut inverse, mut counts) =
            (values.view_mut::<T>()?, inverse.view_mut::<i64>()?, counts.view_mut::<i64>()?);
        let (values, inverse, counts) = (values.lanes(), inverse.lanes(), counts.lanes());
        let (mut rank, mut run) = (0, 0);
        for_each_in_order(&places, read, |new, i| {
            // No more than were counted: another thread may write to floats meanwhile.
            if new && rank < count as usize {
                (rank, run) = (rank + 1, 0);
                // SAFETY: `rank` is at most the number of values.
                unsafe { values.write(rank - 1, read(i)) };
            }
            run += 1;
            if wanted.0 {
                // SAFETY: `i` is the place of an element, of which the inverse has as many.
                unsafe { inverse.write(i, rank as i64 - 1) };
            }
            if wanted.1 {
                // SAFETY: as for the values.
                unsafe { counts.write(rank - 1, run) };
            }
        });
    }
    call.set_output(0, values)?;
    call.set_output(1, inverse)?;
    call.set_output(2, counts)
}

super::register! {
    op: "unique", signature: "Tbb>TTT", device: "cpu", layout: "strided",
    flags: allocates,
    f32 => unique::<f32>, f64 => unique::<f64>, f16 => unique::<f16>, bf16 => unique::<bf16>,
    i8 => unique::<i8>, i16 => unique::<i16>, i32 => unique::<i32>, i64 => unique::<i64>,
    u8 => unique::<u8>, u16 => unique::<u16>, u32 => unique::<u32>, u64 => unique::<u64>,
    bool => unique::<bool>
}
