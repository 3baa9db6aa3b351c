"""Small programs as users of PyTorch and NumPy write them; where PyTorch is installed, both libraries give the same."""

import importlib
import math

import numpy as np
import pytest

import keyway

try:
    torch = importlib.import_module("torch")
except ImportError:
    torch = None

PROGRAMS = []
ARRAYS = []


def program(function):
    """A program of PyTorch: its argument is the library."""
    PROGRAMS.append(function)
    return function


def array_program(function):
    """A program of NumPy: its argument is the library."""
    ARRAYS.append(function)
    return function


def filled(T, *shape, dtype=None):
    """Values that are the same in both libraries."""
    n = math.prod(shape)
    values = np.sin(np.arange(n) * 0.7 + 0.3).astype(np.float32).reshape(shape)
    made = T.tensor(values)
    return made if dtype is None else made.to(dtype)


def load(T, module):
    """Fills the parameters of a module in the order of their names."""
    with T.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(filled(T, *parameter.shape) * 0.3)
    return module


@program
def linear_regression(T):
    x = filled(T, 20, 3)
    y = x @ T.tensor([[1.0], [-2.0], [0.5]]) + 0.1
    w = T.zeros(3, 1, requires_grad=True)
    b = T.zeros(1, requires_grad=True)
    for _ in range(50):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with T.no_grad():
            w -= 0.1 * w.grad
            b -= 0.1 * b.grad
        w.grad.zero_()
        b.grad = None
    return w, b, loss


@program
def logistic_regression(T):
    x = filled(T, 30, 2)
    y = (x.sum(dim=1) > 0).float()
    model = load(T, T.nn.Linear(2, 1))
    optimizer = T.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-3)
    criterion = T.nn.BCEWithLogitsLoss()
    for _ in range(10):
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(-1), y)
        loss.backward()
        optimizer.step()
    return loss, model.weight, model.bias


@program
def small_network(T):
    nn, F = T.nn, T.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(8, 16)
            self.fc2 = nn.Linear(16, 4)
            self.dropout = nn.Dropout(0.5)

        def forward(self, x):
            x = F.relu(self.fc1(x))
            return F.log_softmax(self.fc2(self.dropout(x)), dim=-1)

    net = load(T, Net()).eval()
    out = net(filled(T, 5, 8))
    return out, F.nll_loss(out, T.tensor([0, 1, 2, 3, 0])), sum(p.numel() for p in net.parameters())


@program
def convolutional_network(T):
    nn = T.nn
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, kernel_size=3, stride=2, bias=False), nn.GELU(), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(8, 3),
    )
    load(T, net)
    net.train()
    images = filled(T, 4, 1, 12, 12)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(net(images), T.tensor([0, 1, 2, 1]))
    loss.backward()
    net.eval()
    return loss, net[0].weight.grad, net[1].running_mean, net(images).argmax(dim=1)


@program
def adam_with_schedule(T):
    x = T.nn.Parameter(filled(T, 5))
    optimizer = T.optim.Adam([x], lr=0.1)
    scheduler = T.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    rates = []
    for _ in range(7):
        optimizer.zero_grad(set_to_none=True)
        (x**2).sum().backward()
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return x, rates, scheduler.get_last_lr()


@program
def parameter_groups(T):
    model = load(T, T.nn.Sequential(T.nn.Linear(3, 3), T.nn.Tanh(), T.nn.Linear(3, 1)))
    optimizer = T.optim.AdamW([{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 1e-2}], lr=1e-3)
    model(filled(T, 4, 3)).sum().backward()
    T.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return list(model.parameters()), [group["lr"] for group in optimizer.param_groups]


@program
def state_of_an_optimizer(T):
    x = T.nn.Parameter(filled(T, 3))
    optimizer = T.optim.SGD([x], lr=0.1, momentum=0.9, nesterov=True)
    x.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    other = T.optim.SGD([x], lr=1.0, momentum=0.1)
    other.load_state_dict(state)
    other.step()
    return x, sorted(state), other.param_groups[0]["momentum"]


@program
def attention_by_hand(T):
    q, k, v = filled(T, 2, 3, 4), filled(T, 2, 5, 4) * 0.5, filled(T, 2, 5, 4) + 1
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    mask = T.ones(3, 5, dtype=T.bool).tril(diagonal=2)
    scores = scores.masked_fill(~mask, float("-inf"))
    return T.softmax(scores, dim=-1) @ v, T.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@program
def multi_head_attention(T):
    layer = load(T, T.nn.MultiheadAttention(8, 2, batch_first=True))
    x = filled(T, 2, 3, 8)
    out, weights = layer(x, x, x)
    return out, weights


@program
def transformer_block(T):
    layer = load(T, T.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True, norm_first=True)).eval()
    return layer(filled(T, 2, 4, 8))


@program
def character_model(T):
    embedding = load(T, T.nn.Embedding(10, 6))
    lstm = load(T, T.nn.LSTM(6, 5, num_layers=2, batch_first=True))
    head = load(T, T.nn.Linear(5, 10))
    tokens = T.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])
    out, (h, c) = lstm(embedding(tokens))
    logits = head(out)
    loss = T.nn.functional.cross_entropy(logits.reshape(-1, 10), tokens.flatten())
    loss.backward()
    return loss, h, c, embedding.weight.grad


@program
def gated_units(T):
    gru = load(T, T.nn.GRU(3, 4, bidirectional=True))
    out, h = gru(filled(T, 5, 2, 3))
    cell = load(T, T.nn.GRUCell(3, 4))
    return out, h, cell(filled(T, 2, 3), T.zeros(2, 4))


@program
def autograd_by_hand(T):
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    x = filled(T, 4).requires_grad_()
    y = Cube.apply(x).sum()
    y.backward()
    return x.grad, y


@program
def higher_derivatives(T):
    x = T.tensor([0.5, 1.5], requires_grad=True)
    y = (x.sin() * x).sum()
    (g,) = T.autograd.grad(y, x, create_graph=True)
    (h,) = T.autograd.grad(g.sum(), x)
    jacobian = T.autograd.functional.jacobian(lambda t: t**2, x.detach())
    hessian = T.autograd.functional.hessian(lambda t: (t**3).sum(), x.detach())
    return g, h, jacobian, hessian


@program
def hooks_on_tensors(T):
    seen = []
    x = T.ones(3, requires_grad=True)
    x.register_hook(lambda grad: seen.append(grad.sum().item()))
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    return x.grad, y.grad, seen, y.grad_fn is not None, x.is_leaf


@program
def hooks_on_modules(T):
    model = load(T, T.nn.Sequential(T.nn.Linear(2, 3), T.nn.ReLU()))
    shapes = []
    handle = model[0].register_forward_hook(lambda module, args, out: shapes.append(tuple(out.shape)))
    model(T.ones(4, 2))
    handle.remove()
    model(T.ones(4, 2))
    return shapes


@program
def freezing_layers(T):
    model = load(T, T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Linear(2, 1)))
    for parameter in model[0].parameters():
        parameter.requires_grad = False
    model(T.ones(1, 2)).backward()
    return model[0].weight.grad is None, model[1].weight.grad, [n for n, p in model.named_parameters() if p.requires_grad]


@program
def modules_in_lists(T):
    nn = T.nn

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
            self.named = nn.ModuleDict({"act": nn.SiLU()})
            self.register_buffer("scale", T.tensor(2.0))
            self.weight = nn.Parameter(T.ones(3))

        def forward(self, x):
            for layer in self.layers:
                x = self.named["act"](layer(x))
            return x * self.scale * self.weight

    stack = load(T, Stack())
    return stack(filled(T, 2, 3)), list(stack.state_dict()), [name for name, _ in stack.named_modules()]


@program
def copying_weights(T):
    a, b = load(T, T.nn.Linear(2, 3)), T.nn.Linear(2, 3)
    missing = b.load_state_dict(a.state_dict())
    return b.weight, list(missing.missing_keys), b(T.ones(1, 2))


@program
def indexing_and_masks(T):
    x = T.arange(24).reshape(2, 3, 4)
    x[0, :, 1] = -1
    x[x > 20] = 0
    rows = T.tensor([2, 0])
    return x[:, 1:, ::2], x[..., -1], x[0, rows], x[:, rows][:, :, None].shape, x[None].shape, x[1, 2, 3].item()


@program
def gather_and_scatter(T):
    x = filled(T, 3, 4)
    index = T.tensor([[0, 1], [2, 3], [1, 0]])
    taken = x.gather(1, index)
    out = T.zeros(3, 4).scatter_(1, index, 1.0)
    out = out.scatter_add(1, index, taken)
    return taken, out, x.index_select(0, T.tensor([2, 2])), T.take_along_dim(x, index, dim=1)


@program
def one_hot_labels(T):
    labels = T.tensor([0, 2, 1])
    return T.nn.functional.one_hot(labels, num_classes=4), T.eye(4)[labels], T.nn.functional.one_hot(labels).float().sum(0)


@program
def shapes(T):
    x = filled(T, 2, 3, 4)
    return (
        x.view(6, 4).shape, x.permute(2, 0, 1).shape, x.transpose(0, 2).contiguous().view(-1).shape, x.flatten(1).shape,
        x.unsqueeze(0).squeeze().shape, x.expand(5, 2, 3, 4).shape, x.repeat(2, 1, 1).shape, T.movedim(x, 0, -1).shape,
        x.unflatten(2, (2, 2)).shape, x.size(), x.size(1), x.dim(), x.ndim, x.numel(), len(x), x.stride(), x.is_contiguous(),
    )


@program
def joining_and_splitting(T):
    a, b = filled(T, 2, 3), filled(T, 2, 3) + 1
    return (
        T.cat([a, b], dim=1), T.stack((a, b)), T.cat((a, b)).chunk(2), T.split(T.cat([a, b]), [1, 3]), T.vstack([a, b]), T.hstack([a, b]),
        a.unbind(0), T.tensor_split(a, 3, dim=1),
    )


@program
def reductions(T):
    x = filled(T, 3, 4)
    return (
        x.sum(), x.mean(dim=0), x.std(), x.var(dim=1, unbiased=False), x.max(), x.max(dim=1).indices, x.min(1)[0], x.argmax(),
        x.prod(dim=1), x.norm(), x.norm(dim=1, p=1), x.cumsum(dim=0), x.logsumexp(1), x.amax((0, 1)), (x > 0).any(), (x > -2).all(dim=1),
        x.median(), T.quantile(x, 0.25), T.std_mean(x), x.mean((0, 1), keepdim=True), T.count_nonzero(x > 0),
    )


@program
def sorting(T):
    x = filled(T, 2, 6)
    values, indices = x.sort(dim=1, descending=True)
    top = x.topk(2)
    return values, indices, top.values, top.indices, x.argsort(), T.unique(T.tensor([3, 1, 3])), x.kthvalue(2).values


@program
def promotion(T):
    a = T.tensor([1, 2, 3])
    return (a / 2).dtype == T.float32, (a + 1.5).dtype == T.float32, (a // 2), a % 2, a**2, (a > 1) & (a < 3), ~(a > 1), -a, a.float() * T.tensor(2)


@program
def conversions(T):
    x = filled(T, 3)
    return (
        x.double().dtype == T.float64, x.half().float(), x.to(T.int64), x.long(), x.to("cpu"), x.type(T.float16).dtype == T.float16, x.tolist(), x.numpy().sum(),
        x.bool(), x.to(dtype=T.float64), x.type_as(T.ones(1, dtype=T.float64)).dtype == T.float64, x.cpu().detach().clone(), x[0].item(), float(x[1]), int(T.tensor(3)),
    )


@program
def elementwise(T):
    x = filled(T, 5)
    return (
        x.exp(), x.abs().log(), x.abs().sqrt(), x.sigmoid(), x.tanh(), x.clamp(-0.5, 0.5), x.clamp(min=0), x.round(), x.floor(), x.sign(), x.pow(2),
        T.where(x > 0, x, T.zeros_like(x)), T.maximum(x, -x), T.lerp(x, x + 1, 0.5), x.reciprocal(), x.rsqrt().isnan(), T.atan2(x, x + 1), x.erf(), x.frac(),
    )


@program
def in_place(T):
    x = T.zeros(2, 3)
    x.add_(1).mul_(2).sub_(0.5)
    x[0] += 1
    x[:, 1] *= 3
    x.fill_diagonal_(9)
    y = T.empty(2, 3)
    T.add(x, 1, out=y)
    return x, y, x.clone().zero_(), T.full((2,), 7.0).fill_(1), T.ones(3).copy_(T.arange(3))


@program
def losses(T):
    F = T.nn.functional
    x, y = filled(T, 4, 3), filled(T, 4, 3) * 0.5
    labels = T.tensor([0, 2, 1, 0])
    return (
        F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.smooth_l1_loss(x, y), F.huber_loss(x, y, delta=0.5), F.cross_entropy(x, labels, weight=T.tensor([1.0, 2.0, 3.0])),
        F.cross_entropy(x, labels, ignore_index=0), F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"),
        F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.cosine_similarity(x, y), F.triplet_margin_loss(x, y, -y), F.normalize(x, dim=1),
    )


@program
def normalisations(T):
    F = T.nn.functional
    x = filled(T, 2, 4, 3)
    return (
        F.layer_norm(x, (3,)), F.group_norm(x, 2), F.instance_norm(x), F.batch_norm(x, T.zeros(4), T.ones(4)), T.nn.LayerNorm([4, 3])(x),
        load(T, T.nn.GroupNorm(2, 4))(x), F.rms_norm(x, (3,)),
    )


@program
def activations(T):
    F = T.nn.functional
    x = filled(T, 6)
    return (
        F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.elu(x, 0.5), F.leaky_relu(x, 0.1), F.softplus(x), F.hardtanh(x), F.mish(x), F.selu(x),
        F.prelu(x, T.tensor([0.25])), F.softmax(x, dim=0), F.relu6(x * 10), F.hardswish(x), F.glu(x), F.logsigmoid(x), T.nn.Softmax(dim=0)(x),
    )


@program
def pooling_and_padding(T):
    F = T.nn.functional
    x = filled(T, 1, 2, 6, 6)
    return (
        F.max_pool2d(x, 2), F.avg_pool2d(x, 3, stride=1, padding=1), F.adaptive_avg_pool2d(x, 1), F.pad(x, (1, 1, 2, 0)), F.pad(x, (1, 1, 1, 1), mode="reflect"),
        F.interpolate(x, scale_factor=2, mode="nearest"), F.interpolate(x, size=(3, 3), mode="bilinear", align_corners=False), F.unfold(x, 2), T.nn.ZeroPad2d(1)(x).shape,
    )


@program
def convolutions(T):
    F = T.nn.functional
    x = filled(T, 1, 4, 8)
    image = filled(T, 1, 2, 5, 5)
    return (
        F.conv1d(x, filled(T, 2, 4, 3), padding="same"), F.conv2d(image, filled(T, 4, 1, 3, 3), groups=2, dilation=2, padding=2),
        F.conv_transpose2d(image, filled(T, 2, 3, 2, 2), stride=2), load(T, T.nn.Conv3d(1, 2, 2))(filled(T, 1, 1, 3, 3, 3)),
    )


@program
def linear_algebra(T):
    a = filled(T, 3, 3).double() + 2 * T.eye(3, dtype=T.float64)
    b = filled(T, 3, 2).double()
    return (
        T.linalg.solve(a, b), T.linalg.inv(a), T.linalg.det(a), T.linalg.norm(a), T.linalg.svd(a).S, T.linalg.eigvalsh(a @ a.T), T.linalg.cholesky(a @ a.mT),
        T.linalg.matrix_rank(a), T.linalg.lstsq(a, b).solution, a.trace(), T.linalg.pinv(a), T.linalg.qr(a).R.abs(), T.linalg.slogdet(a), T.linalg.cross(a[0], a[1]),
    )


@program
def products(T):
    a, b, v = filled(T, 2, 3), filled(T, 3, 4), filled(T, 3)
    return (
        a @ b, T.matmul(a, v), a.mm(b), T.mv(a, v), v.dot(v), T.outer(v, v), T.bmm(filled(T, 2, 2, 3), filled(T, 2, 3, 2)), T.einsum("ij,jk->ik", a, b),
        T.einsum("bi,bj->bij", a, a), T.tensordot(a, b, dims=1), T.addmm(T.ones(2, 4), a, b, beta=0.5), T.kron(a, b).shape, T.cdist(a, a), T.baddbmm(T.zeros(1, 2, 2), a[None], a.T[None]),
    )


@program
def fourier(T):
    x = filled(T, 8)
    spectrum = T.fft.rfft(x)
    return spectrum, T.fft.irfft(spectrum, n=8), T.fft.fft(x).abs(), T.fft.fftfreq(8), T.fft.fftshift(T.arange(5)), T.fft.fft2(filled(T, 2, 4)).real


@program
def complex_numbers(T):
    z = T.complex(filled(T, 3), filled(T, 3) + 1)
    return z, z.real, z.imag, z.conj() * z, z.abs(), z.angle(), T.view_as_real(z), T.polar(T.ones(2), T.tensor([0.0, math.pi / 2])), z.dtype == T.complex64


@program
def random_shapes(T):
    T.manual_seed(0)
    g = T.Generator().manual_seed(1)
    return (
        T.rand(2, 3).shape, T.randn((2, 3)).dtype == T.float32, T.randint(0, 5, (4,)).dtype == T.int64, T.randperm(5).sort().values, T.rand(3, generator=g).shape,
        T.bernoulli(T.full((3,), 1.0)), T.rand_like(T.ones(2)).shape, T.empty(3).uniform_(1, 2).gt(0.99).all(), T.normal(0.0, 1.0, size=(2,)).shape, T.multinomial(T.tensor([0.0, 1.0]), 1),
    )


@program
def creation(T):
    return (
        T.zeros(2), T.ones(2, 3, dtype=T.int32), T.full((2, 2), 3.5), T.arange(0, 1, 0.25), T.linspace(0, 1, 5), T.eye(2, 3), T.tensor([[1, 2], [3, 4]]), T.empty(0).shape,
        T.as_tensor([1.0, 2.0]), T.from_numpy(np.arange(3)), T.zeros_like(T.ones(2)), T.tensor(3.0).item(), T.logspace(0, 2, 3), T.diag(T.tensor([1, 2])), T.tril(T.ones(3, 3)), T.meshgrid(T.arange(2), T.arange(3), indexing="ij"),
    )


@program
def comparisons(T):
    a, b = filled(T, 3), filled(T, 3) + 1e-9
    return a == b, T.allclose(a, b), T.equal(a, a), T.isclose(a, b), a.eq(0), (a != 0).sum(), T.isfinite(a / 0), T.isnan(T.tensor(float("nan"))), T.isinf(T.tensor([math.inf])), a.ge(0.5), T.logical_and(a > 0, b > 0)


@program
def data_loading(T):
    data = importlib.import_module(f"{T.__name__}.utils.data")
    dataset = data.TensorDataset(T.arange(10), T.arange(10) * 2)
    train, test = data.random_split(dataset, [8, 2])

    class Squares(data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return T.tensor(index) ** 2, {"index": index}

    batches = [(x, extra["index"]) for x, extra in data.DataLoader(Squares(), batch_size=2)]
    return [b for b in data.DataLoader(dataset, batch_size=4, drop_last=True)], len(train), len(test), batches


@program
def contexts(T):
    x = T.ones(2, requires_grad=True)
    with T.no_grad():
        y = x * 2
    with T.inference_mode():
        z = x * 2
    with T.set_grad_enabled(False):
        w = x * 2

    @T.no_grad()
    def evaluate():
        return (x * 2).requires_grad

    return y.requires_grad, z.requires_grad, w.requires_grad, evaluate(), T.is_grad_enabled(), x.detach().requires_grad


@program
def accumulating_gradients(T):
    model = load(T, T.nn.Linear(3, 1))
    for batch in filled(T, 4, 2, 3):
        (model(batch).pow(2).mean() / 4).backward()
    before = model.weight.grad.clone()
    model.zero_grad()
    return before, model.weight.grad is None


@program
def variable_lengths(T):
    rnn = T.nn.utils.rnn
    sequences = [filled(T, 3, 2), filled(T, 1, 2), filled(T, 2, 2)]
    padded = rnn.pad_sequence(sequences, batch_first=True)
    packed = rnn.pack_padded_sequence(padded, T.tensor([3, 1, 2]), batch_first=True, enforce_sorted=False)
    lstm = load(T, T.nn.LSTM(2, 3, batch_first=True))
    out, lengths = rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
    return padded, out, lengths


@program
def initialisers(T):
    w = T.empty(4, 4)
    T.nn.init.xavier_uniform_(w)
    T.nn.init.constant_(w, 0.5)
    T.nn.init.zeros_(w)
    T.nn.init.eye_(w)
    return w, T.nn.init.calculate_gain("relu"), T.nn.init.kaiming_normal_(T.empty(3, 3), nonlinearity="relu").shape


@program
def text_of_modules(T):
    model = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.ReLU(), T.nn.Dropout(p=0.1))
    return repr(model), repr(T.nn.Conv2d(1, 2, 3, padding=1)), str(T.nn.LSTM(2, 3)), [repr(m(inplace=True)) for m in (T.nn.ReLU, T.nn.SiLU, T.nn.Hardtanh, T.nn.ELU)], repr(T.nn.Embedding(3, 2, padding_idx=0)), repr(T.nn.ConvTranspose2d(2, 4, 2, groups=2, output_padding=0, bias=False)), repr(T.nn.Conv1d(1, 1, 3, padding='same', dilation=2)), repr(T.nn.GRU(1, 2, 2, bidirectional=True))


@program
def text_of_tensors(T):
    return repr(T.tensor([1.0, 2.5])), str(T.tensor([[1, 2], [3, 4]])), repr(T.tensor(True)), repr(T.tensor([1.5], requires_grad=True)), f"{T.tensor(1.23456).item():.2f}", f"{T.tensor(2.5):.1f}"


@program
def embedding_bags(T):
    bag = load(T, T.nn.EmbeddingBag(6, 3, mode="mean"))
    embedding = load(T, T.nn.Embedding(5, 2, padding_idx=0))
    return bag(T.tensor([1, 2, 4, 5, 4]), T.tensor([0, 3])), embedding(T.tensor([[0, 1], [2, 0]]))


@program
def windows(T):
    x = T.arange(6.0)
    return x.unfold(0, 3, 1), x.roll(2), x.flip(0), T.rot90(T.arange(4).view(2, 2)), x.diff(), x.narrow(0, 1, 3), T.bucketize(T.tensor([0.5, 4.5]), x), T.histc(x, bins=3), x.repeat_interleave(2), T.bincount(T.tensor([1, 1, 3]))


@program
def scales_and_parts(T):
    x = filled(T, 3).double()
    nothing = T.full((3,), float("nan"))
    return (
        T.ldexp(x, T.tensor([200, -200, 3])), T.addmv(nothing, T.ones(3, 3), T.ones(3), beta=0), T.addr(T.ones(2, 2), T.ones(2), T.arange(2), alpha=2.0),
        T.unravel_index(T.tensor([200], dtype=T.uint8), (2, 300)), T.hsplit(T.arange(6), 3), T.vsplit(T.ones(4, 2), [1]), T.combinations(T.arange(4), 3),
        T.cartesian_prod(T.arange(2), T.arange(3)), T.unique_consecutive(T.tensor([1, 1, 2]), return_counts=True), T.trapezoid(x), T.histogram(x, 2), T.dist(x, -x),
        T.slice_scatter(T.zeros(4), T.ones(2), 0, 1, 3), T.select_scatter(T.zeros(2, 2), T.ones(2), 0, 1), T.diagflat(T.arange(2)), T.inner(x, x), T.logaddexp2(x, x),
    )


@program
def numbers_of_modules(T):
    model = load(T, T.nn.Linear(2, 2)).double()
    return model.weight.dtype == T.float64, model(T.ones(1, 2, dtype=T.float64)), next(model.parameters()).shape, model.training, [type(m).__name__ for m in model.modules()]


@program
def weight_decay_by_name(T):
    model = load(T, T.nn.Sequential(T.nn.Linear(2, 2), T.nn.LayerNorm(2)))
    decay = [p for n, p in model.named_parameters() if p.dim() > 1]
    rest = [p for n, p in model.named_parameters() if p.dim() <= 1]
    optimizer = T.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=0.01, betas=(0.9, 0.95))
    model(filled(T, 3, 2)).sum().backward()
    optimizer.step()
    return list(model.parameters())


@program
def gradient_checks(T):
    return T.autograd.gradcheck(T.sin, (filled(T, 3).double().requires_grad_(),)), T.autograd.gradgradcheck(lambda x: x**3, (filled(T, 2).double().requires_grad_(),))


@program
def checkpointing(T):
    checkpoint = importlib.import_module(f"{T.__name__}.utils.checkpoint")
    layer = load(T, T.nn.Linear(3, 3))
    x = filled(T, 2, 3).requires_grad_()
    checkpoint.checkpoint(lambda t: layer(t).relu(), x, use_reentrant=False).sum().backward()
    return x.grad, layer.weight.grad


@program
def mixed_precision(T):
    model = load(T, T.nn.Linear(4, 4))
    with T.autocast("cpu", dtype=T.bfloat16):
        y = model(filled(T, 2, 4))
    return y.dtype == T.bfloat16, y.float().sum() - y.float().sum()


@program
def lambda_schedules(T):
    parameter = T.nn.Parameter(T.zeros(1))
    optimizer = T.optim.SGD([parameter], lr=1.0)
    warmup = T.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, (epoch + 1) / 5))
    rates = []
    for _ in range(6):
        optimizer.step()
        warmup.step()
        rates.append(warmup.get_last_lr()[0])
    return rates


@program
def sparse_matrices(T):
    s = T.sparse_coo_tensor(T.tensor([[0, 1], [1, 0]]), T.tensor([2.0, 3.0]), (2, 2))
    return s.to_dense(), T.sparse.mm(s, T.ones(2, 2)), s.coalesce().indices(), s.is_sparse, T.ones(2, 2).to_sparse().values()


@array_program
def statistics(xp):
    x = xp.asarray(np.sin(np.arange(12.0)).reshape(3, 4))
    return x.mean(axis=0), x.sum(axis=1, keepdims=True), x.min(), x.argmax(axis=1), xp.cumsum(x, axis=0), xp.median(x) if xp is np else x.quantile(0.5)


@array_program
def broadcasting(xp):
    a = xp.arange(3)[:, None]
    b = xp.arange(4)[None, :]
    return a * b, a + b, (a == b).sum(), a - b.T[:, 0], xp.maximum(a, b)


@array_program
def slices(xp):
    x = xp.arange(20).reshape(4, 5)
    y = x[1:3, ::2] if True else None
    x[0] = 7
    x[:, -1] = x[:, 0]
    return x, y, x[[0, 2], [1, 3]], x[x % 2 == 0], x[..., 1], x.T[0], x[2][3]


@array_program
def functions(xp):
    x = xp.linspace(0.1, 2, 5)
    return xp.sin(x) ** 2 + xp.cos(x) ** 2, xp.exp(xp.log(x)), xp.sqrt(x), xp.where(x > 1, x, 0 * x), xp.clip(x, 0.5, 1.5), xp.abs(-x), xp.floor(x), xp.hypot(x, x), xp.arctan(x)


@array_program
def stacking(xp):
    a, b = xp.ones((2, 2)), xp.zeros((2, 2))
    return xp.concatenate([a, b], axis=0) if xp is np else xp.concat([a, b], dim=0), xp.stack([a, b], axis=-1) if xp is np else xp.stack([a, b], dim=-1), xp.vstack([a, b]), xp.tile(a, (1, 2)), xp.flip(a, 0), xp.roll(b, 1)


@array_program
def matrices(xp):
    a = xp.asarray(np.array([[2.0, 1.0], [1.0, 3.0]]))
    return xp.linalg.solve(a, xp.asarray(np.ones(2))), xp.linalg.det(a), a @ a, a.dot(a) if xp is np else a.matmul(a), xp.trace(a), xp.linalg.eigvalsh(a), xp.linalg.norm(a), xp.linalg.inv(a)


@array_program
def life(xp):
    board = xp.zeros((6, 6), dtype=xp.int64)
    board[1, 2] = board[2, 3] = board[3, 1] = board[3, 2] = board[3, 3] = 1
    for _ in range(4):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        around = sum(xp.roll(board, s, (0, 1)) for s in shifts)
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(xp.int64) if xp is np else ((around == 3) | ((board == 1) & (around == 2))).long()
    return board


@array_program
def distances(xp):
    points = xp.asarray(np.cos(np.arange(8.0)).reshape(4, 2))
    d = ((points[:, None, :] - points[None, :, :]) ** 2).sum(-1) ** 0.5
    d[range(4), range(4)] = xp.inf
    return d.argmin(axis=1), d.min(axis=1) if xp is np else d.amin(axis=1), xp.argsort(d[0])


@array_program
def primes(xp):
    sieve = xp.ones(50, dtype=bool)
    sieve[:2] = False
    for i in range(2, 8):
        sieve[i * i :: i] = False
    return xp.nonzero(sieve)[0] if xp is np else xp.nonzero(sieve)[:, 0], sieve.sum()


@array_program
def monte_carlo_grid(xp):
    axis = xp.linspace(-1, 1, 42)
    x, y = xp.meshgrid(axis, axis, indexing="ij")
    inside = x**2 + y**2 <= 1
    return inside.sum(), inside.shape, 4 * inside.mean() if xp is np else 4 * inside.double().mean()


def plain(value):
    """Nested lists, numbers and texts of a result, with floats as arrays of f64."""
    if isinstance(value, (str, bool, type(None))):
        return value
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "detach"):
        value = value.detach()
        if value.dtype in (getattr(torch, "bfloat16", None), keyway.bfloat16):
            value = value.float()
        return np.asarray(value.resolve_conj() if hasattr(value, "resolve_conj") else value)
    return np.asarray(value)


def same(got, expected):
    assert type(got) is type(expected) or {type(got), type(expected)} <= {int, float}
    if isinstance(got, list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            same(one, other)
    elif isinstance(got, dict):
        assert got.keys() == expected.keys()
        for key in got:
            same(got[key], expected[key])
    elif isinstance(got, np.ndarray):
        assert got.shape == expected.shape and got.dtype.kind == expected.dtype.kind
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
    else:
        assert got == expected


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda run: run.__name__)
def test_a_program_of_pytorch(run):
    got = plain(run(keyway))
    assert got is not None
    if torch is not None:
        same(got, plain(run(torch)))


@pytest.mark.parametrize("run", ARRAYS, ids=lambda run: run.__name__)
def test_a_program_of_numpy(run):
    same(plain(run(keyway)), plain(run(np)))


def test_there_are_programs():
    assert len(PROGRAMS) + len(ARRAYS) >= 65
