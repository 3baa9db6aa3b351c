//! Convolutions in cuDNN's form: dense images of two or three spatial dimensions, all row-major or all channels_last.

use crate::kernels::Image;

/// The tensor that a convolution computes from the other two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The output (forward pass).
    Forward,
    /// The gradient of the input, from that of the output.
    Data,
    /// The gradient of the weight, from that of the output.
    Filter,
}

/// Element types passed to cuDNN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    F16,
    Bf16,
    F32,
}

impl Element {
    /// The type of a dtype's name; `None` for other dtypes.
    fn named(dtype: &str) -> Option<Element> {
        match dtype {
            "f16" => Some(Element::F16),
            "bf16" => Some(Element::Bf16),
            "f32" => Some(Element::F32),
            _ => None,
        }
    }
}

/// Stride, padding and dilation, for each spatial dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Moves {
    /// Distance of neighbouring output positions in the input.
    pub stride: [i64; 3],
    /// Zero padding.
    pub padding: [i64; 3],
    /// Distance of neighbouring kernel taps in the input.
    pub dilation: [i64; 3],
}

/// A convolution, or a gradient of one.
#[derive(Clone, Copy, Debug)]
pub struct Convolution<'a> {
    /// The computed tensor.
    pub kind: Kind,
    /// The dtype's name.
    pub dtype: &'a str,
    /// Whether f32 factors may be rounded to TF32.
    pub rounds: bool,
    /// Whether the result is added to the target.
    pub adds: bool,
    /// The input, or its gradient.
    pub input: Image,
    /// The kernel, or its gradient.
    pub weight: Image,
    /// The result, or its gradient.
    pub result: Image,
    /// Stride, padding and dilation.
    pub moves: Moves,
}

/// A dense image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    /// Sizes.
    pub sizes: [i64; 5],
    /// The strides in elements.
    pub strides: [i64; 5],
    /// Alignment of its address, up to [`ALIGNED`].
    pub alignment: i64,
}

/// The maximum useful alignment.
const ALIGNED: u64 = 16;
/// The exclusive upper bound of the number of elements: cuDNN counts most of them in 32 bits.
const MOST: i64 = i32::MAX as i64;

/// The properties that determine a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The computed tensor.
    pub kind: Kind,
    /// The element type.
    pub element: Element,
    /// Whether f32 factors may be rounded to TF32.
    pub rounds: bool,
    /// Whether the result is added to the target.
    pub adds: bool,
    /// Input, kernel and result.
    pub forms: [Form; 3],
    /// Stride, padding and dilation.
    pub moves: Moves,
    /// The number of spatial dimensions that are used, the last of three.
    pub spatial: usize,
}

impl Key {
    /// `None` if the convolution is not supported: another dtype, too many elements, or a gradient that cuDNN computes
    /// inaccurately. A tensor with other strides than its form is copied to that form, or back.
    pub fn new(of: &Convolution<'_>) -> Option<Key> {
        let element = Element::named(of.dtype)?;
        let images = of.images();
        // With one channel per group cuDNN 9.14 accumulates the kernel gradient of f16 and bf16 with an error of three ULP
        // (on an H200), which no note of its engine reports.
        let by_channel = of.weight.sizes[1] == 1 && of.input.sizes[1] > 1;
        if of.kind == Kind::Filter && by_channel && element != Element::F32 {
            return None;
        }
        let mut counts = [0i64; 3];
        for (count, image) in counts.iter_mut().zip(&images) {
            let sizes = image.sizes.iter();
            *count = sizes
                .map(|&size| i64::try_from(size).ok())
                .try_fold(1i64, |all, size| all.checked_mul(size?))
                .filter(|count| (1..MOST).contains(count))?;
        }
        // The memory order of most elements. Images of one channel, or one pixel, have both orders.
        let in_order = |channels_last: bool| -> i64 {
            let matching =
                (0..3).filter(|&i| has_strides(&images[i], &strides(images[i].sizes, channels_last)));
            matching.map(|i| counts[i]).sum()
        };
        let (row_major, last) = (in_order(false), in_order(true));
        let all: i64 = counts.iter().sum();
        // With equal shares: cuDNN is faster in channels_last.
        let channels_last = last > row_major || last == row_major && last < all;
        let form = |image: Image| {
            let strides = strides(image.sizes, channels_last);
            let address = if has_strides(&image, &strides) { image.data | ALIGNED } else { ALIGNED };
            Form {
                sizes: image.sizes.map(|size| size as i64),
                strides,
                alignment: 1 << address.trailing_zeros(),
            }
        };
        let is_flat = images.iter().all(|image| image.sizes[2] == 1) && of.moves.padding[0] == 0;
        Some(Key {
            kind: of.kind,
            element,
            rounds: of.rounds,
            adds: of.adds,
            forms: images.map(form),
            moves: of.moves,
            spatial: if is_flat { 2 } else { 3 },
        })
    }
}

impl Form {
    /// Whether an image has the strides of this form.
    pub fn is_of(&self, image: &Image) -> bool {
        has_strides(image, &self.strides)
    }
}

impl Convolution<'_> {
    /// Input, kernel and result.
    pub fn images(&self) -> [Image; 3] {
        [self.input, self.weight, self.result]
    }
}

impl Kind {
    /// Index of the computed tensor among input, kernel and result.
    pub fn made(self) -> usize {
        match self {
            Kind::Data => 0,
            Kind::Filter => 1,
            Kind::Forward => 2,
        }
    }
}

/// Whether an image has these strides in dimensions of size above 1.
fn has_strides(image: &Image, strides: &[i64; 5]) -> bool {
    (0..5).all(|d| image.sizes[d] == 1 || image.strides[d] == strides[d])
}

/// The strides of a dense image in channels_last or row-major order.
fn strides(sizes: [usize; 5], channels_last: bool) -> [i64; 5] {
    let order = if channels_last { [1, 4, 3, 2, 0] } else { [4, 3, 2, 1, 0] };
    let (mut strides, mut next) = ([0; 5], 1i64);
    for d in order {
        strides[d] = next;
        next = next.saturating_mul(sizes[d] as i64);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(sizes: [usize; 5], channels_last: bool) -> Image {
        Image { data: 1 << 20, sizes, strides: strides(sizes, channels_last) }
    }

    fn convolution(images: [Image; 3]) -> Convolution<'static> {
        let moves = Moves { stride: [1; 3], padding: [0, 1, 1], dilation: [1; 3] };
        let [input, weight, result] = images;
        Convolution {
            kind: Kind::Forward,
            dtype: "f16",
            rounds: false,
            adds: false,
            input,
            weight,
            result,
            moves,
        }
    }

    const SIZES: [[usize; 5]; 3] = [[2, 8, 1, 6, 5], [4, 8, 1, 3, 3], [2, 4, 1, 6, 5]];

    fn orders(key: &Key) -> [[i64; 5]; 3] {
        key.forms.map(|form| form.strides)
    }

    fn matching(key: &Key, of: &Convolution<'_>) -> [bool; 3] {
        let images = of.images();
        [0, 1, 2].map(|i| key.forms[i].is_of(&images[i]))
    }

    #[test]
    fn images_share_the_order_of_most_elements() {
        for order in [false, true] {
            let of = convolution(SIZES.map(|sizes| image(sizes, order)));
            let key = Key::new(&of).unwrap();
            assert_eq!(orders(&key), SIZES.map(|sizes| strides(sizes, order)));
            assert_eq!((key.spatial, key.forms[0].alignment, matching(&key, &of)), (2, 16, [true; 3]));
            let other = Convolution { weight: image(SIZES[1], !order), ..of };
            let reordered = Key::new(&other).unwrap();
            assert_eq!((reordered, matching(&reordered, &other)), (key, [true, false, true]));
            let other = Convolution { result: image(SIZES[2], !order), ..of };
            let reordered = Key::new(&other).unwrap();
            assert_eq!((reordered, matching(&reordered, &other)), (key, [true, true, false]));
        }
        // Equally many elements in either order.
        let sizes = [[2, 8, 1, 6, 5], [8, 8, 1, 1, 1], [2, 8, 1, 6, 5]];
        let of = convolution([image(sizes[0], false), image(sizes[1], true), image(sizes[2], true)]);
        assert_eq!(orders(&Key::new(&of).unwrap()), sizes.map(|sizes| strides(sizes, true)));
    }

    #[test]
    fn one_channel_lies_in_both_orders() {
        let sizes = [[2, 1, 1, 6, 5], [1, 1, 1, 3, 3], [2, 1, 1, 6, 5]];
        let key = Key::new(&convolution(sizes.map(|sizes| image(sizes, true)))).unwrap();
        assert_eq!(orders(&key), sizes.map(|sizes| strides(sizes, false)));
        let sizes = [[2, 8, 1, 1, 1], [4, 8, 1, 3, 3], [2, 4, 1, 1, 1]];
        let key = Key::new(&convolution(sizes.map(|sizes| image(sizes, true)))).unwrap();
        assert_eq!(orders(&key), sizes.map(|sizes| strides(sizes, true)));
    }

    #[test]
    fn the_gradient_of_a_kernel_of_one_channel_a_group_is_given_in_f32_alone() {
        let sizes = [[2, 8, 1, 6, 5], [8, 1, 1, 3, 3], [2, 8, 1, 6, 5]];
        let of = convolution(sizes.map(|sizes| image(sizes, true)));
        for (kind, dtype, given) in [
            (Kind::Filter, "f16", false),
            (Kind::Filter, "bf16", false),
            (Kind::Filter, "f32", true),
            (Kind::Data, "f16", true),
            (Kind::Forward, "f16", true),
        ] {
            assert_eq!(Key::new(&Convolution { kind, dtype, ..of }).is_some(), given, "{kind:?} {dtype}");
        }
    }

    #[test]
    fn what_is_not_dense_is_copied_and_what_is_too_large_or_of_another_dtype_left() {
        let of = convolution(SIZES.map(|sizes| image(sizes, false)));
        assert_eq!(Key::new(&Convolution { dtype: "f64", ..of }), None);
        let mut gaps = of;
        gaps.input.strides[0] += 1;
        gaps.input.data += 2;
        let key = Key::new(&gaps).unwrap();
        assert_eq!((matching(&key, &gaps), key.forms[0].alignment), ([false, true, true], 16));
        let mut large = of;
        (large.input.sizes[0], large.result.sizes[0]) = (1 << 24, 1 << 24);
        assert_eq!(Key::new(&large), None);
        let mut odd = of;
        odd.input.data += 2;
        assert_eq!(Key::new(&odd).unwrap().forms[0].alignment, 2);
        let mut deep = of;
        deep.moves.padding[0] = 1;
        assert_eq!(Key::new(&deep).unwrap().spatial, 3);
    }
}
