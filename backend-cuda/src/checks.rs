//! Numbers in tensors that name elements: what they must be, and the errors of those that are not.
//!
//! A call that reads indices waits until a kernel has looked at them, so that its error is its own. Captured work cannot be
//! waited for: there the kernel writes what it found to a word of the host's ([`Slots`]), gives the op indices that are all
//! right, and the program's next wait for the device, or the next replay, is the error. `KEYWAY_CUDA_INDEX_CHECKS=later`
//! has all calls do so, `now` has replays wait too.

use crate::driver::{Context, SLOTS, Slots};
use keyway_sdk::Error;
use keyway_sdk::author::{Level, log};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Chooses when wrong indices are errors.
const VARIABLE: &str = "KEYWAY_CUDA_INDEX_CHECKS";

/// When wrong indices are errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At the call; those of a replay at the next wait.
    Usual,
    /// At the call or replay.
    Now,
    /// At the next wait.
    Later,
}

/// What was chosen.
pub fn when() -> When {
    static WHEN: OnceLock<When> = OnceLock::new();
    *WHEN.get_or_init(|| {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        match value.to_str() {
            Some("") => When::Usual,
            Some("now") => When::Now,
            Some("later") => When::Later,
            _ => {
                let text = format!(
                    "{VARIABLE} is {value:?}, which says nothing: `now` has calls and replays wait for the look at their indices, \
                     `later` neither; unset it so that calls wait and replays do not"
                );
                log(Level::Warn, &text);
                When::Usual
            }
        }
    })
}

/// What there is to say of the choice.
pub fn fact() -> String {
    let now = match when() {
        When::Usual => "errors of the call, in replays of the next wait",
        When::Now => "errors of the call or replay, which wait for them",
        When::Later => "errors of the next wait",
    };
    format!("{now}; {VARIABLE} chooses: unset, `now` or `later`")
}

/// What the numbers of an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// The op, which a later error names.
    pub op: &'static str,
    /// The argument.
    pub argument: &'static str,
    /// The lowest: `-size` where an index may count from the end, else 0.
    pub low: i64,
    /// What all are below.
    pub size: i64,
    /// What they name.
    pub what: What,
}

/// What numbers name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// Indices of a dimension.
    Dim(usize),
    /// Classes, or the number that stands for none.
    Classes(i64),
    /// Places in a channel.
    Places,
    /// Where bags begin: ascending from 0, and below `size`.
    Offsets,
}

impl Bounds {
    /// Of indices of dimension `dim` of `size`.
    pub fn of_dim(op: &'static str, argument: &'static str, dim: usize, size: i64) -> Bounds {
        Bounds { op, argument, low: 0, size, what: What::Dim(dim) }
    }

    /// The number outside them that stands for no class.
    pub fn none(&self) -> Option<i64> {
        match self.what {
            What::Classes(none) => Some(none),
            _ => None,
        }
    }

    /// Whether one number is right.
    pub fn allow(&self, number: i64) -> bool {
        (self.low..self.size).contains(&number) || self.none() == Some(number)
    }

    fn expected(&self) -> String {
        let Bounds { low, size, .. } = self;
        match self.what {
            What::Dim(dim) => format!("indices in {low}..{size} for dimension {dim} of size {size}"),
            What::Classes(none) => format!("classes in {low}..{size}, or {none} for what is ignored"),
            What::Places => format!("places in {low}..{size}, the elements of a channel"),
            What::Offsets => {
                format!("integers, ascending from 0 to at most {}, the number of indices", size - 1)
            }
        }
    }

    fn noun(&self) -> &'static str {
        match self.what {
            What::Dim(_) => "index",
            What::Classes(_) => "class",
            What::Places => "place",
            What::Offsets => "offset",
        }
    }

    /// The error of a call that was given another number.
    #[cold]
    pub fn wrong(&self, number: i64) -> Error {
        let got = format!("{} {number}", self.noun());
        Error::InvalidArgument { argument: self.argument, expected: self.expected(), got }
    }

    /// The error of a call whose numbers cannot be right, whatever they are.
    #[cold]
    pub fn impossible(&self, count: usize) -> Error {
        let got = format!("{count} of them");
        Error::InvalidArgument { argument: self.argument, expected: self.expected(), got }
    }
}

/// The checks of one device that nobody waited for.
#[derive(Default)]
pub struct Checks {
    slots: Slots,
    sites: Mutex<Sites>,
}

/// Each kind of check has a slot.
#[derive(Default)]
struct Sites {
    list: Vec<Bounds>,
    numbers: HashMap<Bounds, usize>,
}

impl Checks {
    /// Where a kernel writes that a check failed; none where there are more kinds of checks than slots.
    pub fn place(&self, context: &Context, bounds: Bounds) -> Result<Option<u64>, Error> {
        let sites = &mut *self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match sites.numbers.get(&bounds) {
            Some(number) => *number,
            None if sites.list.len() == SLOTS => return Ok(None),
            None => sites.list.len(),
        };
        let at = self.slots.address(context, number)?;
        if number == sites.list.len() {
            sites.list.push(bounds);
            sites.numbers.insert(bounds, number);
        }
        Ok(Some(at))
    }

    /// The error of what kernels found since it was asked for last; what they still do is not waited for.
    pub fn raise(&self) -> Result<(), Error> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found =
            sites.list.iter().enumerate().filter_map(|(n, site)| Some((site, self.slots.take(n)?)));
        let Some((site, number)) = found.next() else { return Ok(()) };
        let (op, argument, noun, expected) = (site.op, site.argument, site.noun(), site.expected());
        let others = match found.count() {
            0 => String::new(),
            n => format!(" So were those of {n} other checks."),
        };
        Err(Error::Failed {
            detail: format!(
                "this is the error of an earlier call of `{op}`: expected `{argument}` to hold {expected}, got {noun} {number}. \
                 Nothing outside was read or written; what was computed from it is wrong.{others} \
                 {VARIABLE}=now makes it the error of the call or replay"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_say_what_is_right() {
        let dim = Bounds { low: -3, ..Bounds::of_dim("index", "indices", 1, 3) };
        assert!(dim.allow(-3) && dim.allow(2) && !dim.allow(3) && !dim.allow(-4));
        let text = dim.wrong(7).to_string();
        assert!(text.contains("-3..3 for dimension 1 of size 3") && text.contains("index 7"), "{text}");
        let classes = Bounds { what: What::Classes(-100), ..Bounds::of_dim("nll_loss", "target", 0, 3) };
        assert!(classes.allow(-100) && classes.allow(0) && !classes.allow(-1) && !classes.allow(3));
        assert!(classes.wrong(3).to_string().contains("or -100"));
        let offsets = Bounds { what: What::Offsets, ..Bounds::of_dim("embedding_bag", "offsets", 0, 9) };
        assert!(offsets.impossible(4).to_string().contains("at most 8"));
    }
}
