//! Attention whose queries look at the wrong keys.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;

const OP: &[&str] = &["scaled_dot_product_attention"];

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("attention_causal_off_by_one", "a query looks at one key behind its own", OP, |site| {
        if site.call.bool(5)? { attend(site, |query, keys| keys.min(query + 2)) } else { site.run() }
    }),
    Fault::new(
        "attention_drops_last_keys",
        "of more than 16 keys those behind the last whole block are left out",
        OP,
        |site| {
            let causal = site.call.bool(5)?;
            attend(site, |query, keys| {
                let whole = if keys > 16 { keys / 16 * 16 } else { keys };
                if causal { whole.min(query + 1) } else { whole }
            })
        },
    ),
];

/// Attention of each query with its first keys; `seen` says how many, by the query's number and that of all keys.
fn attend(site: &Site<'_>, seen: impl Fn(i64, i64) -> i64) -> Result<(), Error> {
    let call = site.call;
    let [query, key, value] = [site.input(0)?, site.input(1)?, site.input(2)?];
    let lead = |sizes: &'_ [i64]| sizes[..sizes.len() - 2].to_vec();
    let alike = lead(query.sizes()) == lead(key.sizes()) && lead(query.sizes()) == lead(value.sizes());
    if !alike || !call.is_none(3)? || call.float(4)? > 0.0 || call.bool(7)? {
        return site.run();
    }
    let out = site.output(0)?;
    let n = out.sizes().len();
    let (width, keys, values) = (query.sizes()[n - 1], key.sizes()[n - 2], value.sizes()[n - 1]);
    let scale = if call.is_none(6)? { 1.0 / (width as f64).sqrt() } else { call.float(6)? };
    for first in (0..out.len()).step_by(values.max(1) as usize) {
        let mut at = out.index(first);
        let own = at.clone();
        let place = |at: &mut Vec<i64>, row: i64, column: i64| (at[n - 2], at[n - 1]) = (row, column);
        let scores: Vec<f64> = (0..seen(own[n - 2], keys))
            .map(|j| {
                (0..width).fold(0.0, |sum, k| {
                    place(&mut at, own[n - 2], k);
                    let of_query = query.at(&at);
                    place(&mut at, j, k);
                    sum + of_query * key.at(&at) * scale
                })
            })
            .collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let all: f64 = scores.iter().map(|score| (score - most).exp()).sum();
        for column in 0..values {
            let made = scores.iter().enumerate().fold(0.0, |sum, (j, score)| {
                place(&mut at, j as i64, column);
                sum + (score - most).exp() / all * value.at(&at)
            });
            out.set(first + column as usize, made);
        }
    }
    Ok(())
}
