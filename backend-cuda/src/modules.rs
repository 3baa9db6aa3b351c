//! The kernels' images: compressed by family in this library, split by entry points, loaded at their first launch.

use crate::driver::{Context, Entry};
use flate2::read::ZlibDecoder;
use keyway_sdk::Error;
use std::collections::HashMap;
use std::ffi::CString;
use std::io::Read;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

/// An image of a family: its name, the supported chips, and the compressed PTX.
type Image = (&'static str, Chips, &'static [u8]);

/// The chips that an image supports, as ten times their compute capability.
#[derive(Clone, Copy, Debug)]
enum Chips {
    /// This chip and all later ones.
    From(u32),
    /// This chip alone, since others lack its instructions.
    Only(u32),
}

impl Chips {
    fn have(self, chip: u32) -> bool {
        match self {
            Chips::From(lowest) => lowest <= chip,
            Chips::Only(one) => one == chip,
        }
    }

    fn lowest(self) -> u32 {
        let (Chips::From(chip) | Chips::Only(chip)) = self;
        chip
    }
}

// `IMAGES`, which the build script generates from the files in `images/`.
include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// The entry points that one device has loaded.
pub struct Modules {
    /// Ten times the device's compute capability.
    chip: u32,
    loaded: RwLock<HashMap<String, Entry>>,
    loading: Mutex<()>,
}

impl Modules {
    /// The modules of a device with this compute capability, times ten.
    pub fn new(chip: u32) -> Modules {
        Modules { chip, loaded: RwLock::default(), loading: Mutex::default() }
    }

    /// An entry point of a family, loaded at first use, whose launches use this number of bytes of shared memory per block.
    pub fn entry(&self, context: &Context, family: &str, name: &str, shared: u32) -> Result<Entry, Error> {
        if let Some(entry) = self.loaded.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(*entry);
        }
        let _one = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = self.loaded.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(*entry);
        }
        let text = image(family, self.chip)?.with_entry(name).ok_or_else(|| Error::Failed {
            detail: format!("the image of `{family}` has no entry `{name}`; run `cargo xtask cuda images`"),
        })?;
        let c_string = |text: String| {
            CString::new(text)
                .map_err(|_| Error::Failed { detail: format!("the image of `{name}` holds a 0 byte") })
        };
        let entry = context.load(&c_string(text)?, &c_string(name.to_string())?)?;
        if shared > 0 {
            context.allow_shared(entry, shared)?;
        }
        self.loaded.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_string(), entry);
        Ok(entry)
    }
}

/// PTX text, and the positions of its entry points.
struct Parts {
    text: String,
    /// The parts common to all entry points: the header, functions and constants.
    shared: Vec<(usize, usize)>,
    entries: HashMap<String, (usize, usize)>,
}

/// The decompressed image of a family, cached for the life of the process: the one for the highest chip that is supported.
fn image(family: &str, chip: u32) -> Result<&'static Parts, Error> {
    static UNPACKED: [OnceLock<Result<Parts, String>>; IMAGES.len()] =
        [const { OnceLock::new() }; IMAGES.len()];
    let failed = |detail: &str| Error::Failed { detail: format!("the image of `{family}`: {detail}") };
    let serves = |(_, (name, chips, _)): &(usize, &Image)| *name == family && chips.have(chip);
    let best = IMAGES.iter().enumerate().filter(serves).max_by_key(|(_, (_, chips, _))| chips.lowest());
    let (at, _) = best.ok_or_else(|| failed("not in this library"))?;
    let parts = UNPACKED[at].get_or_init(|| {
        let mut text = String::new();
        ZlibDecoder::new(IMAGES[at].2).read_to_string(&mut text).map_err(|error| error.to_string())?;
        Parts::new(text).ok_or_else(|| "is no PTX that this library can take apart".to_string())
    });
    parts.as_ref().map_err(|reason| failed(reason))
}

impl Parts {
    /// Splits the text: an entry point begins in a line with `.entry` and ends with the next line that is a closing brace.
    fn new(text: String) -> Option<Parts> {
        let (mut shared, mut entries) = (Vec::new(), HashMap::new());
        let mut from = 0;
        while let Some(found) = text[from..].find(".entry ") {
            let name_at = from + found + ".entry ".len();
            let begin = text[..name_at].rfind('\n').map_or(0, |line| line + 1);
            let end = name_at + text[name_at..].find("\n}\n")? + "\n}\n".len();
            let name = text[name_at..].split(['(', ' ', '\n', '\r']).next()?;
            shared.push((from, begin));
            entries.insert(name.to_string(), (begin, end));
            from = end;
        }
        shared.push((from, text.len()));
        (!entries.is_empty()).then_some(Parts { text, shared, entries })
    }

    /// The text with a single entry point.
    fn with_entry(&self, name: &str) -> Option<String> {
        let (begin, end) = *self.entries.get(name)?;
        let mut made = String::new();
        for &(from, to) in self.shared.iter().filter(|(from, _)| *from < begin) {
            made.push_str(&self.text[from..to]);
        }
        made.push_str(&self.text[begin..end]);
        for &(from, to) in self.shared.iter().filter(|(from, _)| *from >= end) {
            made.push_str(&self.text[from..to]);
        }
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 8.8\n.target sm_75\n.global .b32 table;\n\t// .globl a\n.visible .entry a(\n\t.param x\n)\n{\n\tret;\n\n}\n.func f()\n{\n\tret;\n}\n.visible .entry b(\n)\n{\n\t{\n\t}\n\tret;\n}\n\n";

    #[test]
    fn an_image_is_taken_apart_by_entries() {
        let parts = Parts::new(TEXT.to_string()).unwrap();
        let of = |name: &str| parts.with_entry(name).unwrap();
        assert!(of("a").contains(".entry a(") && !of("a").contains(".entry b("));
        assert!(of("b").contains(".entry b(") && !of("b").contains(".entry a("));
        for name in ["a", "b"] {
            assert!(of(name).starts_with(".version 8.8\n.target sm_75\n.global .b32 table;\n"), "{name}");
            assert!(of(name).contains(".func f()"), "{name}");
        }
        assert!(parts.with_entry("c").is_none());
        assert!(Parts::new("no PTX".to_string()).is_none());
        assert!(Parts::new(".entry a( never ends".to_string()).is_none());
    }

    #[test]
    fn a_chip_gets_the_image_of_the_highest_that_is_not_above_it() {
        let has = |chip: u32, entry: &str| image("tensor", chip).unwrap().entries.contains_key(entry);
        assert!([75, 80, 86, 90, 120].iter().all(|chip| has(*chip, "mm_f16_cores")));
        assert!(
            [80, 86, 90, 120].iter().all(|chip| has(*chip, "mm_bf16_cores")) && !has(75, "mm_bf16_cores")
        );
        assert!(image("tensor", 70).is_err());
        let groups = |chip: u32| image("attention_groups", chip);
        assert!(groups(90).unwrap().entries.contains_key("attention_f16_groups_64"));
        assert!([80, 89, 100, 120].iter().all(|chip| groups(*chip).is_err()));
    }

    #[test]
    fn each_image_in_this_library_can_be_unpacked() {
        for (family, chips, _) in IMAGES {
            let parts = image(family, chips.lowest()).unwrap_or_else(|error| panic!("{error}"));
            assert!(!parts.entries.is_empty(), "{family}");
            let alone = if matches!(chips, Chips::Only(_)) { "a" } else { "" };
            let line = format!(".target sm_{}{alone}\n", chips.lowest());
            assert!(parts.text.starts_with("//") && parts.text.contains(&line), "{family}");
        }
    }
}
