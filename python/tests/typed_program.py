"""A program that `test_types.py` checks; it is not run."""

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
shape: tuple[int, ...] = z.float().T.shape
print(kw.float32.name, shape, kw.cat([x, x], dim=0), x < 3, 2 - x, values.item(), indices, number, array)
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
