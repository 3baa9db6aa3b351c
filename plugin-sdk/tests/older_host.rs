//! A plugin of this SDK under a host that is older: its tables are shorter than those that the SDK knows, and the memory
//! behind them is somebody else's.

mod abi;

/// The host is one of a process, so this is one test.
#[test]
fn what_an_older_host_lacks_is_absent_and_its_memory_is_left_alone() {
    abi::under_an_older_host();
}
