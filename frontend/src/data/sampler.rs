//! The order in which a loader reads rows.

use crate::error::data::DataError;
use crate::rng::Philox;

/// The order of the rows of a data set: sequential or, for each epoch, random.
///
/// The order of an epoch is a function only of the seed and the epoch's index: epoch `e` shuffles with stream `e` of the
/// seed. So a resumed run has the same orders as an uninterrupted one.
///
/// ```
/// use keyway::data::Sampler;
/// let sampler = Sampler::shuffled(10, 7);
/// assert_eq!(sampler.order(3), Sampler::shuffled(10, 7).order(3));
/// assert_ne!(sampler.order(3), sampler.order(4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    rows: usize,
    seed: Option<u64>,
}

impl Sampler {
    /// The rows in their own order.
    ///
    /// ```
    /// use keyway::data::Sampler;
    /// assert_eq!(Sampler::sequential(3).order(5), [0, 1, 2]);
    /// ```
    #[doc(alias = "SequentialSampler")]
    #[must_use]
    pub fn sequential(rows: usize) -> Self {
        Self { rows, seed: None }
    }

    /// The rows in random order.
    ///
    /// ```
    /// use keyway::data::Sampler;
    /// let mut order = Sampler::shuffled(4, 0).order(1);
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3]);
    /// ```
    #[doc(alias = "RandomSampler")]
    #[must_use]
    pub fn shuffled(rows: usize, seed: u64) -> Self {
        Self { rows, seed: Some(seed) }
    }

    /// Number of rows.
    ///
    /// ```
    /// use keyway::data::Sampler;
    /// assert_eq!(Sampler::shuffled(4, 0).rows(), 4);
    /// ```
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows of an epoch, each once.
    ///
    /// ```
    /// use keyway::data::Sampler;
    /// assert_eq!(Sampler::sequential(3).order(0), [0, 1, 2]);
    /// assert_eq!(Sampler::shuffled(100, 0).order(0).len(), 100);
    /// ```
    #[must_use]
    pub fn order(&self, epoch: u64) -> Vec<usize> {
        match self.seed {
            Some(seed) => Philox::with_stream(seed, epoch).permutation(self.rows),
            None => (0..self.rows).collect(),
        }
    }

    /// The rows of an epoch in groups of `batch_size`. The last group is smaller when the rows do not divide evenly;
    /// `drop_last` leaves it out.
    ///
    /// ```
    /// use keyway::data::Sampler;
    /// let sampler = Sampler::sequential(5);
    /// assert_eq!(sampler.batches(0, 2, false).unwrap(), [vec![0, 1], vec![2, 3], vec![4]]);
    /// assert_eq!(sampler.batches(0, 2, true).unwrap(), [[0, 1], [2, 3]]);
    /// ```
    ///
    /// # Errors
    /// [`DataError::BatchSize`] when `batch_size` is 0.
    pub fn batches(
        &self,
        epoch: u64,
        batch_size: usize,
        drop_last: bool,
    ) -> Result<Vec<Vec<usize>>, DataError> {
        if batch_size == 0 {
            return Err(DataError::BatchSize);
        }
        let order = self.order(epoch);
        let groups = order.chunks(batch_size).filter(|group| !drop_last || group.len() == batch_size);
        Ok(groups.map(<[usize]>::to_vec).collect())
    }

    /// Number of batches of [`Sampler::batches`].
    ///
    /// ```
    /// use keyway::data::Sampler;
    /// let sampler = Sampler::sequential(5);
    /// assert_eq!(sampler.batch_count(2, false).unwrap(), 3);
    /// assert_eq!(sampler.batch_count(2, true).unwrap(), 2);
    /// assert!(sampler.batch_count(0, true).is_err());
    /// ```
    ///
    /// # Errors
    /// [`DataError::BatchSize`] when `batch_size` is 0.
    pub fn batch_count(&self, batch_size: usize, drop_last: bool) -> Result<usize, DataError> {
        match (batch_size, drop_last) {
            (0, _) => Err(DataError::BatchSize),
            (size, true) => Ok(self.rows / size),
            (size, false) => Ok(self.rows.div_ceil(size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_epoch_has_each_row_once_in_an_order_of_its_own() {
        let sampler = Sampler::shuffled(100, 0);
        let orders: Vec<Vec<usize>> = (0..4).map(|epoch| sampler.order(epoch)).collect();
        for (epoch, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..100));
            assert_eq!(*order, sampler.order(epoch as u64), "the same again");
            assert!(orders[..epoch].iter().all(|earlier| earlier != order));
        }
        assert_ne!(orders[0], Sampler::shuffled(100, 1).order(0));
        assert!(Sampler::sequential(5).order(3).into_iter().eq(0..5));
    }

    #[test]
    fn batches_are_the_order_in_groups() {
        let sampler = Sampler::shuffled(10, 7);
        for (size, drop_last, lengths) in [
            (4, false, vec![4, 4, 2]),
            (4, true, vec![4, 4]),
            (5, true, vec![5, 5]),
            (20, true, vec![]),
            (20, false, vec![10]),
        ] {
            let batches = sampler.batches(2, size, drop_last).expect("batches");
            assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
            assert_eq!(sampler.batch_count(size, drop_last).expect("a count"), lengths.len());
            assert_eq!(batches.concat(), sampler.order(2)[..lengths.iter().sum()]);
        }
        assert!(Sampler::sequential(0).batches(0, 3, false).expect("no batches").is_empty());
    }

    #[test]
    fn a_batch_of_nothing_is_an_error() {
        let sampler = Sampler::sequential(3);
        assert!(matches!(sampler.batches(0, 0, false), Err(DataError::BatchSize)));
        let message = sampler.batch_count(0, true).expect_err("a fault").to_string();
        assert!(message.contains("expected at least 1, got 0"), "{message}");
    }
}
