//! Products by the tile unit against sums in f64: by an emulated unit on every machine, and by the processor's unit if it has
//! one; both must be bit-identical.

use super::super::product::{Batch, Matrix, Tile};
use super::{BLOCK, block_sizes, multiply_by};
use keyway_cpu_loops::tiles::{Emulated, EmulatedDots, Native, SIDE, Unit};
use keyway_sdk::half::bf16;

/// Sizes and strides of a batch. `a` and `b` are row-major or column-major, with gaps between lines.
#[derive(Clone, Copy, Debug)]
struct Case {
    count: usize,
    /// Rows, columns and reduction dimension (k).
    sizes: (usize, usize, usize),
    transposed: (bool, bool),
    between: usize,
    /// Strides of the addend.
    input: Option<(usize, usize)>,
    out_transposed: bool,
}

/// The row stride, the column stride and the number of elements of a matrix.
fn lay((rows, columns): (usize, usize), transposed: bool, between: usize) -> (usize, usize, usize) {
    if transposed {
        (1, rows + between, columns * (rows + between))
    } else {
        (columns + between, 1, rows * (columns + between))
    }
}

/// Runs a case and compares with sums in f64. Returns the bits of the result.
fn run<U: Unit>(unit: U, case: Case, number: impl Fn(usize) -> f32) -> Vec<u16> {
    let Case { count, sizes: (rows, columns, inner), .. } = case;
    let (a_row, a_column, a_size) = lay((rows, inner), case.transposed.0, case.between);
    let (b_row, b_column, b_size) = lay((inner, columns), case.transposed.1, case.between);
    let (out_row, out_column, out_size) = lay((rows, columns), case.out_transposed, case.between);
    let elements =
        |n: usize, first: usize| -> Vec<bf16> { (0..n).map(|i| bf16::from_f32(number(i + first))).collect() };
    let (a, b) = (elements(count * a_size, 0), elements(count * b_size, 7));
    let input = elements(count + rows * columns, 3);
    let untouched = bf16::from_f32(-77.0);
    let mut out = vec![untouched; count * out_size];
    let (alpha, beta) = if case.input.is_some() { (2.0, 3.0) } else { (1.0, 0.0) };
    let all = Batch {
        count,
        first: Tile {
            rows,
            columns,
            inner,
            a: Matrix { data: a.as_ptr(), row: a_row, column: a_column },
            b: Matrix { data: b.as_ptr(), row: b_row, column: b_column },
            out: Matrix { data: out.as_mut_ptr(), row: out_row, column: out_column },
            input: case
                .input
                .map(|(row, column)| (Matrix { data: input.as_ptr(), row, column }, bf16::from_f32(beta))),
            alpha: bf16::from_f32(alpha),
        },
        steps: [a_size, b_size, out_size, 1],
    };
    // SAFETY: the vectors have the elements of these sizes and strides; `out` is used here alone.
    unsafe { multiply_by(unit, &all) }.expect("memory");
    let mut seen = 0;
    for p in 0..count {
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let terms = (0..inner).map(|k| {
                let a = a[p * a_size + r * a_row + k * a_column].to_f64();
                a * b[p * b_size + k * b_row + c * b_column].to_f64()
            });
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
            let added = case
                .input
                .map_or(0.0, |(row, column)| f64::from(beta) * input[p + r * row + c * column].to_f64());
            let expected = f64::from(alpha) * sum + added;
            let got = out[p * out_size + r * out_row + c * out_column];
            // The rounding of the result to bf16, and of the sums to f32.
            let bound = expected.abs() / 256.0 + (size + added.abs()) * 1e-6;
            assert!(
                (got.to_f64() - expected).abs() <= bound,
                "{case:?} at {p}, {r}, {c}: {got}, not {expected}"
            );
            seen += 1;
        }
    }
    let others = out.iter().filter(|v| v.to_bits() == untouched.to_bits()).count();
    assert!(others >= out.len() - seen, "{case:?} wrote between its lines");
    out.into_iter().map(bf16::to_bits).collect()
}

/// Values of both signs that are exact in bf16, and that do not all cancel.
fn number(i: usize) -> f32 {
    ((i * 37 + i / 5 * 11) % 251) as f32 / 32.0 - 3.9
}

/// All combinations of sizes from 1 to 70, and sizes with partial blocks and stored accumulators.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let some = [1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 65, 70];
    for (i, &rows) in some.iter().enumerate() {
        for (j, &columns) in some.iter().enumerate() {
            let inner = some[(3 * i + 5 * j) % some.len()];
            let input = [None, Some((0, 1)), Some((1, 0)), Some((columns, 1))][(i + j) % 4];
            cases.push(Case {
                count: 1 + (i + 2 * j) % 3,
                sizes: (rows, columns, inner),
                transposed: (i % 2 == 1, j % 2 == 1),
                between: (i + j) % 3,
                input,
                out_transposed: (i + j) % 5 == 4,
            });
        }
    }
    for (sizes, count) in [((300, 40, 33), 2), ((40, 290, 70), 1), ((33, 31, 1100), 2), ((270, 33, 600), 1)] {
        for transposed in [(false, false), (true, false), (false, true), (true, true)] {
            let input = transposed.0.then_some((0, 1));
            cases.push(Case { count, sizes, transposed, between: 0, input, out_transposed: false });
        }
    }
    cases
}

#[test]
fn products_are_right_at_all_edges_by_an_emulated_unit() {
    cases().into_iter().for_each(|case| drop(run(Emulated, case, number)));
    cases().into_iter().for_each(|case| drop(run(EmulatedDots, case, number)));
}

#[test]
fn the_processors_unit_and_the_emulated_one_agree_bit_by_bit() {
    let Some(unit) = Native::tiles() else {
        eprintln!("skipped: this machine has no AMX of bf16, or its system keeps it from this process");
        return;
    };
    for case in cases() {
        assert_eq!(run(unit, case, number), run(Emulated, case, number), "{case:?}");
    }
}

#[test]
fn the_processors_dot_products_and_emulated_ones_agree_bit_by_bit() {
    let Some(unit) = Native::dots() else {
        eprintln!("skipped: this machine has no AVX-512 BF16");
        return;
    };
    for case in cases() {
        assert_eq!(run(unit, case, number), run(EmulatedDots, case, number), "{case:?}");
    }
}

#[test]
fn expanded_operands_and_what_is_no_number() {
    let (rows, columns, inner) = (40, 36, 50);
    let a: Vec<bf16> = (0..inner).map(|i| bf16::from_f32(number(i))).collect();
    let mut b = vec![bf16::ONE; inner];
    b[3] = bf16::INFINITY;
    let mut out = vec![bf16::ZERO; rows * columns];
    let product = Tile {
        rows,
        columns,
        inner,
        a: Matrix { data: a.as_ptr(), row: 0, column: 1 },
        b: Matrix { data: b.as_ptr(), row: 1, column: 0 },
        out: Matrix { data: out.as_mut_ptr(), row: columns, column: 1 },
        input: None,
        alpha: bf16::ONE,
    };
    // SAFETY: the vectors have the elements of these sizes and strides; `out` is used here alone.
    unsafe { multiply_by(Emulated, &Batch::one(product)) }.expect("memory");
    let expected = bf16::INFINITY.to_f32().copysign(number(3));
    assert!(out.iter().all(|v| v.to_f32() == expected), "{:?}", &out[..4]);
}

#[test]
fn blocks_are_whole_panels_within_their_limits() {
    for (rows, columns, inner) in
        [(1, 1, 1), (33, 5000, 7), (512, 512, 512), (4096, 64, 9000), (300, 300, 10_000)]
    {
        let (tall, wide) = block_sizes(rows, columns, inner);
        assert!(tall % SIDE == 0 && wide % SIDE == 0 && tall.min(wide) >= SIDE && tall.max(wide) <= BLOCK);
    }
}
