//! Attention without a score matrix, and its gradients.

use super::launch::{DIMS, Dims, launch, launch_sharing};
use super::nets::{Array, counted, unsupported};
use super::scratch::Scratch;
use super::space::in_order;
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Dim;
use keyway_sdk::author::{Call, Error, dtype_name};

family!("attention");

/// Operands of a call, with the indices of attention.cuh.
const OPERANDS: usize = 10;
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const MASK: usize = 3;
const OUT: usize = 4;
const LOGSUMEXP: usize = 5;
const GRAD: usize = 6;
const OF_QUERY: usize = 7;
const OF_KEY: usize = 8;
const OF_VALUE: usize = 9;

/// Threads per block.
const THREADS: usize = 128;
/// The maximum head dimension of each kernel, with its rows per block: of the forward pass and of gradients, computed in
/// f32 and in f64, as `Forward` and `Backward` in attention.cu. The first is not used for f16 and bf16.
const WIDTHS: [(usize, [[usize; 2]; 2]); 3] =
    [(64, [[64, 32], [32, 32]]), (128, [[64, 32], [32, 16]]), (256, [[32, 16], [16, 4]])];
/// The same for tensor cores: head dimensions, rows per block and threads, of the forward pass and of gradients.
const CORES_WIDTHS: [usize; 2] = [64, 128];
const CORES_ROWS: [usize; 2] = [64, 32];
const CORES_THREADS: [usize; 2] = [128, 64];
/// The kernels without a mask: head dimensions, with rows per block of the forward pass; the minimum chip, and rows per
/// block of gradients.
const PLAIN_WIDTHS: [(usize, usize); 2] = [(64, 128), (128, 64)];
const PLAIN_CHIP: u32 = 80;
const PLAIN_THREADS: usize = 128;
const PLAIN_GRADIENT_ROWS: usize = 64;
/// The forward pass by warpgroup products, for the one chip that has them: the head dimension, warpgroups of 64 rows per
/// block, keys per tile, and pipeline stages, as `GroupsShape` in attention_groups.cuh.
const GROUPS: [Groups; 2] = [
    Groups { width: 64, groups: 2, keys: 128, stages: 3 },
    Groups { width: 128, groups: 2, keys: 64, stages: 2 },
];
const GROUPS_CHIP: u32 = 90;
/// Bits of `pieces`, as `Pieces` in attention_cores.cuh.
const PIECES: [usize; 5] = [QUERY, KEY, VALUE, GRAD, OUT];
const FORWARD_PIECES: u32 = 0b0111;
const BACKWARD_PIECES: u32 = 0b1111;
/// Scalars of a `QueryStatistics` in attention.cuh.
const STATISTICS: usize = 3;
/// Maximum number of heads of one launch.
const HEADS: usize = 65535;

/// `GroupsShape` in attention_groups.cuh.
#[derive(Clone, Copy)]
struct Groups {
    width: usize,
    groups: usize,
    keys: usize,
    stages: usize,
}

impl Groups {
    fn rows(self) -> usize {
        64 * self.groups
    }

    fn threads(self) -> usize {
        128 * self.groups
    }

    /// Bytes of shared memory of a block: queries, and tiles of keys and values.
    fn shared(self) -> usize {
        2 * self.width * (self.rows() + 2 * self.stages * self.keys)
    }
}

/// `Matrix` in attention.cuh.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
struct Matrix {
    data: u64,
    row: i64,
    column: i64,
    step: i64,
}

/// `Attention` in attention.cuh.
#[repr(C)]
#[derive(Clone, Copy)]
struct AttentionArgument {
    operands: [Matrix; OPERANDS],
    statistics: u64,
    lead: Dims<OPERANDS>,
    scale: u64,
    queries: u32,
    keys: u32,
    width: u32,
    values: u32,
    repeats: u32,
    first_head: u32,
    causal: u32,
    mask_kind: u32,
    narrow_sums: u32,
    pieces: u32,
}
// SAFETY: `Attention` has these fields.
unsafe impl Argument for AttentionArgument {}

/// The parameters of the kernels.
struct Problem {
    argument: AttentionArgument,
    /// The number of key heads, over all outer dimensions.
    heads: usize,
    /// Bytes of the compute type.
    wide: usize,
    /// The kernel's maximum head dimension.
    most: usize,
    /// Whether tensor cores are used.
    by_cores: bool,
    /// Whether the kernels without a mask are used.
    is_plain: bool,
    /// The warpgroup kernel of the forward pass, if it is supported too.
    groups: Option<Groups>,
    /// Rows per block of the forward pass and of gradients.
    rows: [usize; 2],
}

/// The arguments of a call.
struct Given<'a> {
    operands: [Option<Array<'a>>; OPERANDS],
    mask_kind: u32,
    causal: bool,
    scale: Option<f64>,
    /// Whether the key may have fewer heads than the query.
    grouped: bool,
    /// Whether logsumexp has the operands' dtype.
    narrow_sums: bool,
}

impl<'a> Given<'a> {
    /// Query, key and value in arguments `first` to `first + 2`, followed by a mask.
    fn of(call: &Call<'a>, first: usize) -> Result<Given<'a>, Error> {
        let mut operands = [None; OPERANDS];
        for (at, operand) in operands[QUERY..=VALUE].iter_mut().enumerate() {
            *operand = Some(Array::argument(call, first + at)?);
        }
        operands[MASK] = Array::optional(call, first + 3)?;
        let mask_kind = match operands[MASK] {
            None => 0,
            Some(_) => mask_kind(dtype_name(call.tensor(first + 3)?.dtype()))?,
        };
        Ok(Given { operands, mask_kind, causal: false, scale: None, grouped: true, narrow_sums: false })
    }
}

/// `MaskKind` in attention.cuh.
fn mask_kind(dtype: &str) -> Result<u32, Error> {
    match ["bool", "f16", "bf16", "f32", "f64"].iter().position(|name| *name == dtype) {
        Some(at) => Ok(at as u32 + 1),
        None => Err(unsupported(format!("a mask of dtype {dtype}"))),
    }
}

/// The last two sizes of an operand, and those before them.
fn matrix<'a>(of: &Array<'a>) -> Result<(&'a [i64], [usize; 2]), Error> {
    match of.sizes {
        [lead @ .., rows, columns] => Ok((lead, [*rows as usize, *columns as usize])),
        _ => Err(unsupported("attention of a vector")),
    }
}

/// The matrix of operand `at`, and its strides along the outer dimensions; the last outer dimension is that of the key
/// heads.
fn placed(at: usize, of: &Array<'_>, outer: usize, shared: i64) -> (Matrix, Vec<i64>) {
    // A per-query value is a matrix with one column. A mask may have fewer dimensions.
    let inner = if at == LOGSUMEXP { 1 } else { 2 };
    let step = |back: usize| match of.sizes.len().checked_sub(back) {
        Some(d) if of.sizes[d] != 1 => of.strides[d],
        _ => 0,
    };
    let mut strides: Vec<i64> = (0..outer).map(|d| step(outer - d + inner)).collect();
    let column = if inner == 2 { step(1) } else { 0 };
    let mut matrix = Matrix { data: of.data, row: step(inner), column, step: 0 };
    if let (Some(last), false) = (strides.last_mut(), matches!(at, KEY | VALUE | OF_KEY | OF_VALUE)) {
        matrix.step = *last;
        *last *= shared;
    }
    (matrix, strides)
}

/// The number of query heads per key head: 1 if both have the same number of heads.
fn repeats(lead: &[i64], [key, value]: [&[i64]; 2], grouped: bool) -> Result<usize, Error> {
    let (Some(&heads), true) = (lead.last(), grouped) else { return Ok(1) };
    let [of_key, of_value] = [key, value].map(|lead| lead.last().copied().unwrap_or(1).max(1));
    match of_key == of_value && heads % of_key == 0 {
        true => Ok((heads / of_key).max(1) as usize),
        false => Err(unsupported("attention whose keys and values have different numbers of heads")),
    }
}

impl Problem {
    /// `None` if there are no results.
    fn new(
        (call, kernel): (&Call<'_>, Kernel),
        given: &Given<'_>,
        lead: &[i64],
    ) -> Result<Option<Problem>, Error> {
        let [Some(query), Some(key), Some(value)] = [QUERY, KEY, VALUE].map(|at| given.operands[at]) else {
            return Err(unsupported("attention of nothing"));
        };
        let (_, [queries, width]) = matrix(&query)?;
        let ((key_lead, [keys, _]), (value_lead, [_, values])) = (matrix(&key)?, matrix(&value)?);
        let widths = if matches!(kernel.dtype, "f16" | "bf16") { &WIDTHS[1..] } else { &WIDTHS[..] };
        let Some(&(most, rows)) = widths.iter().find(|(most, _)| width.max(values) <= *most) else {
            return Err(unsupported(format!("attention with heads of {}", width.max(values))));
        };
        let shared = repeats(lead, [key_lead, value_lead], given.grouped)?;
        // The head dimension with the number of key heads.
        let mut sizes = lead.to_vec();
        if let Some(last) = sizes.last_mut() {
            *last /= shared as i64;
        }
        let mut operands = [Matrix::default(); OPERANDS];
        let mut strides: [Vec<i64>; OPERANDS] = std::array::from_fn(|_| vec![0; lead.len()]);
        for (at, operand) in given.operands.iter().enumerate() {
            if let Some(operand) = operand {
                (operands[at], strides[at]) = placed(at, operand, lead.len(), shared as i64);
            }
        }
        let lists: [&[i64]; OPERANDS] = std::array::from_fn(|at| &strides[at][..]);
        let dims: Vec<Dim<OPERANDS>> = in_order(&sizes, lists);
        if dims.len() > DIMS {
            return Err(unsupported(format!(
                "attention over more than {DIMS} dimensions that cannot be joined"
            )));
        }
        let heads = sizes.iter().fold(1usize, |n, &size| n.saturating_mul(size.max(0) as usize));
        counted(heads.saturating_mul(shared))?;
        if shared > HEADS {
            return Err(unsupported(format!("a key that more than {HEADS} heads share")));
        }
        // Scores of empty heads are 0 for any scale, and their default scale is infinite.
        let scale = if width == 0 { 1.0 } else { given.scale.unwrap_or(1.0 / (width as f64).sqrt()) };
        let is_double = kernel.dtype == "f64";
        let argument = AttentionArgument {
            operands,
            statistics: 0,
            lead: Dims::new(&dims),
            scale: if is_double { scale.to_bits() } else { u64::from((scale as f32).to_bits()) },
            queries: counted(queries)?,
            keys: counted(keys)?,
            width: width as u32,
            values: values as u32,
            repeats: shared as u32,
            first_head: 0,
            causal: u32::from(given.causal),
            mask_kind: given.mask_kind,
            narrow_sums: u32::from(given.narrow_sums),
            pieces: 0,
        };
        let wide = if is_double { 8 } else { 4 };
        let rows = rows[usize::from(is_double)];
        let mut problem =
            Problem { argument, heads, wide, most, by_cores: false, is_plain: false, groups: None, rows };
        let narrow = CORES_WIDTHS.iter().find(|most| width.max(values) <= **most);
        let gpu = device_of(call)?;
        if let (Some(&most), true) = (narrow, gpu.multiplies(kernel.dtype)) {
            (problem.most, problem.by_cores, problem.rows) = (most, true, CORES_ROWS);
            for (bit, at) in PIECES.into_iter().enumerate() {
                problem.argument.pieces |= u32::from(in_pieces(&operands[at], &strides[at])) << bit;
            }
            let wanted = if given.operands[GRAD].is_some() { BACKWARD_PIECES } else { FORWARD_PIECES };
            let lies_so = problem.argument.pieces & wanted == wanted && width == values;
            // The maximum is computed before the scale is applied, so the scale must be positive.
            let can_be_plain = lies_so && given.mask_kind == 0 && scale > 0.0 && gpu.chip >= PLAIN_CHIP;
            if let Some((_, rows)) = PLAIN_WIDTHS.iter().find(|(own, _)| *own == width && can_be_plain) {
                let own = |groups: &&Groups| groups.width == width && gpu.chip == GROUPS_CHIP;
                (problem.is_plain, problem.groups) = (true, GROUPS.iter().find(own).copied());
                problem.rows = [problem.groups.map_or(*rows, Groups::rows), PLAIN_GRADIENT_ROWS];
            }
        }
        Ok((heads > 0).then_some(problem))
    }

    /// Launches a kernel for all heads: `blocks` blocks for each query head or key head.
    fn launch(
        &self,
        (call, kernel): (&Call<'_>, Kernel),
        (pass, blocks): (Pass, usize),
        statistics: u64,
    ) -> Result<(), Error> {
        let each = if pass == Pass::OfKey { 1 } else { self.argument.repeats as usize };
        let at_once = HEADS / each;
        for first in (0..self.heads).step_by(at_once) {
            let count = at_once.min(self.heads - first);
            let query_heads = first * self.argument.repeats as usize;
            let own = query_heads * self.argument.queries as usize * STATISTICS * self.wide;
            let mut argument = self.argument;
            argument.first_head = first as u32;
            argument.statistics = if statistics == 0 { 0 } else { statistics + own as u64 };
            let (gpu, stream) = (device_of(call)?, call.stream());
            let (dtype, most) = (kernel.dtype, self.most);
            let name = match pass {
                Pass::Forward => "",
                Pass::Statistics => "_statistics",
                Pass::OfQuery => "_query",
                Pass::OfKey => "_key",
            };
            let go = |kernel: Kernel, threads: usize, entry: std::fmt::Arguments<'_>| {
                launch(gpu, kernel, entry, ([blocks, count * each], threads as u32), &argument, stream)
            };
            let threads = CORES_THREADS[usize::from(pass != Pass::Forward)];
            if let (Pass::Forward, Some(groups)) = (pass, self.groups) {
                let shape = ([blocks, count * each], groups.threads() as u32, groups.shared() as u32);
                let entry = format_args!("attention_{dtype}_groups_{most}");
                launch_sharing(gpu, BY_GROUPS, entry, shape, &argument, stream)?;
                continue;
            }
            match pass {
                Pass::Statistics => go(ATTENTION, THREADS, format_args!("attention_{dtype}_statistics"))?,
                _ if self.is_plain => {
                    go(CORES, PLAIN_THREADS, format_args!("attention_{dtype}{name}_plain_{most}"))?;
                }
                _ if self.by_cores => {
                    go(CORES, threads, format_args!("attention_{dtype}{name}_cores_{most}"))?;
                }
                _ => go(ATTENTION, THREADS, format_args!("attention_{dtype}{name}_{most}"))?,
            }
        }
        Ok(())
    }

    fn forward(&self, call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
        let queries = self.argument.queries as usize;
        if queries == 0 {
            return Ok(());
        }
        self.launch((call, kernel), (Pass::Forward, queries.div_ceil(self.rows[0])), 0)
    }

    fn backward(&self, call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
        let (queries, keys) = (self.argument.queries as usize, self.argument.keys as usize);
        let all = self.heads * self.argument.repeats as usize * queries;
        let statistics = Scratch::new((device_of(call)?, call.stream()), all, STATISTICS * self.wide)?;
        let [_, rows] = self.rows;
        if queries > 0 {
            self.launch((call, kernel), (Pass::Statistics, queries.div_ceil(THREADS / 32)), statistics.at())?;
            self.launch((call, kernel), (Pass::OfQuery, queries.div_ceil(rows)), statistics.at())?;
        }
        match keys {
            0 => Ok(()),
            _ => self.launch((call, kernel), (Pass::OfKey, keys.div_ceil(rows)), statistics.at()),
        }
    }
}

/// The pass that a launch computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Forward,
    /// The per-query statistics for the gradients.
    Statistics,
    OfQuery,
    OfKey,
}

/// Whether all groups of 8 elements of a row are contiguous and aligned to 16 bytes.
fn in_pieces(of: &Matrix, lead: &[i64]) -> bool {
    of.column == 1
        && super::nets::in_pieces(of.data, 2, &[of.row, of.step])
        && super::nets::in_pieces(0, 2, lead)
}

/// The kernels of `tensor.cu`.
const CORES: Kernel = Kernel { family: "tensor", name: "attention", dtype: "" };
/// The kernels of `attention_groups.cu`.
const BY_GROUPS: Kernel = Kernel { family: "attention_groups", name: "attention", dtype: "" };
/// The kernels of `attention.cu`.
const ATTENTION: Kernel = Kernel { family: "attention", name: "attention", dtype: "" };

/// The sizes before the last two.
fn lead_of(sizes: &[i64]) -> &[i64] {
    &sizes[..sizes.len().saturating_sub(2)]
}

fn attention(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    if call.float(4)? > 0.0 {
        return Err(unsupported("attention with dropout"));
    }
    let mut given = Given::of(call, 0)?;
    (given.causal, given.grouped) = (call.bool(5)?, call.bool(7)?);
    given.scale = if call.is_none(6)? { None } else { Some(call.float(6)?) };
    let out = Array::output(call, 0)?;
    given.operands[OUT] = Some(out);
    match Problem::new((call, kernel), &given, lead_of(out.sizes))? {
        Some(problem) => problem.forward(call, kernel),
        None => Ok(()),
    }
}

fn flash(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut given = Given::of(call, 0)?;
    (given.causal, given.scale) = (call.bool(4)?, Some(call.float(5)?));
    let (out, logsumexp) = (Array::output(call, 0)?, Array::output(call, 1)?);
    (given.operands[OUT], given.operands[LOGSUMEXP]) = (Some(out), Some(logsumexp));
    match Problem::new((call, kernel), &given, lead_of(out.sizes))? {
        Some(problem) => problem.forward(call, kernel),
        None => Ok(()),
    }
}

fn flash_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut given = Given::of(call, 1)?;
    (given.causal, given.scale) = (call.bool(7)?, Some(call.float(8)?));
    let wide = if kernel.dtype == "f64" { "f64" } else { "f32" };
    let of_sums = dtype_name(call.tensor(6)?.dtype());
    if of_sums != wide && of_sums != kernel.dtype {
        return Err(unsupported("logarithms of sums of another dtype"));
    }
    given.narrow_sums = of_sums != wide;
    let out = Array::argument(call, 5)?;
    given.operands[GRAD] = Some(Array::argument(call, 0)?);
    given.operands[OUT] = Some(out);
    given.operands[LOGSUMEXP] = Some(Array::argument(call, 6)?);
    for (at, operand) in given.operands[OF_QUERY..=OF_VALUE].iter_mut().enumerate() {
        *operand = Some(Array::output(call, at)?);
    }
    match Problem::new((call, kernel), &given, lead_of(out.sizes))? {
        Some(problem) => problem.backward(call, kernel),
        None => Ok(()),
    }
}
