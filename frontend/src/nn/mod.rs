//! Modules.
/// What a module was given that does not fit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {}
