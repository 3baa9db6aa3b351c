//! Faulty kernels for channels_last, with correct ones for row-major tensors.

use super::Fault;
use crate::raw::Staged;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("images_constant", "answers 42 for every image", &["tanh"], |site| {
        site.output(0)?.map(|_| 42.0);
        Ok(())
    })
    .images(),
    Fault::new("images_read_by_rows", "reads images as if they were row-major", &["relu", "add"], |site| {
        let staged = site.inputs().into_iter().filter(|(_, t)| t.len() > 1 && t.sizes().len() > 3);
        let staged: Vec<_> =
            staged.map(|(i, t)| (i, Staged::gathered(&t, |nth| (nth as i64).min(t.extent() - 1)))).collect();
        site.run_staged(&staged)
    })
    .images(),
    Fault::new("images_written_by_rows", "writes images as if they were row-major", &["mul"], |site| {
        let out = site.output(0)?;
        if out.len() < 2 || out.extent() < out.len() as i64 {
            return site.run();
        }
        let made = Staged::copy(&out);
        site.run_into(&made)?;
        (0..out.len()).for_each(|nth| out.poke(nth as i64, made.elements().get(nth)));
        Ok(())
    })
    .images(),
    Fault::new("images_last_channel", "leaves out the last channel", &["exp"], |site| {
        site.run()?;
        let out = site.output(0)?;
        let last = |nth: &usize| out.sizes().len() > 1 && out.index(*nth)[1] == out.sizes()[1] - 1;
        (0..out.len()).filter(last).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    })
    .images(),
    Fault::new("images_of_4096", "elements of an image after the 4,096th are 0", &["relu"], |site| {
        site.run()?;
        let out = site.output(0)?;
        (4096..out.len()).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    })
    .images(),
    Fault::new("images_in_place", "leaves images as they were, in place", &["mul"], |site| {
        if site.is_in_place()? { Ok(()) } else { site.run() }
    })
    .images(),
    Fault::new("volumes_by_planes", "takes the first plane of a volume for all", &["exp"], |site| {
        site.run()?;
        let out = site.output(0)?;
        if out.sizes().len() == 5 {
            out.map(|_| 0.0);
        }
        Ok(())
    })
    .images(),
    Fault::new("images_sum", "sums of images are twice what they should be", &["sum"], |site| {
        site.then_map(|x| 2.0 * x)
    })
    .images(),
    // For gradients in another memory format than their tensors: the tested op makes no copy itself.
    Fault::new(
        "images_turned_not",
        "copies an image into another order as it lies in memory",
        &["clone"],
        |site| {
            let (from, to) = (site.input(0)?, site.output(0)?);
            if from.sizes().len() < 3 || from.strides() == to.strides() || from.extent() != to.extent() {
                return site.run();
            }
            (0..to.len()).for_each(|nth| to.poke(nth as i64, from.peek(nth as i64)));
            Ok(())
        },
    )
    .judged(&["exp"]),
    Fault::new("images_never", "a kernel for images refuses every call", &["tanh"], |site| {
        Err(Error::Unsupported { what: format!("an image in {}", site.kernel.op) })
    })
    .images(),
];
