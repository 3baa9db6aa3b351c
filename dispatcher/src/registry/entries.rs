//! Entries that plugins and layers register.

use super::{Conversion, InterposerSpec};
use crate::base::error::{Error, Result};
use crate::base::intern::DEVICES;
use crate::base::key::{Device, DispatchKey, KeySet, Layout};
use crate::base::plugin::PluginEntry;
use crate::device::is_there;
use crate::op::{Call, OpEntry, Outputs};
use keyway_sdk::abi::layout::LayoutOpsApi;
use keyway_sdk::abi::tensor::KernelFn;

/// A registered kernel.
#[derive(Debug)]
pub struct KernelEntry {
    /// The function.
    pub run: KernelFn,
    /// The kernel's flags; see `keyway_sdk::abi::codes::kernel_flag`.
    pub flags: u32,
    /// The op's name.
    pub op: &'static str,
    /// The signature that it was written against.
    pub signature: &'static str,
    /// Device kind.
    pub device: u16,
    /// Layout.
    pub layout: Layout,
    /// The dtype code.
    pub dtype: u16,
    /// The plugin that provides the kernel.
    pub plugin: &'static PluginEntry,
}

/// A layout as a plugin declares it. The declarations of several plugins are equal.
#[derive(Debug)]
pub struct LayoutEntry {
    /// The layout.
    pub layout: Layout,
    /// The precedence: the layout with the higher number decides if arguments of several layouts meet.
    pub precedence: u32,
    /// The names of the components.
    pub components: Vec<String>,
    /// The names of the attributes.
    pub attrs: Vec<String>,
    /// The rest of the declaration: types, options, tolerance, gradient, samples.
    pub conversion: Conversion,
    /// The plugin that declares the layout.
    pub plugin: &'static PluginEntry,
}

/// The operations on tensors of one layout on one kind of device.
#[derive(Debug)]
pub struct LayoutOpsEntry {
    /// The layout.
    pub layout: Layout,
    /// Device kind.
    pub device: u16,
    /// The shapes that the layout can hold, as a phrase that follows "must be".
    pub shapes: &'static str,
    /// The functions of the layout.
    pub api: &'static LayoutOpsApi,
    /// The plugin that provides them.
    pub plugin: &'static PluginEntry,
}

/// The time of an op in a format, as a plugin declares it for planning.
#[derive(Debug)]
pub struct PreferenceEntry {
    /// The op's name.
    pub op: &'static str,
    /// Device kind.
    pub device: u16,
    /// The memory format or layout.
    pub format: Layout,
    /// The time in this format over that in row-major order, without conversions; from 0.001 to 1000.
    pub cost: f64,
    /// The plugin that declares it.
    pub plugin: &'static PluginEntry,
}

/// The handler of a dispatch key; the key set contains the keys that act below it.
pub type Handler = dyn Fn(&Call<'_>, KeySet) -> Result<Outputs> + Send + Sync;

/// A handler of a dispatch key above the backends.
pub struct KeyHandler {
    /// The handler's dispatch key.
    pub key: DispatchKey,
    /// The handler's name.
    pub name: String,
    /// Whether it handles an op; if not, calls fall through to the next key.
    pub applies: fn(&OpEntry) -> bool,
    /// The handler.
    pub handler: Box<Handler>,
    /// The plugin that provides it; `None` for a handler of the program.
    pub plugin: Option<&'static PluginEntry>,
    /// The declaration of a plugin's interposer; `None` for any other handler.
    pub interposer: Option<InterposerSpec>,
}

impl KeyHandler {
    /// Whether it does something for an op.
    pub(crate) fn acts_on(&self, op: &OpEntry) -> bool {
        (self.applies)(op) && self.interposer.as_ref().is_none_or(|spec| spec.wants(op.name))
    }
}

/// The fallback policy of a device, for calls that no candidate serves there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FallbackPolicy {
    /// The call fails.
    #[default]
    Error,
    /// The call runs on this kind of device, with a line in the log.
    Warn(u16),
    /// The call runs on this kind of device.
    Allow(u16),
}

/// The ways to change a fallback policy, for messages.
pub(crate) const CHANGED_BY: &str =
    "change the policy with `--fallback`, KEYWAY_FALLBACK, `set_fallback` or `set_device_fallback`";

impl FallbackPolicy {
    /// Parses `error`, `cpu:warn`, `cpu:allow`, or `cpu`, which warns.
    ///
    /// # Errors
    /// `Value` for any other text.
    pub fn parse(text: &str) -> Result<FallbackPolicy> {
        if text == "error" {
            return Ok(FallbackPolicy::Error);
        }
        let (name, allow) = match text.rsplit_once(':') {
            Some((name, "allow")) => (name, true),
            Some((name, "warn")) => (name, false),
            _ => (text, false),
        };
        if name.is_empty() || name.contains(':') {
            return Err(Error::Value {
                op: "fallback",
                argument: "policy",
                expected: "`error`, or a device such as `cpu`, alone or with `:warn` or `:allow`".to_string(),
                got: format!("`{text}`"),
            });
        }
        let kind = Device::new(name, 0)?.kind;
        Ok(if allow { FallbackPolicy::Allow(kind) } else { FallbackPolicy::Warn(kind) })
    }

    /// The error in the policy, as a clause, if no plugin provides the fallback device. Valid once all plugins are loaded.
    pub fn trouble(self) -> Option<String> {
        let to = self.target().filter(|to| !is_there(*to))?;
        let mut there = vec![Device::CPU.name()];
        let brought = super::devices().into_iter().map(|entry| DEVICES.name(entry.kind));
        there.extend(brought.filter(|name| *name != Device::CPU.name()));
        Some(format!(
            "no backend for `{}` is installed, so calls that fall back to it fail; a fallback can be: {}",
            DEVICES.name(to),
            there.join(", ")
        ))
    }

    /// The kind of the fallback device; `None` if the policy has none.
    pub fn target(self) -> Option<u16> {
        match self {
            FallbackPolicy::Error => None,
            FallbackPolicy::Warn(to) | FallbackPolicy::Allow(to) => Some(to),
        }
    }
}
