//! An empty crate whose `tests` folder has the tests of the package `keyway` from outside, through its public items.
