"""A program that `test_types.py` checks; it is not run."""

from typing import Any

import numpy as np

import keyway as kw
from keyway import multiprocessing as mp
from keyway import nn, optim
from keyway.data import DataLoader, TensorDataset, random_split

x = kw.zeros(2, 3) + 1.0
y: kw.Tensor = x.sum(dim=0).exp().reshape(3, 1) @ kw.ones(1, 3)
values, indices = kw.topk(x, 2)
number: float = float(y[0, 0])
array = np.asarray(x)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
optimizer = optim.SGD(model.parameters(), lr=0.1)
with kw.no_grad():
    z = kw.add(x, y, alpha=2)
z += 1
xp = kw.array_api
total: kw.Tensor = xp.sum(xp.clip(x, 0, y), axis=(0, 1), keepdims=True, dtype=xp.float64)
largest: float = kw.finfo(kw.result_type(x, 1.0)).max
count: int = x.size + x[::-1].moveaxis((0, 1), (1, 0)).size(0)
shape: tuple[int, ...] = z.float().T.shape
print(kw.float32.name, shape, kw.cat([x, x], dim=0), x < 3, 2 - x, values.item(), indices, number, array, total, largest, count)
shared: kw.Tensor = kw.zeros(3).share_memory_()
name: str = shared.shared_name()
opened = kw.open_shared(name)
mapped = kw.from_file("values", shared=True, size=3, dtype=kw.float32)
process = mp.Process(target=print, args=(shared,))
train, test = random_split(TensorDataset(x, y), [0.5, 0.5], seed=1)
loader = DataLoader(train, batch_size=2, shuffle=True, num_workers=2, seed=0)
batches: int = len(loader)
for batch in loader:
    print(batch, model.share_memory(), shared.is_shared(), opened, mapped, process.exitcode, test)


class Cube(kw.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: kw.Tensor) -> kw.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: kw.Tensor) -> kw.Tensor:
        (x,) = ctx.saved_tensors
        made: kw.Tensor = 3 * x**2 * grad
        return made


leaf = kw.ones(2, requires_grad=True)
handle = leaf.register_hook(lambda grad: grad * 2)
handle.remove()
Cube.apply(leaf).sum().backward(inputs=[leaf])
node = (leaf * 2).grad_fn
print(node.name() if node is not None else "", kw.autograd.gradcheck(Cube.apply, leaf.double()))
matrix = kw.autograd.functional.jacobian(lambda x: x * 2, leaf)
with kw.inference_mode(), kw.autocast("cpu", dtype=kw.bfloat16), kw.autograd.detect_anomaly():
    model(x)
layers = nn.ModuleList([nn.LSTM(3, 4, batch_first=True), nn.Conv2d(1, 2, 3, padding="same"), nn.MultiheadAttention(4, 2)])
layers[0].register_forward_hook(lambda module, args, output: None)
schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10)
schedule.step()
rates: list[float] = schedule.get_last_lr()
norm: float = nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
packed = nn.utils.rnn.pack_padded_sequence(kw.ones(3, 2, 3), [3, 2])
output, lengths = nn.utils.rnn.pad_packed_sequence(packed)
scaler = kw.amp.GradScaler(enabled=False)
scaler.step(optimizer)
sparse = kw.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).coalesce()
print(sparse.indices(), sparse.values(), x.median(dim=0).values, kw.quantile(x, 0.5), rates, norm, output, lengths, matrix)
with kw.profiler.profile() as p, kw.profiler.record_function("part"):
    kw.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))
nn.init.kaiming_normal_(nn.Linear(2, 3).weight, nonlinearity="relu")
other: kw.Tensor = kw.from_torch(leaf.to_torch())
