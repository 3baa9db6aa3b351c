//! Sums and products of matrices with more entries than one piece of work has, compared with loops over lists: the same
//! coordinates, and the same bits for any number of threads.

use crate::rehearsal_support::load;
use crate::support::{PLUGINS, ints};
use keyway::Tensor;
use keyway::dispatcher::parallel::set_num_threads;
use keyway::storage::Plain;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// More than two pieces of 2^14 entries.
const MANY: usize = 40_000;

/// A number whose sums are those of its own type.
trait Number: Plain + PartialEq + Debug {
    fn of(seed: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    /// The sum of all, which are not none; floats added in f64.
    fn total(all: &[Self]) -> Self;
    fn times(self, other: Self) -> Self;
    fn bits(self) -> u64;
    /// Whether two sums are not the same, but for the order in which terms of this size together were added.
    fn apart(self, other: Self, size: f64) -> bool;
    fn size(self) -> f64;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Number for $t {
            fn of(seed: u64) -> Self {
                // Some are zeros of either sign, and some cancel.
                match seed % 16 {
                    0 => 0.0,
                    1 => -0.0,
                    2 => 1.5,
                    3 => -1.5,
                    _ => (seed >> 40) as $t * 1e-4 - 700.0,
                }
            }
            fn plus(self, other: Self) -> Self { self + other }
            fn total(all: &[Self]) -> Self {
                all[1..].iter().fold(f64::from(all[0]), |sum, x| sum + f64::from(*x)) as $t
            }
            fn times(self, other: Self) -> Self { self * other }
            fn bits(self) -> u64 { self.to_bits().into() }
            fn apart(self, other: Self, size: f64) -> bool {
                let difference = (f64::from(self) - f64::from(other)).abs();
                difference.is_nan() || difference > size * f64::from(<$t>::EPSILON) * 100.0
            }
            fn size(self) -> f64 { f64::from(self).abs() }
        }
    )*};
}
float!(f32, f64);

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Number for $t {
            fn of(seed: u64) -> Self { seed as $t }
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            fn total(all: &[Self]) -> Self { all.iter().fold(0, |sum, x| sum.wrapping_add(*x)) }
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn bits(self) -> u64 { self as u64 }
            fn apart(self, other: Self, _: f64) -> bool { self != other }
            fn size(self) -> f64 { 0.0 }
        }
    )*};
}
integer!(i8, u16, i64);

/// Values without a pattern.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, end: i64) -> i64 {
        ((self.next() >> 16) % end as u64) as i64
    }
}

/// The distribution of the entries of a matrix.
#[derive(Clone, Copy, Debug)]
enum Places {
    /// Anywhere.
    Scattered,
    /// Every seventh row has entries, the rows between are empty.
    FewRows,
    /// All entries are in one row.
    OneRow,
    /// All entries have the same coordinates.
    OnePlace,
}

const PLACES: [Places; 4] = [Places::Scattered, Places::FewRows, Places::OneRow, Places::OnePlace];

/// Entries in any order, with some duplicates.
struct Matrix<T> {
    sizes: [i64; 2],
    entries: Vec<([i64; 2], T)>,
}

impl<T: Number> Matrix<T> {
    fn random(places: Places, sizes: [i64; 2], count: usize, random: &mut Random) -> Self {
        let entries = (0..count).map(|_| {
            let (row, column) = (random.below(sizes[0]), random.below(sizes[1]));
            let place = match places {
                Places::Scattered => [row, column],
                Places::FewRows => [row / 7 * 7, column],
                Places::OneRow => [sizes[0] / 2, column],
                Places::OnePlace => [sizes[0] / 2, sizes[1] / 3],
            };
            (place, T::of(random.next()))
        });
        Matrix { sizes, entries: entries.collect() }
    }

    /// The same coordinates with other values, except every `nth`.
    fn but_each(&self, nth: usize, random: &mut Random) -> Self {
        let kept = self.entries.iter().enumerate().filter(|(at, _)| at % nth != 0);
        Matrix { sizes: self.sizes, entries: kept.map(|(_, (at, _))| (*at, T::of(random.next()))).collect() }
    }

    fn tensor(&self) -> Tensor {
        let of_dim = |dim: usize| self.entries.iter().map(move |(at, _)| at[dim]);
        let indices: Vec<i64> = of_dim(0).chain(of_dim(1)).collect();
        let values: Vec<T> = self.entries.iter().map(|(_, value)| *value).collect();
        let count = values.len();
        let values = Tensor::from_vec(values, [count]).unwrap();
        Tensor::sparse_coo(&ints(&indices, &[2, count]), &values, self.sizes.map(|size| size as usize))
            .unwrap()
    }

    /// Each coordinate once, with the sum of its values.
    fn sums(&self) -> Self {
        let mut all = BTreeMap::<[i64; 2], Vec<T>>::new();
        self.entries.iter().for_each(|(at, value)| all.entry(*at).or_default().push(*value));
        Matrix {
            sizes: self.sizes,
            entries: all.into_iter().map(|(at, values)| (at, T::total(&values))).collect(),
        }
    }

    /// Each coordinate once, its values added in order in their dtype.
    fn sums_in_turn(&self) -> Self {
        let mut sums = BTreeMap::new();
        for &(at, value) in &self.entries {
            sums.entry(at).and_modify(|sum: &mut T| *sum = sum.plus(value)).or_insert(value);
        }
        Matrix { sizes: self.sizes, entries: sums.into_iter().collect() }
    }

    fn plus(&self, other: &Self) -> Self {
        let (a, b) = (self.sums(), other.sums());
        Matrix { sizes: self.sizes, entries: a.entries.into_iter().chain(b.entries).collect() }.sums()
    }

    /// The product; terms are added in the order of the columns of `self`.
    fn times(&self, other: &Self) -> Self {
        let (a, b) = (self.sums(), other.sums());
        let mut rows = BTreeMap::<i64, Vec<(i64, T)>>::new();
        for ([row, column], value) in b.entries {
            rows.entry(row).or_default().push((column, value));
        }
        let of_row = |row| rows.get(row).into_iter().flatten();
        let terms = a.entries.iter().flat_map(|([row, k], factor)| {
            of_row(k).map(move |(column, value)| ([*row, *column], factor.times(*value)))
        });
        Matrix { sizes: [self.sizes[0], other.sizes[1]], entries: terms.collect() }.sums_in_turn()
    }
}

/// Fails unless the call gives these entries in order, bit by bit, with one thread and with several.
#[track_caller]
fn check<T: Number>(what: &str, wanted: &Matrix<T>, call: impl Fn() -> keyway::Result<Tensor>) {
    let (places, numbers): (Vec<_>, Vec<_>) =
        wanted.entries.iter().map(|(at, value)| (*at, value.bits())).unzip();
    for threads in [1, 2, 5] {
        set_num_threads(threads);
        let made = call().unwrap_or_else(|error| panic!("{what}: {error}"));
        set_num_threads(0);
        assert_eq!(made.dims().iter().map(|&n| n as i64).collect::<Vec<_>>(), wanted.sizes, "{what}");
        let indices = made.indices().unwrap().to_vec::<i64>().unwrap();
        let (rows, columns) = indices.split_at(indices.len() / 2);
        let found: Vec<[i64; 2]> = rows.iter().zip(columns).map(|(row, column)| [*row, *column]).collect();
        assert!(found == places, "{what}: {} places that are not the {} expected", found.len(), places.len());
        let values = made.values().unwrap().to_vec::<T>().unwrap();
        let differs = values.iter().zip(&numbers).position(|(value, wanted)| value.bits() != *wanted);
        if let Some(at) = differs {
            let wanted = &wanted.entries[at];
            panic!("{what}, {threads} threads, entry {at}: {:?}, not {wanted:?}", values[at]);
        }
    }
}

fn sums<T: Number>(places: Places, sizes: [i64; 2], count: usize, seed: u64) {
    let random = &mut Random(seed | 1);
    let a = Matrix::<T>::random(places, sizes, count, random);
    let what = format!("{places:?} {sizes:?} {count} entries, seed {seed}");
    // Nearly the places of the other, so that most pieces begin at one that both have; others; fewer; none.
    let others = [
        a.but_each(97, random),
        Matrix::random(Places::Scattered, sizes, count / 2 + 1, random),
        Matrix::random(places, sizes, 3, random),
        Matrix { sizes, entries: Vec::new() },
    ];
    let x = a.tensor();
    check(&format!("coalesce of {what}"), &a.sums(), || x.coalesce());
    let ordered = x.coalesce().unwrap();
    for (nth, b) in others.iter().enumerate() {
        let (y, sum) = (b.tensor(), a.plus(b));
        check(&format!("sum {nth} of {what}"), &sum, || x.add(&y));
        let y = y.coalesce().unwrap();
        check(&format!("sum {nth} in order of {what}"), &sum, || ordered.add(&y));
        check(&format!("sum {nth} the other way round of {what}"), &b.plus(&a), || y.add(&ordered));
    }
}

fn products<T: Number>(places: Places, [n, k, m]: [i64; 3], count: usize, seed: u64) {
    let random = &mut Random(seed | 1);
    let a = Matrix::<T>::random(places, [n, k], count, random);
    let b = Matrix::<T>::random(Places::Scattered, [k, m], count, random);
    let (x, y) = (a.tensor(), b.tensor());
    let what = format!("{places:?} {n} x {k} x {m}, {count} entries, seed {seed}");
    check(&format!("product of {what}"), &a.times(&b), || x.mm(&y));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_entries_are_added_up_as_by_a_loop(
        seed: u64, nth in 0usize..4, rows in 1i64..3000, columns in 1i64..3000, more in 0usize..60_000,
    ) {
        let _one = load(PLUGINS);
        sums::<f32>(PLACES[nth], [rows, columns], MANY + more, seed);
    }

    // Rows of the result that have few of many columns, for which those are listed, and rows with many.
    #[test]
    fn products_are_those_of_a_loop(
        seed: u64, nth in 0usize..3, n in 1i64..3000, k in 1i64..200, m in 1i64..9000, count in 1usize..4000,
    ) {
        let _one = load(PLUGINS);
        products::<f32>(PLACES[nth], [n, k, m], count, seed);
    }
}

#[test]
fn each_kind_of_pattern_is_added_up() {
    let _one = load(PLUGINS);
    for (nth, places) in PLACES.into_iter().enumerate() {
        sums::<f64>(places, [700, 900], MANY, 7 + nth as u64);
        sums::<i64>(places, [1, 100_000], MANY, 17 + nth as u64);
        sums::<i8>(places, [100_000, 1], MANY, 27 + nth as u64);
        // Places of more bits than are left beside a number.
        sums::<u16>(places, [1 << 30, 1 << 30], MANY, 37 + nth as u64);
    }
}

/// The shares of each row, and their logarithms, in f64.
fn shares(of: &Matrix<f32>, logarithm: bool) -> Vec<f64> {
    let mut rows = BTreeMap::<i64, (f64, f64)>::new();
    for &([row, _], value) in &of.entries {
        let most = rows.entry(row).or_insert((f64::NEG_INFINITY, 0.0));
        most.0 = most.0.max(value.into());
    }
    for &([row, _], value) in &of.entries {
        rows.entry(row).and_modify(|(most, sum)| *sum += (f64::from(value) - *most).exp());
    }
    let share = |&([row, _], value): &([i64; 2], f32)| {
        let less = f64::from(value) - rows[&row].0;
        if logarithm { less - rows[&row].1.ln() } else { less.exp() / rows[&row].1 }
    };
    of.entries.iter().map(share).collect()
}

#[test]
fn shares_of_rows_in_many_pieces() {
    let _one = load(PLUGINS);
    let random = &mut Random(67);
    // Rows shorter and longer than a piece and than a batch; the last ones of few entries.
    for (sizes, count) in
        [([3000, 90], 200_000), ([40, 9000], 300_000), ([2, 1 << 20], 300_000), ([1, 1 << 20], 200_000)]
    {
        let a = Matrix::<f32>::random(Places::Scattered, sizes, count, random);
        let entries = a.sums().entries.into_iter().map(|(at, value)| (at, value % 5.0)).collect();
        let a = Matrix { sizes, entries };
        let x = a.tensor().coalesce().unwrap();
        for (logarithm, wanted) in [(false, shares(&a, false)), (true, shares(&a, true))] {
            let mut first: Option<Vec<f32>> = None;
            for threads in [1, 2, 5] {
                set_num_threads(threads);
                let made = if logarithm { x.log_softmax(1) } else { x.softmax(1) }.unwrap();
                set_num_threads(0);
                let found = made.values().unwrap().to_vec::<f32>().unwrap();
                let near =
                    |(found, wanted): (&f32, &f64)| (f64::from(*found) - wanted).abs() <= 1e-5 * wanted.abs();
                assert!(found.iter().zip(&wanted).all(near), "{sizes:?}");
                let bits = |list: &[f32]| list.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert!(first.as_ref().is_none_or(|first| bits(first) == bits(&found)), "{sizes:?}");
                first = Some(found);
            }
        }
    }
}

#[test]
fn rows_of_products_are_listed_or_looked_through() {
    let _one = load(PLUGINS);
    for (nth, places) in PLACES.into_iter().enumerate() {
        let seed = 47 + nth as u64;
        // Few of many columns; most of few; all columns in one word, and one more than a word; wider than there are entries.
        products::<f64>(places, [400, 5000, 80_000], 20_000, seed);
        products::<f64>(places, [400, 20, 300], 5000, seed);
        products::<f32>(places, [70, 50, 64], 500, seed);
        products::<f32>(places, [70, 50, 65], 500, seed);
        products::<i8>(places, [70, 50, 1 << 40], 500, seed);
        products::<i64>(places, [1 << 40, 50, 8000], 500, seed);
        products::<u16>(places, [1, 300, 7000], 3000, seed);
    }
}

/// Rows, columns and elements of a strided matrix, as lies in memory or with rows and columns exchanged.
fn strided<T: Number>(
    rows: usize,
    columns: usize,
    by_columns: bool,
    random: &mut Random,
) -> (Tensor, Vec<T>) {
    let values: Vec<T> = (0..rows * columns).map(|_| T::of(random.next())).collect();
    if !by_columns {
        return (Tensor::from_vec(values.clone(), [rows, columns]).unwrap(), values);
    }
    let tensor = Tensor::from_vec(values.clone(), [columns, rows]).unwrap().t().unwrap();
    let transposed = (0..rows * columns).map(|at| values[at % columns * rows + at / columns]);
    (tensor, transposed.collect())
}

fn strided_by_sparse<T: Number>(places: Places, [n, k, m]: [usize; 3], count: usize, seed: u64) {
    let random = &mut Random(seed | 1);
    let b = Matrix::<T>::random(places, [k as i64, m as i64], count, random);
    let any_order = b.tensor();
    let layouts =
        [any_order.coalesce().unwrap().to_sparse_csr().unwrap(), any_order.coalesce().unwrap(), any_order];
    for by_columns in [false, true] {
        let (x, a) = strided::<T>(n, k, by_columns, random);
        let (mut wanted, mut size) = (vec![T::of(0).times(T::of(0)); n * m], vec![0.0; n * m]);
        let each_term = |of: &Matrix<T>, add: &mut dyn FnMut(usize, T)| {
            for ([row, column], value) in &of.entries {
                for i in 0..n {
                    add(i * m + *column as usize, a[i * k + *row as usize].times(*value));
                }
            }
        };
        each_term(&b.sums(), &mut |at, term| wanted[at] = wanted[at].plus(term));
        each_term(&b, &mut |at, term| size[at] += term.size());
        for y in &layouts {
            let what = format!("{n} x {k} by {places:?} {k} x {m}, by columns: {by_columns}, seed {seed}");
            check_strided(&what, &wanted, &size, || x.mm(y));
        }
    }
}

/// Fails unless the call gives these elements but for rounding, and the same bits with one thread and with several.
#[track_caller]
fn check_strided<T: Number>(
    what: &str,
    wanted: &[T],
    size: &[f64],
    call: impl Fn() -> keyway::Result<Tensor>,
) {
    let mut first = None::<Vec<u64>>;
    for threads in [1, 2, 5] {
        set_num_threads(threads);
        let made = call().unwrap_or_else(|error| panic!("{what}: {error}"));
        set_num_threads(0);
        let made = made.to_vec::<T>().unwrap();
        assert_eq!(made.len(), wanted.len(), "{what}");
        let apart = (0..made.len()).find(|&at| made[at].apart(wanted[at], size[at]));
        if let Some(at) = apart {
            panic!("{what}, element {at}: {:?}, not {:?}", made[at], wanted[at]);
        }
        let bits: Vec<u64> = made.iter().map(|number| number.bits()).collect();
        assert!(
            *first.get_or_insert_with(|| bits.clone()) == bits,
            "{what}: other bits with {threads} threads"
        );
    }
}

/// Entries in any order, with duplicates, times a strided matrix or vector.
fn sparse_by_strided<T: Number>(places: Places, [n, k, m]: [usize; 3], count: usize, seed: u64) {
    let random = &mut Random(seed | 1);
    let a = Matrix::<T>::random(places, [n as i64, k as i64], count, random);
    let x = a.tensor();
    for by_columns in [false, true] {
        let (y, b) = strided::<T>(k, m, by_columns, random);
        let (mut wanted, mut size) = (vec![T::of(0).times(T::of(0)); n * m], vec![0.0; n * m]);
        for ([row, column], value) in &a.entries {
            for i in 0..m {
                let term = b[*column as usize * m + i].times(*value);
                let at = *row as usize * m + i;
                (wanted[at], size[at]) = (wanted[at].plus(term), size[at] + term.size());
            }
        }
        let what = format!("{places:?} {n} x {k} by {k} x {m}, {count} entries, seed {seed}");
        check_strided(&what, &wanted, &size, || x.mm(&y));
        if m == 1 {
            check_strided(&what, &wanted, &size, || x.mv(&y.reshape([k])?));
        }
    }
}

#[test]
fn entries_in_any_order_by_strided_matrices() {
    let _one = load(PLUGINS);
    for (nth, places) in PLACES.into_iter().enumerate() {
        let seed = 77 + nth as u64;
        for m in [1, 2, 16, 33, 64] {
            sparse_by_strided::<f32>(places, [70, 50, m], 3000, seed);
            sparse_by_strided::<f64>(places, [70, 50, m], 900, seed);
        }
        // Many entries for a row, which several pieces count, and fewer than rows.
        sparse_by_strided::<f32>(places, [300, 200, 40], MANY, seed);
        sparse_by_strided::<i64>(places, [3000, 9, 5], 4000, seed);
        sparse_by_strided::<u16>(places, [7, 3000, 20], 4000, seed);
        sparse_by_strided::<i8>(places, [1, 1, 3], 900, seed);
        sparse_by_strided::<f32>(places, [5, 4, 3], 0, seed);
    }
}

/// Duplicates count as their sum, also if one of them alone would be infinite.
#[test]
fn infinities_meet_sums() {
    let _one = load(PLUGINS);
    let values = Tensor::new([2.0f32, -1.0, 3.0, 1.0]).unwrap();
    let a = Tensor::sparse_coo(&ints(&[1, 1, 0, 0, 0, 0, 1, 1], &[2, 4]), &values, [2usize, 2]).unwrap();
    let infinite = f32::INFINITY;
    // [[0, 4], [1, 0]] by columns of an infinity and of numbers.
    let b = Tensor::new([[infinite, 5.0], [2.0, 7.0]]).unwrap();
    assert_eq!(a.mm(&b).unwrap().to_vec::<f32>().unwrap(), [8.0, 28.0, infinite, 5.0]);
    let rows = [[infinite, 5.0, 1.0, 2.0], [2.0, -infinite, 3.0, 4.0]];
    let c = Tensor::new(rows).unwrap().t().unwrap();
    let wanted: Vec<f32> = (0..4).flat_map(|i| [rows[1][i], 4.0 * rows[0][i]]).collect();
    assert_eq!(c.mm(&a).unwrap().to_vec::<f32>().unwrap(), wanted);
}

#[test]
fn strided_matrices_by_sparse_ones() {
    let _one = load(PLUGINS);
    for (nth, places) in PLACES.into_iter().enumerate() {
        let seed = 57 + nth as u64;
        for n in [1, 3, 4, 16, 37] {
            strided_by_sparse::<f64>(places, [n, 50, 70], 900, seed);
        }
        strided_by_sparse::<f32>(places, [40, 300, 200], MANY, seed);
        strided_by_sparse::<i64>(places, [9, 1, 3000], 4000, seed);
        strided_by_sparse::<u16>(places, [9, 3000, 1], 4000, seed);
    }
}

#[test]
fn gradients_of_strided_operands_are_those_of_a_loop() {
    let _one = load(PLUGINS);
    let random = &mut Random(67);
    let a = Matrix::<f64>::random(Places::FewRows, [50, 40], 300, random);
    let coo = a.tensor().coalesce().unwrap();
    for x in [coo.to_sparse_csr().unwrap(), coo, a.tensor()] {
        for (columns, by_columns) in [(3, false), (6, false), (6, true)] {
            let (other, _) = strided::<f64>(40, columns, by_columns, random);
            let other = other.requires_grad_(true).unwrap();
            // A gradient of ones that is one element, repeated, and one of its own.
            let (given, elements) = strided::<f64>(50, columns, false, random);
            for (own, elements) in [(None, vec![1.0; 50 * columns]), (Some(given), elements)] {
                let product = x.mm(&other).unwrap();
                let weighted = own.map_or(product.clone(), |own| product.mul(&own).unwrap());
                other.zero_grad();
                weighted.sum_all().unwrap().backward().unwrap();
                let mut wanted = vec![0.0; 40 * columns];
                for ([row, column], value) in &a.sums().entries {
                    for i in 0..columns {
                        wanted[*column as usize * columns + i] +=
                            value * elements[*row as usize * columns + i];
                    }
                }
                let found = other.grad().unwrap().to_vec::<f64>().unwrap();
                crate::rehearsal_support::assert_close(&found, &wanted, 1e-9);
            }
        }
    }
}

/// A large addend, to which each of the following ones is lost in f32 rounding: a product may lose at most a block of 1,024.
#[test]
fn products_of_many_addends_keep_their_digits() {
    let _one = load(PLUGINS);
    const N: usize = 5000;
    let large = 2f32.powi(24);
    let near = |what: &str, made: Tensor| {
        for sum in made.to_dense().unwrap().to_vec::<f32>().unwrap() {
            let off = f64::from(large) + (N - 1) as f64 - f64::from(sum);
            assert!(off.abs() <= 1100.0, "{what}: {sum} is off by {off}");
        }
    };
    let entry = |k: usize| ([0, k as i64], if k == 0 { large } else { 1.0 });
    let row =
        Matrix { sizes: [1, N as i64], entries: (0..N).map(entry).collect() }.tensor().coalesce().unwrap();
    let column = Matrix { sizes: [N as i64, 1], entries: (0..N).map(|k| ([k as i64, 0], 1.0f32)).collect() };
    near("sparse by sparse", row.mm(&column.tensor().coalesce().unwrap()).unwrap());
    let transposed = row.t().unwrap().coalesce().unwrap();
    for columns in [1, 3, 40] {
        let ones = Tensor::ones([N, columns]).unwrap();
        near("sparse by strided", row.mm(&ones).unwrap());
        near("rows by strided", row.to_sparse_csr().unwrap().mm(&ones).unwrap());
        let ones = Tensor::ones([columns, N]).unwrap();
        near("strided by sparse", ones.mm(&transposed).unwrap());
        near("strided by rows", ones.mm(&transposed.to_sparse_csr().unwrap()).unwrap());
        let ones = Tensor::ones([2, columns, N]).unwrap();
        let numbers: Vec<f32> = (0..2 * N).map(|k| if k % N == 0 { large } else { 1.0 }).collect();
        let stack = Tensor::from_vec(numbers, [2, N, 1]).unwrap().to_sparse().unwrap();
        near("a stack of strided by sparse", ones.bmm(&stack).unwrap());
    }
}
