//! Products in cuBLASLt's form: of column-major matrices with leading dimensions.
//!
//! Unsupported, and left to the backend's own kernels: integers, an empty reduction dimension, a single result, operands
//! with two non-unit strides, and a factor of 0, which cuBLASLt treats as "do not read" although 0 times infinity is NaN. A
//! broadcast input is the bias of the epilogue if possible, and is copied to the result otherwise.

/// Element types of products by cuBLASLt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    /// The type of a dtype's name; `None` for other dtypes.
    pub fn named(dtype: &str) -> Option<Element> {
        match dtype {
            "f16" => Some(Element::F16),
            "bf16" => Some(Element::Bf16),
            "f32" => Some(Element::F32),
            "f64" => Some(Element::F64),
            _ => None,
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Element::F16 | Element::Bf16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }

    /// Decodes a scalar in the compute type from its bits.
    fn number(self, bits: u64) -> f64 {
        match self {
            Element::F64 => f64::from_bits(bits),
            _ => f64::from(f32::from_bits(bits as u32)),
        }
    }
}

/// A batch of matrices in device memory: the address, and the strides of batch, row and column in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matrices {
    /// The address.
    pub at: u64,
    /// For batch, row and column.
    pub strides: [i64; 3],
}

impl Matrices {
    fn transposed(self) -> Matrices {
        let [batch, row, column] = self.strides;
        Matrices { strides: [batch, column, row], ..self }
    }
}

/// `alpha * left @ right + beta * input`.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// The dtype's name.
    pub dtype: &'a str,
    /// Whether f32 factors may be rounded to TF32.
    pub rounds: bool,
    /// Batches, m, n and k.
    pub sizes: [usize; 4],
    /// The result.
    pub out: Matrices,
    /// The left operand.
    pub left: Matrices,
    /// The right operand.
    pub right: Matrices,
    /// The addend, if any.
    pub input: Option<Matrices>,
    /// The bits of alpha, in the compute type.
    pub alpha: u64,
    /// The bits of beta.
    pub beta: u64,
}

/// A column-major operand, transposed or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    /// The stride between columns, in elements.
    pub leading: i64,
    /// The stride between matrices, in elements.
    pub batch: i64,
    /// Whether the stored matrix is the transposed operand.
    pub transposed: bool,
    /// Alignment of every matrix's address, up to [`ALIGNED`].
    pub alignment: u32,
}

/// Maximum requested alignment: the library's default assumption.
const ALIGNED: u64 = 256;
/// Alignment of the address of a bias vector of the epilogue.
const BIAS_ALIGNED: u64 = 16;
/// The exclusive upper bound of sizes.
const MOST: usize = i32::MAX as usize;

/// The source of a product's input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addend {
    /// Nothing is added.
    None,
    /// A matrix, which may be the result's memory.
    Matrix,
    /// A vector with an element for each row of the column-major result, by the epilogue.
    Bias,
    /// The result's memory, which the input is copied to first.
    Copied,
}

/// The properties that determine an algorithm and its descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The operands' element type.
    pub element: Element,
    /// Whether f32 factors may be rounded to TF32.
    pub rounds: bool,
    /// Batches, and the sizes of the column-major result and of the reduction dimension.
    pub sizes: [usize; 4],
    /// The first operand.
    pub a: Form,
    /// The second operand.
    pub b: Form,
    /// The addend; the result's form if there is none.
    pub c: Form,
    /// The result.
    pub d: Form,
    /// The source of the input.
    pub addend: Addend,
}

/// A product that cuBLASLt supports: `D = alpha * op(A) @ op(B) + beta * C`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Problem {
    /// The properties that are constant for a kind.
    pub key: Key,
    /// Addresses of A, B, C and D.
    pub at: [u64; 4],
    /// Address of the bias vector.
    pub bias: u64,
    /// The bits of alpha.
    pub alpha: u64,
    /// The bits of beta.
    pub beta: u64,
}

impl Problem {
    /// `None` if the product is not supported: another dtype, an empty reduction dimension, a single result, strides that
    /// no leading dimension describes, or a factor of 0, which cuBLASLt treats as "do not read" although infinity times 0
    /// is NaN.
    pub fn new(product: &Product<'_>) -> Option<Problem> {
        let element = Element::named(product.dtype)?;
        let [batches, rows, columns, inner] = product.sizes;
        let fits = |&size: &usize| (1..=MOST).contains(&size);
        if !product.sizes.iter().all(fits) || rows * columns == 1 || element.number(product.alpha) == 0.0 {
            return None;
        }
        let stored =
            |of: Matrices, rows: usize, columns: usize| Stored { element, of, batches, rows, columns };
        // A row-major result is the transpose of a column-major one, and so is the product of the transposed operands.
        let swapped = stored(product.out, rows, columns).form()?.transposed;
        let turn = |of: Matrices| if swapped { of.transposed() } else { of };
        let (m, n) = if swapped { (columns, rows) } else { (rows, columns) };
        let (first, second) =
            if swapped { (product.right, product.left) } else { (product.left, product.right) };
        let (first, second, out) = (turn(first), turn(second), turn(product.out));
        let (a, b) = (stored(first, m, inner).form()?, stored(second, inner, n).form()?);
        let d = stored(out, m, n).direct_form()?;
        let (addend, input, c) = match product.input.map(turn) {
            None => (Addend::None, out, d),
            Some(input) => {
                let (addend, c) = stored(input, m, n).addend(d, element.number(product.beta));
                (addend, input, c)
            }
        };
        // An input in the result's memory is read in place, and so must have the result's strides.
        let in_place = addend != Addend::None && input.at == out.at;
        if in_place && (addend, c) != (Addend::Matrix, d) {
            return None;
        }
        let read = if addend == Addend::Matrix { input.at } else { out.at };
        let (is_bias, is_added) = (addend == Addend::Bias, matches!(addend, Addend::Matrix | Addend::Copied));
        Some(Problem {
            key: Key { element, rounds: product.rounds, sizes: [batches, m, n, inner], a, b, c, d, addend },
            at: [first.at, second.at, read, out.at],
            bias: if is_bias { input.at } else { 0 },
            alpha: product.alpha,
            beta: if is_added { product.beta } else { 0 },
        })
    }

    /// The product without an epilogue: the input, times this factor, is copied to the result first. `None` without an
    /// epilogue.
    pub fn copied(self, beta: u64) -> Option<Problem> {
        let key = Key { addend: Addend::Copied, ..self.key };
        (self.key.addend == Addend::Bias).then_some(Problem { key, bias: 0, beta, ..self })
    }
}

/// A batch of matrices of these sizes.
#[derive(Clone, Copy)]
struct Stored {
    element: Element,
    of: Matrices,
    batches: usize,
    rows: usize,
    columns: usize,
}

impl Stored {
    /// The matrix if it is column-major, or transposed. For a single row the latter is preferred, so that its elements are
    /// contiguous.
    fn form(self) -> Option<Form> {
        let swapped = || {
            let own = Stored { of: self.of.transposed(), rows: self.columns, columns: self.rows, ..self };
            own.direct_form().map(|form| Form { transposed: true, ..form })
        };
        if self.rows == 1 {
            swapped().or_else(|| self.direct_form())
        } else {
            self.direct_form().or_else(swapped)
        }
    }

    /// The form without transposition: the elements of a column are contiguous, and columns do not overlap.
    fn direct_form(self) -> Option<Form> {
        let [batch, row, column] = self.of.strides;
        let leading = if self.columns == 1 { self.rows as i64 } else { column };
        let batch = if self.batches == 1 { 0 } else { batch };
        if self.rows > 1 && row != 1 || leading < self.rows as i64 || batch < 0 {
            return None;
        }
        let every = self.of.at | (batch as u64 * self.element.bytes()) | ALIGNED;
        Some(Form { leading, batch, transposed: false, alignment: 1 << every.trailing_zeros() })
    }

    /// The addend of a result of form `d`: as an epilogue, a matrix or a copy.
    fn addend(self, d: Form, factor: f64) -> (Addend, Form) {
        if let Some(own) = self.direct_form() {
            return (Addend::Matrix, own);
        }
        let [batch, row, column] = self.of.strides;
        let is_vector = (row == 1 || self.rows == 1) && column == 0 && (batch == 0 || self.batches == 1);
        // The epilogue may be unavailable in f64.
        let by_epilogue = self.element != Element::F64 && factor == 1.0;
        let is_aligned = self.of.at.is_multiple_of(BIAS_ALIGNED);
        (if is_vector && by_epilogue && is_aligned { Addend::Bias } else { Addend::Copied }, d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: u64 = 1f32.to_bits() as u64;

    /// The address of an operand's element, by cuBLASLt's rules.
    fn element_at(form: Form, at: u64, bytes: u64, [batch, row, column]: [usize; 3]) -> u64 {
        let (row, column) = if form.transposed { (column, row) } else { (row, column) };
        at + (batch as i64 * form.batch + row as i64 + column as i64 * form.leading) as u64 * bytes
    }

    fn address(of: Matrices, bytes: u64, at: [usize; 3]) -> u64 {
        let moved: i64 = of.strides.iter().zip(at).map(|(stride, at)| stride * at as i64).sum();
        of.at + moved as u64 * bytes
    }

    /// Strides of `rows` by `columns` matrices, mostly as tensors have them.
    fn strides() -> impl Strategy<Value = (bool, i64, i64, i64)> {
        (any::<bool>(), prop_oneof![4 => Just(1i64), 1 => 0..3i64], 0..3i64, -1..3i64)
    }

    fn matrices(
        at: u64,
        [rows, columns]: [usize; 2],
        (by_row, step, gap, batch): (bool, i64, i64, i64),
    ) -> Matrices {
        let (fast, slow) = if by_row { (columns, rows) } else { (rows, columns) };
        let next = fast as i64 * step + gap;
        let batch = (batch + 1) * (next * slow as i64) / 2;
        let (row, column) = if by_row { (next, step) } else { (step, next) };
        Matrices { at, strides: [batch, row, column] }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn elements_are_those_of_the_product(
            sizes in [1..4usize, 1..6usize, 1..6usize, 1..6usize],
            all in [strides(), strides(), strides(), strides()],
            at in [0..8u64, 0..8, 0..8, 0..8],
            (dtype, bytes) in prop_oneof![Just(("f16", 2)), Just(("bf16", 2)), Just(("f32", 4)), Just(("f64", 8))],
            has_input in any::<bool>(),
            beta in prop_oneof![Just(1.0f32), Just(0.5)],
        ) {
            let [batches, rows, columns, inner] = sizes;
            let base = |i: usize| ((i as u64 + 1) << 20) | (at[i] * bytes);
            let out = matrices(base(0), [rows, columns], all[0]);
            let left = matrices(base(1), [rows, inner], all[1]);
            let right = matrices(base(2), [inner, columns], all[2]);
            let input = matrices(base(3), [rows, columns], all[3]);
            let bits = |x: f32| if dtype == "f64" { f64::from(x).to_bits() } else { u64::from(x.to_bits()) };
            let product = Product {
                rounds: false,
                dtype, sizes, out, left, right, input: has_input.then_some(input), alpha: bits(2.0), beta: bits(beta),
            };
            let Some(problem) = Problem::new(&product) else { return Ok(()) };
            let key = problem.key;
            let [_, m, n, k] = key.sizes;
            prop_assert_eq!((key.sizes[0], m * n, k), (batches, rows * columns, inner));
            let swapped = problem.at[0] == right.at;
            let place = |row: usize, column: usize| if swapped { (column, row) } else { (row, column) };
            for (form, size) in [(key.a, [m, k]), (key.b, [k, n]), (key.c, [m, n]), (key.d, [m, n])] {
                let stored = if form.transposed { size[1] } else { size[0] };
                prop_assert!(form.leading >= stored as i64);
                prop_assert!(form.alignment.is_power_of_two() && form.alignment <= 256);
            }
            prop_assert!(!key.c.transposed && !key.d.transposed);
            for batch in 0..batches {
                for i in 0..m {
                    for j in 0..n {
                        let (row, column) = place(i, j);
                        let wanted = address(out, bytes, [batch, row, column]);
                        prop_assert_eq!(element_at(key.d, problem.at[3], bytes, [batch, i, j]), wanted);
                        let added = address(input, bytes, [batch, row, column]);
                        match key.addend {
                            Addend::Matrix => {
                                prop_assert_eq!(element_at(key.c, problem.at[2], bytes, [batch, i, j]), added);
                            }
                            Addend::Bias => prop_assert_eq!(problem.bias + i as u64 * bytes, added),
                            Addend::None | Addend::Copied => {
                                prop_assert_eq!((problem.at[2], key.c), (problem.at[3], key.d));
                            }
                        }
                    }
                    for t in 0..k {
                        let wanted = match swapped {
                            true => address(right, bytes, [batch, t, i]),
                            false => address(left, bytes, [batch, i, t]),
                        };
                        let own = element_at(key.a, problem.at[0], bytes, [batch, i, t]);
                        prop_assert_eq!(own, wanted);
                        prop_assert!(t > 0 || i > 0 || own.is_multiple_of(u64::from(key.a.alignment)));
                    }
                }
                for (t, j) in (0..k).flat_map(|t| (0..n).map(move |j| (t, j))) {
                    let wanted = match swapped {
                        true => address(left, bytes, [batch, j, t]),
                        false => address(right, bytes, [batch, t, j]),
                    };
                    prop_assert_eq!(element_at(key.b, problem.at[1], bytes, [batch, t, j]), wanted);
                }
            }
            prop_assert_eq!(problem.beta != 0, matches!(key.addend, Addend::Matrix | Addend::Copied));
        }
    }

    fn dense(at: u64, rows: i64, columns: i64) -> Matrices {
        Matrices { at, strides: [rows * columns, columns, 1] }
    }

    fn small() -> Product<'static> {
        let (out, left, right) = (dense(1 << 20, 4, 6), dense(2 << 20, 4, 5), dense(3 << 20, 5, 6));
        Product {
            dtype: "f32",
            rounds: false,
            sizes: [1, 4, 6, 5],
            out,
            left,
            right,
            input: None,
            alpha: ONE,
            beta: ONE,
        }
    }

    #[test]
    fn row_major_products_are_those_of_the_sides_in_turn() {
        let problem = Problem::new(&small()).unwrap();
        assert_eq!(problem.key.sizes, [1, 6, 4, 5]);
        assert_eq!(problem.at, [3 << 20, 2 << 20, 1 << 20, 1 << 20]);
        assert_eq!((problem.key.a.leading, problem.key.b.leading, problem.key.d.leading), (6, 5, 6));
        assert!(!problem.key.a.transposed && !problem.key.b.transposed);
        // A transposed operand is a flag.
        let right = Matrices { at: 3 << 20, strides: [0, 1, 5] };
        let problem = Problem::new(&Product { right, ..small() }).unwrap();
        assert!(problem.key.a.transposed && problem.key.a.leading == 5);
    }

    #[test]
    fn what_does_not_fit_is_left() {
        let none = |product: Product<'_>| assert_eq!(Problem::new(&product), None, "{product:?}");
        none(Product { dtype: "i32", ..small() });
        none(Product { sizes: [1, 4, 6, 0], ..small() });
        none(Product { sizes: [1, 1, 1, 5], ..small() });
        none(Product { sizes: [1, 1 << 31, 6, 5], ..small() });
        none(Product { alpha: u64::from((-0f32).to_bits()), ..small() });
        let with = |strides| Matrices { at: 2 << 20, strides };
        none(Product { left: with([0, 10, 2]), ..small() });
        none(Product { left: with([0, 1, 1]), ..small() });
        none(Product { left: with([0, 0, 1]), ..small() });
        // An input in place with strides other than the result's.
        none(Product { input: Some(Matrices { at: small().out.at, strides: [0, 7, 1] }), ..small() });
    }

    #[test]
    fn inputs_are_read_where_they_lie_or_copied() {
        let addend = |dtype, at, strides, beta: f64| {
            let bits = |x: f64| if dtype == "f64" { x.to_bits() } else { u64::from((x as f32).to_bits()) };
            let input = Some(Matrices { at, strides });
            let product = Product { dtype, input, alpha: bits(1.0), beta: bits(beta), ..small() };
            Problem::new(&product).unwrap().key.addend
        };
        let at = 4 << 20;
        assert_eq!(addend("f32", at, [0, 6, 1], 0.5), Addend::Matrix);
        assert_eq!(addend("f32", at, [0, 0, 1], 1.0), Addend::Bias);
        assert_eq!(addend("f32", at, [0, 0, 1], 0.5), Addend::Copied, "a factor");
        assert_eq!(addend("f64", at, [0, 0, 1], 1.0), Addend::Copied, "f64");
        assert_eq!(addend("f32", at + 4, [0, 0, 1], 1.0), Addend::Copied, "not aligned");
        assert_eq!(addend("f32", at, [0, 1, 0], 1.0), Addend::Copied, "a column");
        assert_eq!(addend("f32", at, [0, 0, 0], 1.0), Addend::Copied, "a number");
    }

    #[test]
    fn alignment_is_that_of_every_matrix() {
        let of = |at, batch| {
            let matrix =
                |of: Matrices| Matrices { at: of.at, strides: [batch, of.strides[1], of.strides[2]] };
            let mut product = Product { sizes: [2, 4, 6, 5], ..small() };
            (product.out, product.left, product.right) =
                (matrix(product.out), matrix(product.left), matrix(product.right));
            product.left.at += at;
            Problem::new(&product).unwrap().key.b.alignment
        };
        assert_eq!((of(0, 64), of(0, 30), of(12, 64), of(16, 32), of(512, 1 << 10)), (256, 8, 4, 16, 256));
    }
}
