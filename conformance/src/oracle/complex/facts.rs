//! Values of elementary functions where formulas lose digits or fail: on both sides of branch cuts, at the ends of the range, of
//! infinities and NaN. `tools/complex_facts.py` describes and computes them.

use super::number::{C, c};

/// The value of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The arguments.
    pub arguments: Vec<C>,
    /// The real and the imaginary part of the result.
    pub parts: [Part; 2],
}

/// A part of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The value; NaN for one that is not a number.
    pub value: f64,
    /// Whether the sign is specified.
    pub is_signed: bool,
}

/// The facts of an op; none for an op that is not in the table.
pub fn of(op: &str) -> Vec<Fact> {
    let own = TABLE.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| *name == op);
    own.filter_map(|(_, parts)| fact(parts)).collect()
}

const TABLE: &str = include_str!("facts.txt");

fn fact(line: &str) -> Option<Fact> {
    let parts: Vec<Part> = line.split(' ').map(part).collect::<Option<_>>()?;
    let (arguments, result) = parts.split_at(parts.len().checked_sub(2)?);
    let arguments = arguments.chunks_exact(2).map(|pair| c(pair[0].value, pair[1].value)).collect();
    Some(Fact { arguments, parts: result.try_into().ok()? })
}

fn part(text: &str) -> Option<Part> {
    let (text, is_signed) = text.strip_prefix('~').map_or((text, true), |text| (text, false));
    Some(Part { value: text.parse().ok()?, is_signed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Number};
    use crate::oracle::{Inputs, Value};
    use keyway::DType;

    fn names() -> std::collections::BTreeSet<&'static str> {
        TABLE.lines().filter_map(|line| line.split_once(' ')).map(|(name, _)| name).collect()
    }

    #[test]
    fn every_line_is_a_fact() {
        let names = names();
        assert_eq!(names.iter().map(|name| of(name).len()).sum::<usize>(), TABLE.lines().count());
        assert!(names.iter().all(|name| of(name).len() > 20), "{names:?}");
        let root = &of("sqrt")[..];
        let minus = root
            .iter()
            .find(|fact| fact.arguments == [c(-0.5, 0.0)] && fact.arguments[0].im.is_sign_negative());
        assert!(minus.is_some_and(|fact| fact.parts[1].value < 0.0), "below the cut");
        assert!(root.iter().any(|fact| !fact.parts[1].is_signed));
    }

    /// Both were written without knowledge of the other: they agree where the formulas are accurate.
    #[test]
    fn the_formulas_agree_with_the_facts() {
        let mut judged = 0;
        for name in names() {
            for fact in of(name) {
                let usual = |z: &C| (1e-3..30.0).contains(&z.modulus());
                let off_axis = |z: &C| z.re.abs().min(z.im.abs()) > 1e-3;
                if !fact.arguments.iter().all(|z| usual(z) && off_axis(z)) {
                    continue;
                }
                let argument = |z: &C| Value::Array(Array::scalar(DType::C128, z.number()));
                let arguments = fact.arguments.iter().map(argument).chain([Value::None]).collect();
                let made = super::super::find(name).expect("an oracle")(&Inputs(arguments)).expect("a value");
                let Number::Complex(re, im) = made[0].values[0] else { panic!("{name} {fact:?}") };
                let [e, ei] = fact.parts.map(|part| part.value);
                let error = (re - e).hypot(im - ei) / e.hypot(ei);
                assert!(error < 512.0 * f64::EPSILON, "{name} {fact:?}: {re} + {im} i, {error:e}");
                judged += 1;
            }
        }
        assert!(judged > 300, "{judged}");
    }
}
