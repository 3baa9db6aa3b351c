//! The documentation of ops, for programs that show it.

use super::def::OpDef;

/// The ops and their documentation, sorted by name; the build script collects it from their source files.
static TABLE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/op_documentation.rs"));

impl OpDef {
    /// The documentation of the op in Markdown, as on its method of [`Tensor`](crate::Tensor): formula, edge cases, gradient,
    /// example and errors. Empty for a definition outside this crate.
    ///
    /// ```
    /// let text = keyway::ops::pointwise::clamp::DEF.documentation();
    /// assert!(text.starts_with("Clamps each element"));
    /// assert!(text.contains("# Errors"));
    /// ```
    pub fn documentation(&self) -> &'static str {
        let found = TABLE.binary_search_by_key(&self.name(), |(name, _)| name);
        found.map_or("", |nth| TABLE[nth].1)
    }
}

#[cfg(test)]
mod tests {
    /// Fails for a documentation that consists of the op's name only.
    #[test]
    fn every_op_is_documented() {
        let bare: Vec<&str> = crate::ops::all()
            .filter(|op| op.documentation().len() < op.name().len() + 12)
            .map(|op| op.name())
            .collect();
        assert!(bare.is_empty(), "ops without documentation: {bare:?}");
    }
}
