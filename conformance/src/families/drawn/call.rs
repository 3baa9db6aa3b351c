//! A randomly drawn call as data: sizes, values, strides and form. It is determined by the seed, the op and a number, and
//! each part can be simplified independently.

use super::source::Source;
use crate::array::Number;
use crate::axis_order::{self, Spacing, Strides};
use keyway::DType;
use keyway::ops::sample::Fill;

/// The kind of a drawn op: its sizes, and how to compute its results from few of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Element by element, of tensors that broadcast.
    Pointwise,
    /// A reduction over some dimensions; argument 1 is the list of dimensions, and `keepdim` is the argument of this index.
    Reduction(usize),
    /// An op along one dimension, which is argument 1.
    Lines,
    /// Normalisation along the last dimension, whose size argument 1 lists; then weight, bias (for ops of five arguments)
    /// and eps.
    Normalized(usize),
    /// `[n, k] @ [k, m]`; sizes are `[n, k, m]`.
    Product,
    /// `[b, n, k] @ [b, k, m]`; sizes are `[b, n, k, m]`.
    Batched,
    /// `[n, k] @ [m, k]^T` with a bias of `[m]`; sizes are `[n, k, m]`.
    Linear,
    /// A convolution; sizes are `[n, inputs of a group, outputs of a group, groups, height, width, kernel, stride, padding]`.
    Convolution,
}

/// The strides of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The order of the dimensions in memory, a number of [`axis_order::permutation`].
    pub order: usize,
    /// The distance between elements, beyond 1.
    pub gap: usize,
    /// Elements before the first.
    pub offset: usize,
}

impl Order {
    /// The strides for these sizes.
    pub fn strides(self, sizes: &[usize]) -> Strides {
        let dense = axis_order::strides(sizes, self.order, Spacing::Dense);
        let strides = dense.strides.into_iter().map(|stride| stride * (self.gap + 1)).collect();
        Strides { strides, offset: self.offset }
    }
}

/// A tensor argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// Order of its elements in memory.
    pub order: Order,
    /// The dimensions along which the operand is broadcast; for element-wise ops only.
    pub broadcast: Vec<bool>,
    /// Whether it is broadcast by strides of 0, rather than by sizes of 1.
    pub expanded: bool,
}

/// The form of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Functional: a new tensor.
    New,
    /// With `out=`, of this order.
    Out(Order),
    /// In place: the result is written to argument 0.
    InPlace,
}

/// The distribution of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// The distribution of the op's samples.
    Own,
    /// Uniform in -1..2.
    Uniform,
    /// Integers from -100 to 100.
    Whole,
    /// Log-uniform over twelve powers of ten (f16: five), of either sign.
    Magnitudes,
    /// Mostly zeros.
    Sparse,
    /// Values slightly above 1,000.
    Shifted,
}

/// A drawn call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The kind of the op.
    pub kind: Kind,
    /// The index of the sample that provides the non-tensor arguments; for element-wise ops only.
    pub sample: usize,
    /// The sizes, in the order of the kind.
    pub sizes: Vec<usize>,
    /// The dimensions over which the op reduces or normalises.
    pub dims: Vec<usize>,
    /// The tensor arguments.
    pub operands: Vec<Operand>,
    /// The form of the call.
    pub form: Form,
    /// The distribution of the elements.
    pub values: Values,
    /// Seed of the elements.
    pub seed: u64,
}

impl Drawn {
    /// The sizes of tensor argument `nth`.
    pub fn argument(&self, nth: usize) -> Vec<usize> {
        let s = &self.sizes;
        match (self.kind, nth) {
            (Kind::Pointwise, _) => {
                let Operand { broadcast, expanded, .. } = &self.operands[nth];
                let one = |dim: usize| !expanded && broadcast.get(dim) == Some(&true);
                (0..s.len()).map(|dim| if one(dim) { 1 } else { s[dim] }).collect()
            }
            (Kind::Reduction(_) | Kind::Lines, _) | (Kind::Normalized(_), 0) => s.clone(),
            (Kind::Normalized(_), _) => s[s.len() - 1..].to_vec(),
            (Kind::Product, 0) | (Kind::Linear, 0) => vec![s[0], s[1]],
            (Kind::Product, _) => vec![s[1], s[2]],
            (Kind::Linear, 1) => vec![s[2], s[1]],
            (Kind::Linear, _) => vec![s[2]],
            (Kind::Batched, 0) => vec![s[0], s[1], s[2]],
            (Kind::Batched, _) => vec![s[0], s[2], s[3]],
            (Kind::Convolution, 0) => vec![s[0], s[1] * s[3], s[4], s[5]],
            (Kind::Convolution, 1) => vec![s[2] * s[3], s[1], s[6], s[6]],
            (Kind::Convolution, _) => vec![s[2] * s[3]],
        }
    }

    /// The sizes of the result.
    pub fn result(&self) -> Vec<usize> {
        let s = &self.sizes;
        match self.kind {
            Kind::Pointwise | Kind::Lines | Kind::Normalized(_) => s.clone(),
            Kind::Reduction(_) => {
                (0..s.len()).filter(|dim| !self.dims.contains(dim)).map(|dim| s[dim]).collect()
            }
            Kind::Product | Kind::Linear => vec![s[0], s[2]],
            Kind::Batched => vec![s[0], s[1], s[3]],
            Kind::Convolution => {
                let outputs = |size: usize| (size + 2 * s[8] - s[6]) / s[7] + 1;
                vec![s[0], s[2] * s[3], outputs(s[4]), outputs(s[5])]
            }
        }
    }

    /// Whether the sizes form a valid call.
    fn is_valid(&self) -> bool {
        let s = &self.sizes;
        match self.kind {
            Kind::Convolution => !s[..8].contains(&0) && s[4].min(s[5]) + 2 * s[8] >= s[6],
            _ => !s.contains(&0),
        }
    }

    /// Simpler calls that differ in one respect: contiguous, functional form, other values, one size set to 1 or halved.
    /// The first ones are the simplest.
    pub fn simpler(&self) -> Vec<Drawn> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Drawn)| {
            let mut changed = self.clone();
            change(&mut changed);
            if changed != *self && changed.is_valid() {
                all.push(changed);
            }
        };
        add(&|d| d.form = Form::New);
        for nth in 0..self.operands.len() {
            add(&|d| d.operands[nth] = Operand::default());
            add(&|d| d.operands[nth].order.gap = 0);
            add(&|d| d.operands[nth].order.offset = 0);
            add(&|d| d.operands[nth].order.order = 0);
            add(&|d| d.operands[nth].expanded = false);
            add(&|d| d.operands[nth].broadcast = Vec::new());
        }
        if let Form::Out(order) = self.form {
            add(&|d| d.form = Form::Out(Order { gap: 0, ..order }));
            add(&|d| d.form = Form::Out(Order { offset: 0, ..order }));
            add(&|d| d.form = Form::Out(Order { order: 0, ..order }));
        }
        add(&|d| d.values = Values::Own);
        for dim in 0..self.sizes.len() {
            // The minimum of padding is 0.
            let least = usize::from(self.kind != Kind::Convolution || dim < 8);
            add(&|d| d.sizes[dim] = least.min(d.sizes[dim]));
        }
        for dim in 0..self.sizes.len() {
            add(&|d| d.sizes[dim] /= 2);
            add(&|d| d.sizes[dim] = d.sizes[dim] / 4 * 3);
        }
        all
    }

    /// An element of tensor argument `nth`, by its row-major index.
    pub fn element(&self, fill: &Fill, dtype: DType, nth: usize, position: usize) -> Number {
        let mut source = Source::of(&[self.seed, nth as u64, position as u64]);
        let value = match self.values {
            _ if dtype == DType::BOOL => return Number::Bool(source.below(2) == 1),
            Values::Own => match fill {
                Fill::Uniform(low, high) | Fill::AwayFrom(low, high, _) | Fill::Distinct(low, high) => {
                    low + (high - low) * source.unit()
                }
                Fill::Index(size) => (source.unit() * *size as f64).floor(),
                Fill::Definite | Fill::Permuted => 2.0 * source.unit() - 1.0,
                Fill::Values(list) => list[position % list.len().max(1)],
            },
            Values::Uniform => -1.0 + 3.0 * source.unit(),
            Values::Whole => source.below(201) as f64 - 100.0,
            Values::Magnitudes => {
                let (least, powers) = if dtype == DType::F16 { (-3.0, 5.0) } else { (-6.0, 12.0) };
                let sign = if source.below(2) == 0 { -1.0 } else { 1.0 };
                sign * 10f64.powf(least + powers * source.unit())
            }
            Values::Sparse if source.below(10) > 0 => 0.0,
            Values::Sparse => -1.0 + 2.0 * source.unit(),
            Values::Shifted => 1000.0 + source.unit(),
        };
        match dtype.integer_range() {
            Some((low, high)) => Number::Int((value as i128).clamp(low, high)),
            None => Number::Float(value).cast(dtype),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> Drawn {
        Drawn {
            kind: Kind::Pointwise,
            sample: 0,
            sizes: vec![2, 448],
            dims: Vec::new(),
            operands: vec![
                Operand { order: Order { order: 1, gap: 1, offset: 3 }, ..Operand::default() },
                Operand { broadcast: vec![true, false], expanded: true, ..Operand::default() },
            ],
            form: Form::Out(Order { order: 1, gap: 0, offset: 0 }),
            values: Values::Magnitudes,
            seed: 7,
        }
    }

    #[test]
    fn whatever_fails_shrinks_to_the_least_that_does() {
        let fails = |d: &Drawn| d.sizes[1].is_multiple_of(224);
        let mut now = drawn();
        while let Some(next) = now.simpler().into_iter().find(fails) {
            now = next;
        }
        let operands = vec![Operand::default(), Operand::default()];
        let least = Drawn { sizes: vec![1, 224], operands, form: Form::New, values: Values::Own, ..drawn() };
        assert_eq!(now, least);
    }

    #[test]
    fn sizes_follow_from_what_the_op_is() {
        let of = |kind, sizes: &[usize]| Drawn { kind, sizes: sizes.to_vec(), ..drawn() };
        let row = Operand { broadcast: vec![true], ..Operand::default() };
        let broadcast = Drawn { operands: vec![Operand::default(), row], ..drawn() };
        assert_eq!((broadcast.argument(0), broadcast.argument(1)), (vec![2, 448], vec![1, 448]));
        let conv = of(Kind::Convolution, &[2, 3, 4, 1, 9, 8, 3, 2, 1]);
        assert_eq!((conv.argument(0), conv.argument(1)), (vec![2, 3, 9, 8], vec![4, 3, 3, 3]));
        assert_eq!(conv.result(), [2, 4, 5, 4]);
        assert!(conv.simpler().iter().all(|simpler| simpler.result().iter().all(|&size| size > 0)));
        let mm = of(Kind::Product, &[2, 3, 4]);
        assert_eq!((mm.argument(0), mm.argument(1), mm.result()), (vec![2, 3], vec![3, 4], vec![2, 4]));
    }
}
