//! The equations of `einsum`.

use std::collections::BTreeMap;

/// The label of a dimension.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Label {
    /// A letter of the equation.
    Letter(char),
    /// One of the dimensions of `...`, counted from the last.
    Rest(usize),
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Letter(letter) => write!(f, "`{letter}`"),
            Label::Rest(_) => f.write_str("`...`"),
        }
    }
}

/// A parsed equation.
pub(super) struct Equation {
    /// The labels of each operand's dimensions.
    pub operands: Vec<Vec<Label>>,
    /// The labels of the result's dimensions.
    pub result: Vec<Label>,
}

/// One operand or the result in the text: letters before and after the dots, if there are any.
struct Term {
    before: Vec<Label>,
    behind: Option<Vec<Label>>,
}

impl Term {
    fn parse(text: &str) -> Result<Term, String> {
        let letters = |part: &str| -> Result<Vec<Label>, String> {
            let label = |c: char| match c.is_ascii_alphabetic() {
                true => Ok(Label::Letter(c)),
                false => Err(format!("letters, commas, `...` and one `->`, not `{c}`")),
            };
            part.chars().map(label).collect()
        };
        match text.split_once("...") {
            Some((before, behind)) => Ok(Term { before: letters(before)?, behind: Some(letters(behind)?) }),
            None => Ok(Term { before: letters(text)?, behind: None }),
        }
    }

    fn len(&self) -> usize {
        self.before.len() + self.behind.as_ref().map_or(0, Vec::len)
    }

    /// The labels, with the dots expanded to `rest` dimensions.
    fn labels(self, rest: usize) -> Vec<Label> {
        let Some(behind) = self.behind else { return self.before };
        let dots = (0..rest).rev().map(Label::Rest);
        self.before.into_iter().chain(dots).chain(behind).collect()
    }
}

impl Equation {
    /// Parses an equation for operands of these ranks.
    ///
    /// # Errors
    /// A description of the expected equation.
    pub(super) fn parse(text: &str, ndims: &[usize]) -> Result<Equation, String> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(Term::parse(right)?)),
            None => (text.as_str(), None),
        };
        let terms: Vec<Term> = left.split(',').map(Term::parse).collect::<Result<_, _>>()?;
        if terms.len() != ndims.len() {
            return Err(format!("labels for {} operands, between commas", ndims.len()));
        }
        let (mut operands, mut most) = (Vec::new(), 0);
        for (k, (term, &ndim)) in terms.into_iter().zip(ndims).enumerate() {
            let rest = match ndim.checked_sub(term.len()) {
                Some(rest) if rest == 0 || term.behind.is_some() => rest,
                _ => return Err(format!("labels for the {ndim} dimensions of operand {k}")),
            };
            if term.behind.is_some() {
                most = most.max(rest);
            }
            operands.push(term.labels(rest));
        }
        let mut times: BTreeMap<Label, usize> = BTreeMap::new();
        operands.iter().flatten().for_each(|&label| *times.entry(label).or_default() += 1);
        let result = match right {
            Some(term) => term.labels(most),
            None => {
                let once = times.iter().filter(|(label, n)| **n == 1 && matches!(label, Label::Letter(_)));
                (0..most).rev().map(Label::Rest).chain(once.map(|(label, _)| *label)).collect()
            }
        };
        for (k, label) in result.iter().enumerate() {
            if !times.contains_key(label) || result[..k].contains(label) {
                return Err("a result of different labels, each of an operand".to_string());
            }
        }
        Ok(Equation { operands, result })
    }

    /// The labels of the result of the last product or sum, in the order of its dimensions; `None` if there is neither and the
    /// result is a view.
    pub(super) fn order(&self) -> Option<Vec<Label>> {
        let kept = |labels: &[Label]| -> Vec<Label> {
            labels.iter().copied().filter(|label| self.result.contains(label)).collect()
        };
        let mut operands = self.operands.iter().map(|labels| without_pairs(labels));
        let mut order = operands.next()?;
        let mut made = false;
        for (k, other) in operands.enumerate() {
            let later = |label: &Label| {
                self.result.contains(label)
                    || self.operands[k + 2..].iter().any(|labels| labels.contains(label))
            };
            let own: Vec<Label> =
                order.into_iter().filter(|label| later(label) || other.contains(label)).collect();
            let other: Vec<Label> =
                other.into_iter().filter(|label| later(label) || own.contains(label)).collect();
            let shared = own.iter().filter(|label| other.contains(label) && later(label));
            let rows = own.iter().filter(|label| !other.contains(label));
            let columns = other.iter().filter(|label| !own.contains(label));
            order = shared.chain(rows).chain(columns).copied().collect();
            made = true;
        }
        let last = kept(&order);
        (made || last.len() < order.len()).then_some(last)
    }
}

/// The labels after taking the diagonal of each pair of equal labels, which becomes the last dimension.
fn without_pairs(labels: &[Label]) -> Vec<Label> {
    let mut labels = labels.to_vec();
    while let Some((i, j)) = pair(&labels) {
        labels.remove(j);
        let label = labels.remove(i);
        labels.push(label);
    }
    labels
}

/// The first two dimensions with equal labels.
pub(super) fn pair(labels: &[Label]) -> Option<(usize, usize)> {
    let second = |i: usize| labels[i + 1..].iter().position(|&l| l == labels[i]).map(|k| i + 1 + k);
    (0..labels.len()).find_map(|i| second(i).map(|j| (i, j)))
}
