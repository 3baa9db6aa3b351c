//! The documentation of an op as text: its arguments, formula, edge cases, forms, dtypes and gradient, from its definition.

use crate::screen::{Screen, table};
use keyway::dispatcher::op::OpEntry;
use keyway::ops::def::{Derivative, Dtypes, Forms, OpDef, definition};
use serde::Serialize;
use std::collections::BTreeSet;

/// The documentation of an op.
#[derive(Serialize)]
pub struct Documentation {
    op: &'static str,
    schema: &'static str,
    owner: &'static str,
    signature: String,
    arguments: Vec<Argument>,
    /// Markdown; empty for an op of a plugin.
    text: &'static str,
    forms: Vec<&'static str>,
    dtypes: Vec<&'static str>,
    gradient: Option<String>,
    /// The names of the ops that the decomposition calls; null without a decomposition.
    decomposition: Option<Vec<&'static str>>,
}

#[derive(Serialize)]
struct Argument {
    name: &'static str,
    kind: &'static str,
    optional: bool,
    default: Option<&'static str>,
    /// Null for an op of a plugin.
    meaning: Option<&'static str>,
}

impl Documentation {
    /// The documentation of a registered op.
    pub fn of(op: &'static OpEntry) -> Documentation {
        let definition = definition(op);
        let arguments = op.schema.params.iter().map(|param| Argument {
            name: param.name,
            kind: param.kind.name(),
            optional: param.optional,
            default: param.default,
            meaning: definition.and_then(|def| def.argument(param.name)),
        });
        // A part occurs once for each dtype that it is computed in.
        let parts = |decomposition: keyway::dispatcher::op::Decomposition| {
            let ops: BTreeSet<&str> = decomposition.parts.iter().map(|part| part.op).collect();
            ops.into_iter().collect()
        };
        Documentation {
            op: op.name,
            schema: op.schema.text,
            owner: op.spec.owner,
            signature: op.schema.signature.clone(),
            arguments: arguments.collect(),
            text: definition.map_or("", OpDef::documentation),
            forms: definition.map_or(Vec::new(), |def| forms(def.forms)),
            dtypes: definition.map_or(Vec::new(), |def| dtypes(def.dtypes)),
            gradient: definition.map(|def| gradient(def.derivative)),
            decomposition: op.spec.decomposition.map(parts),
        }
    }

    /// Writes it in the form of a manual page.
    pub fn print(&self, screen: &mut Screen) {
        screen.line(self.schema);
        screen.line("");
        if self.text.is_empty() {
            screen.line(format!("An op of `{}`, whose own documentation describes it.\n", self.owner));
        }
        print_markdown(&plain(self.text), screen);
        if !self.text.is_empty() {
            // The text describes the method of Rust, which may set some of them.
            screen.line("\nArguments of the op");
        }
        let mut rows = table(&["ARGUMENT", "TYPE", "DEFAULT", "MEANING"], &[]);
        for argument in &self.arguments {
            let kind = argument.kind.trim_end_matches('?');
            let kind = if argument.optional { format!("{kind} or None") } else { kind.to_string() };
            let default = argument.default.unwrap_or("required");
            rows.add_row([
                argument.name,
                &kind,
                default,
                &argument.meaning.unwrap_or_default().replace('`', ""),
            ]);
        }
        screen.table(&rows);
        screen.line("");
        let mut fact = |name: &str, values: &[&str]| {
            if !values.is_empty() {
                screen.line(format!("{name}: {}", values.join(", ")));
            }
        };
        fact("signature of kernels", &[&self.signature]);
        fact("forms", &self.forms);
        fact("dtypes", &self.dtypes);
        fact("gradient", &self.gradient.as_deref().into_iter().collect::<Vec<_>>());
        fact("decomposition", self.decomposition.as_deref().unwrap_or_default());
    }
}

/// Writes paragraphs, each wrapped as a whole, and code without the lines that rustdoc hides.
fn print_markdown(text: &str, screen: &mut Screen) {
    let mut paragraph = String::new();
    let mut code = false;
    for line in text.lines().chain([""]) {
        let fence = line.starts_with("```");
        let ends = fence || code || line.is_empty() || line.starts_with("# ") || line.starts_with("- ");
        if ends && !paragraph.is_empty() {
            screen.paragraph(std::mem::take(&mut paragraph));
        }
        if fence {
            code = !code;
        } else if code {
            let hidden = line == "#" || line.starts_with("# ");
            if !hidden {
                screen.whole_line(format!("    {line}"));
            }
        } else if let Some(heading) = line.strip_prefix("# ") {
            screen.line(heading);
        } else if line.is_empty() {
            screen.line("");
        } else {
            let space = if paragraph.is_empty() { "" } else { " " };
            paragraph.push_str(&format!("{space}{line}"));
        }
    }
}

/// Markdown with the links of rustdoc replaced by their text.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((label, after)) = link.split_once("`]") else {
            plain.push_str("[`");
            rest = link;
            continue;
        };
        plain.push_str(&format!("`{label}`"));
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain + rest
}

fn forms(forms: Forms) -> Vec<&'static str> {
    match forms {
        Forms::New => vec!["functional"],
        Forms::Out => vec!["functional", "out="],
        Forms::InPlace => vec!["functional", "in place", "out="],
    }
}

fn dtypes(dtypes: Dtypes) -> Vec<&'static str> {
    let all = keyway::DType::REAL.into_iter().filter(|dtype| dtypes.has(*dtype));
    all.map(keyway::DType::name).collect()
}

/// A description of the op's derivative.
fn gradient(derivative: Derivative) -> String {
    match derivative {
        Derivative::Formula { .. } => "a formula, which can be differentiated again".to_string(),
        Derivative::Composite => "that of the ops of its decomposition".to_string(),
        Derivative::NotDifferentiable => "none".to_string(),
        Derivative::Missing(why) => format!("an error: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn links_become_their_text() {
        let text = "As [`Tensor::sum`](crate::Tensor::sum) of [`x`]; `y[`, [1.0, 2.0].";
        assert_eq!(plain(text), "As `Tensor::sum` of `x`; `y[`, [1.0, 2.0].");
    }
}
