//! Detects the format of a file of an unexpected format by its first bytes.

use std::io::{Read, Seek, SeekFrom};

/// The maximum number of bytes examined.
const LOOKED_AT: u64 = 512;

/// A format that this program reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    Npz,
    Safetensors,
}

const NPY: &str = "an array of NumPy (`.npy`); load it with `io::npy::load`";
const ZIP: &str = "a zip archive, as `torch.save` and `numpy.savez` write; load one of NumPy with `io::npz::load`, and convert \
                   one of PyTorch in Python with `safetensors.torch.save_file`";
const SAFETENSORS: &str = "a safetensors file; load it with `io::safetensors::load`";
const PICKLE: &str = "a pickle, as `pickle.dump` and an old `torch.save` write, which is code and is not run; convert it in Python \
                      with `safetensors.torch.save_file`";
const PAGE: &str = "an HTML or XML page, as a server sends for a file that is not there or needs a login; check the \
                    address, and fetch it again";

/// Formats by the bytes that they begin with.
const MAGIC: [(&[u8], &str); 9] = [
    (
        b"version https://git-lfs",
        "a pointer of Git LFS instead of the file; run `git lfs pull` in the repository that it is from",
    ),
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file, as Keras writes; convert it in Python with `safetensors.numpy.save_file`",
    ),
    (b"GGUF", "a GGUF file, as llama.cpp reads; take the safetensors file that it was converted from"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive; unpack it first"),
    (b"BZh", "a bzip2 archive; unpack it first"),
    (b"\xfd7zXZ\0", "an xz archive; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"{", "JSON text, perhaps the index of a model in several files; load the files that it names"),
];

/// The format of a file that begins with these bytes, if it is not the expected one, and what to do; `None` for an unknown
/// format.
fn kind(start: &[u8], expected: Format) -> Option<&'static str> {
    let own = match start {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some((Format::Npy, NPY)),
        [b'P', b'K', 3, 4, ..] => Some((Format::Npz, ZIP)),
        // The length of a header, and the header.
        [_, _, _, _, 0, 0, 0, 0, b'{', ..] => Some((Format::Safetensors, SAFETENSORS)),
        _ => None,
    };
    if let Some((format, kind)) = own {
        return (format != expected).then_some(kind);
    }
    if let [0x80, 2..=5, ..] = start {
        return Some(PICKLE);
    }
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(kind);
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let begins =
        |with: &&str| text.get(..with.len()).is_some_and(|got| got.eq_ignore_ascii_case(with.as_bytes()));
    ["<!doctype html", "<html", "<head", "<?xml", "<!--"].iter().any(begins).then_some(PAGE)
}

/// Like [`kind`], for a file.
pub(super) fn kind_of(file: &mut (impl Read + Seek), expected: Format) -> Option<&'static str> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(LOOKED_AT).read_to_end(&mut start).ok()?;
    kind(&start, expected)
}

#[cfg(test)]
mod tests {
    use super::{Format, kind};

    #[test]
    fn files_are_told_by_their_first_bytes() {
        for (start, expected) in [
            (&b"version https://git-lfs.github.com/spec/v1\noid sha256:0"[..], "git lfs pull"),
            (b"\n <!DOCTYPE HTML><p>", "HTML"),
            (b"\xef\xbb\xbf<html lang=en>", "HTML"),
            (b"\x80\x02ccollections", "a pickle"),
            (b"\x80\x05\x95", "a pickle"),
            (b"PK\x03\x04\0", "zip archive"),
            (b"\x10\0\0\0\0\0\0\0{}", "io::safetensors::load"),
            (b"{\"weight_map\"", "JSON"),
        ] {
            assert!(kind(start, Format::Npy).is_some_and(|kind| kind.contains(expected)), "{start:?}");
        }
        assert!(kind(b"\x93NUMPY\x01", Format::Npz).is_some_and(|kind| kind.contains("npy::load")));
        assert_eq!(kind(b"\x93NUMPY\x01", Format::Npy), None);
        for start in [&b""[..], b"\x80", b"\x80\x09", b"text", b"<", b"\xff\xff\xff\xff\xff\xff\xff\xff{"] {
            assert_eq!(kind(start, Format::Npz), None);
        }
    }
}
