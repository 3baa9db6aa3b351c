//! A plugin of this SDK under an older host: its tables are shorter than the SDK's, and the memory after them is foreign.

mod abi;

/// A process has one host, so this is one test.
#[test]
fn what_an_older_host_lacks_is_absent_and_its_memory_is_left_alone() {
    abi::under_an_older_host();
}
