//! Records the kernels that run: a dispatch key directly above the backends, which a worker includes in its thread's keys.
//! Without such a thread, no call is routed through it.

use keyway::dispatcher::call::redispatch;
use keyway::dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway::dispatcher::ledger::{Served, forget_served, last_served};
use keyway::dispatcher::op::{Call, Outputs};
use keyway::dispatcher::registry::{KernelEntry, KeyHandler, register_key_handler};
use keyway::dispatcher::{Error, Result};
use keyway_sdk::abi::codes::status;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The dispatch key: below autograd, so that a call that is recorded for a backward pass is seen, and above the selection
/// of a backend.
const KEY: u8 = 12;

/// Calls since the last [`take`].
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The kernels, each with its number of successful and failed calls.
    kernels: Vec<(&'static KernelEntry, u64, u64)>,
    /// Other candidates that ran calls: the host, a decomposition.
    otherwise: BTreeSet<&'static str>,
    /// Whether a kernel panicked.
    pub panicked: bool,
}

impl Seen {
    /// Whether a kernel of this plugin ran or failed a call.
    pub fn has_kernel_of(&self, plugin: &str) -> bool {
        self.kernels.iter().any(|(kernel, ..)| kernel.plugin.name == plugin)
    }

    /// The kernels that ran a call.
    pub fn served(&self) -> Vec<&'static KernelEntry> {
        self.kernels.iter().filter(|(_, served, _)| *served > 0).map(|(kernel, ..)| *kernel).collect()
    }

    /// As above, for any plugin.
    pub fn has_kernel(&self) -> bool {
        !self.kernels.is_empty()
    }

    /// The plugins that ran the calls, as text.
    pub fn by(&self) -> String {
        let mut names: BTreeSet<&str> = self.kernels.iter().map(|(kernel, ..)| kernel.plugin.name).collect();
        names.extend(&self.otherwise);
        if names.is_empty() {
            return "the host's own checks".to_string();
        }
        names.into_iter().collect::<Vec<_>>().join(", ")
    }
}

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::default();
}

/// Records the kernels that this thread's calls run, while the result lives.
///
/// # Errors
/// A key in use by another handler.
pub fn start() -> Result<KeyGuard> {
    let key = DispatchKey::new(KEY).ok_or_else(|| Error::Registration {
        what: "interceptor",
        name: NAME.to_string(),
        reason: format!("{KEY} is no key"),
    })?;
    if keyway::dispatcher::registry::find_key(NAME).is_none() {
        register_key_handler(KeyHandler {
            key,
            name: NAME.to_string(),
            applies: |_| true,
            handler: Box::new(handle),
            plugin: None,
            interposer: None,
        })?;
    }
    Ok(KeyGuard::include(KeySet::of(key)))
}

/// Calls of this thread are not recorded while the result lives.
pub fn pause() -> Option<KeyGuard> {
    DispatchKey::new(KEY).map(|key| KeyGuard::exclude(KeySet::of(key)))
}

const NAME: &str = "conformance recorder";

fn handle(call: &Call<'_>, below: KeySet) -> Result<Outputs> {
    forget_served();
    let result = redispatch(call, below);
    let served = last_served();
    let refused = matches!(&result, Err(Error::MissingKernel(missing)) if !missing.refused.is_empty());
    SEEN.with_borrow_mut(|seen| {
        seen.panicked |= matches!(&result, Err(Error::Backend { status: status::PANICKED, .. }));
        match served {
            // A kernel that refuses has no part in what other candidates do; without a candidate, the call fails.
            Served::Kernel(_) if refused => {}
            Served::Kernel(kernel) => {
                let position = match seen.kernels.iter().position(|(k, ..)| std::ptr::eq(*k, kernel)) {
                    Some(position) => position,
                    None => {
                        seen.kernels.push((kernel, 0, 0));
                        seen.kernels.len() - 1
                    }
                };
                let (_, served, failed) = &mut seen.kernels[position];
                *(if result.is_ok() { served } else { failed }) += 1;
            }
            Served::Nobody => {}
            other => {
                seen.otherwise.insert(other.name());
            }
        }
    });
    result
}

/// The calls of this thread since the last call of this function.
pub fn take() -> Seen {
    SEEN.take()
}

/// Number of calls of this thread that a kernel has run since the last [`take`].
pub fn served_by(kernel: &KernelEntry) -> u64 {
    SEEN.with_borrow(|seen| {
        seen.kernels.iter().find(|(k, ..)| std::ptr::eq(*k, kernel)).map_or(0, |(_, served, _)| *served)
    })
}
