//! Batches of matrices: reading the arguments, splitting the outputs, running one job for each matrix.

use crate::memory::Workspace;
use crate::number::{Number, Part};
use faer::MatRef;
use faer::dyn_stack::StackReq;
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{Call, Element, Error, Plain, parallel_for};
use std::sync::Mutex;

/// The number of floating-point operations that a task has at least.
const TASK: usize = 1 << 18;

/// A batch of matrices in row-major order. `lead` are the leading dimensions.
pub struct Batch<'a, T: Plain> {
    data: Contiguous<'a, T>,
    /// The leading dimensions.
    pub lead: &'a [i64],
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix.
    pub columns: usize,
}

impl<'a, T: Element + Plain> Batch<'a, T> {
    /// Reads argument `index`.
    ///
    /// # Errors
    /// Fewer than two dimensions; memory that does not suffice.
    pub fn read(call: &Call<'a>, index: usize) -> Result<Batch<'a, T>, Error> {
        let view = call.view::<T>(index)?;
        let &[ref lead @ .., rows, columns] = view.sizes() else {
            return Err(Error::Unsupported { what: "a tensor of fewer than 2 dimensions".into() });
        };
        Ok(Batch { data: view.contiguous()?, lead, rows: rows as usize, columns: columns as usize })
    }

    /// Reads argument `index` as a batch of row vectors.
    ///
    /// # Errors
    /// No dimension; memory that does not suffice.
    pub fn vectors(call: &Call<'a>, index: usize) -> Result<Batch<'a, T>, Error> {
        let view = call.view::<T>(index)?;
        let &[ref lead @ .., columns] = view.sizes() else {
            return Err(Error::Unsupported { what: "a tensor of no dimensions".into() });
        };
        Ok(Batch { data: view.contiguous()?, lead, rows: 1, columns: columns as usize })
    }

    /// The number of matrices.
    pub fn count(&self) -> usize {
        count(self.lead)
    }

    /// Matrix `nth` of a batch with the leading dimensions `lead`, to which those of this batch broadcast.
    pub fn at(&self, nth: usize, lead: &[i64]) -> &[T] {
        let (mut index, mut stride, mut rest) = (0, 1, nth);
        let mut own = self.lead.iter().rev();
        for &size in lead.iter().rev() {
            let position = rest % size as usize;
            rest /= size as usize;
            let Some(&size) = own.next() else { break };
            if size > 1 {
                index += position * stride;
            }
            stride *= size as usize;
        }
        &self.data[index * self.rows * self.columns..][..self.rows * self.columns]
    }
}

impl<T: Number> Batch<'_, T> {
    /// [`Batch::at`] as a matrix.
    pub fn matrix(&self, nth: usize, lead: &[i64]) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(self.at(nth, lead), self.rows, self.columns)
    }
}

/// The number of matrices with these leading dimensions.
pub fn count(lead: &[i64]) -> usize {
    lead.iter().map(|&size| size as usize).product()
}

/// Splits an output into `count` pieces of `size` elements, which may be 0.
pub fn pieces<T>(mut all: &mut [T], size: usize, count: usize) -> Vec<&mut [T]> {
    let mut made = Vec::with_capacity(count);
    for _ in 0..count {
        let (piece, rest) = all.split_at_mut(size);
        made.push(piece);
        all = rest;
    }
    made
}

/// The scratch memory and the cost of the work on one matrix.
pub struct Need {
    /// Elements that the kernel itself uses.
    pub elements: usize,
    /// The memory that `faer` uses.
    pub stack: StackReq,
    /// Floating-point operations, approximately.
    pub cost: usize,
}

/// Runs `work` for each job, which is the outputs of one matrix, with its number, on the host's pool.
///
/// # Errors
/// The error of the first job that fails; memory that does not suffice.
pub fn each<T, J>(
    jobs: &mut [J],
    need: &Need,
    work: impl Fn(usize, &mut J, &mut Workspace<T>) -> Result<(), Error> + Sync,
) -> Result<(), Error>
where
    T: Number,
    J: Send,
{
    let per_task = (TASK / need.cost.max(1)).max(1);
    let first: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    let fail = |nth: usize, error: Error| {
        let mut first = first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.as_ref().is_none_or(|(earlier, _)| nth < *earlier) {
            *first = Some((nth, error));
        }
    };
    let tasks: Vec<Mutex<&mut [J]>> = jobs.chunks_mut(per_task).map(Mutex::new).collect();
    parallel_for(tasks.len(), 1, |range| {
        let mut workspace = match Workspace::new(need.elements, need.stack) {
            Ok(workspace) => workspace,
            Err(error) => return fail(range.start * per_task, error),
        };
        for task in range {
            let mut jobs = tasks[task].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            for (nth, job) in jobs.iter_mut().enumerate() {
                let nth = task * per_task + nth;
                if let Err(error) = work(nth, job, &mut workspace) {
                    fail(nth, error);
                }
            }
        }
    })?;
    match first.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// The index of matrix `nth` in a batch, as the end of a message; empty without leading dimensions.
fn at_index(nth: usize, lead: &[i64]) -> String {
    if lead.is_empty() {
        return String::new();
    }
    let mut rest = nth;
    let mut index: Vec<usize> = Vec::with_capacity(lead.len());
    for &size in lead.iter().rev() {
        index.push(rest % size as usize);
        rest /= size as usize;
    }
    index.reverse();
    format!(", at batch index {index:?}")
}

/// The error of matrix `nth` of a batch.
pub fn wrong(argument: &'static str, expected: &str, got: String, nth: usize, lead: &[i64]) -> Error {
    let got = format!("{got}{}", at_index(nth, lead));
    Error::InvalidArgument { argument, expected: expected.to_string(), got }
}

/// The error of an iteration that did not converge for matrix `nth` of a batch.
pub fn diverged(values: &str, nth: usize, lead: &[i64]) -> Error {
    Error::Failed {
        detail: format!("the iteration for the {values} did not converge{}", at_index(nth, lead)),
    }
}

/// Refuses a matrix with an element that is infinite or NaN.
///
/// # Errors
/// The first such element.
pub fn finite<T: Number>(matrix: &[T], columns: usize, nth: usize, lead: &[i64]) -> Result<(), Error> {
    match matrix.iter().position(|x| !Number::is_finite(*x)) {
        None => Ok(()),
        Some(at) => {
            let got = format!("{:?} at row {}, column {}", matrix[at], at / columns, at % columns);
            Err(wrong("self", "finite elements", got, nth, lead))
        }
    }
}

/// Copies a row-major matrix into columns, divided by the power of two that brings its largest element near 1, and returns this
/// power: `faer` squares elements.
pub fn scaled<T: Number>(given: &[T], rows: usize, columns: usize, out: &mut [T]) -> T::Part {
    let largest = given.iter().fold(T::Part::ZERO, |most, x| {
        let modulus = x.modulus();
        if modulus > most { modulus } else { most }
    });
    let scale = T::Part::power_of_two(largest);
    for i in 0..rows {
        for j in 0..columns {
            out[j * rows + i] = given[i * columns + j].over(scale);
        }
    }
    scale
}
