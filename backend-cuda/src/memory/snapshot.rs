//! The segments and blocks of the cached memory as JSON, in the documented format.

use super::cache::{Cache, UNOWNED};
use std::fmt::Write;

impl Cache {
    /// All segments and their blocks, sorted by address, and sums by size class.
    pub(super) fn snapshot(&self, allocator: &str) -> String {
        let mut out = format!("{{\"allocator\":\"{allocator}\",\"pools\":[");
        for (i, small) in [true, false].into_iter().enumerate() {
            let own = self.segments.iter().filter(|(_, segment)| segment.small == small);
            let (mut count, mut total, mut allocated) = (0, 0, 0);
            for (at, segment) in own {
                (count, total, allocated) =
                    (count + 1, total + segment.bytes, allocated + self.allocated(*at));
            }
            let comma = if i == 0 { "" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "{comma}{{\"segment_type\":\"{}\",\"segments\":{count},\"total_size\":{total},\
                 \"allocated_size\":{allocated}}}",
                class(small)
            );
        }
        out.push_str("],\"segments\":[");
        for (i, (at, segment)) in self.segments.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(
                out,
                "{comma}{{\"address\":{at},\"total_size\":{},\"allocated_size\":{},\"segment_type\":\"{}\",\
                 \"is_expandable\":{},\"blocks\":[",
                segment.bytes,
                self.allocated(*at),
                class(segment.small),
                self.is_range(*at)
            );
            for (i, (at, block)) in self.blocks.range(*at..*at + segment.bytes).enumerate() {
                let comma = if i == 0 { "" } else { "," };
                let state = if block.free { "free" } else { "allocated" };
                let _ = write!(
                    out,
                    "{comma}{{\"address\":{at},\"size\":{},\"requested_size\":{},\"state\":\"{state}\",\"owner\":\"{}\"}}",
                    block.bytes,
                    block.requested,
                    owner(block.stream)
                );
            }
            out.push_str("]}");
        }
        out.push_str("]}");
        out
    }

    /// Bytes of a segment's blocks that are in use.
    fn allocated(&self, segment: u64) -> u64 {
        let bytes = self.segments.get(&segment).map_or(0, |segment| segment.bytes);
        let used = self.blocks.range(segment..segment + bytes).filter(|(_, block)| !block.free);
        used.map(|(_, block)| block.bytes).sum()
    }
}

fn class(small: bool) -> &'static str {
    if small { "small" } else { "large" }
}

/// The owner of a block.
fn owner(user: usize) -> String {
    match user {
        0 => "default stream".to_string(),
        UNOWNED => "none".to_string(),
        graph if graph % 2 == 1 => format!("graph {}", graph >> 1),
        stream => format!("stream {stream:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::tests::Limited;
    use super::*;

    #[test]
    fn all_of_the_memory_is_told_of() {
        let (source, mut cache) = (Limited::new(1 << 30), Cache::default());
        assert_eq!(
            cache.snapshot("cache"),
            "{\"allocator\":\"cache\",\"pools\":[\
             {\"segment_type\":\"small\",\"segments\":0,\"total_size\":0,\"allocated_size\":0},\
             {\"segment_type\":\"large\",\"segments\":0,\"total_size\":0,\"allocated_size\":0}],\"segments\":[]}"
        );
        let (at, _) = cache.allocate(&source, 1000, 0x20).unwrap();
        let (gone, _) = cache.allocate(&source, 30 << 20, 3).unwrap();
        cache.free(gone).unwrap();
        let text = cache.snapshot("cache");
        for part in [
            "{\"segment_type\":\"small\",\"segments\":1,\"total_size\":2097152,\"allocated_size\":1024}"
                .to_string(),
            format!(
                "{{\"address\":{at},\"total_size\":2097152,\"allocated_size\":1024,\"segment_type\":\"small\","
            ),
            format!(
                "{{\"address\":{at},\"size\":1024,\"requested_size\":1000,\"state\":\"allocated\",\"owner\":\"stream 0x20\"}},"
            ),
            format!(
                "{{\"address\":{},\"size\":2096128,\"requested_size\":0,\"state\":\"free\",\"owner\":\"stream 0x20\"}}]}}",
                at + 1024
            ),
            format!(
                "{{\"address\":{gone},\"size\":31457280,\"requested_size\":0,\"state\":\"free\",\"owner\":\"graph 1\"}}]}}]}}"
            ),
        ] {
            assert!(text.contains(&part), "{part} is not in {text}");
        }
    }
}
