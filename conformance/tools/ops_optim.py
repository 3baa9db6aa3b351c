"""Steps of optimisers, by the formulas of PyTorch's `torch.optim` for single tensors."""

from stepwise import in_f64


def adam_step(torch, parameters, grads, means, squares, beta1, beta2, eps, rate, decay, shrink):
    """The corrections of the means are moved into `eps` and `rate`."""
    made = [[], [], []]
    for p, grad, mean, square in zip(parameters, grads, means, squares, strict=True):
        grad = grad.add(p, alpha=decay) if decay else grad
        mean = mean.mul(beta1).add(grad, alpha=1 - beta1)
        square = square.mul(beta2).addcmul(grad, grad, value=1 - beta2)
        moved = p.mul(shrink) - rate * mean / (square.sqrt() + eps)
        for results, result in zip(made, (moved, mean, square)):
            results.append(result.to(p.dtype))
    return sum(made, [])


def sgd_step(torch, parameters, grads, buffers, lr, momentum, dampening, decay, nesterov, first):
    own = [p.clone() for p in parameters]
    kept = [b.clone() for b in buffers]
    for nth, (p, grad) in enumerate(zip(own, grads, strict=True)):
        d = grad.add(p, alpha=decay) if decay else grad
        if kept:
            kept[nth] = d.clone() if first else kept[nth].mul(momentum).add(d, alpha=1 - dampening)
            d = d.add(kept[nth], alpha=momentum) if nesterov else kept[nth]
        p.add_(d, alpha=-lr)
    return own + kept


OPS = {
    "adam_step": in_f64(adam_step),
    "sgd_step": in_f64(sgd_step),
}
