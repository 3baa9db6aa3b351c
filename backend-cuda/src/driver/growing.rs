//! Virtual memory management: reserved address ranges, to which memory is mapped piece by piece.

use super::context::{Attribute, Context};
use super::failed;
use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType, CUmemLocation, CUmemLocationType,
};
use keyway_sdk::Error;

/// `CU_MEM_ALLOC_GRANULARITY_MINIMUM`
const MINIMUM: u32 = 0;

impl Context {
    /// The allocation properties of this device's memory.
    fn own_memory(&self) -> CUmemAllocationProp {
        CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: self.location(),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    fn location(&self) -> CUmemLocation {
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: self.device() }
    }

    /// Reserves an address range of at least `bytes` bytes, to which memory is mapped in multiples of `step`; returns its
    /// start and its size.
    pub fn reserve(&self, bytes: u64, step: u64) -> Result<(u64, u64), Error> {
        if self.attribute(Attribute::MapsMemory)? == 0 {
            return Err(failed("this device maps no memory to reserved addresses".into()));
        }
        let (own, mut grain, mut at) = (self.own_memory(), 0, 0);
        // SAFETY: both out-pointers are valid, and the structure is the driver's.
        self.call(|l| unsafe { l.cuMemGetAllocationGranularity(&mut grain, &own, MINIMUM) })?;
        if grain == 0 || !step.is_multiple_of(grain as u64) {
            return Err(failed(format!(
                "this device maps memory in multiples of {grain} bytes, and not of {step}"
            )));
        }
        let bytes = bytes.next_multiple_of(step);
        // SAFETY: the out-pointer is valid.
        self.call(|l| unsafe { l.cuMemAddressReserve(&mut at, bytes as usize, 0, 0, 0) })?;
        Ok((at, bytes))
    }

    /// Releases reserved addresses without mapped memory.
    pub fn unreserve(&self, at: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: the driver reports a range that is not reserved as an error.
        self.call(|l| unsafe { l.cuMemAddressFree(at, bytes as usize) })
    }

    /// Maps memory to a reserved range, which any stream may use immediately.
    pub fn map(&self, at: u64, bytes: u64) -> Result<(), Error> {
        let (own, size) = (self.own_memory(), bytes as usize);
        let access = CUmemAccessDesc {
            location: self.location(),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        let mut memory = 0;
        // SAFETY: the out-pointer is valid, and the structure is the driver's.
        self.call(|l| unsafe { l.cuMemCreate(&mut memory, size, &own, 0) })?;
        // SAFETY: the memory was created above; the driver reports a range that is not reserved as an error.
        let mapped = self.call(|l| unsafe { l.cuMemMap(at, size, 0, memory, 0) });
        // Mapped memory remains allocated after its release, and unmapped memory is freed.
        // SAFETY: it was created above, and is released once.
        let released = self.call(|l| unsafe { l.cuMemRelease(memory) });
        mapped?;
        // SAFETY: the memory was mapped above, and the structure is the driver's.
        let open = released.and_then(|()| self.call(|l| unsafe { l.cuMemSetAccess(at, size, &access, 1) }));
        open.inspect_err(|_| {
            // The first failure is returned.
            // SAFETY: the memory was mapped above, and has no other user.
            let _ = self.call(|l| unsafe { l.cuMemUnmap(at, size) });
        })
    }

    /// Unmaps memory, after all work of the device.
    pub fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
        // Unlike for freed memory, the driver does not synchronise here.
        self.synchronize()?;
        // SAFETY: the driver reports unmapped memory as an error.
        self.call(|l| unsafe { l.cuMemUnmap(at, bytes as usize) })
    }
}
