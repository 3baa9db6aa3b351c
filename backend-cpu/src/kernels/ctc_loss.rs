//! `ctc_loss` and `ctc_loss_backward`
//!
//! The forward-backward recursions of A. Graves and others, "Connectionist temporal classification" (2006), in f64 logarithms; a
//! sequence is computed by one thread. The backward op computes the forward recursion again, which is cheaper than reading its
//! states from memory. Rows of states have two elements of minus infinity before the first state, and after the last one.

use super::buffer::{Buffer, try_parallel_for};
use super::exponential::{Exp, Log};
use super::number::Apply;
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Error, Float, Lanes, Plain};

const NONE: f64 = f64::NEG_INFINITY;
/// The elements of a row beside the states on each side.
const PAD: usize = 2;

/// The logarithm of the sum of exponentials; minus infinity if all are, and infinity if one is.
#[inline(always)]
fn log_sum(a: f64, b: f64, c: f64) -> f64 {
    let most = if a > b { a } else { b };
    let most = if c > most { c } else { most };
    let base = if most.abs() == f64::INFINITY { 0.0 } else { most };
    base + ((a - base).apply::<Exp>() + (b - base).apply::<Exp>() + (c - base).apply::<Exp>()).apply::<Log>()
}

/// The value of a state if a transition is allowed; infinity minus infinity would be NaN.
#[inline(always)]
fn allowed(x: f64, skip: f64) -> f64 {
    if skip == 0.0 { x } else { NONE }
}

/// The arguments `(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)`.
struct Batch<'a, T: Plain> {
    log_probs: keyway_cpu_loops::Contiguous<'a, T>,
    labels: keyway_cpu_loops::Contiguous<'a, i64>,
    /// The first label of each sequence, and their number.
    targets: Vec<(usize, usize)>,
    lengths: &'a [i64],
    batch: usize,
    classes: usize,
    blank: usize,
    zero_infinity: bool,
}

impl<'a, T: Float + Plain> Batch<'a, T> {
    fn new(call: &Call<'a>, first: usize) -> Result<Self, Error> {
        let sizes = call.tensor(first)?.sizes();
        let (batch, classes) = (sizes[1] as usize, sizes[2] as usize);
        let shape = call.tensor(first + 1)?.sizes();
        let mut offset = 0;
        let of = |(nth, &count): (usize, &i64)| {
            let from = if shape.len() == 2 { nth * shape[1] as usize } else { offset };
            offset += count as usize;
            (from, count as usize)
        };
        let targets = call.ints(first + 3)?.iter().enumerate().map(of).collect();
        let all = Batch {
            log_probs: call.contiguous::<T>(first)?,
            labels: call.contiguous::<i64>(first + 1)?,
            targets,
            lengths: call.ints(first + 2)?,
            batch,
            classes,
            blank: call.int(first + 4)? as usize,
            zero_infinity: call.bool(first + 5)?,
        };
        for (nth, &(from, count)) in all.targets.iter().enumerate() {
            let own = &all.labels[from..from + count];
            let wrong = |l: i64| l < 0 || l as usize >= classes || l as usize == all.blank;
            if let Some(label) = own.iter().find(|&&l| wrong(l)) {
                return Err(Error::InvalidArgument {
                    argument: "targets",
                    expected: format!("labels in 0..{classes} other than the blank {}", all.blank),
                    got: format!("{label} in sequence {nth} of the batch"),
                });
            }
        }
        Ok(all)
    }

    /// The log-probabilities of sequence `nth` at step `t`.
    fn row(&self, nth: usize, t: usize) -> &[T] {
        &self.log_probs[(t * self.batch + nth) * self.classes..][..self.classes]
    }
}

/// The alignments of one sequence.
struct Sequence<'a, 'b, T: Plain> {
    all: &'b Batch<'a, T>,
    nth: usize,
    steps: usize,
    /// The class of each state.
    symbols: Vec<usize>,
    /// 0 where a transition over one state is allowed, otherwise minus infinity; padded as rows are.
    skips: Buffer<f64>,
    emission: Buffer<f64>,
    other: Buffer<f64>,
}

impl<'a, 'b, T: Float + Plain> Sequence<'a, 'b, T> {
    fn new(all: &'b Batch<'a, T>, nth: usize) -> Result<Self, Error> {
        let (from, count) = all.targets[nth];
        let own = &all.labels[from..from + count];
        let states = 2 * count + 1;
        let mut skips = Buffer::filled(states + 2 * PAD, NONE)?;
        let mut symbols = vec![all.blank; states];
        for (k, &label) in own.iter().enumerate() {
            symbols[2 * k + 1] = label as usize;
            if k > 0 && own[k - 1] != label {
                skips[PAD + 2 * k + 1] = 0.0;
            }
        }
        let steps = all.lengths[nth] as usize;
        let (emission, other) = (Buffer::zeroed(states)?, Buffer::filled(states + 2 * PAD, NONE)?);
        Ok(Sequence { all, nth, steps, symbols, skips, emission, other })
    }

    fn states(&self) -> usize {
        self.symbols.len()
    }

    /// The length of a row.
    fn width(&self) -> usize {
        self.states() + 2 * PAD
    }

    fn read(&mut self, t: usize) {
        let row = self.all.row(self.nth, t);
        for (to, &symbol) in self.emission.iter_mut().zip(&self.symbols) {
            *to = row[symbol].to_f64();
        }
    }

    /// The log-probabilities of the states before the first step.
    fn begin(&self, row: &mut [f64]) {
        row.fill(NONE);
        row[PAD] = 0.0;
    }

    /// The log-probabilities given which the target ends after the last step.
    fn end(&self, row: &mut [f64]) {
        row.fill(NONE);
        let last = PAD + self.states() - 1;
        row[last] = 0.0;
        if self.states() > 1 {
            row[last - 1] = 0.0;
        }
    }

    /// From the states before step `t` those after it.
    fn forward(&mut self, t: usize, before: &[f64], after: &mut [f64]) {
        self.read(t);
        let n = self.states();
        zip_wide((&before[..n], &self.skips[PAD..PAD + n]), &mut self.other[..n], |(x, skip)| {
            allowed(x, skip)
        });
        let to = &mut after[PAD..PAD + n];
        zip_wide((&before[PAD..PAD + n], &before[1..=n], &self.other[..n]), to, |(a, b, c)| log_sum(a, b, c));
        to.iter_mut().zip(&self.emission[..]).for_each(|(to, e)| *to += e);
    }

    /// From the values after step `t` those before it, in place.
    fn backward(&mut self, t: usize, row: &mut [f64], far: &mut [f64]) {
        self.read(t);
        let n = self.states();
        let next = &mut self.other[..n + PAD];
        zip_wide((&row[PAD..PAD + n], &self.emission[..]), next, |(x, e)| x + e);
        next[n..].fill(NONE);
        zip_wide((&next[..n], &self.skips[PAD..PAD + n]), far, |(x, skip)| allowed(x, skip));
        zip_wide((&next[..n], &next[1..=n], &far[PAD..PAD + n]), &mut row[PAD..PAD + n], |(a, b, c)| {
            log_sum(a, b, c)
        });
    }

    fn loss(&self, last: &[f64]) -> f64 {
        let at = PAD + self.states() - 1;
        let before = if self.states() > 1 { last[at - 1] } else { NONE };
        -log_sum(last[at], before, NONE)
    }
}

fn ctc_loss<T: Float + Plain>(call: &Call) -> Result<(), Error> {
    let all = &Batch::<T>::new(call, 0)?;
    let mut out = call.contiguous_out::<T>(0)?;
    // SAFETY: the address is used within the output, which outlives the loop; each sequence has one element.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    try_parallel_for(all.batch, 1, |some| {
        for nth in some {
            let mut sequence = Sequence::new(all, nth)?;
            let (mut row, mut next) =
                (Buffer::zeroed(sequence.width())?, Buffer::filled(sequence.width(), NONE)?);
            sequence.begin(&mut row);
            for t in 0..sequence.steps {
                sequence.forward(t, &row, &mut next);
                std::mem::swap(&mut row, &mut next);
            }
            let loss = sequence.loss(&row);
            let loss = if all.zero_infinity && loss == f64::INFINITY { 0.0 } else { loss };
            // SAFETY: as above.
            unsafe { to.slice_mut(nth, 1)[0] = T::from_f64(loss) };
        }
        Ok(())
    })
}

fn ctc_loss_backward<T: Float + Plain>(call: &Call) -> Result<(), Error> {
    let grads = call.contiguous::<T>(0)?;
    let all = &Batch::<T>::new(call, 1)?;
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::default());
    // SAFETY: the address is used within the output, which outlives the loop; each sequence has its own rows.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    try_parallel_for(all.batch, 1, |some| {
        let mut shares = Buffer::zeroed(all.classes)?;
        for nth in some {
            let mut sequence = Sequence::new(all, nth)?;
            let (width, steps) = (sequence.width(), sequence.steps);
            let mut rows = Buffer::filled((steps + 1) * width, NONE)?;
            sequence.begin(&mut rows[..width]);
            for t in 0..steps {
                let (before, after) = rows[t * width..(t + 2) * width].split_at_mut(width);
                sequence.forward(t, before, after);
            }
            let loss = sequence.loss(&rows[steps * width..]);
            if all.zero_infinity && loss == f64::INFINITY {
                continue;
            }
            let grad = grads[nth].to_f64();
            let (mut after, mut far) = (Buffer::zeroed(width)?, Buffer::filled(width, NONE)?);
            sequence.end(&mut after);
            for t in (0..steps).rev() {
                shares.fill(0.0);
                let states = &rows[(t + 1) * width..(t + 2) * width];
                let n = sequence.states();
                let products = &mut sequence.other[..n];
                zip_wide((&states[PAD..PAD + n], &after[PAD..PAD + n]), products, |(a, b)| {
                    (a + b + loss).apply::<Exp>()
                });
                for (&symbol, share) in sequence.symbols.iter().zip(&sequence.other[..n]) {
                    shares[symbol] += share;
                }
                // SAFETY: as above.
                let to = unsafe { to.slice_mut((t * all.batch + nth) * all.classes, all.classes) };
                to.iter_mut().zip(&shares[..]).for_each(|(to, share)| *to = T::from_f64(-(share * grad)));
                sequence.backward(t, &mut after, &mut far);
            }
        }
        Ok(())
    })
}

super::kernel!("ctc_loss", "TTIIib>T", ctc_loss, [f32, f64]);
super::kernel!("ctc_loss_backward", "TTTIIib>T", ctc_loss_backward, [f32, f64]);
