//! Data sets and loaders.

use keyway::data::{
    Batch, ConcatDataset, DataLoader, Dataset, Digits, Subset, TensorDataset, random_split, random_split_with,
};
use keyway::prelude::*;

/// The squares of the first integers.
struct Squares(usize);

impl Dataset for Squares {
    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> keyway::Result<(Tensor, Tensor)> {
        if index >= self.0 {
            return Err(keyway::Error::other("no such number"));
        }
        let number = Tensor::new([index as f32])?;
        Ok((number.clone(), number.square()?))
    }
}

fn numbers(count: usize) -> TensorDataset {
    TensorDataset::new(Tensor::zeros((count, 2)).unwrap(), Tensor::arange(0, count as i64).unwrap()).unwrap()
}

fn targets(batch: keyway::Result<Batch>) -> Vec<i64> {
    batch.unwrap().targets.to_vec().unwrap()
}

#[test]
fn a_data_set_of_ones_own() -> keyway::Result<()> {
    let data = Squares(5);
    assert_eq!((data.len(), data.rows(), data.is_empty()), (5, 5, false));
    assert_eq!(data.get(3)?.1.to_vec::<f32>()?, [9.0]);
    let loader = DataLoader::new(&data, 2)?;
    let mut seen = Vec::new();
    for batch in &loader {
        let (inputs, targets) = batch?.into();
        assert_eq!((inputs.dim(1)?, targets.dim(1)?), (1, 1));
        seen.extend(targets.to_vec::<f32>()?);
    }
    assert_eq!(seen, [0.0, 1.0, 4.0, 9.0, 16.0]);
    assert!(data.batch(&[5]).is_err());
    Ok(())
}

#[test]
fn loaders_are_built_and_gone_through() -> keyway::Result<()> {
    let data = numbers(100);
    let loader = DataLoader::builder(&data).batch_size(32).shuffle(7).drop_last(true).build()?;
    assert_eq!((loader.len(), loader.batches(), loader.is_empty()), (3, 3, false));
    let pass = |loader: &DataLoader<_>| loader.into_iter().flat_map(targets).collect::<Vec<_>>();
    let (first, second) = (pass(&loader), pass(&loader));
    assert_ne!(first, second, "each pass is an epoch of its own");
    assert_eq!(first, loader.epoch(0).flat_map(targets).collect::<Vec<_>>());
    assert_eq!(second, loader.epoch(1).flat_map(targets).collect::<Vec<_>>());
    loader.set_epoch(0);
    assert_eq!(pass(&loader), first);
    assert_eq!(loader.epoch(0).len(), 3);
    let copy = loader.clone();
    assert_eq!((pass(&copy), pass(&loader)), (second.clone(), second), "a copy goes on from the same epoch");
    assert!(DataLoader::builder(&data).batch_size(0).build().is_err());
    assert_eq!(DataLoader::builder(&data).build()?.len(), 100);
    Ok(())
}

#[test]
fn shuffling_by_a_drawn_seed() -> keyway::Result<()> {
    let data = numbers(50);
    let order = || {
        let loader = DataLoader::new(&data, 50).unwrap().shuffle(true);
        targets(loader.epoch(0).next().unwrap())
    };
    let drawn = |seed| keyway::rng::with_generator(&keyway::rng::Generator::new(seed), || [order(), order()]);
    assert_eq!(drawn(3), drawn(3));
    assert_ne!(drawn(3)[0], drawn(3)[1]);
    assert_ne!(drawn(3), drawn(4));
    let plain = DataLoader::new(&data, 50)?.shuffle(5).shuffle(false);
    assert_eq!(targets(plain.epoch(0).next().unwrap()), (0..50).collect::<Vec<i64>>());
    Ok(())
}

#[test]
fn parts_of_a_data_set() -> keyway::Result<()> {
    let data = numbers(10);
    let (input, target) = data.get(4)?;
    assert_eq!((input.shape(), target.item::<i64>()?), (&[2][..], 4));
    let subset = Subset::new(&data, vec![7, 2])?;
    assert_eq!((subset.len(), subset.get(1)?.1.item::<i64>()?), (2, 2));
    assert_eq!(targets(subset.batch(&[1, 0])), [2, 7]);
    assert!(
        subset.get(2).is_err() && subset.batch(&[0, 2]).is_err() && Subset::new(&data, vec![10]).is_err()
    );

    let parts = random_split_with(&data, [7, 3], 0)?;
    let mut all: Vec<usize> = parts.iter().flat_map(|part| part.indices().to_vec()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..10), "each sample once");
    assert_ne!(
        random_split_with(&data, [10], 0)?[0].indices(),
        random_split_with(&data, [10], 1)?[0].indices()
    );
    assert_eq!(
        random_split_with(&data, [10], 3)?[0].indices(),
        random_split_with(&data, [10], 3)?[0].indices()
    );
    let [train, test]: [_; 2] = random_split(Digits::embedded()?.dataset()?, [0.8, 0.2])?.try_into().unwrap();
    assert_eq!((train.len(), test.len()), (1_438, 359));
    assert_eq!(DataLoader::new(train, 64)?.len(), 23);
    for wrong in [&[0.5, 0.4][..], &[1.5, -0.5], &[f64::NAN]] {
        let message = random_split(&data, wrong).unwrap_err().to_string();
        assert!(message.contains("shares of 0 to 1"), "{message}");
    }
    for wrong in [&[5, 6][..], &[], &[usize::MAX, 11]] {
        assert!(random_split(&data, wrong).is_err());
    }
    Ok(())
}

#[test]
fn several_data_sets_as_one() -> keyway::Result<()> {
    let both = ConcatDataset::new(vec![numbers(3), numbers(0), numbers(2)]);
    assert_eq!(both.len(), 5);
    assert_eq!(both.get(3)?.1.item::<i64>()?, 0);
    assert_eq!(targets(both.batch(&[4, 3, 0, 2, 4])), [1, 0, 0, 2, 1]);
    assert!(both.get(5).is_err() && both.batch(&[0, 5]).is_err());
    let mixed: Vec<Box<dyn Dataset>> =
        vec![Box::new(numbers(2)), Box::new(Subset::new(numbers(5), vec![4])?)];
    let mixed = ConcatDataset::new(mixed);
    assert_eq!(targets(mixed.batch(&[2, 1])), [4, 1]);
    assert!(ConcatDataset::new(Vec::<Squares>::new()).is_empty());
    Ok(())
}
