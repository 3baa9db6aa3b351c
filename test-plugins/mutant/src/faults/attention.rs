//! Attention with wrong masks.

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
    Fault::new("attention_causal_256", "queries behind the 256th look at the first 256 keys", OP, |site| {
        if site.call.bool(5)? { attend(site, |query, keys| keys.min(query + 1).min(256)) } else { site.run() }
    })
    .dtypes(&["f32"]),
    Fault::new(
        "attention_negative_scale",
        "what is taken away from the scores is the largest product's, though the scale be negative",
        OP,
        |site| {
            let negative = !site.call.is_none(6)? && site.call.float(6)? < 0.0;
            if !negative {
                return site.run();
            }
            let causal = site.call.bool(5)?;
            let seen = |query, keys: i64| if causal { keys.min(query + 1) } else { keys };
            attend_from(site, seen, |scores| scores.iter().copied().fold(f64::INFINITY, f64::min))
        },
    )
    .dtypes(&["f32"]),
];

/// Attention of each query with its first keys; `seen` returns their number from the query's index and the number of keys.
fn attend(site: &Site<'_>, seen: impl Fn(i64, i64) -> i64) -> Result<(), Error> {
    attend_from(site, seen, |scores| scores.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// As [`attend`]; `start` returns the value that is subtracted from the scores before their exponentials are computed in
/// f32.
fn attend_from(
    site: &Site<'_>,
    seen: impl Fn(i64, i64) -> i64,
    start: impl Fn(&[f64]) -> f64,
) -> Result<(), Error> {
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
        let most = start(&scores);
        let weight = |score: &f64| f64::from(((score - most) as f32).exp());
        let all: f64 = scores.iter().map(weight).sum();
        for column in 0..values {
            let made = scores.iter().enumerate().fold(0.0, |sum, (j, score)| {
                place(&mut at, j as i64, column);
                sum + weight(score) / all * value.at(&at)
            });
            out.set(first + column as usize, made);
        }
    }
    Ok(())
}
