//! The optional interfaces of the device: peer access, and graphs.

use crate::device::{Remote, known};
use crate::queue::{self, Graph};
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::{Capture, Error, Peer, Report};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static ENABLED: Mutex<BTreeSet<(u32, u32)>> = Mutex::new(BTreeSet::new());

impl Peer for Remote {
    fn can_access(index: u32, peer: u32) -> Result<bool, Error> {
        known(index)?;
        known(peer)?;
        Ok(index != peer)
    }

    fn enable(index: u32, peer: u32) -> Result<(), Error> {
        known(index)?;
        known(peer)?;
        ENABLED.lock().unwrap_or_else(PoisonError::into_inner).insert((index, peer));
        Ok(())
    }

    fn disable(index: u32, peer: u32) -> Result<(), Error> {
        known(index)?;
        known(peer)?;
        ENABLED.lock().unwrap_or_else(PoisonError::into_inner).remove(&(index, peer));
        Ok(())
    }
}

impl Report for Remote {
    fn facts() -> Vec<(&'static str, String)> {
        vec![("link", "none is needed".to_string()), ("colour", "\u{1b}[31mred".to_string())]
    }
}

impl Capture for Remote {
    unsafe fn begin(index: u32, stream: Queue) -> Result<(), Error> {
        known(index)?;
        queue::begin_capture(index, stream as usize)
    }

    unsafe fn end(index: u32, stream: Queue) -> Result<Queue, Error> {
        known(index)?;
        Ok(Box::into_raw(Box::new(queue::end_capture(index, stream as usize)?)).cast())
    }

    unsafe fn launch(index: u32, graph: Queue, stream: Queue) -> Result<(), Error> {
        known(index)?;
        // SAFETY: the host passes a graph of `end` that is not destroyed.
        queue::launch(index, unsafe { &*graph.cast::<Graph>() }, stream as usize);
        Ok(())
    }

    unsafe fn destroy(_index: u32, graph: Queue) -> Result<(), Error> {
        // SAFETY: the host destroys each result of `end` once.
        drop(unsafe { Box::from_raw(graph.cast::<Graph>()) });
        Ok(())
    }
}
