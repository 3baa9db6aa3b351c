//! A plugin's manifest, parsed from the bytes of its sections without running its code.

use super::error::LoadError;
use super::reason::{AbiRange, HandedOver};
use crate::base::message::is_obeyed;
use keyway_sdk::abi::manifest::MAGIC;
use serde::{Deserialize, Serialize};

/// The maximum length in bytes of one record's text; a manifest has some hundred bytes.
const MAX_TEXT: usize = 1 << 20;

/// The manifest of a plugin, written by `keyway_sdk::plugin!`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The plugin's name: `domain/name`, or `keyway-NAME` for a plugin of the Keyway project. Two libraries of one name are
    /// builds of one plugin.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// A description in one line, for listings.
    pub description: String,
    /// Devices that the plugin serves or provides.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Layouts that the plugin serves or provides.
    #[serde(default)]
    pub layouts: Vec<String>,
    /// Other libraries that must be installed, for human readers.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The priority: of two plugins that provide a kernel for one key, the one with the higher number is used.
    #[serde(default)]
    pub priority: i32,
    /// Names of the plugins whose device memory the kernels of this one can use.
    #[serde(default)]
    pub compatible_with: Vec<String>,
    /// The version of `keyway-sdk` that built it.
    pub sdk: String,
    /// The lowest ABI version that the plugin supports.
    pub abi_min: u32,
    /// The highest ABI version that the plugin supports.
    pub abi_max: u32,
    /// The processor level of this build.
    pub variant: String,
    /// Processor features that its code may use.
    pub cpu_features: Vec<String>,
}

/// The record of one `keyway_sdk::register_kernel!`.
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
    /// The dtypes; there is one kernel for each.
    pub dtypes: Vec<String>,
}

/// The record of one `keyway_sdk::register_interposer!`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct InterposerRecord {
    /// The interposer's name.
    pub name: String,
    /// Whether it acts until a thread excludes it.
    pub default_on: bool,
}

impl std::fmt::Display for InterposerRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.name, if self.default_on { "" } else { " (off)" })
    }
}

impl Manifest {
    /// The ABI versions that the plugin supports.
    pub fn abi(&self) -> AbiRange {
        AbiRange { min: self.abi_min, max: self.abi_max }
    }
}

/// Whether a name belongs to the Keyway project.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(keyway_sdk::abi::manifest::RESERVED_PREFIX)
}

fn bad(expected: impl Into<String>, got: impl Into<String>) -> LoadError {
    LoadError::BadManifest { expected: expected.into(), got: got.into() }
}

/// At most `limit` characters of `text`, without control characters, for an error message.
pub(super) fn excerpt(text: &str, limit: usize) -> String {
    let mut out: String = text.chars().take(limit).map(|c| if is_obeyed(c) { ' ' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        out.push('…');
    }
    out
}

/// Refuses text that a terminal would obey.
fn plain(text: &str) -> Result<(), LoadError> {
    if text.contains(is_obeyed) {
        return Err(bad("text without control characters", excerpt(text, 80)));
    }
    Ok(())
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
    let lists = [
        &mut manifest.devices,
        &mut manifest.layouts,
        &mut manifest.needs,
        &mut manifest.compatible_with,
        &mut manifest.cpu_features,
    ];
    // The macro may begin each list with an empty entry, which simplifies its commas.
    lists.into_iter().for_each(|list| list.retain(|entry| !entry.is_empty()));
    let texts = [&manifest.name, &manifest.version, &manifest.description, &manifest.sdk, &manifest.variant];
    let lists = [
        &manifest.devices,
        &manifest.layouts,
        &manifest.needs,
        &manifest.compatible_with,
        &manifest.cpu_features,
    ];
    texts.into_iter().chain(lists.into_iter().flatten()).try_for_each(|text| plain(text))?;
    if !keyway_sdk::abi::manifest::is_name(&manifest.name) {
        let expected = "a name of the form `domain/name`, such as `example.org/fast`";
        return Err(bad(expected, format!("`{}`", excerpt(&manifest.name, 80))));
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
        plain(text)?;
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

/// Reads the interposer records from the bytes of their section, sorted.
pub fn parse_interposers(section: &[u8]) -> Result<Vec<InterposerRecord>, LoadError> {
    let record = |text: &str| match text.rsplit_once(' ') {
        Some((name, state @ ("on" | "off"))) if !name.is_empty() && !name.contains(' ') => {
            Ok(InterposerRecord { name: name.to_string(), default_on: state == "on" })
        }
        _ => Err(bad("an interposer record, a name and `on` or `off`", excerpt(text, 80))),
    };
    let mut found = records(section)?
        .into_iter()
        .map(|text| plain(text).and_then(|()| record(text)))
        .collect::<Result<Vec<_>, _>>()?;
    found.sort();
    Ok(found)
}

/// The identity of a kernel: op, device, layout, dtype and signature.
type KernelName<'a> = [&'a str; 5];

/// Checks that the kernels that a plugin registers are those of its records: each record is one `register_kernel!`, so a
/// kernel in only one of the two is missing from the build.
pub fn check_kernels<'a>(
    records: &'a [KernelRecord],
    handed_over: impl Iterator<Item = KernelName<'a>>,
) -> Result<(), LoadError> {
    let of_record = |k: &'a KernelRecord| {
        k.dtypes.iter().map(|dtype| [&*k.op, &*k.device, &*k.layout, &**dtype, &*k.signature])
    };
    let mut recorded: Vec<KernelName> = records.iter().flat_map(of_record).collect();
    let mut handed_over: Vec<KernelName> = handed_over.collect();
    recorded.sort_unstable();
    handed_over.sort_unstable();
    if recorded == handed_over {
        return Ok(());
    }
    // Both are sorted, so the first difference is a kernel that occurs in one and not in the other, or fewer times.
    let at = recorded.iter().zip(&handed_over).take_while(|(a, b)| a == b).count();
    let (kernel, missing_in) = match (recorded.get(at), handed_over.get(at)) {
        (Some(a), Some(b)) if a < b => (a, HandedOver::Recorded),
        (Some(a), None) => (a, HandedOver::Recorded),
        (_, Some(b)) => (b, HandedOver::Unrecorded),
        (None, None) => return Ok(()),
    };
    let [op, device, layout, dtype, signature] = kernel;
    Err(LoadError::KernelsDiffer {
        recorded: recorded.len() as u64,
        handed_over: handed_over.len() as u64,
        kernel: excerpt(&format!("{op} {signature} for {device}, {layout}, {dtype}"), 200),
        what: missing_in,
    })
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

    const GOOD: &str = r#"{"name":"a/b","version":"1.2.3","description":"d","devices":["","cpu"],
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
    fn what_is_left_out_has_a_default() {
        let manifest = parse(&record(GOOD)).unwrap();
        assert_eq!((manifest.priority, manifest.compatible_with.len()), (0, 0));
        let text =
            GOOD.replace("\"devices\":[\"\",\"cpu\"],", "").replace("\"needs\":[\"\",\"libx.so.1\"],", "");
        let manifest = parse(&record(&text)).unwrap();
        assert!(manifest.devices.is_empty() && manifest.needs.is_empty());
        let given = "\"priority\":-7,\"compatible_with\":[\"other.example/gpu\"],\"sdk\"";
        let manifest = parse(&record(&GOOD.replace("\"sdk\"", given))).unwrap();
        assert_eq!(manifest.priority, -7);
        assert_eq!(manifest.compatible_with, ["other.example/gpu"]);
        let error = parse(&record(&GOOD.replace("\"sdk\"", "\"priority\":2147483648,\"sdk\""))).unwrap_err();
        assert!(error.to_string().contains("i32"), "{error}");
    }

    #[test]
    fn kernel_records_are_sorted_and_compared_with_what_is_handed_over() {
        let mut section = record("mul TT>T cpu strided f32,f64,");
        section.extend([0; 8]);
        section.extend(record("add TT>T cpu strided f32,"));
        let records = parse_kernels(&section).unwrap();
        assert_eq!(records.iter().map(|k| k.op.as_str()).collect::<Vec<_>>(), ["add", "mul"]);
        let kernel = |op, dtype| [op, "cpu", "strided", dtype, "TT>T"];
        let all = [kernel("mul", "f64"), kernel("add", "f32"), kernel("mul", "f32")];
        assert_eq!(check_kernels(&records, all.into_iter()), Ok(()));

        let differ = |handed_over: &[KernelName<'static>]| match check_kernels(
            &records,
            handed_over.iter().copied(),
        ) {
            Err(LoadError::KernelsDiffer { recorded: 3, handed_over, kernel, what }) => {
                (handed_over, kernel, what)
            }
            other => panic!("{other:?}"),
        };
        let name = |text: &str| text.to_string();
        let lost = (2, name("mul TT>T for cpu, strided, f32"), HandedOver::Recorded);
        assert_eq!(differ(&all[..2]), lost);
        assert_eq!(differ(&[]), (0, name("add TT>T for cpu, strided, f32"), HandedOver::Recorded));
        let unknown = [&all[..], &[kernel("sub", "f32")]].concat();
        assert_eq!(differ(&unknown), (4, name("sub TT>T for cpu, strided, f32"), HandedOver::Unrecorded));
        let twice = [&all[..], &[all[1]]].concat();
        assert_eq!(differ(&twice), (4, name("add TT>T for cpu, strided, f32"), HandedOver::Unrecorded));
        // The same number of kernels, but different ones.
        let other = [all[0], all[1], ["mul", "cpu", "strided", "f32", "TTs>T"]];
        assert_eq!(differ(&other), (3, name("mul TT>T for cpu, strided, f32"), HandedOver::Recorded));
    }

    #[test]
    fn a_name_is_below_a_domain_or_the_projects() {
        for (name, reserved) in [("a/b", false), ("keyway.test/min-000", false), ("keyway-cpu", true)] {
            let manifest = parse(&record(&GOOD.replace("a/b", name))).unwrap();
            assert_eq!((manifest.name.as_str(), is_reserved(&manifest.name)), (name, reserved));
        }
        for name in ["", "cpu", "keyway-", "keyway-a/b", "/b", "a/", "a/b/c", "a b/c", "a/b@1", "a/\u{e9}"] {
            let error = parse(&record(&GOOD.replace("a/b", name))).unwrap_err().to_string();
            assert!(error.contains("of the form `domain/name`") && error.contains(name), "{name}: {error}");
        }
    }

    #[test]
    fn wrong_content_is_named() {
        let two = [record(GOOD), record(GOOD)].concat();
        let escaped = record(&GOOD.replace("\"d\"", r#""red \u001b[31m""#));
        let cases: [(&[u8], &str); 8] = [
            (&escaped, "red  [31m"),
            (&record(&GOOD.replace("a/b", "a\u{9b}/b")), "without control characters"),
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
