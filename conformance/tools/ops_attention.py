"""Attention. PyTorch rounds scores and weights to the dtype."""

from stepwise import in_f64


def attention(torch, query, key, value, mask, dropout_p, is_causal, scale, enable_gqa):
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


def scores(torch, query, key, mask, is_causal, scale):
    made = query @ key.transpose(-2, -1) * scale
    if is_causal:
        mask = torch.ones(made.shape[-2:], dtype=torch.bool).tril()
    if mask is None:
        return made
    if mask.dtype == torch.bool:
        return made.masked_fill(~mask, float("-inf"))
    return made + mask.to(made.dtype)


def heads(torch, t, like):
    return t if t.dim() < 3 else t.repeat_interleave(like.shape[-3] // max(t.shape[-3], 1), dim=-3)


def together(torch, t, like):
    if t.shape == like.shape:
        return t
    return t.unflatten(-3, (like.shape[-3], -1)).sum(-3)


def wide(torch, t):
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def flash_attention(torch, query, key, value, mask, is_causal, scale):
    fitting(torch, query, key, value, mask, is_causal)
    made = scores(torch, query, heads(torch, key, query), mask, is_causal, scale)
    sums = made.logsumexp(-1)
    blind = (made == float("-inf")).all(-1) if mask is not None or made.shape[-1] == 0 else sums.isnan()
    weights = made.softmax(-1).masked_fill(blind.unsqueeze(-1) & (mask is not None), 0)
    sums = sums.masked_fill(blind & (mask is not None or made.shape[-1] == 0), 0)
    return [weights @ heads(torch, value, query), wide(torch, sums)]


def fitting(torch, query, key, value, mask, is_causal):
    if min(query.dim(), key.dim(), value.dim()) < 2 or (mask is not None and is_causal):
        raise ValueError("does not fit")
    if key.shape[:-1] != value.shape[:-1] or query.dim() != key.dim():
        raise ValueError("does not fit")


def flash_attention_backward(torch, grad, query, key, value, mask, out, sums, is_causal, scale):
    fitting(torch, query, key, value, mask, is_causal)
    if grad.shape != out.shape or sums.shape != query.shape[:-1]:
        raise ValueError("does not fit")
    keys, values = heads(torch, key, query), heads(torch, value, query)
    weights = (scores(torch, query, keys, mask, is_causal, scale) - sums.to(query.dtype).unsqueeze(-1)).exp()
    slopes = weights * (grad @ values.transpose(-2, -1) - (grad * out).sum(-1, keepdim=True))
    of_key = together(torch, slopes.transpose(-2, -1) @ query * scale, key)
    return [slopes @ keys * scale, of_key, together(torch, weights.transpose(-2, -1) @ grad, value)]


OPS = {
    "flash_attention": in_f64(flash_attention),
    "flash_attention_backward": in_f64(flash_attention_backward),
    "scaled_dot_product_attention": in_f64(attention),
}
