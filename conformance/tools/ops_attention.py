"""Attention. PyTorch rounds scores and weights to the dtype."""

from stepwise import in_f64


def attention(torch, query, key, value, mask, dropout_p, is_causal, scale, enable_gqa):
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


OPS = {
    "scaled_dot_product_attention": in_f64(attention),
}
