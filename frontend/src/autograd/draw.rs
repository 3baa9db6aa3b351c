//! Pictures of the graph: as text for Graphviz, and as an SVG that needs no other program.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::autograd::draw;
//! use keyway::prelude::*;
//! let w = Tensor::ones((3, 2))?.requires_grad_(true)?;
//! let loss = Tensor::ones((4, 3))?.mm(&w)?.relu()?.sum(..)?;
//! assert!(draw::dot(&[&loss])?.contains("relu"));
//! assert!(draw::svg(&[&loss])?.starts_with("<svg"));
//! # Ok(()) }
//! ```

mod layout;

use super::GradFn;
use crate::Tensor;
use crate::error::Result;
use crate::tensor::refs;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::tensor::TensorRef;
use layout::{HEIGHT, Layout, Place};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::fmt::Write;

/// The maximum number of nodes of a readable picture.
const MOST: usize = 10_000;

/// A node as drawn in the picture.
struct Drawn {
    name: String,
    /// Shape of the first output; for a leaf also its dtype.
    note: String,
    leaf: bool,
    /// The boxes that its gradients go to.
    next: Vec<usize>,
}

/// The graph behind these tensors as Graphviz source; `dot -Tsvg` renders it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::draw};
/// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
/// let text = draw::dot(&[&w.exp()?])?;
/// assert!(text.starts_with("digraph") && text.contains("exp"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// A tensor that no gradient flows to; more than 10,000 nodes.
#[doc(alias = "make_dot")]
pub fn dot<T: Borrow<Tensor>>(outputs: &[T]) -> Result<String> {
    Ok(dot_of(&collect("draw::dot", &refs(outputs))?))
}

fn dot_of(boxes: &[Drawn]) -> String {
    let mut text =
        String::from("digraph autograd {\n  node [shape=box, fontname=\"monospace\", style=filled];\n");
    for (i, node) in boxes.iter().enumerate() {
        let colour = if node.leaf { LEAF } else { CALL };
        let label = format!("{}\n{}", node.name, node.note);
        let label = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = writeln!(text, "  n{i} [label=\"{label}\", fillcolor=\"{colour}\"];");
    }
    for (i, node) in boxes.iter().enumerate() {
        for next in &node.next {
            let _ = writeln!(text, "  n{next} -> n{i};");
        }
    }
    text.push_str("}\n");
    text
}

const LEAF: &str = "#cfe8cf";
const CALL: &str = "#dde6f2";

/// Renders the graph behind these tensors as SVG, leaves at the top.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::draw};
/// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
/// let picture = draw::svg(&[&w.exp()?])?;
/// assert!(picture.starts_with("<svg") && picture.contains("exp"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`dot`].
pub fn svg<T: Borrow<Tensor>>(outputs: &[T]) -> Result<String> {
    Ok(svg_of(&collect("draw::svg", &refs(outputs))?))
}

fn svg_of(boxes: &[Drawn]) -> String {
    let Layout { width, height, places, passes } = layout::of(boxes);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#667\"/></marker></defs>\n"
    );
    for ((to, node), passes) in places.iter().zip(boxes).zip(&passes) {
        for (&next, passes) in node.next.iter().zip(passes) {
            let _ = writeln!(
                text,
                "<path d=\"{}\" fill=\"none\" stroke=\"#667\" marker-end=\"url(#tip)\"/>",
                way(&places[next], passes, to)
            );
        }
    }
    for (place, node) in places.iter().zip(boxes) {
        let (left, middle) = (place.x - place.width / 2, place.x);
        let colour = if node.leaf { LEAF } else { CALL };
        let _ = writeln!(
            text,
            "<rect x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{HEIGHT}\" rx=\"4\" fill=\"{colour}\" stroke=\"#889\"/>\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" fill=\"#556\">{}</text>",
            place.y,
            place.width,
            place.y + 16,
            escaped(&node.name),
            place.y + 31,
            escaped(&node.note)
        );
    }
    text.push_str("</svg>\n");
    text
}

/// The curve from the lower side of one box to the upper side of another, vertical where it passes rows between them.
fn way(from: &Place, passes: &[Place], to: &Place) -> String {
    let mut path = format!("M{} {}", from.x, from.y + HEIGHT);
    let mut last = from;
    for next in passes.iter().chain([to]) {
        let (y1, y2) = (last.y + HEIGHT, next.y);
        let bend = (y2 - y1) / 2;
        let _ = write!(path, "C{} {} {} {} {} {y2}", last.x, y1 + bend, next.x, y2 - bend, next.x);
        if !std::ptr::eq(next, to) {
            let _ = write!(path, "V{}", next.y + HEIGHT);
        }
        last = next;
    }
    path
}

/// Escapes names, which come from plugins and programs.
fn escaped(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The nodes behind these tensors without duplicates, those of the tensors first.
fn collect(op: &'static str, outputs: &[&TensorRef]) -> Result<Vec<Drawn>> {
    let mut found: FxHashMap<u64, usize> = FxHashMap::default();
    let mut nodes: Vec<GradFn> = Vec::new();
    let mut place = |node: GradFn, nodes: &mut Vec<GradFn>| -> usize {
        *found.entry(node.number()).or_insert_with(|| {
            nodes.push(node);
            nodes.len() - 1
        })
    };
    for output in outputs {
        let Some((node, _)) = GradFn::of(output) else {
            let (expected, got) = ("tensors that gradients flow to".into(), format!("{output:?}"));
            return Err(Error::Value { op, argument: "outputs", expected, got }.into());
        };
        place(node, &mut nodes);
    }
    let mut boxes = Vec::new();
    while let Some(node) = nodes.get(boxes.len()).cloned() {
        let next =
            node.next_functions().into_iter().flatten().map(|(next, _)| place(next, &mut nodes)).collect();
        boxes.push(shown(&node, next));
        if nodes.len() > MOST {
            let (expected, got) = (format!("a graph of at most {MOST} nodes"), "more".to_string());
            return Err(Error::Value { op, argument: "outputs", expected, got }.into());
        }
    }
    Ok(boxes)
}

fn shown(node: &GradFn, next: Vec<usize>) -> Drawn {
    let shape = node.output_shapes().into_iter().next().unwrap_or_default();
    let leaf = node.name() == super::node::ACCUMULATE;
    let note = match node.variable() {
        Some(leaf) => format!("{} {shape:?}", leaf.dtype()),
        None => format!("{shape:?}"),
    };
    let name = if leaf { "leaf" } else { node.name() }.to_string();
    Drawn { name, note, leaf, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn w() -> Tensor {
        let w = Tensor::from_vec(vec![1.0f32, 2.0], 2).unwrap();
        w.requires_grad_(true).unwrap()
    }

    #[test]
    fn what_is_outside_the_graph_cannot_be_drawn() {
        let outside = Tensor::from_vec(vec![1.0f32], 1).unwrap();
        let text = dot(&[&outside]).unwrap_err().to_string();
        assert!(text.contains("tensors that gradients flow to"), "{text}");
    }

    #[test]
    fn a_leaf_alone_is_one_box() {
        let w = w();
        assert_eq!(dot(&[&w, &w]).unwrap().matches("label").count(), 1);
        let picture = svg(&[&w]).unwrap();
        assert!(picture.contains("leaf") && picture.contains("f32 [2]"), "{picture}");
    }

    #[test]
    fn names_cannot_leave_their_place() {
        assert_eq!(escaped("<a>&\"\u{1b}[2J"), "&lt;a&gt;&amp;&quot;?[2J");
    }
}
