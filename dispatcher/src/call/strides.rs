//! The strides of a new output.

use crate::base::dims::{self, Dims};
use crate::op::{Arg, Args, OutSpec, Plan, Strides};
use crate::tensor::{Format, Images, TensorRef};

/// The strides of a new output, by the rules of the memory format; `None` is row-major.
#[inline]
pub(super) fn choose_strides(args: &Args<'_>, plan: &Plan, spec: &OutSpec) -> Option<Dims> {
    match &spec.strides {
        Strides::Contiguous => None,
        Strides::Exact(strides) => Some(Dims::clone(strides)),
        Strides::Like(i) => match args.values.get(*i) {
            Some(Arg::Tensor(t)) if t.is_strided() && dims::same(t.sizes(), &spec.sizes) => strides_like(t),
            _ => None,
        },
        Strides::Preserve => preserved(args, plan, spec),
        Strides::Images(mask) => of_images(args, *mask, spec),
    }
}

/// See [`Strides::Images`].
fn of_images(args: &Args<'_>, mask: u32, spec: &OutSpec) -> Option<Dims> {
    if !(3..=5).contains(&spec.sizes.len()) {
        return None;
    }
    let mut images = Images::default();
    for (_, arg) in args.values.iter().enumerate().take(32).filter(|(i, _)| mask & (1 << i) != 0) {
        if let Arg::Tensor(t) = arg {
            images.add(t);
        }
    }
    images.are_channels_last().then(|| dims::channels_last_strides(&spec.sizes))
}

/// Dense strides in the order of the elements of `t` in memory; `None` if contiguous.
pub(super) fn strides_like(t: &TensorRef) -> Option<Dims> {
    match t.format() {
        Format::Contiguous | Format::Either => None,
        Format::ChannelsLast | Format::EitherLast => Some(dims::channels_last_strides(t.sizes())),
        Format::Other => dims::dense_strides(t.sizes(), t.strides()),
    }
}

/// Whether every relevant argument is row-major and not channels_last: the usual case, determined by the flags alone.
#[inline(always)]
fn all_row_major(args: &Args<'_>, plan: &Plan) -> bool {
    args.values.iter().enumerate().all(|(i, arg)| match arg {
        Arg::Tensor(t) => plan.broadcast & (1 << i) == 0 || t.format() == Format::Contiguous,
        _ => true,
    })
}

/// The output format: channels_last if any full-sized argument is, with or without gaps; the common order of dimensions if
/// all of them have one; otherwise contiguous. An argument with both formats determines the result only if no other
/// argument does, and one with overlapping elements never does. If no argument has the full size, those with the full
/// number of dimensions determine whether it is channels_last.
#[inline]
fn preserved(args: &Args<'_>, plan: &Plan, spec: &OutSpec) -> Option<Dims> {
    if all_row_major(args, plan) {
        return None;
    }
    let (mut row_major, mut meant, mut full) = (false, false, false);
    let mut smaller = Images::default();
    let mut common: Option<Dims> = None;
    let mut agree = true;
    for (i, arg) in args.values.iter().enumerate() {
        let Arg::Tensor(t) = arg else { continue };
        if plan.broadcast & (1 << i) == 0 || !t.is_strided() {
            continue;
        }
        if !dims::same(t.sizes(), &spec.sizes) {
            if t.ndim() == spec.sizes.len() {
                smaller.add(t);
            }
            continue;
        }
        full = true;
        match t.format() {
            Format::ChannelsLast => return Some(dims::channels_last_strides(&spec.sizes)),
            Format::Either => {}
            Format::EitherLast => meant = true,
            Format::Contiguous => row_major = true,
            Format::Other if dims::orders_channels_last(t.sizes(), t.strides()) => {
                return Some(dims::channels_last_strides(&spec.sizes));
            }
            Format::Other if dims::may_self_overlap(t.sizes(), t.strides()) => {}
            Format::Other => match (dims::dense_strides(t.sizes(), t.strides()), &common) {
                (None, _) => row_major = true,
                (Some(strides), None) => common = Some(strides),
                (Some(strides), Some(first)) => agree &= dims::same(first, &strides),
            },
        }
    }
    if row_major || !agree {
        return None;
    }
    meant |= !full && smaller.are_channels_last();
    common.or_else(|| meant.then(|| dims::channels_last_strides(&spec.sizes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::base::key::Device;
    use crate::op::schema::Schema;
    use crate::op::{OpEntry, OpSpec, Rule};
    use crate::tensor::TensorImpl;

    fn tensor(sizes: &[usize], last: bool) -> TensorRef {
        let strides = if last { dims::channels_last_strides(sizes) } else { dims::contiguous_strides(sizes) };
        TensorImpl::empty_strided(Dims::from_slice(sizes), strides, DType::F32, Device::CPU).unwrap()
    }

    /// Whether the output of an image op is channels_last for these arguments; the last one is ignored.
    fn gives_last(tensors: &[TensorRef]) -> bool {
        let text = "test_images(Tensor a, Tensor b, Tensor c) -> Tensor";
        let spec = OpSpec {
            schema: text,
            rule: Rule::Foreign(None),
            decomposition: None,
            extra: None,
            foreign: None,
            owner: "tests",
        };
        let schema = Schema::parse(text).unwrap();
        let op: &'static OpEntry =
            Box::leak(Box::new(OpEntry { id: 0, name: schema.name, number_slots: 0, schema, spec }));
        let values: Vec<Arg<'_>> = tensors.iter().map(Arg::Tensor).collect();
        let args = Args { op, values: &values };
        let mask = (1 << (tensors.len() - 1)) - 1;
        let sizes = Dims::from_slice(&[2, 3, 4, 5]);
        let plan = Plan::one(DType::F32, sizes.clone(), DType::F32, Strides::Images(mask));
        match choose_strides(&args, &plan, &plan.outputs[0]) {
            None => false,
            Some(strides) => {
                assert_eq!(strides, dims::channels_last_strides(&sizes));
                true
            }
        }
    }

    #[test]
    fn images_decide_the_format_of_the_output() {
        let other = || tensor(&[2, 3, 4, 4], true);
        let (rows, last) = (tensor(&[2, 3, 6, 6], false), tensor(&[8, 3, 2, 2], true));
        // One channel: both formats, with strides of either order.
        let (both_rows, both_last) = (tensor(&[8, 1, 2, 2], false), tensor(&[8, 1, 2, 2], true));
        let vector = tensor(&[3], false);
        // Channels of a wider image: in that order, with gaps.
        let slice = tensor(&[8, 5, 2, 2], true);
        let slice = TensorImpl::view(&slice, 1, &[8, 3, 2, 2], Some(slice.strides()), false).unwrap();
        for (a, b, wanted) in [
            (&rows, &rows, false),
            (&rows, &last, true),
            (&last, &rows, true),
            (&last, &vector, true),
            (&rows, &vector, false),
            (&both_last, &rows, false),
            (&both_last, &last, true),
            (&both_rows, &last, true),
            (&both_rows, &both_rows, false),
            (&both_last, &vector, true),
            (&both_last, &both_rows, true),
            (&slice, &vector, true),
            (&slice, &rows, true),
        ] {
            assert_eq!(gives_last(&[a.clone(), b.clone(), other()]), wanted, "{a:?} and {b:?}");
        }
    }
}
