//! The arguments of a sample in the layout that a kernel is registered for.

use super::{in_four_dims, tensors};
use crate::array::{Array, Indices, Number};
use crate::call::Prepared;
use crate::inputs;
use crate::known_layouts::{self, Form, Known};
use crate::memory::{Arrangement, read};
use crate::oracle::{Inputs, Value};
use crate::outcome::Steps;
use keyway::dispatcher::registry::LayoutTolerance;
use keyway::dispatcher::{layouts, table};
use keyway::ops::sample::{Role, Sample, SampleArg};
use keyway::{Device, Layout, Result, Tensor};
use std::sync::Arc;

/// A call that is ready to be made.
#[derive(Clone)]
pub struct Call {
    /// The prepared call; its tensors are those before the conversion.
    pub prepared: Arc<Prepared>,
    /// The tensors to call with.
    pub tensors: Vec<Tensor>,
    /// The values of the arguments.
    pub inputs: Inputs,
    /// Name of the placement.
    pub name: String,
    /// The code besides the suite's that created or read them.
    pub how: Option<&'static str>,
    /// Mask of the stored elements of each array; for strided tensors all.
    pub stored: Vec<Vec<bool>>,
    /// The digits that the composite layout loses, with the options of the conversions.
    pub tolerance: LayoutTolerance,
}

impl Call {
    /// Whether composite tensors store zeros.
    pub fn stores_zeros(&self) -> bool {
        let any = |(tensor, (array, stored)): (&Tensor, (&Array, &Vec<bool>))| {
            !tensor.as_ref().is_strided()
                && array.values.iter().zip(stored).any(|(value, stored)| *stored && !value.truth())
        };
        self.tensors.iter().zip(arrays(&self.inputs).into_iter().zip(&self.stored)).any(any)
    }
}

/// The arrays of the inputs, lists flattened.
pub fn arrays(inputs: &Inputs) -> Vec<&Array> {
    let mut arrays = Vec::new();
    for value in &inputs.0 {
        match value {
            Value::Array(array) => arrays.push(array),
            Value::Arrays(list) => arrays.extend(list),
            _ => {}
        }
    }
    arrays
}

/// The arrangements for kernels of strided tensors, the usual one first.
const STRIDED: [Arrangement; 2] = [Arrangement::Contiguous, Arrangement::Transposed];

fn is_composite(layout: Layout) -> bool {
    !layout.is_strided()
}

/// The non-zero elements of a composite tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// The first of [`FILLINGS`] that the layout supports.
    Some,
    /// Non-zero elements in some rows, but not in the first, in adjacent ones, or in the last of many.
    InSomeRows,
    /// No non-zero element.
    None,
    /// The last element.
    One,
    /// All.
    All,
    /// Those of the inputs that differ from 0.
    Given,
}

impl Entries {
    fn fillings(self) -> &'static [Filling] {
        match self {
            Entries::Some => &FILLINGS,
            Entries::InSomeRows => &[|index, _| {
                index.first().is_some_and(|row| row % 3 == 1) && index.iter().sum::<usize>() % 2 == 1
            }],
            Entries::None => &[|_, _| false],
            Entries::One => &[|index, sizes| index.iter().zip(sizes).all(|(i, size)| i + 1 == *size)],
            Entries::All | Entries::Given => &[|_, _| true],
        }
    }

    /// The filling's name in a case.
    fn name(self) -> &'static str {
        match self {
            Entries::Some => "",
            Entries::InSomeRows => ", with empty rows",
            Entries::None => ", empty",
            Entries::One => ", one entry",
            Entries::All => ", all entries",
            Entries::Given => ", entries as given",
        }
    }
}

/// The forms of a composite tensor's entries, and the entries that exist.
pub fn forms(layout: Layout) -> &'static [(Form, Entries)] {
    match known_layouts::find(layout) {
        Some(Known::Coo) => &[
            (Form::Coalesced, Entries::Some),
            (Form::Duplicates, Entries::Some),
            (Form::Hybrid, Entries::Some),
            (Form::HybridDuplicates, Entries::Some),
            (Form::StoredZeros, Entries::Some),
            (Form::Gaps, Entries::Some),
            (Form::Coalesced, Entries::None),
            (Form::Coalesced, Entries::One),
            (Form::Coalesced, Entries::All),
        ],
        Some(Known::Csr) => &[
            (Form::Coalesced, Entries::Some),
            (Form::StoredZeros, Entries::Some),
            (Form::Gaps, Entries::Some),
            (Form::Coalesced, Entries::InSomeRows),
            (Form::Coalesced, Entries::None),
            (Form::Coalesced, Entries::One),
            (Form::Coalesced, Entries::All),
        ],
        None => &[(Form::Coalesced, Entries::Some), (Form::Coalesced, Entries::All)],
    }
}

/// The maximum length of a list in which each tensor is tested in a composite layout by itself: of a longer one only the
/// first and the last.
const LIST: usize = 4;

/// The indices, among all tensors of the sample, of those that are tested in a composite layout by themselves.
fn alone(sample: &Sample) -> Vec<usize> {
    let (mut places, mut before) = (Vec::new(), 0);
    for arg in &sample.args {
        let list = match arg {
            SampleArg::Tensor(t) => std::slice::from_ref(t),
            SampleArg::Tensors(list) => list.as_slice(),
            _ => &[],
        };
        let chosen = |nth: usize| list.len() <= LIST || nth == 0 || nth + 1 == list.len();
        let tested = list.iter().enumerate().filter(|(nth, t)| t.role == Role::Tested && chosen(*nth));
        places.extend(tested.map(|(nth, _)| before + nth));
        before += list.len();
    }
    places
}

/// The number of choices of the tensors in a composite layout: all under test together, then each by itself.
pub fn choices(sample: &Sample) -> usize {
    match tensors(sample).filter(|t| t.role == Role::Tested).count() {
        tested @ (0 | 1) => tested,
        _ => 1 + alone(sample).len(),
    }
}

/// Indices, among all tensors of the sample, of those in the composite layout in a choice.
pub fn chosen(sample: &Sample, choice: usize) -> Vec<usize> {
    match choice {
        0 => {
            let tested = tensors(sample).enumerate().filter(|(_, t)| t.role == Role::Tested);
            tested.map(|(nth, _)| nth).collect()
        }
        nth => vec![alone(sample)[nth - 1]],
    }
}

/// The number of placements: for composite layouts, and each form of the entries, all tensors under test in the layout,
/// then each by itself.
pub fn count(layout: Layout, sample: &Sample) -> usize {
    if is_composite(layout) {
        return choices(sample) * forms(layout).len();
    }
    if layout == Layout::STRIDED { STRIDED.len() } else { 1 }
}

/// Placement `nth` of a sample; `None` if the layout cannot hold these shapes, or no tensor of the sample can be in it.
pub fn place(
    layout: Layout,
    sample: &Sample,
    inputs: &Inputs,
    nth: usize,
    device: Device,
) -> Steps<Option<Call>> {
    if is_composite(layout) {
        let (form, choice) = match choices(sample) {
            0 => return Ok(None),
            choices => (forms(layout)[nth / choices], nth % choices),
        };
        return composite(layout, sample, inputs, (form, choice, nth), device);
    }
    let strided = layout == Layout::STRIDED;
    let arrangement = if strided { STRIDED[nth] } else { Arrangement::ChannelsLast };
    let mut inputs = inputs.clone();
    if layout == Layout::CHANNELS_LAST {
        let Some(images) = in_four_dims(sample) else { return Ok(None) };
        let mut sizes = tensors(&images).map(|t| t.sizes.clone());
        inputs::map_arrays(&mut inputs, |array| {
            if let Some(sizes) = sizes.next().filter(|sizes| *sizes != array.sizes) {
                let count = array.values.len().max(1);
                let values = array.values.clone();
                let nth = |index: &[usize]| crate::array::flat(&sizes, index) % count;
                *array = Array::from_fn(array.dtype, sizes.clone(), |index| values[nth(index)]);
            }
        });
    }
    let wanted = |sizes: &[usize]| {
        arrangement.suits(sizes) && (arrangement != Arrangement::ChannelsLast || sizes.len() > 3)
    };
    let arrange = |sizes: &[usize]| if wanted(sizes) { arrangement } else { Arrangement::Contiguous };
    let prepared = Prepared::new(&inputs, device, arrange)?;
    let any = prepared.placed.iter().any(|placed| wanted(placed.tensor.shape()));
    if arrangement != Arrangement::Contiguous && !any {
        return Ok(None);
    }
    let (tensors, name) = (prepared.tensors(), arrangement.name().to_string());
    let stored = arrays(&inputs).iter().map(|array| vec![true; array.numel()]).collect();
    let tolerance = LayoutTolerance::default();
    let prepared = Arc::new(prepared);
    Ok(Some(Call { prepared, tensors, inputs, name, how: None, stored, tolerance }))
}

/// Whether the element at an index of a tensor of these sizes is non-zero.
pub type Filling = fn(&[usize], &[usize]) -> bool;

/// Patterns of the non-zero elements of a composite tensor, from many to few elements; the first that the layout supports
/// is used.
pub const FILLINGS: [Filling; 3] = [
    |index, _| index.iter().fold(0, |place, i| place * 7 + i).is_multiple_of(3),
    |index, _| index.windows(2).all(|pair| pair[0] == pair[1]),
    |index, _| index.iter().all(|&i| i == 0),
];

/// The sample with the tensors of a choice in a composite layout, their entries in a form; `turn` selects the options of the
/// conversion. `None` where the layout cannot hold these shapes or values.
pub fn composite(
    layout: Layout,
    sample: &Sample,
    inputs: &Inputs,
    ((form, entries), choice, turn): ((Form, Entries), usize, usize),
    device: Device,
) -> Steps<Option<Call>> {
    let chosen = chosen(sample, choice);
    for sizes in tensors(sample).enumerate().filter(|(at, _)| chosen.contains(at)).map(|(_, t)| &t.sizes) {
        if !layouts::accepts(layout, device, sizes).map_err(keyway::Error::from)? {
            return Ok(None);
        }
    }
    let known = known_layouts::find(layout);
    for filled in entries.fillings() {
        let mut inputs = inputs.clone();
        let mut at = 0;
        inputs::map_arrays(&mut inputs, |array| {
            if chosen.contains(&at) {
                let mut indices = Indices::new(&array.sizes);
                for value in &mut array.values {
                    let index = indices.next().unwrap_or_default();
                    if !filled(&index, &array.sizes) {
                        *value = Number::Int(0).cast(array.dtype);
                    } else if entries == Entries::All && !value.truth() {
                        *value = Number::Int(1).cast(array.dtype);
                    }
                }
            }
            at += 1;
        });
        let prepared = Prepared::contiguous(&inputs, device)?;
        let mut tolerance = LayoutTolerance::default();
        let made =
            prepared.placed.iter().zip(arrays(&inputs)).enumerate().map(|(at, (placed, array))| {
                match (chosen.contains(&at), known) {
                    (false, _) => Ok(placed.tensor.clone()),
                    (true, Some(known)) => known_layouts::make(known, array, layout, device, form),
                    (true, None) => {
                        let (made, loses) = converted(&placed.tensor, layout, turn + at)?;
                        tolerance = larger(tolerance, loses);
                        Ok(made)
                    }
                }
            });
        let Ok(tensors) = made.collect::<Result<Vec<_>>>() else { continue };
        read_back(layout, &tensors, &mut inputs)?;
        let name = match choice {
            0 => format!("all in {layout}"),
            _ => format!("tensor {} in {layout}", chosen[0]),
        };
        let name = match form {
            Form::Coalesced => format!("{name}{}", entries.name()),
            form => format!("{name}, {}{}", form.name(), entries.name()),
        };
        let how = known.is_none().then_some("the oracle, through the layout's own conversions");
        let stored = arrays(&inputs).into_iter().enumerate().map(|(at, array)| match chosen.contains(&at) {
            true => known_layouts::stored(array, form),
            false => vec![true; array.numel()],
        });
        let (stored, prepared) = (stored.collect(), Arc::new(prepared));
        return Ok(Some(Call { prepared, tensors, inputs, name, how, stored, tolerance }));
    }
    Ok(None)
}

/// A tensor in a layout, with the options of one of the layout's own samples if valid, or with none, so that kernels are tested
/// with small blocks in small tensors. Also returns the digits that these options lose.
fn converted(tensor: &Tensor, layout: Layout, turn: usize) -> Result<(Tensor, LayoutTolerance)> {
    let Some(entry) = table::current().layout(layout) else {
        return Ok((tensor.to_layout(layout)?, LayoutTolerance::default()));
    };
    let samples = entry.conversion.samples.iter().filter(|sample| !sample.options.is_empty());
    let samples: Vec<_> = samples.collect();
    let sample = samples.get(turn % (samples.len() + 1)).copied();
    match sample.map(|sample| (tensor.to_layout_with(layout, &sample.options), sample.tolerance)) {
        Some((Ok(made), tolerance)) => Ok((made, tolerance.unwrap_or(entry.conversion.tolerance))),
        _ => Ok((tensor.to_layout(layout)?, entry.conversion.tolerance)),
    }
}

/// The larger of each part.
fn larger(a: LayoutTolerance, b: LayoutTolerance) -> LayoutTolerance {
    LayoutTolerance {
        absolute: a.absolute.max(b.absolute),
        relative: a.relative.max(b.relative),
        relative_to_max: a.relative_to_max.max(b.relative_to_max),
    }
}

/// Replaces the inputs of a lossy layout by the values that its tensors store, from which results are computed.
fn read_back(layout: Layout, tensors: &[Tensor], inputs: &mut Inputs) -> Result<()> {
    let entry = table::current().layout(layout);
    if entry.is_none_or(|entry| entry.conversion.tolerance.is_exact()) {
        return Ok(());
    }
    let held = tensors.iter().map(|tensor| match tensor.layout() == layout {
        true => read(tensor),
        false => Ok(None),
    });
    let mut held = held.collect::<Result<Vec<_>>>()?.into_iter();
    inputs::map_arrays(inputs, |array| {
        if let Some(held) = held.next().flatten() {
            *array = held;
        }
    });
    Ok(())
}

/// The values of shape `sizes` that a filling selects.
pub fn filled(dtype: keyway::DType, sizes: &[usize], filling: Filling) -> Array {
    Array::from_fn(dtype, sizes.to_vec(), |index| {
        let place = index.iter().fold(0, |place, i| place * 7 + i);
        Number::Float(if filling(index, sizes) { 0.5 + place as f64 } else { 0.0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway::ops::sample::{Fill, TensorSample, sample};

    fn one(sizes: &[usize]) -> TensorSample {
        TensorSample { sizes: sizes.to_vec(), fill: Fill::Uniform(0.0, 1.0), role: Role::Tested }
    }

    #[test]
    fn of_a_long_list_the_ends_are_placed_alone() {
        let short = sample([SampleArg::Tensor(one(&[2])), SampleArg::Tensors(vec![one(&[3]); LIST])]);
        assert_eq!((alone(&short), choices(&short)), (vec![0, 1, 2, 3, 4], 6));
        let long =
            sample([SampleArg::Tensors(vec![one(&[3]); 200]), SampleArg::Tensors(vec![one(&[3]); 200])]);
        assert_eq!((alone(&long), choices(&long)), (vec![0, 199, 200, 399], 5));
        let single = sample([SampleArg::Tensors(vec![one(&[3])])]);
        assert_eq!(choices(&single), 1);
    }
}
