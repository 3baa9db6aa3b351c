//! Convolutions as cuDNN takes them: dense images of two or three spatial dimensions, in one of two orders of memory.

use crate::kernels::Image;

/// Which of a convolution's tensors is made of the other two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The result.
    Forward,
    /// The input, by the result's gradient.
    Data,
    /// The kernel, by the result's gradient.
    Filter,
}

/// Element types that cuDNN is given here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    F16,
    Bf16,
    F32,
}

impl Element {
    /// By the dtype's name; none of other dtypes.
    fn named(dtype: &str) -> Option<Element> {
        match dtype {
            "f16" => Some(Element::F16),
            "bf16" => Some(Element::Bf16),
            "f32" => Some(Element::F32),
            _ => None,
        }
    }
}

/// How a kernel moves over an input, for each spatial dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Moves {
    /// From a place of the result to the next.
    pub stride: [i64; 3],
    /// Zeros around the input.
    pub padding: [i64; 3],
    /// From an element of the kernel to the next.
    pub dilation: [i64; 3],
}

/// A convolution, or a gradient of one.
#[derive(Clone, Copy, Debug)]
pub struct Convolution<'a> {
    /// What is made.
    pub kind: Kind,
    /// The dtype's name.
    pub dtype: &'a str,
    /// Whether factors of f32 may be rounded to TF32.
    pub rounds: bool,
    /// Whether what is made is added to what lies there.
    pub adds: bool,
    /// The input, or its gradient.
    pub input: Image,
    /// The kernel, or its gradient.
    pub weight: Image,
    /// The result, or its gradient.
    pub result: Image,
    /// How the kernel moves.
    pub moves: Moves,
}

/// A dense image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    /// Sizes.
    pub sizes: [i64; 5],
    /// Elements from one index to the next, for each dimension.
    pub strides: [i64; 5],
    /// What its address is a multiple of, up to [`ALIGNED`].
    pub alignment: i64,
}

/// A higher alignment than this is of no use.
const ALIGNED: u64 = 16;
/// Tensors have fewer elements than this: cuDNN counts most of them in 32 bits.
const MOST: i64 = i32::MAX as i64;

/// What a plan depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// What is made.
    pub kind: Kind,
    /// The element type.
    pub element: Element,
    /// Whether factors of f32 may be rounded to TF32.
    pub rounds: bool,
    /// Whether what is made is added to what lies there.
    pub adds: bool,
    /// Input, kernel and result.
    pub forms: [Form; 3],
    /// How the kernel moves.
    pub moves: Moves,
    /// Spatial dimensions, the last of three.
    pub spatial: usize,
}

impl Key {
    /// None where the convolution does not fit: another dtype, images that are not dense in an order that both share, or have
    /// too many elements. The kernel may lie elsewhere than the key says: then it is copied to where its form has it.
    pub fn new(of: &Convolution<'_>) -> Option<Key> {
        let element = Element::named(of.dtype)?;
        let images = [of.input, of.weight, of.result];
        let dense = |channels_last: bool| images.map(|image| strides(image.sizes, channels_last));
        let lies = |channels_last: bool, i: usize| {
            let image = &images[i];
            (0..5).all(|d| image.sizes[d] == 1 || image.strides[d] == dense(channels_last)[i][d])
        };
        let mut orders = [false, true].into_iter().filter(|&order| lies(order, 0) && lies(order, 2));
        let (first, second) = (orders.next()?, orders.next());
        // Images of one channel, or of one place, lie in both orders: the kernel's decides.
        let order = second.filter(|&second| lies(second, 1) && !lies(first, 1)).unwrap_or(first);
        let count = |sizes: [usize; 5]| {
            sizes.iter().try_fold(1i64, |all, &size| all.checked_mul(i64::try_from(size).ok()?))
        };
        if !images.iter().all(|image| count(image.sizes).is_some_and(|all| (1..MOST).contains(&all))) {
            return None;
        }
        let form = |i: usize| {
            let copied = i == 1 && !lies(order, i);
            let address = if copied { ALIGNED } else { images[i].data | ALIGNED };
            Form {
                sizes: images[i].sizes.map(|size| size as i64),
                strides: dense(order)[i],
                alignment: 1 << address.trailing_zeros(),
            }
        };
        let is_flat = images.iter().all(|image| image.sizes[2] == 1) && of.moves.padding[0] == 0;
        Some(Key {
            kind: of.kind,
            element,
            rounds: of.rounds,
            adds: of.adds,
            forms: [form(0), form(1), form(2)],
            moves: of.moves,
            spatial: if is_flat { 2 } else { 3 },
        })
    }

    /// The kernel as it must lie, if it lies otherwise.
    pub fn is_copied(&self, weight: &Image) -> bool {
        let form = &self.forms[1];
        (0..5).any(|d| weight.sizes[d] != 1 && weight.strides[d] != form.strides[d])
    }
}

/// The strides of a dense image, whose channels come last in memory or in their place.
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

    #[test]
    fn images_share_an_order_and_the_kernel_follows() {
        for order in [false, true] {
            let of = convolution(SIZES.map(|sizes| image(sizes, order)));
            let key = Key::new(&of).unwrap();
            assert_eq!(key.forms.map(|form| form.strides), SIZES.map(|sizes| strides(sizes, order)));
            assert_eq!((key.spatial, key.forms[0].alignment, key.is_copied(&of.weight)), (2, 16, false));
            let other = Convolution { weight: image(SIZES[1], !order), ..of };
            let turned = Key::new(&other).unwrap();
            assert_eq!(turned, key);
            assert!(turned.is_copied(&other.weight));
            let mixed = Convolution { result: image(SIZES[2], !order), ..of };
            assert_eq!(Key::new(&mixed), None);
        }
    }

    #[test]
    fn one_channel_lies_in_both_orders_and_the_kernel_decides() {
        let sizes = [[2, 1, 1, 6, 5], [1, 1, 1, 3, 3], [2, 1, 1, 6, 5]];
        let key = Key::new(&convolution(sizes.map(|sizes| image(sizes, true)))).unwrap();
        assert_eq!(key.forms.map(|form| form.strides), sizes.map(|sizes| strides(sizes, false)));
        let sizes = [[2, 8, 1, 1, 1], [4, 8, 1, 3, 3], [2, 4, 1, 1, 1]];
        let key = Key::new(&convolution(sizes.map(|sizes| image(sizes, true)))).unwrap();
        assert_eq!(key.forms.map(|form| form.strides), sizes.map(|sizes| strides(sizes, true)));
    }

    #[test]
    fn what_is_not_dense_or_too_large_or_another_dtype_is_left() {
        let of = convolution(SIZES.map(|sizes| image(sizes, false)));
        assert_eq!(Key::new(&Convolution { dtype: "f64", ..of }), None);
        let mut gaps = of;
        gaps.input.strides[0] += 1;
        assert_eq!(Key::new(&gaps), None);
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
