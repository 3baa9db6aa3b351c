//! CPU features of this processor, by the names that compilers use.

use serde::Serialize;
use std::collections::BTreeSet;

/// A set of processor features. Tests construct their own to simulate another processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct CpuFeatures(BTreeSet<String>);

#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($($name:tt),* $(,)?) => {
        [$(($name, std::is_x86_feature_detected!($name))),*]
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! detected {
    ($($name:tt),* $(,)?) => {
        [$(($name, std::arch::is_aarch64_feature_detected!($name))),*]
    };
}

impl CpuFeatures {
    /// The features of the processor that runs this.
    pub fn detect() -> CpuFeatures {
        #[cfg(target_arch = "x86_64")]
        let table = detected![
            "sse3",
            "ssse3",
            "sse4.1",
            "sse4.2",
            "popcnt",
            "avx",
            "avx2",
            "fma",
            "f16c",
            "bmi1",
            "bmi2",
            "lzcnt",
            "movbe",
            "cmpxchg16b",
            "fxsr",
            "xsave",
            "aes",
            "pclmulqdq",
            "vaes",
            "vpclmulqdq",
            "gfni",
            "sha",
            "adx",
            "rdrand",
            "rdseed",
            "avx512f",
            "avx512bw",
            "avx512cd",
            "avx512dq",
            "avx512vl",
            "avx512ifma",
            "avx512vbmi",
            "avx512vbmi2",
            "avx512vnni",
            "avx512bitalg",
            "avx512vpopcntdq",
            "avx512bf16",
            "avx512fp16",
            "avxvnni",
        ];
        #[cfg(target_arch = "aarch64")]
        let table = detected![
            "neon", "fp16", "dotprod", "bf16", "i8mm", "fhm", "rdm", "lse", "crc", "aes", "sha2", "sha3",
            "sve", "sve2", "f32mm", "f64mm",
        ];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let table: [(&str, bool); 0] = [];
        CpuFeatures::from_names(table.into_iter().filter(|(_, present)| *present).map(|(name, _)| name))
    }

    /// A processor that has exactly these features.
    pub fn from_names<S: Into<String>>(names: impl IntoIterator<Item = S>) -> CpuFeatures {
        CpuFeatures(names.into_iter().map(Into::into).collect())
    }

    /// The features in `needed` that this processor lacks. An unknown name counts as missing: a refusal can be remedied, an
    /// illegal instruction ends the process.
    pub fn missing(&self, needed: &[String]) -> Vec<String> {
        needed.iter().filter(|name| !self.0.contains(*name)).cloned().collect()
    }

    /// The names of the features, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuFeatures;

    #[test]
    fn missing_names_only_what_is_not_there() {
        let cpu = CpuFeatures::from_names(["avx", "avx2"]);
        let needed = ["avx2", "avx512f", "feature-of-the-future"].map(String::from);
        assert_eq!(cpu.missing(&needed), ["avx512f", "feature-of-the-future"]);
        assert!(cpu.missing(&[]).is_empty());
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_feature_that_the_sdk_may_name_is_known() {
        let cpu = CpuFeatures::detect();
        // The build of this test uses only features of the processor, so none may be missing.
        let own: Vec<String> = serde_json::from_str(keyway_sdk::abi::manifest::cpu_features()).unwrap();
        assert!(cpu.missing(&own).is_empty(), "{:?}", cpu.missing(&own));
    }
}
