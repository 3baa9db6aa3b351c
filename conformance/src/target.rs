//! What is judged: one plugin, on one device.

use keyway::dispatcher::op::OpEntry;
use keyway::dispatcher::registry::serving::{self, Candidate};
use keyway::dispatcher::registry::{self, KernelEntry};
use keyway::ops::def::OpDef;
use keyway::{DType, Device, Layout};
use std::path::{Path, PathBuf};

/// What is judged.
#[derive(Clone, Debug)]
pub struct Target {
    /// The plugin's name.
    pub plugin: &'static str,
    /// Its version.
    pub version: String,
    /// Its library.
    pub library: PathBuf,
    /// The device that its kernels are for.
    pub device: Device,
}

/// Why there is nothing to judge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing of that name.
    #[error(
        "no installed backend is named `{name}` or serves a device of that name; there are: {there}; `keyway backend \
         paths` says where they are looked for"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        there: String,
    },
    /// A library that was not loaded.
    #[error("{library} could not be loaded: {reason}")]
    NotLoaded {
        /// The library.
        library: String,
        /// Why.
        reason: String,
    },
    /// It has no kernels, devices or layouts.
    #[error("`{plugin}` ({library}) registers no kernel: there is nothing to judge")]
    Empty {
        /// The plugin.
        plugin: String,
        /// The library.
        library: String,
    },
}

/// Who serves an op for a dtype, as far as the target is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A kernel of the target.
    Kernel,
    /// Other ops, or the host, as for views.
    Decomposition,
    /// A kernel of another plugin: not the target's to answer for.
    Other,
    /// Nobody.
    Missing,
}

impl Target {
    /// The plugin of this name, or the one that serves most ops of the device of this name.
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

    /// The plugin that a library holds; it must have been loaded.
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
        let Some(first) = kernels.iter().find(own) else {
            let (plugin, library) = (plugin.name.to_string(), plugin.path.display().to_string());
            return Err(TargetError::Empty { plugin, library });
        };
        Ok(Target {
            plugin: plugin.name,
            version: plugin.version.clone(),
            library: plugin.path.clone(),
            device: Device { kind: first.device, index: 0 },
        })
    }

    fn on(mut self, device: &str) -> Target {
        if let Ok(device) = Device::new(device, 0) {
            self.device = device;
        }
        self
    }

    /// Who serves this op for this dtype on strided tensors.
    pub fn service(&self, op: &OpEntry, dtype: DType) -> Service {
        match serving::server(op, self.device, Layout::STRIDED, dtype) {
            Some(Candidate::Kernel(kernel)) if kernel.plugin.name == self.plugin => Service::Kernel,
            Some(Candidate::Kernel(_) | Candidate::Fallback { .. }) => Service::Other,
            Some(Candidate::View | Candidate::Host | Candidate::Decomposition) => Service::Decomposition,
            None => Service::Missing,
        }
    }

    /// Whether the target has a kernel of this op for some dtype, or nobody has one and it is made of others.
    pub fn answers_for(&self, def: &'static OpDef) -> bool {
        let Ok(entry) = def.entry() else { return false };
        let mine = |d| matches!(self.service(entry, d), Service::Kernel);
        let other = |d| matches!(self.service(entry, d), Service::Other);
        DType::REAL.into_iter().any(mine) || !DType::REAL.into_iter().any(other)
    }
}

fn device_name(kernel: &KernelEntry) -> &'static str {
    Device { kind: kernel.device, index: 0 }.name()
}
