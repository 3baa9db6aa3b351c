//! What a module or an optimiser may be given that does not fit.

/// What was expected, what came, and what to do.
///
/// ```
/// use keyway::{Error, nn::{Dropout, ModuleError}};
/// let error = Dropout::new(2.0).unwrap_err();
/// assert!(matches!(error, Error::Module(ModuleError::Option { option: "p", .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// A state dict that does not fit what it is loaded into. Nothing has been loaded.
    #[error("{}", state_message(owner, missing, unexpected, mismatched))]
    State {
        /// What it was loaded into.
        owner: &'static str,
        /// Names that were expected and did not come, in order.
        missing: Vec<String>,
        /// Names that came and were not expected, in order.
        unexpected: Vec<String>,
        /// Tensors of another shape than expected.
        mismatched: Vec<Mismatch>,
    },
    /// A state dict of an optimiser of other groups or parameters. Nothing has been loaded.
    #[error(
        "{owner}: expected the state of an optimiser with {expected} {what}, got one with {got}, and nothing was loaded: what it \
         remembers would go to other parameters; make the optimiser of the same parameters in the same order"
    )]
    StateCount {
        /// The optimiser.
        owner: &'static str,
        /// What is counted.
        what: String,
        /// The number that the optimiser has.
        expected: usize,
        /// The number in the state dict.
        got: usize,
    },
    /// An entry of a state dict that its tensor cannot take.
    #[error("{owner}: entry `{entry}` of the state dict cannot be loaded ({loaded} others were): {source}")]
    Entry {
        /// What it was loaded into.
        owner: &'static str,
        /// The entry's name.
        entry: String,
        /// How many entries were loaded before; layouts and shapes are checked before any is.
        loaded: usize,
        /// Why.
        source: Box<crate::Error>,
    },
    /// A name that no parameter has.
    #[error("{owner}: expected the name of a parameter, one of {}, got `{got}`", first(expected))]
    Name {
        /// The module.
        owner: &'static str,
        /// The names that there are.
        expected: Vec<String>,
        /// The name that came.
        got: String,
    },
    /// An option out of its range.
    #[error("{owner}: expected `{option}` to be {expected}, got {got}")]
    Option {
        /// The module, optimiser or schedule.
        owner: &'static str,
        /// The option.
        option: &'static str,
        /// Its range.
        expected: &'static str,
        /// The value that came.
        got: String,
    },
    /// An input whose shape a module cannot take.
    #[error("{owner}: expected an input {expected}, got shape {got:?}")]
    Input {
        /// The module.
        owner: &'static str,
        /// The shape that it takes.
        expected: String,
        /// The shape that came.
        got: Vec<usize>,
    },
    /// A module that only holds others.
    #[error(
        "{owner}: expected a module with a forward function, got one that only holds others; call those, or use `Sequential`"
    )]
    NoForward {
        /// The module.
        owner: &'static str,
    },
    /// A tensor that an optimiser cannot change.
    #[error("{owner}: expected parameter {index} to be a strided leaf that requires grad, got {got}; {hint}")]
    NotParameter {
        /// The optimiser.
        owner: &'static str,
        /// Which of the parameters, counted over all groups.
        index: usize,
        /// What it is.
        got: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// A gradient that an optimiser does not take.
    #[error("{owner}: expected the gradient of parameter {index} to be {expected}, got a {got} one; {hint}")]
    Gradient {
        /// The optimiser.
        owner: &'static str,
        /// Which of the parameters, counted over all groups.
        index: usize,
        /// What it takes.
        expected: &'static str,
        /// What came.
        got: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The same parameter twice.
    #[error("{owner}: expected different parameters, got parameter {index} twice; put it in one group only")]
    Twice {
        /// The optimiser.
        owner: &'static str,
        /// The second place, counted over all groups.
        index: usize,
    },
}

/// A tensor of another shape than expected.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Error, nn::{Linear, Module, ModuleError}};
/// let error = Linear::new(3, 2)?.load_state_dict(&Linear::new(4, 2)?.state_dict()).unwrap_err();
/// let Error::Module(ModuleError::State { mismatched, .. }) = error else { panic!("{error}") };
/// assert_eq!((mismatched[0].name.as_str(), &mismatched[0].got[..]), ("weight", &[2, 4][..]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Its name.
    pub name: String,
    /// The sizes that were expected.
    pub expected: Vec<usize>,
    /// The sizes that came.
    pub got: Vec<usize>,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (expected {:?}, got {:?})", self.name, self.expected, self.got)
    }
}

/// How many names an error shows of each kind.
const SHOWN: usize = 8;

fn state_message(owner: &str, missing: &[String], unexpected: &[String], mismatched: &[Mismatch]) -> String {
    let mut parts = Vec::new();
    let mut part = |what: &str, count: usize, names: String| {
        if count > 0 {
            parts.push(format!("{count} {what}: {names}"));
        }
    };
    part("missing", missing.len(), first(missing));
    part("unexpected", unexpected.len(), first(unexpected));
    part("of another shape", mismatched.len(), first(mismatched));
    format!(
        "{owner}: the state dict does not fit, and nothing was loaded: {}; load it into what it was saved from, or rename \
         its entries",
        parts.join("; ")
    )
}

/// The first of these, and how many more there are.
fn first<T: ToString>(items: &[T]) -> String {
    let more = match items.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    let shown: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
    format!("{}{more}", shown.join(", "))
}
