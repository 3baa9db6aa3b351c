//! The tensors of a call: as a code that identifies kinds of calls, as text, in bytes, and their memory format.

use keyway_dispatcher::op::Arg;
use keyway_dispatcher::tensor::{Format, TensorImpl, TensorRef};
use smallvec::SmallVec;

/// Memory format of a tensor, more detailed than [`Format`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemoryOrder {
    RowMajor,
    ChannelsLast,
    /// Contiguous in both formats; the strides are those of row-major order.
    EitherRowMajor,
    /// Contiguous in both formats; the strides are those of channels_last.
    EitherLast,
    Strided,
    Composite,
}

fn memory_order(t: &TensorImpl) -> MemoryOrder {
    if !t.is_strided() {
        return MemoryOrder::Composite;
    }
    match t.format() {
        Format::Contiguous => MemoryOrder::RowMajor,
        Format::ChannelsLast => MemoryOrder::ChannelsLast,
        Format::Other => MemoryOrder::Strided,
        Format::Either => MemoryOrder::EitherRowMajor,
        Format::EitherLast => MemoryOrder::EitherLast,
    }
}

/// The tensors among the arguments.
pub(super) fn of<'a>(values: &'a [Arg<'a>]) -> impl Iterator<Item = &'a TensorRef> + Clone {
    values.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t).iter().copied(),
        Arg::Tensors(list) => list.iter().copied(),
        _ => Default::default(),
    })
}

/// Appends the properties that determine the text, the bytes and the dimension order of a tensor.
pub(super) fn encode(t: &TensorImpl, code: &mut Vec<u64>) {
    let (memory_order, device) = (memory_order(t), t.device());
    let kind =
        u64::from(t.dtype().code()) << 48 | u64::from(device.kind) << 32 | u64::from(device.index) << 16;
    code.push(kind | (t.ndim() as u64) << 8 | memory_order as u64);
    code.extend(t.sizes().iter().map(|&n| n as u64));
    match memory_order {
        MemoryOrder::Strided => code.extend(t.strides().iter().map(|&s| s as u64)),
        MemoryOrder::Composite => {
            code.push(u64::from(t.layout().id()));
            t.components().iter().for_each(|component| encode(component, code));
        }
        _ => {}
    }
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// `f32[2,3,4,4] channels_last`; row-major is not named.
pub(super) fn text(t: &TensorImpl) -> String {
    let shape = format!("{}[{}]", t.dtype(), list(t.sizes()));
    match memory_order(t) {
        MemoryOrder::RowMajor | MemoryOrder::EitherRowMajor => shape,
        MemoryOrder::ChannelsLast | MemoryOrder::EitherLast => format!("{shape} channels_last"),
        MemoryOrder::Strided => format!("{shape} strides [{}]", list(t.strides())),
        MemoryOrder::Composite => format!("{shape} {}", t.layout()),
    }
}

/// Bytes of the elements; elements that share memory, as of an expanded tensor, count once.
pub(super) fn bytes(t: &TensorImpl) -> u64 {
    if !t.is_strided() {
        return t.components().iter().map(|component| bytes(component)).sum();
    }
    if t.numel() == 0 {
        return 0;
    }
    let distinct = t.sizes().iter().zip(t.strides()).filter(|(_, stride)| **stride != 0);
    distinct.map(|(&n, _)| n as u64).product::<u64>() * t.dtype().size() as u64
}

/// The dimensions that affect the memory order, counted from the last, outermost in memory first.
fn order(t: &TensorImpl) -> SmallVec<[usize; 8]> {
    let n = t.ndim();
    let mut dims: SmallVec<[usize; 8]> =
        (0..n).filter(|&i| t.sizes()[i] > 1 && t.strides()[i] > 0).map(|i| n - i).collect();
    dims.sort_by_key(|&i| std::cmp::Reverse(t.strides()[n - i]));
    dims
}

/// Whether the copy from `source` to `result` changes the order of elements, or the layout.
pub(super) fn reordered(source: &TensorImpl, result: &TensorImpl) -> bool {
    if source.layout() != result.layout() {
        return true;
    }
    if !source.is_strided() || source.numel() < 2 || result.numel() < 2 {
        return false;
    }
    let (from, mut to) = (order(source), order(result));
    // A dimension that the copy repeats has no order in the source.
    to.retain(|dim| from.contains(dim));
    from != to
}

/// The formats of images, if a result of a call has a different one than an argument: channels_last became row-major, or the
/// reverse.
pub(super) fn format_change<'a>(
    inputs: impl Iterator<Item = &'a TensorRef> + Clone,
    outputs: &[TensorRef],
) -> Option<(&'static str, &'static str)> {
    const ROWS: &str = "contiguous";
    const LAST: &str = "channels_last";
    // With three dimensions a transposed batch of matrices looks like channels_last.
    let image = |t: &TensorImpl| t.is_strided() && (4..=5).contains(&t.ndim());
    outputs.iter().filter(|t| image(t)).find_map(|output| {
        let alike = inputs.clone().filter(|t| image(t) && t.ndim() == output.ndim());
        let any = |wanted: &[MemoryOrder]| alike.clone().any(|t| wanted.contains(&memory_order(t)));
        let (rows, last) = (any(&[MemoryOrder::RowMajor]), any(&[MemoryOrder::ChannelsLast]));
        match memory_order(output) {
            MemoryOrder::RowMajor if last => Some((if rows { "both formats" } else { LAST }, ROWS)),
            MemoryOrder::ChannelsLast if rows && last => Some(("both formats", LAST)),
            MemoryOrder::ChannelsLast if rows && !any(&[MemoryOrder::EitherLast]) => Some((ROWS, LAST)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_dispatcher::dims::{channels_last_strides, contiguous_strides};
    use keyway_dispatcher::{DType, Device, Dims};

    fn tensor(sizes: &[usize], strides: &[usize]) -> TensorRef {
        TensorImpl::empty_strided(Dims::from_slice(sizes), Dims::from_slice(strides), DType::F32, Device::CPU)
            .unwrap()
    }

    fn image(last: bool, channels: usize) -> TensorRef {
        let sizes = [2, channels, 4, 5];
        let strides = if last { channels_last_strides(&sizes) } else { contiguous_strides(&sizes) };
        tensor(&sizes, &strides)
    }

    #[test]
    fn a_change_of_format_is_seen_in_both_directions_and_so_is_a_mixture() {
        let (rows, last) = (image(false, 3), image(true, 3));
        let (gray_rows, gray_last) = (image(false, 1), image(true, 1));
        let vector = tensor(&[3], &[1]);
        let back = Some(("channels_last", "contiguous"));
        for (inputs, output, wanted) in [
            (vec![&last], &rows, back),
            (vec![&rows, &last], &rows, Some(("both formats", "contiguous"))),
            (vec![&rows], &last, Some(("contiguous", "channels_last"))),
            (vec![&rows, &last], &last, Some(("both formats", "channels_last"))),
            (vec![&last, &gray_rows], &last, None),
            (vec![&rows, &gray_last], &last, None),
            (vec![&gray_last], &rows, None),
            (vec![&gray_rows, &vector], &last, None),
            (vec![&last], &vector, None),
            (vec![&rows], &gray_rows, None),
        ] {
            assert_eq!(format_change(inputs.iter().copied(), std::slice::from_ref(output)), wanted);
        }
    }

    #[test]
    fn only_the_order_of_elements_counts() {
        let dense = tensor(&[3, 4], &[4, 1]);
        assert!(reordered(&tensor(&[3, 4], &[1, 3]), &dense));
        assert!(!reordered(&tensor(&[3, 4], &[8, 2]), &dense), "gaps are no order");
        assert!(!reordered(&tensor(&[4], &[1]), &dense), "repeated along the rows");
        assert!(!reordered(&tensor(&[3, 4], &[0, 1]), &dense));
        assert!(!reordered(&tensor(&[1, 4], &[1, 1]), &tensor(&[1, 4], &[4, 1])));
        assert!(
            reordered(&image(true, 3), &image(false, 3)) && !reordered(&image(true, 1), &image(false, 1))
        );
        assert_eq!(text(&image(true, 1)), "f32[2,1,4,5] channels_last");
        assert_eq!(bytes(&tensor(&[3, 4], &[0, 1])), 16);
        assert_eq!(bytes(&tensor(&[0, 4], &[0, 1])), 0);
    }
}
