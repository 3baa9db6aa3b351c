//! Descriptors of cuDNN for convolutions of one kind, and the plan of its heuristic.

use super::library::Library;
use super::problem::{Element, Form, Key, Kind};
use crate::driver::Failure;
use cudarc::cudnn::sys::{
    cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type,
    cudnnBackendBehaviorNote_t as Behavior, cudnnBackendDescriptor_t,
    cudnnBackendDescriptorType_t as DescriptorType, cudnnBackendHeurMode_t,
    cudnnBackendNumericalNote_t as Note, cudnnConvolutionMode_t, cudnnDataType_t, cudnnHandle_t,
};
use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// The maximum number of engine configurations that are examined per heuristic mode: for f32 the engines without rounding
/// come late.
const LOOKED_AT: usize = 64;
/// The maximum number of notes of an engine that are read.
const NOTES: usize = 32;
/// Identifiers of input, kernel and result in a plan.
const NAMES: [i64; 3] = [1, 2, 3];

/// A descriptor, destroyed on drop.
struct Descriptor {
    library: &'static Library,
    at: cudnnBackendDescriptor_t,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // A failed destruction has no caller to report to: it leaks a few hundred bytes of host memory.
        // SAFETY: it was created by its function, and is not referenced after this: descriptors that refer to it are
        // dropped before it.
        let _ = unsafe { self.library.cudnnBackendDestroyDescriptor(self.at) };
    }
}

impl Descriptor {
    fn new(library: &'static Library, kind: DescriptorType) -> Result<Descriptor, Failure> {
        let mut at = null_mut();
        // SAFETY: the out-pointer is valid.
        unsafe { library.cudnnBackendCreateDescriptor(kind as u32, &mut at)? };
        Ok(Descriptor { library, at })
    }

    /// Sets an attribute to values of the named type.
    fn set<T>(&self, which: Name, kind: Type, values: &[T]) -> Result<(), Failure> {
        // SAFETY: the descriptor lives, and the count is that of the values; the library compares type and count with the
        // attribute's.
        unsafe {
            let count = values.len() as i64;
            self.library.cudnnBackendSetAttribute(
                self.at,
                which as u32,
                kind as u32,
                count,
                values.as_ptr().cast(),
            )
        }
    }

    /// Sets an attribute to other descriptors.
    fn refer(&self, which: Name, to: &[&Descriptor]) -> Result<(), Failure> {
        let to: Vec<cudnnBackendDescriptor_t> = to.iter().map(|descriptor| descriptor.at).collect();
        self.set(which, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &to)
    }

    /// Writes an attribute's values to `values`, and returns their number.
    fn get<T>(&self, which: Name, kind: Type, values: &mut [T]) -> Result<usize, Failure> {
        let mut count = 0;
        // SAFETY: the descriptor lives, and `values` has capacity for the requested count.
        unsafe {
            let (wanted, to) = (values.len() as i64, values.as_mut_ptr().cast::<c_void>());
            self.library.cudnnBackendGetAttribute(
                self.at,
                which as u32,
                kind as u32,
                wanted,
                &mut count,
                to,
            )?;
        }
        Ok(usize::try_from(count).unwrap_or(0).min(values.len()))
    }

    fn finalize(self) -> Result<Descriptor, Failure> {
        // SAFETY: the descriptor lives.
        unsafe { self.library.cudnnBackendFinalize(self.at)? };
        Ok(self)
    }
}

fn dtype(element: Element) -> cudnnDataType_t {
    match element {
        Element::F16 => cudnnDataType_t::CUDNN_DATA_HALF,
        Element::Bf16 => cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        Element::F32 => cudnnDataType_t::CUDNN_DATA_FLOAT,
    }
}

/// The used spatial dimensions of a list of three.
fn spatial<'a>(key: &Key, list: &'a [i64; 3]) -> &'a [i64] {
    &list[3 - key.spatial..]
}

fn tensor(library: &'static Library, key: &Key, i: usize) -> Result<Descriptor, Failure> {
    let Form { sizes, strides, alignment } = &key.forms[i];
    let own = |list: &[i64; 5]| [&list[..2], &list[5 - key.spatial..]].concat();
    let made = Descriptor::new(library, DescriptorType::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    made.set(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, Type::CUDNN_TYPE_INT64, &NAMES[i..=i])?;
    made.set(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[dtype(key.element)])?;
    made.set(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Type::CUDNN_TYPE_INT64, &[*alignment])?;
    made.set(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, Type::CUDNN_TYPE_INT64, &own(sizes))?;
    made.set(Name::CUDNN_ATTR_TENSOR_STRIDES, Type::CUDNN_TYPE_INT64, &own(strides))?;
    made.finalize()
}

/// The convolution descriptor. Sums are accumulated in f32.
fn moves(library: &'static Library, key: &Key) -> Result<Descriptor, Failure> {
    let made = Descriptor::new(library, DescriptorType::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
    let sums = [cudnnDataType_t::CUDNN_DATA_FLOAT];
    made.set(Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &sums)?;
    let mode = [cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION];
    made.set(Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Type::CUDNN_TYPE_CONVOLUTION_MODE, &mode)?;
    made.set(Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Type::CUDNN_TYPE_INT64, &[key.spatial as i64])?;
    for (which, list) in [
        (Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, &key.moves.dilation),
        (Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &key.moves.stride),
        (Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &key.moves.padding),
        (Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &key.moves.padding),
    ] {
        made.set(which, Type::CUDNN_TYPE_INT64, spatial(key, list))?;
    }
    made.finalize()
}

/// The descriptor type of the operation, and its attribute names of factors, tensors and convolution descriptor.
fn operation(kind: Kind) -> (DescriptorType, [Name; 2], [Name; 3], Name) {
    use Name::*;
    match kind {
        Kind::Forward => (
            DescriptorType::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            [CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA],
            [
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            ],
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        ),
        Kind::Data => (
            DescriptorType::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            [CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA],
            [
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            ],
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        ),
        Kind::Filter => (
            DescriptorType::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            [
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            ],
            [
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            ],
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        ),
    }
}

/// Whether an engine is accurate and deterministic, by its notes.
fn is_exact(notes: &[u32], key: &Key) -> bool {
    let rounds = key.element == Element::F32 && key.rounds;
    notes.iter().all(|&note| match note {
        _ if note == Note::CUDNN_NUMERICAL_NOTE_TENSOR_CORE as u32 => key.element != Element::F32 || rounds,
        _ if note == Note::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS as u32 => rounds,
        // `CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP`. The other notes are accumulation in a narrower type, FFT and Winograd
        // transforms, which lose digits, and non-determinism; later notes are unknown.
        _ => note == 9,
    })
}

/// The plan of convolutions of one kind.
pub struct Plan {
    plan: Descriptor,
    /// Bytes of workspace that each launch needs.
    pub workspace: usize,
    /// The descriptors that the plan refers to, the operation first; dropped after the plan.
    _made_of: Vec<Descriptor>,
}

// SAFETY: descriptors may be used from any thread, one at a time: a plan is protected by its device's lock.
unsafe impl Send for Plan {}

/// Whether a library reports that a problem is unsupported: its codes for unsupported problems and refused parameters.
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.code, 2000..=3999)
}

impl Plan {
    /// A plan with at most this many bytes of workspace; `None` if the library has no accurate engine for convolutions of this
    /// kind.
    pub fn new(
        library: &'static Library,
        handle: cudnnHandle_t,
        key: &Key,
        most: usize,
    ) -> Result<Option<Plan>, Failure> {
        match Plan::made(library, handle, key, most) {
            Err(failure) if is_refusal(&failure) => Ok(None),
            other => other,
        }
    }

    fn made(
        library: &'static Library,
        handle: cudnnHandle_t,
        key: &Key,
        most: usize,
    ) -> Result<Option<Plan>, Failure> {
        let (kind, factors, tensors, how) = operation(key.kind);
        let moves = moves(library, key)?;
        let images = [tensor(library, key, 0)?, tensor(library, key, 1)?, tensor(library, key, 2)?];
        let operation = Descriptor::new(library, kind)?;
        for (which, factor) in factors.into_iter().zip([1.0, f32::from(u8::from(key.adds))]) {
            operation.set(which, Type::CUDNN_TYPE_FLOAT, &[factor])?;
        }
        operation.refer(how, &[&moves])?;
        for (which, image) in tensors.into_iter().zip(&images) {
            operation.refer(which, &[image])?;
        }
        let operation = operation.finalize()?;
        let graph = Descriptor::new(library, DescriptorType::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
        graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Type::CUDNN_TYPE_HANDLE, &[handle])?;
        graph.refer(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, &[&operation])?;
        let graph = graph.finalize()?;
        use cudnnBackendHeurMode_t::{CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
        for mode in [CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK] {
            let heuristic = Descriptor::new(library, DescriptorType::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
            heuristic.refer(Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &[&graph])?;
            heuristic.set(Name::CUDNN_ATTR_ENGINEHEUR_MODE, Type::CUDNN_TYPE_HEUR_MODE, &[mode])?;
            let heuristic = match heuristic.finalize() {
                Err(failure) if is_refusal(&failure) => continue,
                other => other?,
            };
            let found = first(library, handle, key, most, &heuristic)?;
            if let Some((plan, workspace, configuration)) = found {
                let [input, weight, result] = images;
                let made_of = vec![configuration, heuristic, graph, operation, moves, input, weight, result];
                return Ok(Some(Plan { plan, workspace, _made_of: made_of }));
            }
        }
        Ok(None)
    }

    /// Submits a convolution of this kind to the handle's stream, with the addresses of input, kernel, result, and
    /// workspace.
    pub fn launch(&self, handle: cudnnHandle_t, at: [u64; 3], workspace: u64) -> Result<(), Failure> {
        let library = self.plan.library;
        let pointer = |at: u64| with_exposed_provenance_mut::<c_void>(at as usize);
        let pack = Descriptor::new(library, DescriptorType::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Type::CUDNN_TYPE_INT64, &NAMES)?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Type::CUDNN_TYPE_VOID_PTR, &at.map(pointer))?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, Type::CUDNN_TYPE_VOID_PTR, &[pointer(workspace)])?;
        let pack = pack.finalize()?;
        // SAFETY: handle, plan and pack are of one library and this kind of convolution; the operands' memory is that of the
        // call's tensors, which lives until the stream is done, and so does the workspace, as the caller and the host uphold.
        unsafe { library.cudnnBackendExecute(handle, self.plan.at, pack.at) }
    }
}

/// The first accurate configuration of a heuristic with a plan, best first: the plan, the bytes of its workspace, and the
/// configuration.
fn first(
    library: &'static Library,
    handle: cudnnHandle_t,
    key: &Key,
    most: usize,
    heuristic: &Descriptor,
) -> Result<Option<(Descriptor, usize, Descriptor)>, Failure> {
    let kind = DescriptorType::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    let mut made = Vec::new();
    for _ in 0..LOOKED_AT {
        made.push(Descriptor::new(library, kind)?);
    }
    let mut at: Vec<cudnnBackendDescriptor_t> = made.iter().map(|descriptor| descriptor.at).collect();
    let descriptors = Type::CUDNN_TYPE_BACKEND_DESCRIPTOR;
    let count = heuristic.get(Name::CUDNN_ATTR_ENGINEHEUR_RESULTS, descriptors, &mut at)?;
    made.truncate(count);
    for configuration in made {
        let engine = Descriptor::new(library, DescriptorType::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?;
        configuration.get(Name::CUDNN_ATTR_ENGINECFG_ENGINE, descriptors, &mut [engine.at])?;
        let (mut of_numbers, mut of_behavior) = ([0u32; NOTES], [0u32; NOTES]);
        let (which, kind) = (Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, Type::CUDNN_TYPE_NUMERICAL_NOTE);
        let numbers = engine.get(which, kind, &mut of_numbers)?;
        let (which, kind) = (Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, Type::CUDNN_TYPE_BEHAVIOR_NOTE);
        let behavior = engine.get(which, kind, &mut of_behavior)?;
        // Run-time compilation takes a few hundred milliseconds, and needs a compiler that may be missing.
        let compiles = Behavior::CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION as u32;
        if !is_exact(&of_numbers[..numbers], key) || of_behavior[..behavior].contains(&compiles) {
            continue;
        }
        let plan = Descriptor::new(library, DescriptorType::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        plan.set(Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Type::CUDNN_TYPE_HANDLE, &[handle])?;
        plan.refer(Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &[&configuration])?;
        let plan = match plan.finalize() {
            Err(failure) if is_refusal(&failure) => continue,
            other => other?,
        };
        let mut bytes = [0i64];
        plan.get(Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, Type::CUDNN_TYPE_INT64, &mut bytes)?;
        match usize::try_from(bytes[0]) {
            Ok(workspace) if workspace <= most => return Ok(Some((plan, workspace, configuration))),
            _ => {}
        }
    }
    Ok(None)
}
