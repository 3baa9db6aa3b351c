//! Optimizers, gradients, data and what is around a training.

use crate::table::section;
use keyway::autograd::{self, BackwardOptions};
use keyway::data::{self, Dataset};
use keyway::optim::lr_scheduler::{self, LrScheduler};
use keyway::optim::{self, *};
use keyway::prelude::*;
use keyway::profiler;

section! {
    optimizers "torch.optim"
    "w = torch.ones(3, requires_grad=True); w.sum().backward(); opt = torch.optim.SGD([w], lr=0.1)" {
        let w = Tensor::ones(3)?.requires_grad_(true)?;
        w.sum(..)?.backward()?;
        let mut opt = optim::Sgd::new(vec![w.clone()], 0.1)?;
    }
    "torch.optim.SGD([w], lr=0.1, momentum=0.9)" => { optim::Sgd::new(vec![w], SgdOptions::default().lr(0.1).momentum(0.9))? } "`model.parameters()` is such a vector";
    "torch.optim.Adam([w])" => { optim::Adam::new(vec![w], AdamOptions::default())? };
    "torch.optim.AdamW([w])" => { optim::AdamW::new(vec![w], AdamWOptions::default())? };
    "torch.optim.Adagrad([w])" => { optim::Adagrad::new(vec![w], AdagradOptions::default())? };
    "torch.optim.RMSprop([w])" => { optim::RmsProp::new(vec![w], RmsPropOptions::default())? };
    "torch.optim.SparseAdam([w])" => { optim::SparseAdam::new(vec![w], SparseAdamOptions::default())? };
    "torch.optim.SGD([{'params': [w], 'lr': 0.1}])" => { optim::Sgd::with_groups(vec![Group { parameters: vec![w], options: SgdOptions::default().lr(0.1) }])? };
    "nn.utils.clip_grad_norm_([w], 1.)" => { optim::clip_grad_norm_(&[w], 1.0)? };
    "nn.utils.clip_grad_value_([w], 1.)" => { optim::clip_grad_value_(&[w], 1.0)? };
    "opt.zero_grad()" => { opt.zero_grad() };
    "opt.step()" => { opt.step()? };
    "opt.param_groups" => { opt.groups() };
    "opt.param_groups[0]['lr'] = 0.01" => { opt.set_learning_rates(&[0.01])? } "one for each group";
    "[group['lr'] for group in opt.param_groups]" => { opt.learning_rates() };
    "with torch.autocast('cpu', torch.bfloat16):" => { let _mixed = keyway::autocast(DType::BF16)?; } "until the guard is dropped; on every device";
    "torch.amp.GradScaler('cpu')" => { optim::GradScaler::default() };
    "torch.amp.GradScaler('cpu').scale(w.sum())" => { optim::GradScaler::default().scale(&w.sum(..)?)? };
    "opt.state_dict()" => { opt.state_dict()? };
    "opt.load_state_dict(opt.state_dict())" => { let state = opt.state_dict()?; opt.load_state_dict(&state)? };
    "torch.optim.lr_scheduler.StepLR(opt, 10, 0.1)" => { lr_scheduler::StepLr::new(&opt, 10, 0.1)? };
    "torch.optim.lr_scheduler.MultiStepLR(opt, [10, 20], 0.1)" => { lr_scheduler::MultiStepLr::new(&opt, &[10, 20], 0.1)? };
    "torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)" => { lr_scheduler::ExponentialLr::new(&opt, 0.9)? };
    "torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)" => { lr_scheduler::CosineAnnealingLr::new(&opt, 10)? };
    "torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 10)" => { lr_scheduler::CosineAnnealingWarmRestarts::new(&opt, 10)? };
    "torch.optim.lr_scheduler.LinearLR(opt, 0.3, 1.0, 5)" => { lr_scheduler::LinearLr::new(&mut opt, 0.3, 1.0, 5)? };
    "torch.optim.lr_scheduler.PolynomialLR(opt, 5, 1.0)" => { lr_scheduler::PolynomialLr::new(&opt, 5, 1.0)? };
    "torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.9 ** epoch)" => { lr_scheduler::LambdaLr::new(&mut opt, |epoch| 0.9f64.powi(epoch as i32))? };
    "torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=100)" => { lr_scheduler::OneCycleLr::new(&mut opt, 0.1, 100, Default::default())? };
    "torch.optim.lr_scheduler.ReduceLROnPlateau(opt)" => { lr_scheduler::ReduceLrOnPlateau::new(Default::default())? };
    "torch.optim.lr_scheduler.SequentialLR(opt, [torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, 3), torch.optim.lr_scheduler.StepLR(opt, 10)], [3])" => { let steps = lr_scheduler::StepLr::new(&opt, 10, 0.1)?; lr_scheduler::WarmupLr::new(&mut opt, 0.1, 3, steps)? } "a warm-up before another schedule";
    "torch.optim.lr_scheduler.StepLR(opt, 10).step()" => { lr_scheduler::StepLr::new(&opt, 10, 0.1)?.step(&mut opt)? };
}

section! {
    gradients "Autograd"
    "w = torch.tensor([1., 2.], requires_grad=True); y = (w * w).sum()" {
        let w = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
        let y = (&w * &w)?.sum(..)?;
    }
    "torch.zeros(2, requires_grad=True)" => { Tensor::zeros(2)?.requires_grad_(true)? };
    "w.requires_grad" => { w.requires_grad() };
    "w.requires_grad_(False)" => { w.requires_grad_(false)? };
    "w.is_leaf" => { w.is_leaf() };
    "y.backward()" => { y.backward()? };
    "y.backward(retain_graph=True)" => { y.backward_with(BackwardOptions::default().retain_graph(true))? };
    "(w * 2).backward(torch.ones(2))" => { (&w * 2)?.backward_with(&Tensor::ones(2)?)? };
    "w.grad" => { w.grad() } "an `Option`";
    "w.grad = None" => { w.zero_grad() };
    "w.grad = torch.ones(2)" => { w.set_grad(Tensor::ones(2)?)? };
    "torch.autograd.grad(y, [w])" => { autograd::grad(&[y], &[w], Default::default())? } "each is an `Option`: `None` only where `allow_unused` is set";
    "torch.autograd.grad(y, [w], create_graph=True)" => { autograd::grad(&[y], &[w], BackwardOptions::default().create_graph(true))? };
    "torch.autograd.backward([y])" => { autograd::backward(&[y], Default::default())? };
    "with torch.no_grad():" => { let _off = keyway::no_grad(); } "until the guard is dropped; `let _ = no_grad()` drops it at once";
    "with torch.enable_grad():" => { let _on = keyway::enable_grad(); };
    "with torch.inference_mode():" => { let _off = keyway::inference_mode(); };
    "with torch.set_grad_enabled(False):" => { let _off = keyway::set_grad_enabled(false); };
    "torch.is_grad_enabled()" => { keyway::is_grad_enabled() };
    "w.detach()" => { w.detach() } "no `Result`";
    "w.data" => { w.detach() } "a change counts for the graph";
    "y.retain_grad()" => { y.retain_grad()? };
    "y.grad_fn" => { y.grad_fn() };
    "y.grad_fn.name()" => { y.grad_fn().map(|node| node.name()) } "`sum`, not `SumBackward0`";
    "y.grad_fn.next_functions" => { y.grad_fn().map(|node| node.next_functions()) };
    "w.register_hook(lambda grad: grad * 2)" => { w.register_hook(|grad| grad.mul(2).map(Some))? } "the hook goes with the handle, unless `keep` is called";
    "torch.utils.checkpoint.checkpoint(torch.exp, w, use_reentrant=False)" => { autograd::checkpoint(|inputs| Ok(vec![inputs[0].exp()?]), &[w])? };
    "torch.autograd.set_detect_anomaly(True)" => { let _guard = autograd::detect_anomaly(); };
    "torch.autograd.detect_anomaly()" => { let _guard = autograd::detect_anomaly(); };
    "torch.autograd.gradcheck(torch.exp, [torch.ones(2, dtype=torch.float64, requires_grad=True)])" => { autograd::gradcheck::gradcheck(&|inputs| Ok(vec![inputs[0].exp()?]), &[Tensor::ones_with(2, DType::F64)?.requires_grad_(true)?], Default::default())? } "gives the first mismatch";
    "torch.autograd.gradgradcheck(torch.exp, [torch.ones(2, dtype=torch.float64, requires_grad=True)])" => { autograd::gradcheck::gradgradcheck(&|inputs| Ok(vec![inputs[0].exp()?]), &[Tensor::ones_with(2, DType::F64)?.requires_grad_(true)?], Default::default())? } "gives the first mismatch";
    "Twice.apply(w)" => { autograd::apply(Twice, &[w])? } "`Twice` implements `autograd::Function`";
    "class Twice(torch.autograd.Function):" => { let function: &dyn autograd::Function = &Twice; } "`forward` and `backward`; `context.save(&[&x])` and `context.saved()` for what is saved";
    "torchviz.make_dot(y)" => { autograd::draw::dot(&[&y])? } "`draw::svg` needs no Graphviz";
}

/// A function with a derivative of its own.
struct Twice;

impl autograd::Function for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }
    fn forward(&self, _: &mut autograd::Context, inputs: &[Tensor]) -> keyway::Result<Vec<Tensor>> {
        Ok(vec![inputs[0].mul(2)?])
    }
    fn backward(&self, _: &autograd::Context, grads: &[Tensor]) -> keyway::Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].mul(2)?)])
    }
}

section! {
    sparse "torch.sparse"
    "at = torch.tensor([[0, 1], [2, 0]]); v = torch.tensor([3., 4.]); d = torch.eye(3); s = torch.sparse_coo_tensor(at, v, (2, 3)); c = d.to_sparse_csr()" {
        let at = Tensor::new([[0i64, 1], [2, 0]])?;
        let v = Tensor::new([3.0f32, 4.0])?;
        let d = Tensor::eye(3)?;
        let s = Tensor::sparse_coo(&at, &v, (2, 3))?;
        let c = d.to_sparse_csr()?;
    }
    "torch.sparse_coo_tensor(at, v, (2, 3))" => { Tensor::sparse_coo(&at, &v, (2, 3))? } "as a leaf its gradient has its indices, and for each entry of a place the whole gradient there: `coalesce()` the leaf first where that is not meant";
    "torch.sparse_csr_tensor(c.crow_indices(), c.col_indices(), c.values(), (3, 3))" => { Tensor::sparse_csr(&c.crow_indices()?, &c.col_indices()?, &c.values()?, (3, 3))? };
    "d.to_sparse()" => { d.to_sparse()? };
    "d.to_sparse_csr()" => { d.to_sparse_csr()? };
    "s.to_dense()" => { s.to_dense()? };
    "s.coalesce()" => { s.coalesce()? };
    "s.is_coalesced()" => { s.is_coalesced()? };
    "s.coalesce().indices()" => { s.coalesce()?.indices()? };
    "s._values()" => { s.values()? };
    "s._nnz()" => { s.nnz()? };
    "s.sparse_dim()" => { s.sparse_dim()? };
    "s.is_sparse" => { s.is_sparse() } "of compressed rows too";
    "c.crow_indices()" => { c.crow_indices()? };
    "torch.sparse.mm(s, d)" => { s.mm(&d)? };
    "s @ d" => { s.matmul(&d)? };
    "torch.sparse.sum(s, 0)" => { s.sum(0)? };
    "torch.sparse.softmax(s, 1)" => { s.softmax(1)? };
    "torch.sparse.sampled_addmm(c, d, d, beta=0)" => { c.sampled_mm(&d, &d)? };
    "d.sparse_mask(d.to_sparse())" => { d.sparse_mask(&d.to_sparse()?)? };
    "F.embedding(at, d, sparse=True)" => { d.embedding_sparse(&at)? } "gradients are sparse";
}

section! {
    around "Data, profiler, graphs"
    "x = torch.arange(12.).reshape(6, 2); t = torch.arange(6); set = torch.utils.data.TensorDataset(x, t)" {
        let x = Tensor::arange(0.0, 12.0)?.reshape((6, 2))?;
        let t = Tensor::arange(0, 6)?;
        let set = data::TensorDataset::new(x.clone(), t.clone())?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("trace.json");
    }
    "torch.utils.data.TensorDataset(x, t)" => { data::TensorDataset::new(x, t)? };
    "torch.utils.data.DataLoader(set, 2)" => { data::DataLoader::new(set, 2)? };
    "torch.utils.data.DataLoader(set, 2, shuffle=True, drop_last=True)" => { data::DataLoader::new(set, 2)?.shuffle(0).drop_last(true) } "`shuffle` takes a seed, or `true`; `DataLoader::builder(set)` chains the options";
    "for inputs, targets in torch.utils.data.DataLoader(set, 2):" => { for batch in &data::DataLoader::new(&set, 2)? { let (inputs, targets) = batch?.into(); } } "each pass over a loader is the next epoch; `epoch(0)` is the first";
    "len(set)" => { set.len() };
    "set[0]" => { set.get(0)? } "a data set of one's own implements `len` and `get`";
    "torch.utils.data.random_split(set, [4, 2])" => { data::random_split(set, [4, 2])? } "shares too, `[0.8, 0.2]`";
    "torch.utils.data.Subset(set, [3, 1])" => { data::Subset::new(set, vec![3, 1])? };
    "torch.utils.data.ConcatDataset([set, set])" => { data::ConcatDataset::new(vec![&set, &set]) };
    "torch.utils.data.RandomSampler(set)" => { data::Sampler::shuffled(set.len(), 0) };
    "torch.utils.data.SequentialSampler(set)" => { data::Sampler::sequential(set.len()) };
    "torch.profiler.profile()" => { let profile = profiler::profile(); x.exp()?; println!("{}", profile.report()); };
    "torch.profiler.profile(with_stack=True).export_chrome_trace(path)" => { let profile = profiler::trace(); x.exp()?; profile.trace().write_json(std::fs::File::create(&path)?)?; };
    "torch.profiler.record_function('forward')" => { let _scope = profiler::scope("forward"); };
    "torch.cuda.memory_snapshot()" => { let memory = profiler::memory(); x.exp()?; memory.snapshot() } "on every device";
    "torch.cuda.memory_stats()" => { profiler::device_memory() } "a row for each device";
    "torch.cuda.empty_cache()" => { keyway::device::empty_cache(Device::CPU)? } "any device";
}
