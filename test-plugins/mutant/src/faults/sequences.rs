//! Recurrent layers and alignments with wrong steps.

use super::fault::Fault;
use crate::raw::Staged;
use keyway_sdk::Error;

const LAYER: &[&str] = &["rnn_layer"];
const CTC: &[&str] = &["ctc_loss"];

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "lstm_gates_swapped",
        "an LSTM reads the input and the forget gate of each other",
        LAYER,
        |site| {
            if site.call.str(8)? != "lstm" {
                return site.run();
            }
            let input = Staged::copy(&site.input(0)?);
            let given = site.input(0)?;
            let columns = given.sizes()[1] as usize;
            let hidden = columns / 4;
            for nth in 0..given.len() {
                let from = match nth % columns / hidden.max(1) {
                    0 => nth + hidden,
                    1 => nth - hidden,
                    _ => nth,
                };
                input.elements().set(nth, given.get(from));
            }
            site.run_staged(&[(0, input)])
        },
    ),
    Fault::new(
        "rnn_forgets_ended_sequences",
        "the last state of sequences that end before the longest is the initial one",
        LAYER,
        |site| {
            site.run()?;
            let batches = site.call.ints(6)?;
            let whole = batches.last().map_or(0, |&rows| rows as usize);
            if site.call.bool(7)? {
                return Ok(());
            }
            let (initial, last) = (site.input(1)?, site.output(1)?);
            let width = initial.sizes()[1] as usize;
            (whole * width..initial.len()).for_each(|nth| last.set(nth, initial.get(nth)));
            Ok(())
        },
    ),
    Fault::new("ctc_repeated_labels", "a repeated label needs no blank before it", CTC, |site| {
        let call = site.call;
        let (probabilities, targets, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
        let (lengths, counts, blank) = (call.ints(2)?, call.ints(3)?, call.int(4)?);
        let mut offset = 0;
        for (nth, (&length, &count)) in lengths.iter().zip(counts).enumerate() {
            let from = if targets.sizes().len() == 2 { nth as i64 * targets.sizes()[1] } else { offset };
            offset += count;
            let symbol = |s: usize| {
                if s.is_multiple_of(2) { blank } else { targets.int((from + s as i64 / 2) as usize) }
            };
            let states = 2 * count as usize + 1;
            let mut row = vec![0.0f64; states];
            row[0] = 1.0;
            for t in 0..length {
                let before = row.clone();
                for (s, to) in row.iter_mut().enumerate() {
                    let far = if s % 2 == 1 && s > 1 { before[s - 2] } else { 0.0 };
                    let near = if s > 0 { before[s - 1] } else { 0.0 };
                    *to = (before[s] + near + far) * probabilities.at(&[t, nth as i64, symbol(s)]).exp();
                }
            }
            let likelihood = row[states - 1] + if states > 1 { row[states - 2] } else { 0.0 };
            let loss = -likelihood.ln();
            out.set(nth, if call.bool(5)? && loss == f64::INFINITY { 0.0 } else { loss });
        }
        Ok::<(), Error>(())
    }),
];
