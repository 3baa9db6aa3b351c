//! The meanings of the arguments of ops. An argument that means the same in several ops has its line here; one of a single op, or
//! with another meaning in it, is in a list at the beginning of the op's file, from which the build script collects it.

use super::def::OpDef;

/// The meanings of common names, sorted by name.
#[rustfmt::skip]
const COMMON: &[(&str, &str)] = &[
    ("adjoint", "whether to solve with the adjoint matrix"),
    ("align_corners", "whether -1 and 1, or the first and last positions, are the centres of the outermost pixels rather than their edges"),
    ("alpha", "the factor of the second addend"),
    ("approximate", "`none` for the error function, `tanh` for its approximation"),
    ("atol", "the absolute tolerance"),
    ("attn_mask", "added to the scores, or bool: true lets a query see a key; broadcast to `[.., queries, keys]`"),
    ("b", "the right-hand side"),
    ("batch1", "the left factors of the products"),
    ("batch2", "the right factors of the products"),
    ("beta", "the factor of `self`"),
    ("beta1", "the decay rate of the first moment"),
    ("beta2", "the decay rate of the second moment"),
    ("bias", "added to the result: one value for each output channel or feature"),
    ("ceil_mode", "whether a last window that is partly beyond the padding has a result too"),
    ("correction", "subtracted from the count in the divisor: 1 for the sample variance, 0 for the population's"),
    ("count_include_pad", "whether padding counts in the divisor of the mean"),
    ("decay", "the L2 penalty: the factor of a parameter that is added to its gradient"),
    ("descending", "whether the largest element is first"),
    ("device", "the name of the device"),
    ("diagonal", "the diagonal that bounds the part: 0 is the main one, positive ones are above it"),
    ("dilation", "the distance of neighbouring elements of a window, for each spatial dimension"),
    ("dim", "a dimension, or several where the type is a list; negative values count from the last; None stands for all"),
    ("dims", "dimensions; negative values count from the last"),
    ("divisor_override", "the divisor of each sum instead of the window's size"),
    ("dtype", "the dtype of the result"),
    ("end", "the value or index at the end"),
    ("eps", "added to the variance before its root is taken, so that a quotient by it is finite"),
    ("grad", "the gradient of the result of the forward call"),
    ("grad_output", "the gradient of the result of the forward call"),
    ("grads", "the gradients of the parameters"),
    ("grid", "sampling locations in -1..1, the last dimension of the image first"),
    ("groups", "the number of groups into which the channels are divided; a group of outputs reads one of inputs"),
    ("high", "the bound that values remain below"),
    ("ignore_index", "the class of targets that count neither in the sum nor in the mean"),
    ("include_self", "whether the elements of `self` take part in the reduction"),
    ("index", "indices along `dim`; a negative one counts from the last where the op says so"),
    ("indices", "indices of elements or rows"),
    ("input", "the input of the forward call"),
    ("input_sizes", "the sizes of the input of the forward call"),
    ("is_causal", "whether a query sees only the keys at its own and earlier positions"),
    ("keepdim", "whether a reduced dimension remains with size 1"),
    ("kernel_size", "the size of the window, for each spatial dimension"),
    ("key", "the keys, `[.., keys, width]`"),
    ("lambd", "half of the width of the interval that becomes 0"),
    ("layout", "the name of the layout"),
    ("left", "whether to solve `A X = B`, rather than `X A = B`"),
    ("low", "the least value"),
    ("mask", "a bool tensor; true selects an element"),
    ("mat1", "the left factor of the product"),
    ("mat2", "the right factor of the product"),
    ("mean", "the mean of each channel"),
    ("momentum", "the weight of the new value in a running one"),
    ("normalized_shape", "the sizes of the last dimensions, over which mean and variance are computed"),
    ("num_groups", "the number of groups into which the channels are divided"),
    ("offset", "the position in the random stream from which values are drawn"),
    ("other", "the second input; broadcast with `self` where the op is element-wise"),
    ("output", "the result of the forward call"),
    ("output_size", "the spatial sizes of the result"),
    ("pad", "two widths for each dimension, before and after, starting with the last dimension; a negative one crops"),
    ("padding", "elements added on both sides of each spatial dimension"),
    ("padding_idx", "the row that receives no gradient, or None"),
    ("padding_mode", "values outside of the image: `zeros`, `border` or `reflection`"),
    ("per_sample", "whether each sample has its own statistics"),
    ("query", "the queries, `[.., queries, width]`"),
    ("rate", "the factor of the quotient of the moments, with the bias corrections"),
    ("reduction", "`mean`, `sum`, or `none` for the loss of each element"),
    ("rtol", "the relative tolerance"),
    ("running_mean", "the running mean of each channel, updated in place in training"),
    ("running_var", "the running variance of each channel, updated in place in training"),
    ("scale", "the factor of the scores; None is one over the root of the width"),
    ("scales", "the factors of the spatial sizes; empty to compute them from the sizes"),
    ("seed", "the seed of the random stream"),
    ("self", "the input"),
    ("shrink", "the factor of a parameter before the step, by decoupled weight decay"),
    ("source", "the values that are written"),
    ("src", "the values that are written"),
    ("stable", "whether equal elements remain in their order"),
    ("start", "the first value or index"),
    ("step", "the distance of neighbouring values or indices"),
    ("stride", "the distance of neighbouring windows, for each spatial dimension"),
    ("target", "the expected values, or the class indices, of the shape that the formula requires"),
    ("tensor1", "the first factor, or the dividend"),
    ("tensor2", "the second factor, or the divisor"),
    ("tensors", "the tensors that are joined"),
    ("threshold", "the value from which the function is linear, for stability"),
    ("training", "whether the statistics of the batch are used and the running ones updated"),
    ("upper", "whether the factor is upper triangular, rather than lower"),
    ("var", "the biased variance of each channel"),
    ("weight", "the learned weight: factors, a matrix, or kernels"),
];

/// The arguments that ops describe themselves, by op, sorted by name.
type Own = &'static [(&'static str, &'static [(&'static str, &'static str)])];

static OWN: Own = include!(concat!(env!("OUT_DIR"), "/op_arguments.rs"));

impl OpDef {
    /// The meaning of an argument of the op, in Markdown; `None` for an argument that the op does not have, and for a definition
    /// outside this crate. Its type and default are in the [schema](crate::dispatcher::op::OpEntry).
    ///
    /// ```
    /// use keyway::ops::norm::layer_norm::DEF;
    /// let eps = DEF.argument("eps").expect("an argument of layer_norm");
    /// assert!(eps.starts_with("added to the variance"), "{eps}");
    /// assert!(DEF.argument("epsilon").is_none());
    /// ```
    pub fn argument(&'static self, name: &str) -> Option<&'static str> {
        let own = OWN.binary_search_by_key(&self.name(), |(op, _)| op).map_or(&[][..], |nth| OWN[nth].1);
        let common = || COMMON.iter().find(|(common, _)| *common == name);
        let (_, meaning) = own.iter().find(|(own, _)| *own == name).or_else(common)?;
        let schema = &self.entry().ok()?.schema;
        schema.params.iter().any(|param| param.name == name).then_some(*meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMON, OWN};
    use std::collections::BTreeSet;

    #[test]
    fn every_argument_has_a_meaning() {
        let mut bare = Vec::new();
        for def in crate::ops::all() {
            let schema = def.entry().expect("a registered op").schema.clone();
            let without = schema.params.iter().filter(|param| def.argument(param.name).is_none());
            bare.extend(without.map(|param| format!("{}: {}", def.name(), param.name)));
        }
        let mend =
            "add a line to the list at the beginning of the op's file, such as `//! - `eps`: added to ..`";
        assert!(bare.is_empty(), "arguments without a meaning ({mend}): {bare:?}");
    }

    #[test]
    fn every_meaning_is_of_an_argument() {
        let mut used = BTreeSet::new();
        for def in crate::ops::all() {
            let schema = def.entry().expect("a registered op").schema.clone();
            let names: BTreeSet<&str> = schema.params.iter().map(|param| param.name).collect();
            let own = OWN.iter().find(|(op, _)| *op == def.name()).map_or(&[][..], |(_, own)| own);
            for (name, _) in own {
                assert!(names.contains(name), "`{}` has no argument `{name}`", def.name());
            }
            used.extend(names.into_iter().filter(|name| own.iter().all(|(own, _)| own != name)));
        }
        let unused: Vec<&str> =
            COMMON.iter().map(|(name, _)| *name).filter(|name| !used.contains(name)).collect();
        assert!(unused.is_empty(), "common names that no op has, or each op describes itself: {unused:?}");
    }
}
