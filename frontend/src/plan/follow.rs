//! The dispatch key that records forward passes and applies plans.

use super::order::{is_image, is_in_place};
use super::record::{Node, Recording};
use super::{Plan, Step};
use crate::arguments::replacing;
use crate::nn::{Module, ModuleError, ModuleVisitor};
use crate::profiler::ModulePaths;
use crate::{MemoryFormat, Result, Tensor};
use keyway_dispatcher::call::redispatch;
use keyway_dispatcher::error::Result as DispatchResult;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::op::{Call, Outputs};
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use once_cell::sync::OnceCell;
use std::cell::RefCell;
use std::sync::Arc;

const KEY: KeySet = KeySet::of(DispatchKey::FORMAT_PLAN);

/// Initialized when a program first uses a plan.
static KEY_REGISTERED: OnceCell<()> = OnceCell::new();

/// The action of a thread on its calls.
enum Active {
    /// Records calls; `None` while a call is being recorded.
    Recording(Option<Box<Recording>>),
    /// Converts arguments. `next` is the step of the next call, `None` once the calls deviate from the plan.
    Following { plan: Arc<Plan>, next: Option<usize> },
}

thread_local! {
    /// The active recordings and plans of the thread, the innermost last.
    static ACTIVE: RefCell<Vec<Active>> = const { RefCell::new(Vec::new()) };
}

/// A guard that removes the innermost action when dropped.
struct Entered {
    _key: KeyGuard,
}

impl Entered {
    fn begin(active: Active) -> Entered {
        ACTIVE.with_borrow_mut(|all| all.push(active));
        Entered { _key: KeyGuard::include(KEY) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Dropped outside the borrow, since dropping tensors may run user code.
        drop(ACTIVE.try_with(|all| all.borrow_mut().pop()));
    }
}

fn install() -> DispatchResult<()> {
    register_key_handler(KeyHandler {
        key: DispatchKey::FORMAT_PLAN,
        name: "format_plan".to_string(),
        applies: |_| true,
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

/// The action for one call.
enum Task {
    Record(Box<Recording>),
    Convert(Arc<Plan>, usize),
    Nothing,
}

fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    // Calls inside a decomposition belong to the op, and conversions are not calls of the module.
    let _whole = KeyGuard::exclude(KEY);
    let task = ACTIVE.with_borrow_mut(|all| match all.last_mut() {
        Some(Active::Recording(recording)) => recording.take().map_or(Task::Nothing, Task::Record),
        Some(Active::Following { plan, next }) => {
            let step = next.filter(|&at| plan.steps.get(at).is_some_and(|step| step.is_of(call)));
            *next = step.map(|at| at + 1);
            step.map_or(Task::Nothing, |at| Task::Convert(plan.clone(), at))
        }
        None => Task::Nothing,
    });
    match task {
        Task::Record(mut recording) => {
            let outputs = recording.record(call, below);
            ACTIVE.with_borrow_mut(|all| {
                if let Some(Active::Recording(place)) = all.last_mut() {
                    *place = Some(recording);
                }
            });
            outputs
        }
        Task::Convert(plan, at) => convert(call, below, &plan.steps[at]),
        Task::Nothing => redispatch(call, below),
    }
}

impl Step {
    /// Whether a call matches the op of this step.
    fn is_of(&self, call: &Call<'_>) -> bool {
        self.op == call.args.op.name && self.in_place == is_in_place(call)
    }
}

/// Runs a call with its images converted to the format of a step.
fn convert(call: &Call<'_>, below: KeySet, step: &Step) -> DispatchResult<Outputs> {
    let mut keeps = is_in_place(call);
    let change = |t: &_| {
        let is_target = std::mem::take(&mut keeps);
        let of = || Tensor::from_ref(Clone::clone(t));
        match step.format {
            Some(format) if is_image(t) && !is_target => {
                let (of, made) = (of(), of().to(format)?);
                Ok((!made.ptr_eq(&of)).then_some(made))
            }
            None if step.by_strides && !of().is_contiguous() => of().contiguous().map(Some),
            _ => Ok(None),
        }
    };
    replacing(&call.args, change, |args| redispatch(&Call { args, out: call.out }, below))?
}

/// Records the tensors and calls of one forward pass.
pub(super) fn record<M: Module + ?Sized>(rounds: usize, module: &M, input: &Tensor) -> Result<Vec<Node>> {
    crate::runtime::start()?;
    KEY_REGISTERED.get_or_try_init(install)?;
    let images = module.named_parameters().into_iter().filter(|(_, parameter)| is_image(parameter.as_ref()));
    let recording = Box::new(Recording::new(rounds, images.collect()));
    let _paths = ModulePaths::begin();
    let _on = Entered::begin(Active::Recording(Some(recording)));
    module.forward(input)?;
    let recorded = ACTIVE.with_borrow_mut(|all| match all.last_mut() {
        Some(Active::Recording(recording)) => recording.take(),
        _ => None,
    });
    Ok(recorded.map(|recording| recording.nodes).unwrap_or_default())
}

/// A module that follows the memory formats of a [`Plan`], created by [`Plan::apply`]. Names and values of parameters are those
/// of the inner module.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::nn::{Conv2d, Module};
/// use keyway::plan::Planned;
/// let images = Tensor::ones((1, 3, 8, 8))?;
/// let model = Conv2d::new(3, 8, 3)?;
/// let planned: Planned<Conv2d> = keyway::plan::plan(&model, &images)?.apply(model)?;
/// planned.forward(&images)?.sum_all()?.backward()?;
/// assert!(planned.get_parameter("weight")?.grad().is_some());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Planned<M> {
    module: M,
    plan: Arc<Plan>,
}

impl<M: Module> Planned<M> {
    /// The plan of the module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Relu};
    /// let images = Tensor::ones((1, 3, 8, 8))?;
    /// let planned = keyway::plan::plan(&Relu, &images)?.apply(Relu)?;
    /// assert_eq!(planned.plan().steps[0].op, "relu");
    /// # Ok(()) }
    /// ```
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl<M: Module> Module for Planned<M> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _on = Entered::begin(Active::Following { plan: self.plan.clone(), next: Some(0) });
        self.module.forward(input)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        self.module.visit(visitor);
    }

    fn type_name(&self) -> &'static str {
        self.module.type_name()
    }
}

impl Plan {
    /// Wraps the module so that it follows this plan: parameters are converted once, and arguments as planned. Converted
    /// parameters are new tensors afterwards: create the optimizer after this call.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::nn::{Conv2d, Module, Relu};
    /// let images = Tensor::ones((1, 3, 8, 8))?;
    /// let model = Conv2d::new(3, 8, 3)?;
    /// let plan = keyway::plan::plan(&model, &images)?;
    /// assert!(plan.clone().apply(Relu).is_err(), "another module");
    /// let planned = plan.apply(model)?;
    /// assert_eq!(planned.forward(&images)?.shape(), [1, 8, 6, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A module without the parameters that the plan has a format for; out of memory. Nothing is changed then.
    pub fn apply<M: Module>(self, module: M) -> Result<Planned<M>> {
        let names: Vec<String> = module.named_parameters().into_iter().map(|(name, _)| name).collect();
        if let Some((missing, _)) = self.parameters.iter().find(|(name, _)| !names.contains(name)) {
            return Err(ModuleError::Name {
                owner: module.type_name(),
                expected: names,
                got: format!("{missing}, which the plan of another module has"),
            }
            .into());
        }
        let format_of = |name: &str| -> Option<MemoryFormat> {
            self.parameters.iter().find(|(own, _)| own == name).map(|(_, format)| *format)
        };
        crate::nn::convert_named(&module, |name, tensor| match format_of(name) {
            Some(format) => tensor.to(format),
            None => Ok(tensor.clone()),
        })?;
        Ok(Planned { module, plan: Arc::new(self) })
    }
}
