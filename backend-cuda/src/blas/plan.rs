//! Descriptors of cuBLASLt for products of one kind, and the algorithm of its heuristic.

use super::library::{Found, Library};
use super::problem::{Addend, Element, Form, Key, Problem};
use crate::driver::Failure;
use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtEpilogue_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
    cublasLtMatmulDescAttributes_t, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, cublasLtReductionScheme_t, cudaDataType_t,
};
use keyway_sdk::abi::device::Queue;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{from_ref, null_mut, with_exposed_provenance, with_exposed_provenance_mut};

/// `cublasOperation_t`: not transposed, and transposed.
const OPERATIONS: [i32; 2] = [0, 1];
/// `CUBLAS_STATUS_NOT_SUPPORTED`
const NOT_SUPPORTED: u32 = 15;

/// The types of elements, accumulators and factors. f32 is multiplied in f32, or in TF32 if it `rounds`; f32, f16 and bf16
/// are accumulated in f32.
fn types(element: Element, rounds: bool) -> (cudaDataType_t, cublasComputeType_t, cudaDataType_t) {
    use cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F};
    use cudaDataType_t::{CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F, CUDA_R_64F};
    match element {
        Element::F16 => (CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        Element::Bf16 => (CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        Element::F32 if rounds => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
        Element::F32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        Element::F64 => (CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F),
    }
}

/// Descriptors, destroyed on drop; those that are not created are null.
struct Descriptors {
    library: &'static Library,
    product: cublasLtMatmulDesc_t,
    /// Layouts of A, B, C and D.
    layouts: [cublasLtMatrixLayout_t; 4],
    preference: cublasLtMatmulPreference_t,
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // A failed destruction has no caller to report to: it leaks a few hundred bytes of host memory.
        // SAFETY: each was created by its function, and is not referenced after this: a submitted product has copied its
        // parameters.
        unsafe {
            if !self.product.is_null() {
                let _ = self.library.cublasLtMatmulDescDestroy(self.product);
            }
            for layout in self.layouts.iter().filter(|layout| !layout.is_null()) {
                let _ = self.library.cublasLtMatrixLayoutDestroy(*layout);
            }
            if !self.preference.is_null() {
                let _ = self.library.cublasLtMatmulPreferenceDestroy(self.preference);
            }
        }
    }
}

impl Descriptors {
    fn new(library: &'static Library, key: &Key) -> Result<Descriptors, Failure> {
        let mut made =
            Descriptors { library, product: null_mut(), layouts: [null_mut(); 4], preference: null_mut() };
        let (_, compute, scale) = types(key.element, key.rounds);
        // SAFETY: the out-pointer is valid, and the numbers are the interface's.
        unsafe { library.cublasLtMatmulDescCreate(&mut made.product, compute as u32, scale as u32)? };
        use cublasLtMatmulDescAttributes_t as Attribute;
        made.describe(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &OPERATIONS[usize::from(key.a.transposed)])?;
        made.describe(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &OPERATIONS[usize::from(key.b.transposed)])?;
        if key.addend == Addend::Bias {
            let epilogue = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS as u32;
            made.describe(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
        }
        let [batches, m, n, k] = key.sizes;
        for (i, (form, size)) in
            [(key.a, [m, k]), (key.b, [k, n]), (key.c, [m, n]), (key.d, [m, n])].into_iter().enumerate()
        {
            made.layouts[i] = made.layout(key.element, (form, size), batches)?;
        }
        Ok(made)
    }

    /// Sets an attribute of the type `T`.
    fn describe<T>(&self, which: cublasLtMatmulDescAttributes_t, value: &T) -> Result<(), Failure> {
        // SAFETY: the descriptor lives, and the size is that of the value; the library compares it with the attribute's.
        unsafe {
            let value = from_ref(value).cast();
            self.library.cublasLtMatmulDescSetAttribute(self.product, which as u32, value, size_of::<T>())
        }
    }

    fn layout(
        &self,
        element: Element,
        (form, [rows, columns]): (Form, [usize; 2]),
        batches: usize,
    ) -> Result<cublasLtMatrixLayout_t, Failure> {
        let (rows, columns) = if form.transposed { (columns, rows) } else { (rows, columns) };
        let mut made = null_mut();
        let dtype = types(element, false).0 as u32;
        // SAFETY: the out-pointer is valid.
        unsafe {
            let (rows, columns) = (rows as u64, columns as u64);
            self.library.cublasLtMatrixLayoutCreate(&mut made, dtype, rows, columns, form.leading)?;
        }
        if batches == 1 {
            return Ok(made);
        }
        let set = |which: cublasLtMatrixLayoutAttribute_t, value: *const c_void, bytes| {
            // SAFETY: as in `describe`.
            unsafe { self.library.cublasLtMatrixLayoutSetAttribute(made, which as u32, value, bytes) }
        };
        use cublasLtMatrixLayoutAttribute_t as Attribute;
        let count = batches as i32;
        let done =
            set(Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, from_ref(&count).cast(), 4).and_then(|()| {
                let stride = from_ref(&form.batch).cast();
                set(Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride, 8)
            });
        if done.is_err() {
            // SAFETY: it was created above, and nothing refers to it.
            let _ = unsafe { self.library.cublasLtMatrixLayoutDestroy(made) };
        }
        done.map(|()| made)
    }

    /// The best algorithm by the library's heuristic; `None` if it has none for this product.
    fn algorithm(
        &mut self,
        handle: cublasLtHandle_t,
        key: &Key,
        workspace: usize,
    ) -> Result<Option<Found>, Failure> {
        let library = self.library;
        // SAFETY: the out-pointer is valid.
        unsafe { library.cublasLtMatmulPreferenceCreate(&mut self.preference)? };
        use cublasLtMatmulPreferenceAttributes_t as Attribute;
        self.prefer(Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace)?;
        // Split-k partial sums are stored in the workspace in the compute type, and reduced in a separate step.
        let reductions = cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
        self.prefer(Attribute::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions)?;
        self.prefer(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &key.a.alignment)?;
        self.prefer(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &key.b.alignment)?;
        self.prefer(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &key.c.alignment)?;
        self.prefer(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &key.d.alignment)?;
        let [a, b, c, d] = self.layouts;
        let mut found = MaybeUninit::<Found>::zeroed();
        let mut count = 0;
        // SAFETY: the handle and the descriptors live, and the output has capacity for the one requested algorithm.
        let asked = unsafe {
            let (to, of) = (found.as_mut_ptr(), self.product);
            library.cublasLtMatmulAlgoGetHeuristic(handle, of, a, b, c, d, self.preference, 1, to, &mut count)
        };
        match asked {
            Err(failure) if failure.code == NOT_SUPPORTED => return Ok(None),
            other => other?,
        }
        // SAFETY: zeros are a valid value, which the library may have overwritten with another.
        let found = unsafe { found.assume_init() };
        Ok((count > 0 && found.state == 0).then_some(found))
    }

    fn prefer<T>(&self, which: cublasLtMatmulPreferenceAttributes_t, value: &T) -> Result<(), Failure> {
        // SAFETY: as in `describe`.
        unsafe {
            let value = from_ref(value).cast();
            self.library.cublasLtMatmulPreferenceSetAttribute(
                self.preference,
                which as u32,
                value,
                size_of::<T>(),
            )
        }
    }
}

/// The plan of products of one kind.
pub struct Plan {
    descriptors: Descriptors,
    algorithm: cublasLtMatmulAlgo_t,
    /// Bytes of workspace that each launch needs.
    pub workspace: usize,
}

// SAFETY: descriptors may be used from any thread, one at a time: a plan is protected by its device's lock.
unsafe impl Send for Plan {}

impl Plan {
    /// A plan with at most this many bytes of workspace; `None` if the library has no algorithm for products of this kind.
    pub fn new(
        library: &'static Library,
        handle: cublasLtHandle_t,
        key: &Key,
        most: usize,
    ) -> Result<Option<Plan>, Failure> {
        let mut descriptors = Descriptors::new(library, key)?;
        let found = descriptors.algorithm(handle, key, most)?;
        Ok(found.map(|found| Plan { descriptors, algorithm: found.algorithm, workspace: found.workspace }))
    }

    /// Submits a product of this kind to a stream, with its workspace.
    pub fn launch(
        &self,
        handle: cublasLtHandle_t,
        problem: &Problem,
        workspace: u64,
        stream: Queue,
    ) -> Result<(), Failure> {
        let own = &self.descriptors;
        if problem.key.addend == Addend::Bias {
            let which = cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            own.describe(which, &problem.bias)?;
        }
        let narrow = [problem.alpha, problem.beta].map(|bits| f32::from_bits(bits as u32));
        let wide = [problem.alpha, problem.beta].map(f64::from_bits);
        let [alpha, beta] = match problem.key.element {
            Element::F64 => [from_ref(&wide[0]).cast(), from_ref(&wide[1]).cast()],
            _ => [from_ref(&narrow[0]).cast::<c_void>(), from_ref(&narrow[1]).cast()],
        };
        let [a, b, c, d] = own.layouts;
        let read = |i: usize| with_exposed_provenance::<c_void>(problem.at[i] as usize);
        let out = with_exposed_provenance_mut(problem.at[3] as usize);
        let scratch = with_exposed_provenance_mut(workspace as usize);
        // SAFETY: handle, descriptors and algorithm are of one library and this kind of product; the factors have the compute
        // type; the operands' memory is that of the call's tensors, which lives until the stream is done, and so does the
        // workspace, as the caller and the host uphold.
        unsafe {
            own.library.cublasLtMatmul(
                handle,
                own.product,
                alpha,
                read(0),
                a,
                read(1),
                b,
                beta,
                read(2),
                c,
                out,
                d,
                &self.algorithm,
                scratch,
                self.workspace,
                stream.cast(),
            )
        }
    }
}
