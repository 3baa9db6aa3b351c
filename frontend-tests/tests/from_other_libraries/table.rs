//! A section of a table: rows that are text on the left and code on the right.

use std::error::Error;
use std::path::PathBuf;

/// One row.
pub struct Row {
    /// The name in the other library.
    pub left: &'static str,
    /// The name in this library.
    pub right: &'static str,
    /// The difference between the two; empty if there is none.
    pub note: &'static str,
}

/// Rows that begin with the same tensors.
pub struct Section {
    pub title: &'static str,
    /// The definitions of the names in the rows, in the other library's language.
    pub given: &'static str,
    /// The same definitions in this library.
    pub given_here: &'static str,
    pub rows: Vec<Row>,
    /// Runs every row.
    pub run: fn() -> Vec<Ran>,
}

/// The result of a row.
pub struct Ran {
    pub left: &'static str,
    pub outcome: Result<serde_json::Value, Box<dyn Error>>,
}

/// Declares a function that gives a section. Each row begins with what is given, so that no row sees another's changes.
///
/// ```text
/// section! {
///     indexing "Indexing"
///     "x = torch.zeros(2, 3)" { let x = Tensor::zeros((2, 3))?; }
///     "x[0]" => { x.i(0)? };
///     "x.T" => { x.t()? } "of 2 dimensions only";
/// }
/// ```
macro_rules! section {
    (
        $name:ident $title:literal
        $given:literal $here:tt
        $($left:literal => { $($code:tt)* } $($note:literal)?;)+
    ) => {
        pub fn $name() -> $crate::table::Section {
            #[allow(unused, clippy::all, clippy::pedantic)]
            fn run() -> Vec<$crate::table::Ran> {
                use $crate::value::Fallback as _;
                vec![$($crate::table::Ran { left: $left, outcome: $crate::table::row!($here { $($code)* }) }),+]
            }
            let rows = vec![$($crate::table::Row {
                left: $left,
                right: stringify!($($code)*),
                note: concat!($($note)?),
            }),+];
            $crate::table::Section { title: $title, given: $given, given_here: stringify!($here), rows, run }
        }
    };
}
pub(crate) use section;

/// Runs one row of [`section!`].
macro_rules! row {
    ({ $($given:tt)* } { $($code:tt)* }) => {
        (|| -> Result<serde_json::Value, Box<dyn std::error::Error>> {
            $($given)*
            let made = { $($code)* };
            Ok($crate::value::Seen(&made).value())
        })()
    };
}
pub(crate) use row;

/// Lets the rows about sparse tensors, factorisations and Fourier transforms find who serves these.
pub fn load_backends() {
    let beside = std::env::current_exe().unwrap();
    let paths = ["fft", "sparse", "linalg"].map(|name| -> PathBuf {
        let (before, after) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        beside.parent().unwrap().join(format!("{before}keyway_backend_{name}{after}"))
    });
    keyway::runtime::load_backends(&paths).unwrap();
}
