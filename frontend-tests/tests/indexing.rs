//! Indexing.

use keyway::tensor::{Ellipsis, Index, NewAxis, StepBy};
use keyway::{Result, Tensor};

fn cube() -> Tensor {
    Tensor::from_vec((0..24).collect::<Vec<i32>>(), [2, 3, 4]).unwrap()
}

#[test]
fn each_kind_of_index() -> Result<()> {
    let a = cube();
    assert_eq!(a.i(1)?.shape(), [3, 4]);
    assert_eq!(a.i((0, -1))?.to_vec::<i32>()?, [8, 9, 10, 11]);
    assert_eq!(a.i((.., 0, 1..))?.to_vec::<i32>()?, [1, 2, 3, 13, 14, 15]);
    assert_eq!(a.i((0, 0, -3..-1))?.to_vec::<i32>()?, [1, 2]);
    assert_eq!(a.i((0, 0, ..=1))?.to_vec::<i32>()?, [0, 1]);
    assert_eq!(a.i((Ellipsis, StepBy(.., 3)))?.shape(), [2, 3, 2]);
    assert_eq!(a.i((NewAxis, Ellipsis, NewAxis))?.shape(), [1, 2, 3, 4, 1]);
    assert_eq!(a.i((0, Ellipsis, 2))?.to_vec::<i32>()?, [2, 6, 10]);
    assert_eq!(a.i(&[Index::At(1), Index::Ellipsis][..])?.shape(), [3, 4]);
    assert_eq!(a.i((1usize, 5..9))?.shape(), [0, 4]);
    assert!(a.i((0, 1))?.shares_storage(&a));
    Ok(())
}

#[test]
fn wrong_indices_name_dimension_and_size() {
    let a = cube();
    let message = |r: Result<Tensor>| r.unwrap_err().to_string();
    assert!(message(a.i((0, 3))).contains("index 3 is out of range for dimension 1 of size 3"));
    assert!(message(a.i((Ellipsis, -5))).contains("dimension 2 of size 4"));
    assert!(message(a.i((0, 0, 0, 0))).contains("at most 3 indices"));
    assert!(message(a.i((Ellipsis, Ellipsis))).contains("one Ellipsis"));
    assert!(message(a.i(StepBy(.., -1))).contains("flip"));
}

#[test]
fn tensors_among_the_indices() -> Result<()> {
    let a = cube();
    let at = Tensor::new([2i64, 0])?;
    assert_eq!(a.i((.., &at))?.shape(), [2, 2, 4]);
    assert_eq!(a.i((Ellipsis, &at))?.shape(), [2, 3, 2]);
    assert_eq!(a.i((0, &at, ..2))?.to_vec::<i32>()?, [8, 9, 0, 1]);
    assert_eq!(a.i((NewAxis, 1, Ellipsis, &at))?.to_vec::<i32>()?, [14, 12, 18, 16, 22, 20]);
    let pair = Tensor::new([0i64, 1])?;
    assert_eq!(a.i((&pair, &at, 3))?.to_vec::<i32>()?, [11, 15]);
    assert_eq!(a.i((&pair, .., &at))?.to_vec::<i32>()?, [2, 6, 10, 12, 16, 20]);
    let mask = a.i((.., .., 0))?.gt(7)?;
    assert_eq!(a.i((&mask, -1))?.to_vec::<i32>()?, [11, 15, 19, 23]);
    let too_many = a.i((&mask, 0, 0)).unwrap_err().to_string();
    assert!(too_many.contains("at most 3 indices"), "{too_many}");

    let x = a.to_dtype(keyway::DType::F32)?.requires_grad_(true)?;
    x.i((0, &at, 1..3))?.sum_all()?.backward()?;
    assert_eq!(x.grad().unwrap().sum_all()?.item::<f32>()?, 4.0);
    Ok(())
}

/// However many indices there are, and however they are split among threads.
#[test]
fn the_last_of_many_equal_indices_counts() -> keyway::Result<()> {
    const N: usize = 700_001;
    let index: Vec<i64> = (0..N).map(|i| ((i * 7919) % 13) as i64 % 5).collect();
    let source: Vec<i64> = (0..N as i64).collect();
    let mut expected = [-1i64; 5];
    index.iter().zip(&source).for_each(|(&at, &value)| expected[at as usize] = value);
    let (index, source) = (Tensor::new(&index)?, Tensor::new(&source)?);
    let target = Tensor::full(5, -1)?;
    assert_eq!(target.index_copy(0, &index, &source)?.to_vec::<i64>()?, expected);
    assert_eq!(target.scatter(0, &index, &source)?.to_vec::<i64>()?, expected);
    assert_eq!(target.index_put(&[Some(&index)], &source)?.to_vec::<i64>()?, expected);
    Ok(())
}
