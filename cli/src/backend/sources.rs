//! Sources of an installation: a library, a folder, or an archive. The wanted files are first copied into a private folder, so
//! that the file that is checked and tried is the one that is installed.

use flate2::read::MultiGzDecoder;
use keyway::dispatcher::loader::trust::TrustPolicy;
use keyway_conformance::certificate::Certificate;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Limit on the unpacked bytes of an archive.
const MAX_BYTES: u64 = 16 << 30;
/// Limit on the bytes of a library.
const MAX_LIBRARY: u64 = 4 << 30;
/// The first bytes of a library, and the length of the head that identifies it further.
const MAGIC: &[u8] = b"\x7fELF";
const HEAD: u64 = 4096;
/// Limit on the entries of an archive.
const MAX_ENTRIES: usize = 100_000;
/// Limit on the bytes of a name; no file system has longer ones.
const MAX_NAME: usize = 4096;
/// Limit on the bytes that describe one entry of an archive besides its content.
const MAX_DESCRIPTION: u64 = 1 << 16;

/// Side files of a library: `libx.so.sha256`, `libx.known-failures.toml` and `libx.so.certificate.json`.
pub const HASH: &str = "sha256";
/// The list of known failures of a library; replaces its extension.
pub const KNOWN_FAILURES: &str = "known-failures.toml";

/// Suffix of its certificate.
const CERTIFICATE: &str = ".certificate.json";

/// A library that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The path of the copy. Its side files are next to it under their own names.
    pub library: PathBuf,
    /// The source path, for messages.
    pub from: String,
}

/// Copies the libraries of `source`, with their side files, into `work`.
///
/// # Errors
/// Files that cannot be read or written, and an archive with an entry outside of its folder, as one clause.
pub fn collect(source: &Path, work: &Path) -> Result<Vec<Copied>, String> {
    let said = |error: io::Error| format!("{}: {error}", source.display());
    let meta = source.metadata().map_err(said)?;
    if meta.is_dir() {
        return folder(source, work);
    }
    if !meta.is_file() {
        return Err(format!("{}: expected a library, a folder or an archive", source.display()));
    }
    let mut file = File::open(source).map_err(said)?;
    let mut head = Vec::new();
    file.by_ref().take(512).read_to_end(&mut head).map_err(said)?;
    file.rewind().map_err(said)?;
    if head.starts_with(&[0x1f, 0x8b]) {
        return archive(MultiGzDecoder::new(file), source, work);
    }
    if head.get(257..262) == Some(b"ustar") {
        return archive(file, source, work);
    }
    let name = file_name(source).to_lowercase();
    if [".tar", ".tar.gz", ".tgz"].iter().any(|end| name.ends_with(end)) {
        let got = if head.iter().all(|byte| *byte == 0) { "an empty one" } else { "a file that is none" };
        return Err(format!(
            "{}: expected an archive of libraries (.tar, .tar.gz), got {got}; pack it anew",
            source.display()
        ));
    }
    let mut all = Copies::new(work);
    let parent = source.parent().unwrap_or(Path::new(""));
    let name = file_name(source);
    all.take(parent, &name, || File::open(source), source.display().to_string())?;
    let sides = [
        format!("{name}.{HASH}"),
        file_name(&source.with_extension(KNOWN_FAILURES)),
        file_name(&Certificate::beside(source)),
    ];
    for side in sides {
        let path = parent.join(&side);
        if path.is_file() && is_believed(&path) {
            all.take(parent, &side, || File::open(&path), path.display().to_string())?;
        }
    }
    let library = all.libraries.into_iter().next();
    let unnamed = || {
        format!("{}: expected a file name that ends in {}", source.display(), std::env::consts::DLL_SUFFIX)
    };
    Ok(vec![library.ok_or_else(unnamed)?])
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_certificate(name: &str) -> bool {
    name.ends_with(&format!("{}{CERTIFICATE}", std::env::consts::DLL_SUFFIX))
}

/// Whether a side file is trusted: a certificate that other users may write is ignored; all other files are verified or
/// tested later.
fn is_believed(path: &Path) -> bool {
    !is_certificate(&file_name(path)) || TrustPolicy::of_process().check(path).is_ok()
}

fn is_wanted(name: &str) -> bool {
    let suffix = std::env::consts::DLL_SUFFIX;
    is_library(name)
        || name.ends_with(&format!("{suffix}.{HASH}"))
        || name.ends_with(&format!(".{KNOWN_FAILURES}"))
        || is_certificate(name)
}

fn is_library(name: &str) -> bool {
    name.len() > std::env::consts::DLL_SUFFIX.len() && name.ends_with(std::env::consts::DLL_SUFFIX)
}

/// The files of a folder and of its subfolder `backends`, as `dist` has them.
fn folder(source: &Path, work: &Path) -> Result<Vec<Copied>, String> {
    let mut all = Copies::new(work);
    for folder in [source.to_path_buf(), source.join("backends")] {
        if folder != source && !folder.is_dir() {
            continue;
        }
        let said = |error: io::Error| format!("{}: {error}", folder.display());
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(said)? {
            paths.push(entry.map_err(said)?.path());
        }
        paths.sort();
        // A pipe or a device is not a library, and opening one could block indefinitely.
        for path in paths
            .into_iter()
            .filter(|path| is_wanted(&file_name(path)) && path.is_file() && is_believed(path))
        {
            all.take(&folder, &file_name(&path), || File::open(&path), path.display().to_string())?;
        }
    }
    Ok(all.libraries)
}

fn archive(reader: impl Read, source: &Path, work: &Path) -> Result<Vec<Copied>, String> {
    let said = |error: io::Error| format!("{}: {error}", source.display());
    let refused = |path: &Path, why: &str| {
        Err(format!(
            "{}: the entry {:?} {why}; nothing was installed",
            source.display(),
            path.to_string_lossy()
        ))
    };
    let mut all = Copies::new(work);
    // A compressed archive may unpack to far more bytes than its own size.
    let mut archive = tar::Archive::new(reader.take(MAX_BYTES));
    // The name of the next entry, if a preceding entry defines it.
    let mut long: Option<PathBuf> = None;
    // Raw entries: the description before an entry has the length in the archive, and would be read entirely.
    for (index, entry) in archive.entries().map_err(said)?.raw(true).enumerate() {
        let mut entry = entry.map_err(said)?;
        let kind = entry.header().entry_type();
        let own = entry.path().map_err(said)?.into_owned();
        if index >= MAX_ENTRIES {
            return refused(&own, &format!("is one more than {MAX_ENTRIES}"));
        }
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            if entry.size() > MAX_DESCRIPTION {
                return refused(&own, &format!("has a description of more than {MAX_DESCRIPTION} bytes"));
            }
            let found = if kind.is_gnu_longname() { gnu_name(&mut entry) } else { pax_name(&mut entry) };
            long = found.map_err(said)?.or(long);
            if long.as_ref().is_some_and(|name| name.as_os_str().len() > MAX_NAME) {
                return refused(&own, &format!("has a name of more than {MAX_NAME} bytes"));
            }
            continue;
        }
        // Descriptions of links, and global ones of all entries, are ignored.
        if kind.is_gnu_longlink() || kind.is_pax_global_extensions() {
            continue;
        }
        let path = long.take().unwrap_or(own);
        if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return refused(&path, "leads out of the archive");
        }
        let name = file_name(&path);
        if kind.is_dir() || !is_wanted(&name) {
            continue;
        }
        if !kind.is_file() {
            return refused(&path, "is a link or a device where a file is expected");
        }
        let from = format!("{} in {}", path.display(), source.display());
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        all.take(&folder, &name, || Ok(&mut entry), from)?;
    }
    // The checksum at the end of a compressed archive shows whether it was damaged.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(said)?;
    Ok(all.libraries)
}

/// The name in a GNU tar entry, for the entry after it.
fn gnu_name(entry: &mut impl Read) -> io::Result<Option<PathBuf>> {
    let mut bytes = Vec::new();
    entry.take(MAX_DESCRIPTION).read_to_end(&mut bytes)?;
    bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    Ok(Some(PathBuf::from(OsStr::from_bytes(&bytes))))
}

/// The name in a POSIX pax entry, for the entry after it.
fn pax_name<R: Read>(entry: &mut tar::Entry<'_, R>) -> io::Result<Option<PathBuf>> {
    let mut name = None;
    for extension in entry.pax_extensions()?.into_iter().flatten() {
        let extension = extension?;
        match extension.key_bytes() {
            b"path" => name = Some(PathBuf::from(OsStr::from_bytes(extension.value_bytes()))),
            // It would override the entry's own size.
            b"size" => {
                let what = "an entry of 8 GiB or more, or with two sizes; pack only the libraries";
                return Err(io::Error::new(io::ErrorKind::Unsupported, what));
            }
            _ => {}
        }
    }
    Ok(name)
}

/// The copied files, in one folder for each folder of the source.
struct Copies<'a> {
    work: &'a Path,
    folders: BTreeMap<PathBuf, PathBuf>,
    libraries: Vec<Copied>,
}

impl Copies<'_> {
    fn new(work: &Path) -> Copies<'_> {
        Copies { work, folders: BTreeMap::new(), libraries: Vec::new() }
    }

    fn take<R: Read>(
        &mut self,
        folder: &Path,
        name: &str,
        open: impl FnOnce() -> io::Result<R>,
        from: String,
    ) -> Result<(), String> {
        let count = self.folders.len();
        let into =
            self.folders.entry(folder.to_path_buf()).or_insert_with(|| self.work.join(count.to_string()));
        let to = into.join(name);
        let copy = || {
            std::fs::create_dir_all(&*into)?;
            // Two entries of one name are an error: there is no rule to choose between them.
            let mut out = OpenOptions::new().write(true).create_new(true).open(&to)?;
            let mut from = open()?;
            let mut head = Vec::new();
            from.by_ref().take(HEAD).read_to_end(&mut head)?;
            io::Write::write_all(&mut out, &head)?;
            // A file without the library magic is refused by its head: the rest may have any length.
            if !is_library(name) || head.starts_with(MAGIC) {
                let copied = io::copy(&mut from.take(MAX_LIBRARY), &mut out)?;
                if copied == MAX_LIBRARY {
                    return Err(io::Error::other(format!("is larger than {} GiB", MAX_LIBRARY >> 30)));
                }
            }
            out.sync_all()
        };
        copy().map_err(|error| {
            use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
            // Errors of the destination, not of the source file.
            match error.kind() {
                StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem => {
                    format!("{from} cannot be copied to {}: {error}", self.work.display())
                }
                _ => format!("{from}: {error}"),
            }
        })?;
        if is_library(name) {
            self.libraries.push(Copied { library: to, from });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar_of(entries: &[(&str, tar::EntryType)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind) in entries {
            let mut header = tar::Header::new_ustar();
            // Written raw: the builder's own check is not under test here.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(if kind.is_file() { 3 } else { 0 });
            header.set_cksum();
            builder.append(&header, &b"abc"[..if kind.is_file() { 3 } else { 0 }]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn collected(bytes: &[u8]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let (file, work) = (folder.path().join("x.tar"), folder.path().join("work"));
        std::fs::write(&file, bytes).unwrap();
        let outside = || std::fs::read_dir(folder.path()).unwrap().count();
        let found = collect(&file, &work)?;
        assert!(outside() <= 2, "something was written outside");
        Ok(found.iter().map(|c| c.library.strip_prefix(&work).unwrap().display().to_string()).collect())
    }

    #[test]
    fn what_does_not_begin_as_a_library_is_not_copied_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (file, work) = (folder.path().join("libx.so"), folder.path().join("work"));
        File::create(&file).unwrap().set_len(20 << 30).unwrap();
        let copied = collect(&file, &work).unwrap();
        assert_eq!(copied[0].library.metadata().unwrap().len(), HEAD);
        let text = [MAGIC, &[7; 10_000][..]].concat();
        std::fs::write(&file, &text).unwrap();
        let copied = collect(&file, &folder.path().join("again")).unwrap();
        assert_eq!(std::fs::read(&copied[0].library).unwrap(), text);
    }

    #[test]
    fn an_archive_gives_its_libraries_and_never_reaches_out() {
        use tar::EntryType as Kind;
        let sound = [
            ("x/", Kind::Directory),
            ("x/liba.so", Kind::Regular),
            ("x/liba.so.sha256", Kind::Regular),
            ("x/README", Kind::Regular),
            ("x/link", Kind::Symlink),
            ("y/liba.so", Kind::Regular),
        ];
        assert_eq!(collected(&tar_of(&sound)).unwrap(), ["0/liba.so", "1/liba.so"]);
        for (path, kind, part) in [
            ("../liba.so", Kind::Regular, "leads out"),
            ("x/../../liba.so", Kind::Regular, "leads out"),
            ("/tmp/liba.so", Kind::Regular, "leads out"),
            ("../README", Kind::Regular, "leads out"),
            ("x/liba.so", Kind::Symlink, "link"),
            ("x/liba.so", Kind::Link, "link"),
            ("x/liba.so", Kind::Fifo, "device"),
        ] {
            let error = collected(&tar_of(&[("x/libb.so", Kind::Regular), (path, kind)])).unwrap_err();
            assert!(error.contains(part) && error.contains("nothing was installed"), "{path}: {error}");
        }
        let twice = collected(&tar_of(&[("x/liba.so", Kind::Regular), ("x/liba.so", Kind::Regular)]));
        assert!(twice.unwrap_err().contains("exists"));
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut packer, bytes).unwrap();
        packer.finish().unwrap()
    }

    /// An archive with one library of a long name, which a preceding entry of this kind defines.
    fn described(kind: tar::EntryType, description: &[u8]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, bytes) in
            [("x", kind, description), ("short.so", tar::EntryType::Regular, b"abc".as_slice())]
        {
            let mut header = tar::Header::new_gnu();
            header.set_path(path).unwrap();
            header.set_entry_type(kind);
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            builder.append(&header, bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn long_names_are_read_up_to_a_bound() {
        use tar::EntryType::{GNULongName, XHeader};
        let long = "d/".repeat(60) + "liblong.so";
        let pax = |key: &str, value: &str| {
            let rest = key.len() + value.len() + 3;
            let length = (1..).find(|all: &usize| *all == rest + all.to_string().len()).unwrap();
            format!("{length} {key}={value}\n")
        };
        let gnu = |name: &str| described(GNULongName, format!("{name}\0").as_bytes());
        assert_eq!(collected(&gnu(&long)).unwrap(), ["0/liblong.so"]);
        assert_eq!(collected(&described(XHeader, pax("path", &long).as_bytes())).unwrap(), ["0/liblong.so"]);
        let error = collected(&gnu("../libx.so")).unwrap_err();
        assert!(error.contains("leads out"), "{error}");
        let error = collected(&gnu(&"y".repeat(5000))).unwrap_err();
        assert!(error.contains("name of more than 4096 bytes"), "{error}");
        for (kind, size) in [(GNULongName, 300_000), (XHeader, 300_000)] {
            let error = collected(&described(kind, &vec![b'y'; size])).unwrap_err();
            assert!(error.contains("more than 65536 bytes"), "{error}");
        }
        let error = collected(&described(XHeader, pax("size", "5").as_bytes())).unwrap_err();
        assert!(error.contains("two sizes"), "{error}");
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        let whole = tar_of(&[("x/liba.so", tar::EntryType::Regular)]);
        assert!(collected(&whole[..520]).is_err());
        assert!(collected(&[0x1f, 0x8b, 8, 0, 1, 2, 3]).is_err());
        // An archive that is complete except for the checksum at its end.
        let mut packed = packed(&whole);
        assert_eq!(collected(&packed).unwrap(), ["0/liba.so"]);
        let sum = packed.len() - 8;
        packed[sum] ^= 1;
        assert!(collected(&packed).is_err());
    }
}
