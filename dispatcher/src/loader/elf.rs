//! Reads an ELF shared library without mapping or running it.
//!
//! `dlopen` maps a file and trusts its headers: a truncated one kills the process with SIGBUS. So every extent that the
//! headers name is first compared with the file's size.

use super::error::LoadError;
use super::manifest::excerpt;
use keyway_sdk::abi::manifest::{INTERPOSER_SECTION, KERNEL_SECTION, SECTION};
use object::elf::{self, FileHeader64};
use object::read::ReadRef;
use object::read::elf::{
    Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable, Sym as _,
};
use object::{Endianness, SectionIndex};

/// The parts of an ELF library that the checks need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// Libraries that it needs (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// Folders in which the system searches for needed libraries first, one entry each (`DT_RPATH` and `DT_RUNPATH`).
    pub run_path: Vec<String>,
    /// Whether the file exports one of the requested symbols.
    pub exports_entry: bool,
    /// The bytes of the manifest section; `None` if there is no such section.
    pub manifest: Option<Vec<u8>>,
    /// The bytes of the section of kernel records; empty if there is no such section.
    pub kernels: Vec<u8>,
    /// The bytes of the section of interposer records; empty if there is no such section.
    pub interposers: Vec<u8>,
}

const HEADER_SIZE: u64 = 64;

fn machine_name(machine: u16, is_64: bool, little: bool) -> String {
    let name = match elf::Machine(machine) {
        elf::EM_386 => "x86",
        elf::EM_X86_64 => "x86_64",
        elf::EM_ARM => "arm",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_RISCV => "riscv",
        elf::EM_LOONGARCH => "loongarch",
        elf::EM_PPC64 => "powerpc64",
        elf::EM_S390 => "s390x",
        elf::EM_MIPS => "mips",
        _ => return format!("ELF machine {machine}"),
    };
    format!("{name}, {} bits, {} endian", if is_64 { 64 } else { 32 }, if little { "little" } else { "big" })
}

fn host_machine() -> u16 {
    let machine = if cfg!(target_arch = "x86_64") {
        elf::EM_X86_64
    } else if cfg!(target_arch = "aarch64") {
        elf::EM_AARCH64
    } else if cfg!(target_arch = "riscv64") {
        elf::EM_RISCV
    } else if cfg!(target_arch = "loongarch64") {
        elf::EM_LOONGARCH
    } else if cfg!(target_arch = "powerpc64") {
        elf::EM_PPC64
    } else if cfg!(target_arch = "s390x") {
        elf::EM_S390
    } else {
        elf::EM_NONE
    };
    machine.0
}

/// Describes a file that is not ELF by its first bytes.
fn kind_of(head: &[u8]) -> String {
    match head {
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] => {
            return "a Mach-O file (a library for macOS)".to_string();
        }
        [0xca, 0xfe, 0xba, 0xbe, ..] => return "a Mach-O file for several processors (macOS)".to_string(),
        [b'M', b'Z', ..] => return "a PE file (a library for Windows)".to_string(),
        [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => return "a static library (`.a`)".to_string(),
        [0x1f, 0x8b, ..] | [b'P', b'K', 3, 4, ..] => return "a compressed archive".to_string(),
        _ => {}
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => Some(text),
        // The excerpt may end within a character.
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&head[..e.valid_up_to()]).ok(),
        Err(_) => None,
    };
    match text {
        Some(text) if text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace()) => {
            format!("a text file that begins with {:?}", excerpt(text, 40))
        }
        _ => format!("a file that begins with the bytes {:02x?}", &head[..head.len().min(8)]),
    }
}

fn not_a_library(got: impl Into<String>) -> LoadError {
    LoadError::NotALibrary { expected: "an ELF shared library".to_string(), got: got.into() }
}

fn broken(part: &str) -> LoadError {
    not_a_library(format!("an ELF file whose {part} cannot be read"))
}

fn damaged(what: String) -> LoadError {
    LoadError::Damaged { what }
}

/// Checks that the loadable segments are in ascending order and do not overlap. The system's loader reserves memory up to
/// the end of the last segment and maps each with `MAP_FIXED`: a segment that extends further would replace other
/// libraries' memory.
fn check_segments(
    segments: &[elf::ProgramHeader64<Endianness>],
    endian: Endianness,
) -> Result<(), LoadError> {
    let mut end = 0;
    for segment in segments.iter().filter(|s| s.p_type(endian) == elf::PT_LOAD) {
        let (start, memory, file) =
            (segment.p_vaddr(endian), segment.p_memsz(endian), segment.p_filesz(endian));
        let Some(next_end) = start.checked_add(memory).filter(|_| file <= memory) else {
            return Err(damaged(format!("the segment at {start:#x} has {file} bytes in memory of {memory}")));
        };
        if start < end {
            return Err(damaged(format!(
                "the segment at {start:#x} begins before {end:#x}, where the one before it ends"
            )));
        }
        end = next_end;
    }
    Ok(())
}

/// Checks that each dynamic symbol has a version that the library needs or defines. The system's loader uses the entries of
/// `.gnu.version` as indices into an array of versions without comparing them with its length.
fn check_versions<'d, R: ReadRef<'d>>(
    sections: &SectionTable<'d, FileHeader64<Endianness>, R>,
    endian: Endianness,
    data: R,
    n_symbols: usize,
) -> Result<(), LoadError> {
    let unreadable = |_| broken("symbol versions");
    let Some((entries, _)) = sections.gnu_versym(endian, data).map_err(unreadable)? else { return Ok(()) };
    let index = |raw: u16| raw & elf::VERSYM_VERSION;
    let mut highest = 0;
    if let Some((needed, _)) = sections.gnu_verneed(endian, data).map_err(unreadable)? {
        for library in needed {
            for version in library.map_err(unreadable)?.1 {
                highest = highest.max(index(version.map_err(unreadable)?.vna_other.get(endian).0));
            }
        }
    }
    if let Some((defined, _)) = sections.gnu_verdef(endian, data).map_err(unreadable)? {
        for version in defined {
            highest = highest.max(index(version.map_err(unreadable)?.0.vd_ndx.get(endian).0));
        }
    }
    if entries.len() < n_symbols {
        return Err(damaged(format!("{n_symbols} dynamic symbols have {} versions", entries.len())));
    }
    match entries.iter().map(|entry| index(entry.0.get(endian).0)).max() {
        Some(used) if used > highest => {
            Err(damaged(format!("a dynamic symbol has version {used} of {highest}")))
        }
        _ => Ok(()),
    }
}

/// The string at offset `at` of a string table.
fn string_at(table: &[u8], at: u64) -> &[u8] {
    let tail = usize::try_from(at).ok().and_then(|at| table.get(at..)).unwrap_or_default();
    tail.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn check_machine(head: &[u8]) -> Result<(), LoadError> {
    let (is_64, little) = (head[4] == 2, head[5] == 1);
    let field = [head[18], head[19]];
    let machine = if little { u16::from_le_bytes(field) } else { u16::from_be_bytes(field) };
    let host_little = cfg!(target_endian = "little");
    if (machine, is_64, little) == (host_machine(), true, host_little) {
        return Ok(());
    }
    Err(LoadError::WrongArchitecture {
        expected: machine_name(host_machine(), true, host_little),
        got: machine_name(machine, is_64, little),
    })
}

/// Reads the headers and the relevant sections; a plugin must export one of `entries`.
///
/// Never panics for any bytes, and reads only those sections.
pub fn inspect<'d, R: ReadRef<'d>>(data: R, entries: &[&str]) -> Result<Inspected, LoadError> {
    let size = data
        .len()
        .map_err(|()| LoadError::Unreadable { detail: "the file's size is unknown".to_string() })?;
    if size == 0 {
        return Err(LoadError::Empty);
    }
    let unreadable = |()| LoadError::Unreadable { detail: "a read within the file failed".to_string() };
    let head = data.read_bytes_at(0, size.min(512)).map_err(unreadable)?;
    if !head.starts_with(&elf::ELFMAG) {
        return Err(not_a_library(kind_of(head)));
    }
    if size < HEADER_SIZE {
        return Err(LoadError::Truncated { expected: HEADER_SIZE, got: size });
    }
    check_machine(head)?;
    let header = FileHeader64::<Endianness>::parse(data).map_err(|_| broken("header"))?;
    let endian = header.endian().map_err(|_| broken("header"))?;
    if header.e_type(endian) != elf::ET_DYN {
        return Err(not_a_library(match header.e_type(endian) {
            elf::ET_REL => "an ELF object file (`.o`)",
            elf::ET_EXEC => "an ELF program",
            elf::ET_CORE => "a core dump",
            _ => "an ELF file of an unknown type",
        }));
    }
    let within = |end: Option<u64>| match end {
        Some(end) if end <= size => Ok(()),
        end => Err(LoadError::Truncated { expected: end.unwrap_or(u64::MAX), got: size }),
    };
    let table_end =
        |offset: u64, count: u16, entry: u16| offset.checked_add(u64::from(count) * u64::from(entry));
    within(table_end(header.e_phoff(endian), header.e_phnum(endian), header.e_phentsize(endian)))?;
    within(table_end(header.e_shoff(endian), header.e_shnum(endian), header.e_shentsize(endian)))?;

    let segments = header.program_headers(endian, data).map_err(|_| broken("program headers"))?;
    for segment in segments {
        let (offset, length) = segment.file_range(endian);
        within(offset.checked_add(length))?;
    }
    if !segments.iter().any(|s| s.p_type(endian) == elf::PT_LOAD) {
        return Err(not_a_library("an ELF file without anything to load"));
    }
    if !segments.iter().any(|s| s.p_type(endian) == elf::PT_DYNAMIC) {
        return Err(not_a_library("an ELF file without a dynamic section"));
    }
    check_segments(segments, endian)?;

    let sections = header.section_headers(endian, data).map_err(|_| broken("section headers"))?;
    for section in sections {
        if let Some((offset, length)) = section.file_range(endian) {
            within(offset.checked_add(length))?;
        }
    }
    let bytes =
        |index: usize| sections.get(index).and_then(|s| s.data(endian, data).ok()).unwrap_or_default();
    let names =
        header.section_strings_index(endian, data).map_or(&[][..], |SectionIndex(index)| bytes(index));
    let named = |name: &str| {
        sections
            .iter()
            .find(|s| string_at(names, u64::from(s.sh_name(endian))) == name.as_bytes())
            .and_then(|s| s.data(endian, data).ok())
    };
    let of_type = |kind: elf::SectionType| sections.iter().find(|s| s.sh_type(endian) == kind);
    let strings_of = |s: &elf::SectionHeader64<Endianness>| bytes(s.sh_link(endian) as usize);

    let (mut needed, mut run_path) = (Vec::new(), Vec::new());
    if let Some(section) = of_type(elf::SHT_DYNAMIC) {
        let entries: &[elf::Dyn64<Endianness>] =
            section.data_as_array(endian, data).map_err(|_| broken("dynamic section"))?;
        let strings = strings_of(section);
        for entry in entries.iter().take_while(|e| e.d_tag(endian) != elf::DT_NULL) {
            let text = || String::from_utf8_lossy(string_at(strings, entry.d_val(endian))).into_owned();
            match entry.d_tag(endian) {
                // A filter library is loaded from the same folders as needed libraries.
                elf::DT_NEEDED | elf::DT_AUXILIARY | elf::DT_FILTER => needed.push(text()),
                elf::DT_RPATH | elf::DT_RUNPATH => run_path.extend(text().split(':').map(str::to_string)),
                _ => {}
            }
        }
    }
    let mut exports_entry = false;
    if let Some(section) = of_type(elf::SHT_DYNSYM) {
        let symbols: &[elf::Sym64<Endianness>] =
            section.data_as_array(endian, data).map_err(|_| broken("dynamic symbols"))?;
        check_versions(&SectionTable::new(sections, Default::default()), endian, data, symbols.len())?;
        let strings = strings_of(section);
        exports_entry = symbols.iter().filter(|s| !s.is_undefined(endian)).any(|s| {
            let name = string_at(strings, u64::from(s.st_name(endian)));
            entries.iter().any(|entry| entry.as_bytes() == name)
        });
    }
    Ok(Inspected {
        needed,
        run_path,
        exports_entry,
        manifest: named(SECTION).map(<[u8]>::to_vec),
        kernels: named(KERNEL_SECTION).unwrap_or_default().to_vec(),
        interposers: named(INTERPOSER_SECTION).unwrap_or_default().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn elf_header(machine: u16, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0u8; 64];
        bytes[..8].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]);
        bytes[16..18].copy_from_slice(&kind.to_le_bytes());
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[20] = 1;
        bytes
    }

    fn error(bytes: &[u8]) -> LoadError {
        inspect(bytes, &["root"]).unwrap_err()
    }

    #[test]
    fn other_kinds_of_file_are_named() {
        let cases: [(&[u8], &str); 7] = [
            (b"#!/bin/sh\nexit 0\n", "a text file that begins with \"#!/bin/sh"),
            (b"MZ\x90\0", "PE file"),
            (&[0xcf, 0xfa, 0xed, 0xfe, 7, 0, 0, 1], "Mach-O"),
            (b"!<arch>\n", "static library"),
            (&[0, 1, 2, 3], "00, 01, 02, 03"),
            ("é".as_bytes(), "text"),
            (&elf_header(host_machine(), 1), "object file"),
        ];
        for (bytes, part) in cases {
            let error = error(bytes);
            assert!(matches!(error, LoadError::NotALibrary { .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(error(b""), LoadError::Empty);
        assert_eq!(error(b"\x7fELF"), LoadError::Truncated { expected: 64, got: 4 });
    }

    #[test]
    fn other_machines_are_named() {
        let mut other = elf_header(elf::EM_S390.0, 3);
        assert!(error(&other).to_string().contains("s390x, 64 bits"));
        other[4] = 1;
        assert!(error(&other).to_string().contains("32 bits"));
        assert!(error(&elf_header(0xbeef, 3)).to_string().contains("ELF machine 48879"));
    }

    #[test]
    fn extents_beyond_the_file_or_beyond_arithmetic_are_truncation() {
        let mut bytes = elf_header(host_machine(), 3);
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&2u16.to_le_bytes());
        assert_eq!(error(&bytes), LoadError::Truncated { expected: 176, got: 64 });
        bytes[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(error(&bytes), LoadError::Truncated { expected: u64::MAX, got: 64 });
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(tail in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = inspect(&tail[..], &["root"]);
            let mut bytes = elf_header(host_machine(), 3);
            bytes.extend(&tail);
            if tail.len() > 44 {
                bytes[20..64].copy_from_slice(&tail[..44]);
            }
            let _ = inspect(&bytes[..], &["root"]);
        }
    }
}
