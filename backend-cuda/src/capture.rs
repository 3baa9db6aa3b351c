//! Captured work: CUDA graphs.
//!
//! Memory that kernels allocate and free during a capture is from a pool exclusive to that graph, until the graph is
//! destroyed and its launches have finished. Memory that the host allocates meanwhile is owned by the host.

use crate::checks::{When, when};
use crate::device::Cuda;
use crate::driver::Executable;
use crate::gpu::gpu;
use crate::memory::Pool;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::author::{Capture, Error};
use std::sync::{Mutex, PoisonError};

/// A graph, ready to be launched.
struct Captured {
    executable: Executable,
    pool: Pool,
    /// An event at the end of the previous launch, if there was one; launches of one graph are sequential.
    launched: Mutex<Option<usize>>,
}

impl Captured {
    /// # Safety
    /// `graph` was returned by `Cuda::end` and not destroyed; the host upholds this.
    unsafe fn of<'a>(graph: Queue) -> &'a Captured {
        // SAFETY: as the caller guarantees.
        unsafe { &*graph.cast::<Captured>() }
    }
}

impl Capture for Cuda {
    unsafe fn begin(index: u32, stream: Queue) -> Result<(), Error> {
        let gpu = gpu(index)?;
        gpu.memory.begin_pool(stream)?;
        gpu.context.begin_capture(stream).inspect_err(|_| {
            let pool = gpu.memory.end_pool(stream);
            gpu.memory.drop_pool(pool);
        })
    }

    unsafe fn end(index: u32, stream: Queue) -> Result<Queue, Error> {
        let gpu = gpu(index)?;
        let ended = gpu.context.end_capture(stream);
        let pool = gpu.memory.end_pool(stream);
        match ended {
            Ok(executable) => {
                let captured = Captured { executable, pool, launched: Mutex::default() };
                Ok(Box::into_raw(Box::new(captured)).cast())
            }
            Err(error) => {
                // No captured work has run.
                gpu.memory.drop_pool(pool);
                Err(error)
            }
        }
    }

    unsafe fn launch(index: u32, graph: Queue, stream: Queue) -> Result<(), Error> {
        let gpu = gpu(index)?;
        // SAFETY: the host's graph.
        let captured = unsafe { Captured::of(graph) };
        // Raises failed checks since the last synchronisation.
        gpu.checks.raise()?;
        let mut launched = captured.launched.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match *launched {
            Some(event) => event,
            None => *launched.insert(gpu.context.new_event()?.expose_provenance()),
        };
        let event = std::ptr::with_exposed_provenance_mut(event);
        let result = gpu.context.launch_graph(&captured.executable, stream);
        // Recorded also after a failure: part of the work may have been submitted.
        let marked = gpu.context.record(event, stream);
        if marked.is_err() {
            // Without the event, nothing determines when the pool is free.
            gpu.context.synchronize_stream(stream)?;
        }
        result.and(marked)?;
        if when() == When::Now {
            gpu.context.synchronize_stream(stream)?;
            gpu.checks.raise()?;
        }
        Ok(())
    }

    unsafe fn destroy(index: u32, graph: Queue) -> Result<(), Error> {
        let gpu = gpu(index)?;
        // SAFETY: the host's graph, whose ownership it passes here.
        let captured = unsafe { Box::from_raw(graph.cast::<Captured>()) };
        let launched = captured.launched.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Other streams may use the pool from now on, and must not overlap running launches.
        let waited = match launched.map(std::ptr::with_exposed_provenance_mut) {
            None => Ok(()),
            Some(event) => {
                let waited = gpu.context.synchronize_event(event);
                waited.and(gpu.context.destroy_event(event))
            }
        };
        let destroyed = gpu.context.destroy_graph(captured.executable);
        if waited.is_ok() {
            gpu.memory.drop_pool(captured.pool);
        }
        waited.and(destroyed)
    }
}
