//! Interposers: code of plugins around the calls of ops, switched on and off by thread.

use crate::error::Result;
use keyway_dispatcher::Error;
use keyway_dispatcher::key::{KeyGuard, KeySet, local_keys};
use keyway_dispatcher::registry;
/// The name, plugin and order of an interposer; listed by [`interposers`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// for info in keyway::interposer::interposers()? {
///     println!("{} of {}, order {}", info.name, info.plugin, info.order);
/// }
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::registry::InterposerInfo;

/// An interposer of a plugin.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let guard = keyway::interposer("nan-guard")?.enter();
/// assert!(Tensor::new([-1.0f32])?.log().is_err());
/// drop(guard);
/// assert!(Tensor::new([-1.0f32])?.log()?.item::<f32>()?.is_nan());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Interposer(InterposerInfo);

/// The interposer of this name.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// let missing = keyway::interposer("nan-guard").unwrap_err();
/// assert!(missing.to_string().contains("no plugin has brought"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// A name that no plugin in use has registered.
pub fn interposer(name: &str) -> Result<Interposer> {
    let all = interposers()?;
    let names: Vec<String> = all.iter().map(|i| i.name.clone()).collect();
    let found = all.into_iter().find(|i| i.name == name);
    Ok(found.map(Interposer).ok_or_else(|| Error::Value {
        op: "interposer",
        argument: "name",
        expected: match names.is_empty() {
            true => {
                "the name of an interposer; no plugin has brought any, see `keyway backend list`".to_string()
            }
            false => format!(
                "the name of an interposer; no plugin has brought it, there are: {}",
                names.join(", ")
            ),
        },
        got: format!("`{name}`"),
    })?)
}

/// The interposers of all plugins in use, in the order in which they act.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// assert!(keyway::interposer::interposers()?.is_empty(), "no plugin has brought any");
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`runtime::start`](crate::runtime::start).
pub fn interposers() -> Result<Vec<InterposerInfo>> {
    crate::runtime::start()?;
    Ok(registry::interposers())
}

impl Interposer {
    /// Switches it on for this thread while the guard lives.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// let guard = keyway::interposer("nan-guard")?;
    /// let _on = guard.enter();
    /// assert!(guard.is_on());
    /// # Ok(()) }
    /// ```
    #[must_use = "the interposer is on only while the guard lives"]
    pub fn enter(&self) -> KeyGuard {
        KeyGuard::include(KeySet::of(self.0.key))
    }

    /// Switches it off for this thread while the guard lives.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// let guard = keyway::interposer("nan-guard")?;
    /// let _off = guard.exclude();
    /// assert!(!guard.is_on());
    /// # Ok(()) }
    /// ```
    #[must_use = "the interposer is off only while the guard lives"]
    pub fn exclude(&self) -> KeyGuard {
        KeyGuard::exclude(KeySet::of(self.0.key))
    }

    /// Whether it is enabled for this thread.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// let guard = keyway::interposer("nan-guard")?;
    /// let before = guard.is_on();
    /// {
    ///     let _on = guard.enter();
    ///     assert!(guard.is_on());
    /// }
    /// assert_eq!(guard.is_on(), before);
    /// # Ok(()) }
    /// ```
    pub fn is_on(&self) -> bool {
        let (included, excluded) = local_keys();
        !excluded.has(self.0.key) && (self.0.default_on || included.has(self.0.key))
    }

    /// The description of the interposer: its plugin, ops, order and default.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// let guard = keyway::interposer("nan-guard")?;
    /// assert_eq!(guard.info().name, "nan-guard");
    /// # Ok(()) }
    /// ```
    pub fn info(&self) -> &InterposerInfo {
        &self.0
    }
}
