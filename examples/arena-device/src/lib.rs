//! A plugin with a device: `example.org/arena`, whose memory the host cannot read.
//!
//! It is the smallest complete device, a template for a real one: the host composes its 27 kernels into all ops needed to train
//! networks of linear layers, norms, attention and embeddings. The hardware is simulated by `arena`, a block of memory that
//! only this crate can reach. Its addresses are unmapped in this process, so that a host that reads one faults, as it would
//! with the address of a graphics card's memory.
//!
//! - `arena`: the memory and its allocator; in a real backend, the vendor's driver;
//! - `device`: the table of functions with which the host allocates and copies;
//! - `operand`: a tensor argument of a kernel, and the loops over operands;
//! - `kernels`: one function for each op.
//!
//! Decisions:
//! - work is done when a call returns. A device that queues work flags itself `ASYNCHRONOUS` and has streams and events;
//!   Keyway's `test-plugins/device` is one;
//! - every access takes the arena's lock and is checked, so that memory which was freed too early is an error instead of wrong
//! values. Kernels are clear rather than fast;
//! - the list of required ops is that of `keyway ops --device example.org/arena --missing-for train`.

mod arena;
mod device;
mod kernels;
mod operand;

keyway_sdk::plugin! {
    name: "example.org/arena-device",
    version: env!("CARGO_PKG_VERSION"),
    description: "A device with memory of its own",
    devices: ["example.org/arena"],
    layouts: ["strided"],
    setup: |contents| {
        contents.device(&device::API);
        Ok(())
    },
}
