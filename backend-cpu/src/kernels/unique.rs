//! `unique`

use super::buffer::Buffer;
use super::cells::Cells;
use super::order::{Key, Places, Ranking, range};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

/// Calls `visit` for each element in sorted order, with whether it differs from the previous one, and its index.
fn for_each_in_order<T: Key>(
    places: &Places<'_>,
    read: impl Fn(usize) -> T,
    mut visit: impl FnMut(bool, usize),
) {
    let mut last = None;
    places.each(|_, i| {
        // NaN differs from itself, so each NaN is a distinct value.
        let value = Some(read(i));
        visit(value != last, i);
        last = value;
    });
}

/// The maximum range of keys for which a histogram is computed instead of sorting the elements.
const KEYS: u64 = 1 << 16;

/// As [`unique`], for elements with keys in `least..=least + last`.
fn counted<T: Key>(
    call: &Call,
    n: usize,
    read: impl Fn(usize) -> T,
    (least, last): (u64, usize),
) -> Result<(), Error> {
    let mut found = Buffer::<u32>::zeroed(last + 1)?;
    let found = &mut found[..=last];
    // Another thread may write the elements concurrently.
    let place = |i: usize| (read(i).key().wrapping_sub(least) as usize).min(last);
    for i in 0..n {
        found[place(i)] += 1;
    }
    let total = found.iter().filter(|count| **count > 0).count() as i64;
    let given = call.tensor(0)?;
    let wanted = (call.bool(1)?, call.bool(2)?);
    let mut values = call.new_tensor::<T>(&[total])?;
    let mut inverse = call.new_tensor::<i64>(if wanted.0 { given.sizes() } else { &[0] })?;
    let mut counts = call.new_tensor::<i64>(&[if wanted.1 { total } else { 0 }])?;
    {
        let (mut values, mut counts) = (values.view_mut::<T>()?, counts.view_mut::<i64>()?);
        let (values, counts) = (values.lanes(), counts.lanes());
        let keys = (least..).zip(found.iter_mut()).filter(|(_, count)| **count > 0);
        for (rank, (key, count)) in keys.enumerate() {
            // SAFETY: there is an element for each value that was found.
            unsafe {
                values.write(rank, T::of_key(key));
                if wanted.1 {
                    counts.write(rank, i64::from(*count));
                }
            }
            // From here the count is replaced by the rank of the value, which is below the number of elements.
            *count = rank as u32;
        }
        if wanted.0 {
            let mut inverse = inverse.view_mut::<i64>()?;
            let inverse = inverse.lanes();
            // SAFETY: the inverse has `n` elements.
            (0..n).for_each(|i| unsafe { inverse.write(i, i64::from(found[place(i)])) });
        }
    }
    call.set_output(0, values)?;
    call.set_output(1, inverse)?;
    call.set_output(2, counts)
}

fn unique<T: Key>(call: &Call) -> Result<(), Error> {
    let from = Cells::<T>::argument(call, 0)?;
    let n = from.numel();
    // SAFETY: the plan makes the argument contiguous, so that `n` elements are at this address.
    let read = |i: usize| unsafe { from.lanes.read(i) };
    if T::EXACT && n > 0 && u32::try_from(n).is_ok() {
        // A byte has few possible values.
        let (least, most) = if size_of::<T>() == 1 { (0, 255) } else { range(n, read) };
        if most - least < KEYS.min(n as u64) {
            return counted(call, n, read, (least, (most - least) as usize));
        }
    }
    let mut ranking = Ranking::new::<T>(n, n)?;
    let places = ranking.rank(false, read);
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
            // At most the counted number: another thread may write the floats concurrently.
            if new && rank < count as usize {
                (rank, run) = (rank + 1, 0);
                // SAFETY: `rank` is at most the number of values.
                unsafe { values.write(rank - 1, read(i)) };
            }
            run += 1;
            if wanted.0 {
                // SAFETY: `i` is the index of an element, and the inverse has the same number of elements.
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
