//! The manifest: a plugin's description of itself, readable without running any of its code.
//!
//! Three kinds of record have sections of their own, which survive `strip -s` and `--gc-sections` because their names begin
//! with `.note`:
//! - [`SECTION`]: one [`encode`]d record whose text is the JSON object described by the host's
//!   `loader::manifest`;
//! - [`KERNEL_SECTION`]: one record for each `register_kernel!`, the text
//!   `op signature device layout dtype,dtype,...`;
//! - [`INTERPOSER_SECTION`]: one record for each `register_interposer!`, the text `name on` or `name off`.
//!
//! A record is [`MAGIC`], the length of the text as a little-endian `u32`, the text, and zero bytes up to
//! a multiple of 4.

/// The section of the manifest (ELF name; Mach-O has `__DATA,__keyway`).
pub const SECTION: &str = ".note.keyway";
/// The section of the kernel records (ELF name; Mach-O has `__DATA,__keyway_k`).
pub const KERNEL_SECTION: &str = ".note.keyway.k";
/// The section of the interposers' records (ELF name; Mach-O has `__DATA,__keyway_i`).
pub const INTERPOSER_SECTION: &str = ".note.keyway.i";
/// First bytes of a record. The last byte is the version of this encoding.
pub const MAGIC: [u8; 8] = *b"KEYWAY\0\x01";

/// The prefix of the names of the Keyway project's own plugins; other plugins must not use it.
pub const RESERVED_PREFIX: &str = "keyway-";

/// Whether a text is a valid plugin name: `domain/name`, or `keyway-NAME`, which is reserved for the Keyway project; of
/// ASCII letters, digits, `.`, `_`, `-` and `+`.
pub const fn is_name(text: &str) -> bool {
    let (bytes, reserved) = (text.as_bytes(), RESERVED_PREFIX.as_bytes());
    let (mut slashes, mut slash, mut is_reserved) = (0, 0, bytes.len() > reserved.len());
    let mut i = 0;
    while i < bytes.len() {
        is_reserved = is_reserved && (i >= reserved.len() || bytes[i] == reserved[i]);
        match bytes[i] {
            b'/' => (slashes, slash) = (slashes + 1, i),
            b'.' | b'_' | b'-' | b'+' => {}
            other if other.is_ascii_alphanumeric() => {}
            _ => return false,
        }
        i += 1;
    }
    match slashes {
        0 => is_reserved,
        1 => slash > 0 && slash + 1 < bytes.len() && !is_reserved,
        _ => false,
    }
}

/// The length of the record that [`encode`] returns for `parts`.
pub const fn encoded_len(parts: &[&str]) -> usize {
    let mut text = 0;
    let mut i = 0;
    while i < parts.len() {
        text += parts[i].len();
        i += 1;
    }
    MAGIC.len() + 4 + text.div_ceil(4) * 4
}

/// Joins `parts` into one record; `N` must be [`encoded_len`] of the same parts.
pub const fn encode<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut out = [0u8; N];
    let mut at = 0;
    while at < MAGIC.len() {
        out[at] = MAGIC[at];
        at += 1;
    }
    let mut text_len = 0u32;
    let mut i = 0;
    while i < parts.len() {
        text_len += parts[i].len() as u32;
        i += 1;
    }
    let length = text_len.to_le_bytes();
    let mut k = 0;
    while k < 4 {
        out[at] = length[k];
        at += 1;
        k += 1;
    }
    i = 0;
    while i < parts.len() {
        let bytes = parts[i].as_bytes();
        let mut j = 0;
        while j < bytes.len() {
            out[at] = bytes[j];
            at += 1;
            j += 1;
        }
        i += 1;
    }
    out
}

/// The CPU features that the code of this build may use, according to `cfg`: a JSON list.
pub const fn cpu_features() -> &'static str {
    if cfg!(all(target_arch = "x86_64", target_feature = "avx512f")) {
        r#"["avx512f","avx512bw","avx512cd","avx512dq","avx512vl","avx2","avx","fma","bmi1","bmi2","f16c","lzcnt","movbe","sse4.2","popcnt"]"#
    } else if cfg!(all(target_arch = "x86_64", target_feature = "avx2")) {
        r#"["avx2","avx","fma","bmi1","bmi2","f16c","lzcnt","movbe","sse4.2","popcnt"]"#
    } else if cfg!(all(target_arch = "x86_64", target_feature = "sse4.2")) {
        r#"["sse4.2","ssse3","popcnt"]"#
    } else {
        "[]"
    }
}

/// The name of the CPU level that this build was compiled for.
pub const fn variant() -> &'static str {
    if cfg!(all(target_arch = "x86_64", target_feature = "avx512f")) {
        "x86-64-v4"
    } else if cfg!(all(target_arch = "x86_64", target_feature = "avx2")) {
        "x86-64-v3"
    } else if cfg!(all(target_arch = "x86_64", target_feature = "sse4.2")) {
        "x86-64-v2"
    } else if cfg!(target_arch = "x86_64") {
        "x86-64"
    } else if cfg!(target_arch = "aarch64") {
        "aarch64"
    } else {
        "generic"
    }
}
