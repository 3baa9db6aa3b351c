//! Selects one of several builds of a plugin.
//!
//! A version that the user selected (`keyway backend use`) ranks first, and a build that failed the conformance suite on
//! this machine last. Otherwise the search order of the folders decides, so that a path named by the user overrides an
//! installed library, even with an older version. Within one folder the highest version is used, and among its builds the
//! one that uses most features of this processor.

use super::cpu::CpuFeatures;
use serde::Serialize;
use std::cmp::Ordering;
use std::fmt;
use std::path::PathBuf;

/// The reason why a sound library is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PassedOver {
    /// The processor lacks features, and another build of the plugin does not need them.
    NeedsFeatures {
        /// The features that this processor lacks.
        missing: Vec<String>,
    },
    /// Another build uses more of the processor.
    BetterVariant {
        /// The variant of the chosen build.
        variant: String,
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        used: PathBuf,
    },
    /// Another version is used.
    OtherVersion {
        /// The chosen version.
        version: String,
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        used: PathBuf,
    },
    /// The user chose another version.
    NotTheChosen {
        /// The chosen version.
        version: String,
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        used: PathBuf,
    },
    /// The library failed the conformance suite on this machine, and another build did not.
    FailedSuite {
        /// The version of the other build.
        version: String,
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        used: PathBuf,
    },
    /// The user disabled the library.
    Disabled {
        /// The plugin's name.
        name: String,
        /// The version, if not all of them are disabled.
        version: Option<String>,
    },
    /// The library in use has the same name and so few of this one's kernels that it seems to be another plugin.
    Namesake {
        /// The plugin's name.
        name: String,
        /// The number of this library's kernels that the library in use lacks.
        lacks: usize,
        /// The number of kernels of this library.
        of: usize,
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        used: PathBuf,
    },
    /// An earlier folder of the search order has another build of the plugin.
    EarlierPath {
        /// The version of the library that is used.
        version: String,
        /// Whether the library in use is older.
        older: bool,
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        used: PathBuf,
    },
    /// An earlier folder of the search order has the same content.
    Copy {
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        used: PathBuf,
    },
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassedOver::NeedsFeatures { missing } => write!(f, "needs {}", missing.join(", ")),
            PassedOver::Namesake { name, lacks, of, used } => write!(
                f,
                "another library is named `{name}` too and is used, without {lacks} of the {of} kernels of this one: {}; if it is \
                 another plugin, remove one of them, and ask its author for a name of its own",
                used.display()
            ),
            PassedOver::BetterVariant { variant, used } => {
                write!(f, "the better variant {variant} is used: {}", used.display())
            }
            PassedOver::OtherVersion { version, used } => {
                write!(f, "version {version} is used: {}", used.display())
            }
            PassedOver::NotTheChosen { version, used } => write!(
                f,
                "version {version} is used, as you chose with `keyway backend use`: {}",
                used.display()
            ),
            PassedOver::FailedSuite { version, used } => write!(
                f,
                "it failed the conformance suite on this machine, and version {version} is used: {}; `keyway backend use` takes it \
                 all the same",
                used.display()
            ),
            PassedOver::Disabled { name, version } => {
                let of = version.as_ref().map(|version| format!(" --version {version}")).unwrap_or_default();
                write!(f, "disabled; `keyway backend enable {name}{of}` takes it in again")
            }
            PassedOver::EarlierPath { version, older, used } => {
                let advice = match older {
                    true => ", although it is older; remove it, or choose this one with `keyway backend use`",
                    false => "",
                };
                write!(
                    f,
                    "an earlier folder has version {version}, which is used: {}{advice}",
                    used.display()
                )
            }
            PassedOver::Copy { used } => {
                write!(f, "an earlier folder has a copy of it, which is used: {}", used.display())
            }
        }
    }
}

/// The ranking criteria of one build.
#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    /// Whether it is of the version that the user chose.
    pub chosen: bool,
    /// Whether it failed the conformance suite on this machine.
    pub failed: bool,
    /// The rank of its folder in the search order; a lower one takes precedence.
    pub rank: usize,
    /// The plugin's version.
    pub version: &'a str,
    /// The build's variant.
    pub variant: &'a str,
    /// Processor features that it needs.
    pub features: &'a [String],
}

/// Compares versions: numbers by value, and a version with a pre-release part below the one without.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    fn split(version: &str) -> (Vec<u64>, &str) {
        let version = version.split('+').next().unwrap_or_default();
        let (numbers, pre) = version.split_once('-').unwrap_or((version, ""));
        (numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect(), pre)
    }
    let ((a, a_pre), (b, b_pre)) = (split(a), split(b));
    a.cmp(&b).then_with(|| match (a_pre, b_pre) {
        ("", "") => Ordering::Equal,
        ("", _) => Ordering::Greater,
        (_, "") => Ordering::Less,
        _ => a_pre.cmp(b_pre),
    })
}

/// Orders the builds that this processor can run, the preferred one first; the index identifies each.
///
/// "Uses more of the processor" is the number of features: each level of a processor family includes the levels below, so
/// no list of levels is needed, and a plugin may define its own levels.
pub fn preference(builds: &[Build<'_>], cpu: &CpuFeatures) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..builds.len()).filter(|i| cpu.missing(builds[*i].features).is_empty()).collect();
    order.sort_by(|i, j| {
        let (a, b) = (&builds[*i], &builds[*j]);
        (!a.chosen, a.failed, a.rank)
            .cmp(&(!b.chosen, b.failed, b.rank))
            .then_with(|| compare_versions(b.version, a.version))
            .then_with(|| b.features.len().cmp(&a.features.len()))
            .then_with(|| b.variant.cmp(a.variant))
            .then_with(|| i.cmp(j))
    });
    order
}

/// The reason why `build` is not used although `used` is.
pub fn reason(build: &Build<'_>, used: &Build<'_>, used_path: PathBuf, cpu: &CpuFeatures) -> PassedOver {
    let missing = cpu.missing(build.features);
    if !missing.is_empty() {
        PassedOver::NeedsFeatures { missing }
    } else if used.chosen && !build.chosen {
        PassedOver::NotTheChosen { version: used.version.to_string(), used: used_path }
    } else if build.failed && !used.failed {
        PassedOver::FailedSuite { version: used.version.to_string(), used: used_path }
    } else if build.rank != used.rank {
        let older = compare_versions(used.version, build.version).is_lt();
        PassedOver::EarlierPath { version: used.version.to_string(), older, used: used_path }
    } else if build.version != used.version {
        PassedOver::OtherVersion { version: used.version.to_string(), used: used_path }
    } else {
        PassedOver::BetterVariant { variant: used.variant.to_string(), used: used_path }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(n: usize) -> Vec<String> {
        ["sse4.2", "avx2", "avx512f"][..n].iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn the_best_variant_that_the_processor_can_run_wins() {
        let (v2, v3, v4) = (features(1), features(2), features(3));
        let build = |variant, features| Build {
            chosen: false,
            failed: false,
            rank: 0,
            version: "1.0.0",
            variant,
            features,
        };
        let builds = [build("x86-64-v2", &v2), build("x86-64-v4", &v4), build("x86-64-v3", &v3)];
        let v3_machine = CpuFeatures::from_names(features(2));
        assert_eq!(preference(&builds, &v3_machine), [2, 0]);
        assert_eq!(preference(&builds, &CpuFeatures::from_names(features(3))), [1, 2, 0]);
        assert!(preference(&builds, &CpuFeatures::default()).is_empty());
        let why = |i: usize| reason(&builds[i], &builds[2], "/v3.so".into(), &v3_machine).to_string();
        assert_eq!(why(1), "needs avx512f");
        assert_eq!(why(0), "the better variant x86-64-v3 is used: /v3.so");
    }

    #[test]
    fn the_path_decides_before_the_version_and_the_version_before_the_variant() {
        let (none, some) = (features(0), features(1));
        let build = |rank, version, variant, features| Build {
            chosen: false,
            failed: false,
            rank,
            version,
            variant,
            features,
        };
        let builds = [
            build(1, "2.0.0", "b", &some[..]),
            build(0, "1.9.0", "b", &some),
            build(0, "1.10.0", "a", &none),
        ];
        let cpu = CpuFeatures::from_names(features(3));
        assert_eq!(preference(&builds, &cpu), [2, 1, 0]);
        let why = |i: usize| reason(&builds[i], &builds[2], "/x".into(), &cpu);
        let version = || "1.10.0".to_string();
        assert_eq!(why(0), PassedOver::EarlierPath { version: version(), older: true, used: "/x".into() });
        assert_eq!(why(1), PassedOver::OtherVersion { version: version(), used: "/x".into() });
        // Failed builds rank last, and the version that the user selected first.
        let failed = [builds[0], builds[1], Build { failed: true, ..builds[2] }];
        assert_eq!(preference(&failed, &cpu), [1, 0, 2]);
        let why = reason(&failed[2], &failed[1], "/x".into(), &cpu);
        assert_eq!(why, PassedOver::FailedSuite { version: "1.9.0".into(), used: "/x".into() });
        let chosen = [Build { chosen: true, failed: true, ..builds[0] }, builds[1], builds[2]];
        assert_eq!(preference(&chosen, &cpu), [0, 2, 1]);
        let why = reason(&chosen[2], &chosen[0], "/x".into(), &cpu);
        assert_eq!(why, PassedOver::NotTheChosen { version: "2.0.0".into(), used: "/x".into() });
    }

    #[test]
    fn versions_compare_by_number_and_pre_releases_come_first() {
        assert_eq!(compare_versions("0.10.0", "0.9.9"), Ordering::Greater);
        assert_eq!(compare_versions("1.0.0-rc1", "1.0.0"), Ordering::Less);
        assert_eq!(compare_versions("1.0.0+a", "1.0.0+b"), Ordering::Equal);
        assert_eq!(compare_versions("strange", "0.1.0"), Ordering::Less);
    }
}
