//! Checks of index tensors: their bounds, and the errors of wrong values.
//!
//! A call that reads indices synchronises with a kernel that checks them, so that the call itself returns the error.
//! Captured work cannot synchronise: there the kernel writes its finding to a word in host memory ([`Slots`]), replaces
//! invalid indices for the op, and the program's next synchronisation with the device, or the next replay, returns the
//! error. `KEYWAY_CUDA_INDEX_CHECKS=later` makes all calls asynchronous in this way, `now` makes replays synchronise too.

use crate::driver::{Context, SLOTS, Slots};
use keyway_sdk::Error;
use keyway_sdk::author::{Level, log};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The environment variable that selects when invalid indices are reported.
const VARIABLE: &str = "KEYWAY_CUDA_INDEX_CHECKS";

/// When invalid indices are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At the call; for a replay at the next synchronisation.
    Usual,
    /// At the call or replay.
    Now,
    /// At the next synchronisation.
    Later,
}

/// The configured mode.
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
                    "{VARIABLE} is {value:?}, which is no setting: `now` has calls and replays wait for the look at their indices, \
                     `later` neither; unset it so that calls wait and replays do not"
                );
                log(Level::Warn, &text);
                When::Usual
            }
        }
    })
}

/// Describes the mode.
pub fn fact() -> String {
    let now = match when() {
        When::Usual => "errors of the call, in replays of the next wait",
        When::Now => "errors of the call or replay, which wait for them",
        When::Later => "errors of the next wait",
    };
    format!("{now}; {VARIABLE} chooses: unset, `now` or `later`")
}

/// The bounds of an argument's values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// The op, which a later error names.
    pub op: &'static str,
    /// The argument.
    pub argument: &'static str,
    /// The lower bound: `-size` if an index may count from the end, otherwise 0.
    pub low: i64,
    /// The exclusive upper bound.
    pub size: i64,
    /// The kind of index.
    pub what: What,
}

/// Kinds of indices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// Indices of a dimension.
    Dim(usize),
    /// Classes, with the value that is ignored.
    Classes(i64),
    /// Positions in a channel.
    Places,
    /// Offsets of bags: ascending from 0, and below `size`.
    Offsets,
}

impl Bounds {
    /// The bounds of indices of dimension `dim` of `size`.
    pub fn of_dim(op: &'static str, argument: &'static str, dim: usize, size: i64) -> Bounds {
        Bounds { op, argument, low: 0, size, what: What::Dim(dim) }
    }

    /// The value outside the bounds that is ignored as a class.
    pub fn none(&self) -> Option<i64> {
        match self.what {
            What::Classes(none) => Some(none),
            _ => None,
        }
    }

    /// Whether a value is valid.
    pub fn allow(&self, number: i64) -> bool {
        (self.low..self.size).contains(&number) || self.none() == Some(number)
    }

    fn expected(&self) -> String {
        let Bounds { low, size, .. } = self;
        match self.what {
            What::Dim(dim) => format!("indices in {low}..{size} for dimension {dim} of size {size}"),
            What::Classes(none) => format!("classes in {low}..{size}, or {none} for an ignored row"),
            What::Places => format!("indices in {low}..{size}, the elements of a channel"),
            What::Offsets => {
                format!("integers, ascending from 0 to at most {}, the number of indices", size - 1)
            }
        }
    }

    fn noun(&self) -> &'static str {
        match self.what {
            What::Dim(_) => "index",
            What::Classes(_) => "class",
            What::Places => "index",
            What::Offsets => "offset",
        }
    }

    /// The error of a call with an invalid value.
    #[cold]
    pub fn wrong(&self, number: i64) -> Error {
        let got = format!("{} {number}", self.noun());
        Error::InvalidArgument { argument: self.argument, expected: self.expected(), got }
    }

    /// The error of a call for which no value is valid.
    #[cold]
    pub fn impossible(&self, count: usize) -> Error {
        let got = format!("{count} of them");
        Error::InvalidArgument { argument: self.argument, expected: self.expected(), got }
    }
}

/// The asynchronous checks of one device.
#[derive(Default)]
pub struct Checks {
    slots: Slots,
    sites: Mutex<Sites>,
}

/// The kinds of checks, each with a slot.
#[derive(Default)]
struct Sites {
    list: Vec<Bounds>,
    numbers: HashMap<Bounds, usize>,
}

impl Checks {
    /// The address to which a kernel writes a failed check; `None` if there are more kinds of checks than slots.
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

    /// Returns the error of checks that failed since the last call, without waiting for running kernels.
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
                 Nothing outside was read or written; results that were computed from it are wrong.{others} \
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
