//! What a plugin says of itself, read from the bytes of its sections. None of its code runs.

use super::error::LoadError;
use super::reason::{AbiRange, CountedIn};
use keyway_sdk::abi::manifest::MAGIC;
use serde::{Deserialize, Serialize};

/// Longest text of one record that is read; a manifest has some hundred bytes.
const MAX_TEXT: usize = 1 << 20;

/// The manifest of a plugin, written by `keyway_sdk::plugin!`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The plugin's name, such as `keyway/cpu`. Two libraries of one name are builds of one plugin.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// One line for listings.
    pub description: String,
    /// Number of kernels, counting each dtype.
    pub kernels: u64,
    /// Devices that the plugin serves or brings.
    pub devices: Vec<String>,
    /// Layouts that the plugin serves or brings.
    pub layouts: Vec<String>,
    /// Other libraries that must be installed, for people to read.
    pub needs: Vec<String>,
    /// The version of `keyway-sdk` that built it.
    pub sdk: String,
    /// The lowest ABI version that it speaks.
    pub abi_min: u32,
    /// The highest ABI version that it speaks.
    pub abi_max: u32,
    /// The processor level of this build.
    pub variant: String,
    /// Processor features that its code may use.
    pub cpu_features: Vec<String>,
}

/// One `keyway_sdk::register_kernel!`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelRecord {
    /// The op.
    pub op: String,
    /// The signature that the kernel was written against.
    pub signature: String,
    /// The device.
    pub device: String,
    /// The layout.
    pub layout: String,
    /// One kernel for each of these.
    pub dtypes: Vec<String>,
}

impl Manifest {
    /// The ABI versions that the plugin speaks.
    pub fn abi(&self) -> AbiRange {
        AbiRange { min: self.abi_min, max: self.abi_max }
    }
}

fn bad(expected: impl Into<String>, got: impl Into<String>) -> LoadError {
    LoadError::BadManifest { expected: expected.into(), got: got.into() }
}

/// At most `limit` characters of `text`, without control characters, for an error message.
pub(super) fn excerpt(text: &str, limit: usize) -> String {
    let mut out: String = text.chars().take(limit).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        out.push('…');
    }
    out
}

/// Splits a section into the texts of its records.
fn records(section: &[u8]) -> Result<Vec<&str>, LoadError> {
    let mut texts = Vec::new();
    let mut rest = section;
    loop {
        // A linker may pad between records with zero bytes.
        let padding = rest.iter().take_while(|byte| **byte == 0).count();
        rest = &rest[padding..];
        if rest.is_empty() {
            return Ok(texts);
        }
        let Some(after_magic) = rest.strip_prefix(&MAGIC) else {
            let got = &rest[..rest.len().min(MAGIC.len())];
            return Err(bad(format!("a record that begins with {MAGIC:02x?}"), format!("{got:02x?}")));
        };
        let Some((length, body)) = after_magic.split_first_chunk::<4>() else {
            return Err(bad("a length of 4 bytes", format!("{} bytes", after_magic.len())));
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_TEXT || length > body.len() {
            return Err(bad(
                format!("a record of at most {} bytes", body.len().min(MAX_TEXT)),
                format!("the length {length}"),
            ));
        }
        let (text, after) = body.split_at(length);
        let text = std::str::from_utf8(text).map_err(|e| bad("UTF-8 text", format!("{e}")))?;
        texts.push(text);
        rest = after;
    }
}

/// Reads the manifest from the bytes of its section.
pub fn parse(section: &[u8]) -> Result<Manifest, LoadError> {
    let texts = records(section)?;
    let [text] = texts[..] else {
        return Err(bad("one record", format!("{} records", texts.len())));
    };
    let mut manifest: Manifest = serde_json::from_str(text)
        .map_err(|e| bad("the JSON object of `plugin!`", format!("{e} in {}", excerpt(text, 120))))?;
    // The export macro begins each list with an empty entry, so that an empty list needs no other form.
    for list in
        [&mut manifest.devices, &mut manifest.layouts, &mut manifest.needs, &mut manifest.cpu_features]
    {
        list.retain(|entry| !entry.is_empty());
    }
    if manifest.name.is_empty() {
        return Err(bad("a plugin name", "an empty name"));
    }
    if manifest.abi_min == 0 || manifest.abi_min > manifest.abi_max {
        return Err(bad("an ABI range from 1 up", format!("{} to {}", manifest.abi_min, manifest.abi_max)));
    }
    Ok(manifest)
}

/// Reads the kernel records from the bytes of their section, sorted.
pub fn parse_kernels(section: &[u8]) -> Result<Vec<KernelRecord>, LoadError> {
    let mut kernels = Vec::new();
    for text in records(section)? {
        let fields: Vec<&str> = text.split(' ').collect();
        let [op, signature, device, layout, dtypes] = fields[..] else {
            return Err(bad(
                "a kernel record of 5 words",
                format!("{} words: {}", fields.len(), excerpt(text, 80)),
            ));
        };
        let dtypes: Vec<String> = dtypes.split(',').filter(|d| !d.is_empty()).map(str::to_string).collect();
        if op.is_empty() || device.is_empty() || layout.is_empty() || dtypes.is_empty() {
            return Err(bad("op, device, layout and dtypes in a kernel record", excerpt(text, 80)));
        }
        kernels.push(KernelRecord {
            op: op.to_string(),
            signature: signature.to_string(),
            device: device.to_string(),
            layout: layout.to_string(),
            dtypes,
        });
    }
    // The order of the records in the file depends on the linker.
    kernels.sort_by(|a, b| {
        (&a.op, &a.device, &a.layout, &a.dtypes).cmp(&(&b.op, &b.device, &b.layout, &b.dtypes))
    });
    Ok(kernels)
}

/// Checks that the records are as many as the manifest declares.
pub fn check_count(manifest: &Manifest, kernels: &[KernelRecord]) -> Result<(), LoadError> {
    let found = kernels.iter().map(|k| k.dtypes.len() as u64).sum();
    if manifest.kernels == found {
        Ok(())
    } else {
        Err(LoadError::KernelCount { declared: manifest.kernels, found, counted_in: CountedIn::Records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(text: &str) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text.as_bytes());
        out.resize(MAGIC.len() + 4 + text.len().div_ceil(4) * 4, 0);
        out
    }

    const GOOD: &str = r#"{"name":"a/b","version":"1.2.3","description":"d","kernels":3,"devices":["","cpu"],
        "layouts":[""],"needs":["","libx.so.1"],"sdk":"0.1.0","abi_min":1,"abi_max":2,"variant":"x86-64","cpu_features":[]}"#;

    #[test]
    fn empty_list_entries_are_dropped() {
        let manifest = parse(&record(GOOD)).unwrap();
        assert_eq!(manifest.devices, ["cpu"]);
        assert!(manifest.layouts.is_empty());
        assert_eq!(manifest.needs, ["libx.so.1"]);
        assert_eq!(manifest.abi(), AbiRange { min: 1, max: 2 });
    }

    #[test]
    fn fields_of_a_later_sdk_are_ignored() {
        assert!(parse(&record(&GOOD.replace("\"name\"", "\"later\":[1],\"name\""))).is_ok());
    }

    #[test]
    fn kernel_records_are_sorted_and_counted() {
        let mut section = record("mul TT>T cpu strided f32,f64,");
        section.extend([0; 8]);
        section.extend(record("add TT>T cpu strided f32,"));
        let kernels = parse_kernels(&section).unwrap();
        assert_eq!(kernels.iter().map(|k| k.op.as_str()).collect::<Vec<_>>(), ["add", "mul"]);
        let mut manifest = parse(&record(GOOD)).unwrap();
        assert_eq!(check_count(&manifest, &kernels), Ok(()));
        manifest.kernels = 4;
        assert_eq!(
            check_count(&manifest, &kernels),
            Err(LoadError::KernelCount { declared: 4, found: 3, counted_in: CountedIn::Records })
        );
    }

    #[test]
    fn wrong_content_is_named() {
        let two = [record(GOOD), record(GOOD)].concat();
        let cases: [(&[u8], &str); 6] = [
            (b"", "0 records"),
            (&two, "2 records"),
            (b"KEYWAX\0\x01", "4b"),
            (b"KEYWAY\0\x01\xff\xff\xff\xff", "4294967295"),
            (&record("{\"name\":1}"), "invalid type"),
            (&record(&GOOD.replace("\"abi_min\":1", "\"abi_min\":9")), "9 to 2"),
        ];
        for (bytes, part) in cases {
            let error = parse(bytes).unwrap_err();
            assert!(matches!(error, LoadError::BadManifest { .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
            let _ = parse_kernels(&bytes);
        }

        #[test]
        fn a_damaged_record_gives_an_answer(at in 0usize..300, value in any::<u8>(), cut in 0usize..400) {
            let mut bytes = [record(GOOD), record("add TT>T cpu strided f32,")].concat();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut);
            let _ = parse(&bytes);
            let _ = parse_kernels(&bytes);
        }
    }
}
