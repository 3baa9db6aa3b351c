//! Outputs that are written at wrong offsets, or not at all.

use super::Fault;
use crate::raw::{Elements, Staged};
use std::sync::Mutex;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("last_element_skipped", "the last element stays as it was", &["mul", "exp"], |site| {
        let out = site.output(0)?;
        let Some(last) = out.len().checked_sub(1) else { return site.run() };
        let (before, whole) = (out.get(last), out.int(last));
        site.run()?;
        if before.fract() == 0.0 {
            out.set_int(last, whole)
        } else {
            out.set(last, before)
        }
        Ok(())
    }),
    Fault::new("in_place_by_rows", "leaves what is not row-major as it was, in place", &["relu"], |site| {
        let out = site.output(0)?;
        if site.is_in_place()? && !out.is_row_major() { Ok(()) } else { site.run() }
    })
    .dtypes(&["f32"]),
    Fault::new("write_past_end", "one element is written after the last", &["add", "relu"], |site| {
        site.run()?;
        let out = site.output(0)?;
        beside(&out, out.extent());
        Ok(())
    }),
    Fault::new("write_before_start", "one element is written before the first", &["sub", "exp"], |site| {
        site.run()?;
        beside(&site.output(0)?, -1);
        Ok(())
    }),
    Fault::new(
        "gap_overwritten",
        "writes between the elements of a strided output",
        &["add", "round"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            // Every stride is even, so the offset after the first element is a gap.
            let gaps = out.sizes().iter().zip(out.strides()).all(|(&n, &s)| n == 1 || s % 2 == 0);
            if gaps && out.extent() > 1 {
                out.poke(1, 1.0);
            }
            Ok(())
        },
    ),
    Fault::new(
        "out_stride_ignored",
        "writes a strided output as if it were row-major",
        &["mul", "amax"],
        |site| {
            let out = site.output(0)?;
            if out.is_row_major() || out.extent() < out.len() as i64 {
                return site.run();
            }
            let made = Staged::copy(&out);
            site.run_into(&made)?;
            (0..out.len()).for_each(|nth| out.poke(nth as i64, made.elements().get(nth)));
            Ok(())
        },
    ),
    Fault::new("out_ignored", "a strided output is not written", &["exp", "mm"], |site| {
        let out = site.output(0)?;
        if out.is_row_major() { site.run() } else { site.run_into(&Staged::copy(&out)) }
    }),
    Fault::new("out_added_to", "adds to what the output held before", &["mean", "sigmoid"], |site| {
        let out = site.output(0)?;
        let before = out.values();
        site.run()?;
        before.iter().enumerate().for_each(|(nth, x)| out.set(nth, out.get(nth) + x));
        Ok(())
    }),
    Fault::new(
        "input_overwritten",
        "the first argument is used as scratch memory",
        &["sum", "softmax"],
        |site| {
            site.run()?;
            let (input, out) = (site.input(0)?, site.output(0)?);
            if input.len() > 0 && input.address() != out.address() {
                input.set(0, input.get(0) + 1.0);
            }
            Ok(())
        },
    ),
    Fault::new(
        "in_place_wrong",
        "the output is cleared before the arguments are read",
        &["mul", "relu"],
        |site| {
            if site.is_in_place()? {
                site.output(0)?.map(|_| 0.0);
            }
            site.run()
        },
    ),
    Fault::new(
        "stale_output",
        "gives the last result again where the sizes are the same",
        &["relu"],
        |site| {
            static LAST: Mutex<Vec<f64>> = Mutex::new(Vec::new());
            site.run()?;
            let out = site.output(0)?;
            let mut last = LAST.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let made = out.values();
            if last.len() == made.len() {
                last.iter().enumerate().for_each(|(nth, &value)| out.set(nth, value));
            }
            *last = made;
            Ok(())
        },
    ),
    Fault::new(
        "second_output_stale",
        "the second output is written for the first line only",
        &["sort"],
        |site| {
            let places = site.output(1)?;
            let before = places.values();
            site.run()?;
            let line = places.sizes().last().map_or(1, |&n| n.max(1) as usize);
            (line..places.len()).for_each(|nth| places.set(nth, before[nth]));
            Ok(())
        },
    ),
];

/// Writes outside of a tensor: the memory may belong to any owner, which is the fault.
fn beside(tensor: &Elements<'_>, offset: i64) {
    if tensor.len() > 0 {
        tensor.poke(offset, 1.0);
    }
}
