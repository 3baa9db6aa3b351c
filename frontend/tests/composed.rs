//! Methods that call several ops and are none themselves: values as PyTorch gives them, gradients, and what is refused.

use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::{DType, Result, Tensor};

fn i64s(values: &[i64], sizes: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), sizes).unwrap()
}

fn list(t: &Tensor) -> Vec<i64> {
    t.to_vec::<i64>().unwrap()
}

fn leaf(sizes: &[usize]) -> Tensor {
    let count: usize = sizes.iter().product();
    let values = (0..count).map(|i| (i as f64 * 0.7).sin() + 0.1).collect();
    Tensor::from_vec(values, sizes).unwrap().requires_grad_(true).unwrap()
}

/// First and second derivatives against differences.
fn differentiable(what: &str, inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let function = |inputs: &[Tensor]| Ok(vec![function(inputs)?]);
    for check in [gradcheck, gradgradcheck] {
        let found = check(&function, inputs, Tolerance::default());
        assert!(matches!(found, Ok(None)), "{what}: {found:?}");
    }
}

fn refuses<T: std::fmt::Debug>(made: Result<T>, message: &str) {
    let text = made.expect_err(message).to_string();
    assert!(text.contains(message), "`{text}` lacks `{message}`");
}

#[test]
fn equality_and_nearness_of_all_elements() {
    let x = Tensor::new([1.0f32, f32::NAN, f32::INFINITY]).unwrap();
    assert!(!x.equal(&x).unwrap() && !x.allclose(&x).unwrap());
    assert!(x.allclose_with(&x, 0.0, 0.0, true).unwrap());
    assert!(!x.allclose_with(f64::INFINITY, 0.0, 1e9, true).unwrap());
    let whole = Tensor::new([1i64, 2]).unwrap();
    assert!(whole.equal(&Tensor::new([1.0f64, 2.0]).unwrap()).unwrap());
    assert!(!whole.equal(&i64s(&[1, 2], &[1, 2])).unwrap());
    assert!(i64s(&[], &[0]).equal(&i64s(&[], &[0])).unwrap() && i64s(&[], &[0]).allclose(1).unwrap());
    let large = i64s(&[16_777_217], &[1]);
    assert!(large.allclose_with(&large, 0.0, 0.0, false).unwrap());
    // As f32 both are the same number, 0 apart.
    assert!(large.allclose_with(16_777_216, 0.0, 0.0, false).unwrap());
    refuses(x.isclose_with(&x, -1.0, 0.0, false), "0 or more");
}

#[test]
fn least_and_most() {
    let x = i64s(&[3, -1, 2, 5, 0, 4], &[2, 3]).transpose(0, 1).unwrap();
    let (least, most) = x.aminmax(..).unwrap();
    assert_eq!((list(&least), list(&most)), (vec![-1], vec![5]));
    let (least, most) = x.aminmax_keepdim(-1).unwrap();
    assert_eq!((least.shape(), list(&least), list(&most)), (&[3, 1][..], vec![3, -1, 2], vec![5, 0, 4]));
    refuses(i64s(&[], &[0]).aminmax(..), "not empty");
}

#[test]
fn splits_with_sizes_that_differ_by_one_and_at_places() {
    let x = i64s(&[0, 1, 2, 3, 4, 5, 6], &[7]);
    let split = |parts: Vec<Tensor>| parts.iter().map(list).collect::<Vec<_>>();
    assert_eq!(split(x.tensor_split(3, 0).unwrap()), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
    assert_eq!(split(i64s(&[0, 1], &[2]).tensor_split(4, -1).unwrap()), [vec![0], vec![1], vec![], vec![]]);
    let at = |places: &[i64]| split(x.tensor_split_at(places, 0).unwrap());
    assert_eq!(at(&[1, 9, 3]), [vec![0], vec![1, 2, 3, 4, 5, 6], vec![], vec![3, 4, 5, 6]]);
    assert_eq!(at(&[-2]), [vec![0, 1, 2, 3, 4], vec![5, 6]]);
    assert_eq!(at(&[4, 2]), [vec![0, 1, 2, 3], vec![], vec![2, 3, 4, 5, 6]]);
    assert!(x.tensor_split(2, 0).unwrap()[1].shares_storage(&x));
    refuses(x.tensor_split(0, 0), "1 or more");
    let point = Tensor::new(1i64).unwrap();
    refuses(point.tensor_split(1, 0), "of one dimension at least");
    refuses(point.tensor_split_at(&[], 0), "of one dimension at least");
    refuses(x.tensor_split(2, 1), "out of range");
}

#[test]
fn grids() {
    let (x, y) = (i64s(&[0, 1], &[2]), i64s(&[0, 1, 2], &[3]));
    let grid = Tensor::meshgrid_with(&[&x, &y], "xy").unwrap();
    assert_eq!((grid[0].shape(), list(&grid[0])), (&[3, 2][..], vec![0, 1, 0, 1, 0, 1]));
    assert_eq!(list(&grid[1]), [0, 0, 1, 1, 2, 2]);
    let grid = Tensor::meshgrid(&[&Tensor::new(7i64).unwrap(), &x, &y]).unwrap();
    assert_eq!((grid[0].shape(), grid[2].shares_storage(&y)), (&[1, 2, 3][..], true));
    assert_eq!(list(&grid[2]), [0, 1, 2, 0, 1, 2]);
    assert!(Tensor::meshgrid_with(&[], "xy").unwrap().is_empty());
    refuses(Tensor::meshgrid_with(&[&x], "yx"), "`ij` or `xy`");
    refuses(Tensor::meshgrid(&[&x.reshape([2, 1]).unwrap()]), "of at most one dimension");
    differentiable("meshgrid", &[leaf(&[2]), leaf(&[3])], |t| {
        let grid = Tensor::meshgrid(&[&t[0], &t[1]])?;
        grid[0].square()?.mul(&grid[1])
    });
}

#[test]
fn repeats_of_each_element() {
    let x = i64s(&[0, 1, 2, 3], &[2, 2]);
    assert_eq!(list(&x.repeat_interleave(2, None).unwrap()), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(list(&x.repeat_interleave(2, Some(-2)).unwrap()), [0, 1, 0, 1, 2, 3, 2, 3]);
    assert_eq!(x.repeat_interleave(0, Some(1)).unwrap().shape(), [2, 0]);
    assert_eq!(list(&Tensor::new(5i64).unwrap().repeat_interleave(3, None).unwrap()), [5, 5, 5]);
    let each = |repeats: &[i64], dim| {
        list(&x.repeat_interleave_each(&i64s(repeats, &[repeats.len()]), dim).unwrap())
    };
    assert_eq!(each(&[0, 2], Some(0)), [2, 3, 2, 3]);
    assert_eq!(each(&[1, 2], Some(1)), [0, 1, 1, 2, 3, 3]);
    assert_eq!(each(&[2], None), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(each(&[0, 0, 0, 0], None), [0i64; 0]);
    assert_eq!(i64s(&[], &[0]).repeat_interleave_each(&i64s(&[], &[0]), None).unwrap().shape(), [0]);
    refuses(x.repeat_interleave_each(&i64s(&[-1, 2], &[2]), Some(0)), "0 or more");
    refuses(x.repeat_interleave_each(&i64s(&[1, 2, 3], &[3]), Some(0)), "1 or 2 of them");
    refuses(x.repeat_interleave_each(&Tensor::new(1.0f32).unwrap(), None), "integers");
    refuses(x.repeat_interleave(2, Some(2)), "out of range");
    differentiable("repeat_interleave", &[leaf(&[2, 3])], |t| t[0].repeat_interleave(2, Some(1))?.square());
    differentiable("repeat_interleave_each", &[leaf(&[2, 3])], |t| {
        t[0].repeat_interleave_each(&i64s(&[2, 0, 1], &[3]), Some(1))?.square()
    });
}

#[test]
fn places_of_triangles() {
    let at = |lower: bool, rows, columns, offset| {
        let make = if lower { Tensor::tril_indices } else { Tensor::triu_indices };
        let made = make(rows, columns, offset).unwrap();
        assert_eq!((made.shape()[0], made.rank()), (2, 2));
        list(&made)
    };
    assert_eq!(at(true, 2, 3, 1), [0, 0, 1, 1, 1, 0, 1, 0, 1, 2]);
    assert_eq!(at(false, 3, 2, -1), [0, 0, 1, 1, 2, 0, 1, 0, 1, 1]);
    assert_eq!(at(true, 0, 3, 0), [0i64; 0]);
    assert_eq!(at(true, 2, 2, i64::MIN), [0i64; 0]);
    assert_eq!(at(false, 1, 2, i64::MIN), [0, 0, 0, 1]);
    assert_eq!(at(true, 1, 2, i64::MAX), [0, 0, 0, 1]);
    // They are the places that `tril` and `triu` leave.
    let x = Tensor::ones_with([4, 5], DType::I64).unwrap();
    for offset in -5..6 {
        assert_eq!(
            at(true, 4, 5, offset).len() as i64 / 2,
            list(&x.tril(offset).unwrap()).iter().sum::<i64>()
        );
        assert_eq!(
            at(false, 4, 5, offset).len() as i64 / 2,
            list(&x.triu(offset).unwrap()).iter().sum::<i64>()
        );
    }
    // Rows without elements are not looked at, and more than memory holds are refused at once.
    assert_eq!(at(false, usize::MAX, 2, 0), [0, 0, 1, 0, 1, 1]);
    assert_eq!(at(true, usize::MAX, 0, 0), [0i64; 0]);
    refuses(Tensor::tril_indices(usize::MAX, 1, 0), "memory holds");
    refuses(Tensor::triu_indices(1, usize::MAX, 0), "memory holds");
}

#[test]
fn elements_by_place() {
    let x = i64s(&[0, 1, 2, 3], &[2, 2]).transpose(0, 1).unwrap();
    let made = x.take(&i64s(&[-1, 1], &[1, 2])).unwrap();
    assert_eq!((made.shape(), list(&made)), (&[1, 2][..], vec![3, 2]));
    assert_eq!(x.take(&i64s(&[], &[0, 3])).unwrap().shape(), [0, 3]);
    assert!(x.take(&i64s(&[4], &[])).is_err() && x.take(&Tensor::new(1.0f32).unwrap()).is_err());
    differentiable("take", &[leaf(&[2, 3])], |t| t[0].take(&i64s(&[5, 0, 0, -1], &[2, 2]))?.square());
}

#[test]
fn blocks_on_a_diagonal() {
    let ones = |sizes: &[usize]| Tensor::ones(sizes).unwrap();
    let made = Tensor::block_diag(&[&Tensor::new(1i64).unwrap(), &ones(&[2]), &ones(&[2, 1])]).unwrap();
    assert_eq!((made.dtype(), made.shape()), (DType::F32, &[4, 4][..]));
    let expected = [1., 0., 0., 0., 0., 1., 1., 0., 0., 0., 0., 1., 0., 0., 0., 1.];
    assert_eq!(made.to_vec::<f32>().unwrap(), expected);
    let made = Tensor::block_diag(&[&ones(&[0, 2]), &ones(&[1, 1])]).unwrap();
    assert_eq!(made.to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0]);
    assert!(Tensor::block_diag(&[]).is_err());
    refuses(Tensor::block_diag(&[&ones(&[1, 1, 1])]), "of at most 2 dimensions");
    differentiable("block_diag", &[leaf(&[2, 1]), leaf(&[3])], |t| {
        Tensor::block_diag(&[&t[0], &t[1]])?.square()
    });
}

#[test]
fn counts_of_whole_numbers() {
    let x = Tensor::new([1u8, 1, 3]).unwrap();
    assert_eq!(list(&x.bincount().unwrap()), [0, 2, 0, 1]);
    assert_eq!(list(&x.bincount_with(None, 6).unwrap()), [0, 2, 0, 1, 0, 0]);
    let weights = Tensor::new([0.5f64, 1.0, -2.0]).unwrap();
    assert_eq!(x.bincount_with(Some(&weights), 0).unwrap().to_vec::<f64>().unwrap(), [0.0, 1.5, 0.0, -2.0]);
    assert_eq!(list(&i64s(&[], &[0]).bincount_with(None, 2).unwrap()), [0, 0]);
    refuses(i64s(&[-1], &[1]).bincount(), "0 or more");
    refuses(i64s(&[1], &[1, 1]).bincount(), "a vector");
    refuses(x.bincount_with(Some(&i64s(&[1], &[1])), 0), "[3]");
    refuses(weights.bincount(), "an integer dtype");
    differentiable("bincount", &[leaf(&[3])], |t| x.bincount_with(Some(&t[0].square()?), 5));
}

#[test]
fn medians_of_all_elements() {
    let x = Tensor::from_vec(vec![3.0f32, 1.0, 2.0, 4.0], [2, 2]).unwrap();
    assert_eq!(x.median_all().unwrap().item::<f32>().unwrap(), 2.0);
    let nan = Tensor::new([3.0f32, f32::NAN, 2.0]).unwrap();
    assert!(nan.median_all().unwrap().item::<f32>().unwrap().is_nan());
    refuses(i64s(&[], &[0]).median_all(), "not empty");
    // Equal elements, of which one has the gradient; the least place of those in the middle.
    let x = i64s(&[2, 7, 2, 8, 1, 7, 2, 7], &[4, 2]);
    let (values, places) = x.median(0).unwrap();
    assert_eq!((list(&values), list(&places)), (vec![2, 7], vec![0, 2]));
    let (values, places) = x.transpose(0, 1).unwrap().median_keepdim(-1).unwrap();
    assert_eq!((values.shape(), list(&places)), (&[2, 1][..], vec![0, 2]));
    let (value, place) = nan.median(0).unwrap();
    assert!(value.item::<f32>().unwrap().is_nan() && list(&place) == [1]);
    let (value, place) = Tensor::new(1.5f32).unwrap().median(0).unwrap();
    assert_eq!((value.item::<f32>().unwrap(), place.item::<i64>().unwrap()), (1.5, 0));
    let none = Tensor::zeros([2, 0]).unwrap();
    assert_eq!(none.median(0).unwrap().0.shape(), [0]);
    refuses(none.median(1), "not empty");
    refuses(Tensor::new([true]).unwrap().median_all(), "a number dtype");
    differentiable("median", &[leaf(&[3, 3])], |t| t[0].median_all()?.square());
}

#[test]
fn kronecker_products() {
    let x = i64s(&[0, 1, 2, 3], &[2, 2]);
    let ones = Tensor::new([1.0f32, 1.0]).unwrap();
    let made = ones.kron(&x).unwrap();
    assert_eq!((made.dtype(), made.shape()), (DType::F32, &[2, 4][..]));
    assert_eq!(made.to_vec::<f32>().unwrap(), [0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 2.0, 3.0]);
    let made = x.transpose(0, 1).unwrap().kron(&i64s(&[1, 10], &[2, 1])).unwrap();
    assert_eq!((made.shape(), list(&made)), (&[4, 2][..], vec![0, 2, 0, 20, 1, 3, 10, 30]));
    assert_eq!(list(&Tensor::new(2i64).unwrap().kron(&i64s(&[0, 1], &[2])).unwrap()), [0, 2]);
    assert_eq!(x.kron(&i64s(&[], &[0, 2])).unwrap().shape(), [0, 4]);
    differentiable("kron", &[leaf(&[2, 3]), leaf(&[2])], |t| t[0].kron(&t[1])?.square());
}

#[test]
fn distances_of_all_pairs() {
    let x = Tensor::from_vec(vec![0.0f64, 0.0, 1.0, 2.0, -1.0, 3.0], [3, 2]).unwrap();
    let y = Tensor::from_vec(vec![0.0f64, 0.0, 1.0, -2.0], [2, 2]).unwrap();
    let of = |p| x.cdist_with(&y, p).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(of(1.0), [0.0, 3.0, 3.0, 4.0, 4.0, 7.0]);
    assert_eq!(of(0.0), [0.0, 2.0, 2.0, 1.0, 2.0, 2.0]);
    assert_eq!(of(f64::INFINITY), [0.0, 2.0, 2.0, 4.0, 3.0, 5.0]);
    assert_eq!(of(2.0)[3], 4.0);
    let none = Tensor::zeros([2, 0]).unwrap();
    assert_eq!(none.cdist_with(&none, f64::INFINITY).unwrap().to_vec::<f32>().unwrap(), [0.0; 4]);
    let batch = Tensor::zeros_with([4, 1, 5, 2], DType::F64).unwrap();
    assert_eq!(batch.cdist(&y).unwrap().shape(), [4, 1, 5, 2]);
    refuses(x.cdist(&Tensor::zeros_with([2, 3], DType::F64).unwrap()), "of 2 elements in a row");
    refuses(x.select(0, 0).unwrap().cdist(&y), "of 2 dimensions at least");
    refuses(x.cdist_with(&y, -1.0), "0 or more");
    refuses(i64s(&[1, 2], &[1, 2]).cdist(&i64s(&[1, 2], &[1, 2])), "float");
    for p in [1.0, 2.0, 3.0] {
        differentiable("cdist", &[leaf(&[2, 2]), leaf(&[3, 2]).mul(-0.7).unwrap().detach()], |t| {
            t[0].cdist_with(&t[1], p)
        });
    }
    // Equal rows are 0 apart, and pull nowhere.
    let t = x.detach().requires_grad_(true).unwrap();
    t.cdist(&x).unwrap().select(0, 0).unwrap().select(0, 0).unwrap().backward().unwrap();
    assert_eq!(t.grad().unwrap().to_vec::<f64>().unwrap(), [0.0; 6]);
}
