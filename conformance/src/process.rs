//! What the system says of a process.

/// Resident bytes of a process, in pages of 4 kB; 0 where the system does not say.
pub fn resident(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_written_to_is_seen() {
        const MORE: u64 = 64 << 20;
        let before = resident(std::process::id());
        let held = std::hint::black_box(vec![1u8; MORE as usize]);
        let grown = resident(std::process::id()).saturating_sub(before);
        assert!(before > 0 && grown > MORE / 2, "{before} bytes, then {grown} more for {}", held.len());
        assert_eq!(resident(u32::MAX), 0);
    }
}
