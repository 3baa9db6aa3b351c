//! The target of a run: one plugin, on one device.

use keyway::dispatcher::device;
use keyway::dispatcher::op::OpEntry;
use keyway::dispatcher::registry::serving::{self, Candidate};
use keyway::dispatcher::registry::{self, InterposerInfo, KernelEntry, Unreached};
use keyway::ops::def::OpDef;
use keyway::{DType, Device, Layout};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The tested plugin and device.
#[derive(Clone, Debug)]
pub struct Target {
    /// The plugin's name.
    pub plugin: &'static str,
    /// The plugin's version.
    pub version: String,
    /// The plugin's library.
    pub library: PathBuf,
    /// The device that its kernels are for.
    pub device: Device,
    /// All its kernels, one for each op, device, layout and dtype.
    pub kernels: Vec<&'static KernelEntry>,
}

/// The reason why there is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No plugin or device has that name.
    #[error(
        "no installed backend is named `{name}` or serves a device of that name; there are: {there}; `keyway backend \
         paths` lists the search path"
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The available targets.
        there: String,
    },
    /// A library that was not loaded.
    #[error("{library} could not be loaded: {reason}")]
    NotLoaded {
        /// The library.
        library: String,
        /// The reason.
        reason: String,
    },
    /// The target's kind of device has no device on this machine.
    #[error("{device}: 0 devices: {reason}. Nothing was judged")]
    NoDevice {
        /// The device's name, without an index.
        device: &'static str,
        /// The backend's reason.
        reason: String,
    },
    /// The target has kernels for the CPU, and no installed plugin provides the CPU device.
    #[error(
        "`{plugin}` serves a part of what `cpu` does, and no backend is there that serves the rest: name the folder of one, \
         such as keyway-cpu's, with `--backends DIR`. Nothing was judged"
    )]
    Alone {
        /// The plugin.
        plugin: String,
    },
    /// The target has no kernels, and no interposer that acts by default.
    #[error(
        "`{plugin}` ({library}) registers no kernel, and no interposer that is on by default: there is nothing to judge"
    )]
    Empty {
        /// The plugin.
        plugin: String,
        /// The library.
        library: String,
    },
}

/// The candidate of an op for a dtype, relative to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A kernel of the target.
    Kernel,
    /// A decomposition into other ops, or the host, as for views.
    Decomposition,
    /// A kernel of another plugin, which the target is not responsible for.
    Other,
    /// No candidate.
    Missing,
}

impl Target {
    /// The plugin of this name, or the one with kernels for most ops of the device of this name.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn named(name: &str) -> Result<Target, TargetError> {
        let plugins = registry::plugins();
        let kernels = registry::kernels();
        if let Some(plugin) = plugins.iter().find(|p| p.name == name) {
            return Target::of(plugin.name, &kernels);
        }
        let count = |plugin: &str| {
            kernels.iter().filter(|k| k.plugin.name == plugin && device_name(k) == name).count()
        };
        match plugins.iter().max_by_key(|p| count(p.name)).filter(|p| count(p.name) > 0) {
            Some(plugin) => Target::of(plugin.name, &kernels).map(|t| t.on(name)),
            None => {
                let there: Vec<&str> = plugins.iter().map(|p| p.name).collect();
                let there = if there.is_empty() { "none".to_string() } else { there.join(", ") };
                Err(TargetError::Unknown { name: name.to_string(), there })
            }
        }
    }

    /// The plugin in a library, which must have been loaded.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn of_library(library: &Path) -> Result<Target, TargetError> {
        let canonical = library.canonicalize().unwrap_or_else(|_| library.to_path_buf());
        match registry::plugins().iter().find(|p| p.path == canonical) {
            Some(plugin) => Target::of(plugin.name, &registry::kernels()),
            None => {
                let rejected = keyway::runtime::backends().map_or(&[][..], |b| &b.rejected);
                let reason = rejected.iter().find(|r| r.path == canonical || r.path == library);
                let reason = reason.map_or_else(
                    || "another copy or build of the same plugin was chosen".to_string(),
                    |r| r.error.to_string(),
                );
                Err(TargetError::NotLoaded { library: library.display().to_string(), reason })
            }
        }
    }

    fn of(name: &str, kernels: &[&'static KernelEntry]) -> Result<Target, TargetError> {
        let Some(plugin) = registry::plugins().into_iter().find(|p| p.name == name) else {
            return Err(TargetError::Unknown { name: name.to_string(), there: String::new() });
        };
        let own = |k: &&&KernelEntry| k.plugin.name == plugin.name;
        let first = kernels.iter().find(own);
        if first.is_none() && interposers_of(plugin.name, None).is_empty() {
            let (plugin, library) = (plugin.name.to_string(), plugin.path.display().to_string());
            return Err(TargetError::Empty { plugin, library });
        }
        let mut own: Vec<&'static KernelEntry> = kernels.iter().copied().filter(|k| own(&k)).collect();
        let left_out: Vec<_> = registry::left_out().into_iter().map(|left| left.kernel).collect();
        own.retain(|k| !left_out.iter().any(|l| std::ptr::eq(*l, *k)));
        // Interposers act on the calls of every device.
        let device = first.map_or(Device::CPU, |first| Device { kind: first.device, index: 0 });
        let (plugin, version, library) = (plugin.name, plugin.version.clone(), plugin.path.clone());
        Ok(Target { plugin, version, library, device, kernels: own })
    }

    /// Checks that there is a device to test the target on. Cases on the CPU need the plugin that provides that device: ops
    /// without a kernel of the target then have other candidates.
    ///
    /// # Errors
    /// [`TargetError::NoDevice`], [`TargetError::Alone`].
    pub fn check_device(&self) -> Result<(), TargetError> {
        match device::server(self.device.kind).map(device::count) {
            None if self.device == Device::CPU => Err(TargetError::Alone { plugin: self.plugin.to_string() }),
            Some((0, reason)) => {
                let reason = if reason.is_empty() { "none is present".to_string() } else { reason };
                Err(TargetError::NoDevice { device: self.device.name(), reason })
            }
            _ => Ok(()),
        }
    }

    /// The ops of the target's plugin.
    pub fn ops(&self) -> Vec<&'static OpEntry> {
        let all = keyway::dispatcher::table::current().ops();
        all.map(|rows| rows.op)
            .filter(|op| op.spec.foreign.is_some() && op.spec.owner == self.plugin)
            .collect()
    }

    /// Registrations of the target that no call can select, one clause each, by the missing name: an op, device, layout or
    /// dtype. These are kernels of ops that do not exist, or have another signature, for a device, layout or dtype that no
    /// plugin provides, and for a key that the target already has a kernel for, and declared formats that none of its
    /// kernels serves.
    pub fn without_effect(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut add = |subject: &str, clause: String| {
            let clauses = found.entry(subject.to_string()).or_default();
            if !clauses.contains(&clause) {
                clauses.push(clause);
            }
        };
        for left in registry::left_out().iter().filter(|left| left.kernel.plugin.name == self.plugin) {
            if let Some(expected) = left.expected {
                let (op, signature) = (left.kernel.op, &left.kernel.signature);
                add(
                    op,
                    format!(
                        "kernels of `{op}` written against signature {signature}, which is {expected} here"
                    ),
                );
            }
        }
        for (_, all) in registry::unreached(|plugin| plugin.name == self.plugin) {
            for unreached in all {
                match &unreached {
                    Unreached::Op { op, .. }
                    | Unreached::Second { op, .. }
                    | Unreached::Preference { op, .. }
                    | Unreached::Backward { op, .. } => {
                        add(op, unreached.to_string());
                    }
                    Unreached::Target { name, .. } => add(name, unreached.to_string()),
                    Unreached::Declaration { .. } => add("register_preference", unreached.to_string()),
                    // Not a kernel, nor another part that the suite tests.
                    _ => {}
                }
            }
        }
        found
    }

    /// Whether the target registers a kernel of this op, for any device, layout and dtype.
    pub fn registers(&self, op: &str) -> bool {
        self.kernels.iter().any(|k| k.op == op)
    }

    fn on(mut self, device: &str) -> Target {
        if let Ok(device) = Device::new(device, 0) {
            self.device = device;
        }
        self
    }

    /// The candidate of this op for this dtype on strided tensors.
    pub fn service(&self, op: &OpEntry, dtype: DType) -> Service {
        match serving::server(op, self.device, Layout::STRIDED, dtype) {
            Some(Candidate::Kernel(kernel)) if kernel.plugin.name == self.plugin => Service::Kernel,
            Some(Candidate::Kernel(_) | Candidate::Fallback { .. }) => Service::Other,
            Some(Candidate::View | Candidate::Host | Candidate::Decomposition) => Service::Decomposition,
            None => Service::Missing,
        }
    }

    /// Whether the target is the device's main backend: it provides the device, or most of its kernels.
    pub fn carries_device(&self) -> bool {
        let kind = self.device.kind;
        if let Some(device) = registry::devices().into_iter().find(|d| d.kind == kind) {
            return device.plugin.name == self.plugin;
        }
        let kernels = registry::kernels();
        let count =
            |plugin: &str| kernels.iter().filter(|k| k.device == kind && k.plugin.name == plugin).count();
        registry::plugins().iter().all(|p| count(p.name) <= count(self.plugin))
    }

    /// The target on each further device: others of the kind that its first kernel is for, and those of other kinds that it
    /// provides or has kernels for.
    pub fn further(&self) -> Vec<Target> {
        let brought = registry::devices().into_iter().filter(|entry| entry.plugin.name == self.plugin);
        let mut kinds: Vec<u16> = vec![self.device.kind];
        for kind in self.kernels.iter().map(|k| k.device).chain(brought.map(|entry| entry.kind)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let count = |kind: u16| device::server(kind).map_or(0, |entry| device::count(entry).0);
        let all = kinds
            .into_iter()
            .flat_map(|kind| (0..count(kind)).map(move |index| Device { kind, index: index as u16 }));
        all.filter(|device| *device != self.device).map(|device| self.at(device)).collect()
    }

    /// The same target on another device.
    pub fn at(&self, device: Device) -> Target {
        Target { device, ..self.clone() }
    }

    /// Whether it has a kernel for devices of this kind.
    pub fn has_kernels_here(&self) -> bool {
        self.kernels.iter().any(|k| k.device == self.device.kind)
    }

    /// Whether the target has a kernel of this op, or no plugin has one and the target has a kernel of one of its parts.
    pub fn answers_for(&self, def: &'static OpDef) -> bool {
        let Ok(entry) = def.entry() else { return false };
        let other = |d| matches!(self.service(entry, d), Service::Other);
        let parts = entry.spec.decomposition.map_or(&[][..], |decomposition| decomposition.parts);
        let has_part = || parts.iter().any(|part| self.registers(part.op));
        self.registers(def.name())
            || (!DType::REAL.into_iter().any(other) && (self.carries_device() || has_part()))
    }
}

/// The interposers of a plugin that act by default, without those that do not act on `op`.
pub(crate) fn interposers_of(plugin: &str, op: Option<&OpEntry>) -> Vec<InterposerInfo> {
    let mut all = op.map_or_else(registry::interposers, registry::interposers_of);
    all.retain(|info| info.plugin == plugin && info.default_on);
    all
}

fn device_name(kernel: &KernelEntry) -> &'static str {
    Device { kind: kernel.device, index: 0 }.name()
}
