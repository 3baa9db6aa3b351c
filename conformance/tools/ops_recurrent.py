"""Recurrent layers, step by step: PyTorch's modules return no values of gates."""

from stepwise import in_f64


def rnn_layer(torch, x, hidden, cell, weight, bias, projection, batches, reverse, mode, save):
    linear, steps, first = torch.nn.functional.linear, [], 0
    for rows in batches:
        steps.append((first, rows))
        first += rows
    output = x.new_zeros(first, hidden.shape[1])
    saved = x.new_zeros(first, {"gru": 4, "lstm": 5}.get(mode, 0) * weight.shape[0] // {"gru": 3, "lstm": 4}.get(mode, 1))
    hidden, cell = hidden.clone(), None if cell is None else cell.clone()
    for first, rows in reversed(steps) if reverse else steps:
        of_x, h = x[first:first + rows], hidden[:rows].clone()
        product = linear(h, weight, bias)
        if mode in ("rnn_tanh", "rnn_relu"):
            made = (torch.tanh if mode == "rnn_tanh" else torch.relu)(of_x + product)
        elif mode == "gru":
            (xr, xz, xn), (pr, pz, pn) = of_x.chunk(3, 1), product.chunk(3, 1)
            r, z = torch.sigmoid(xr + pr), torch.sigmoid(xz + pz)
            n = torch.tanh(xn + r * pn)
            made = (1 - z) * n + z * h
            saved[first:first + rows] = torch.cat([r, z, pn, n], 1)
        else:
            i, f, g, o = (of_x + product).chunk(4, 1)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            cell[:rows] = f * cell[:rows] + i * g
            made = o * cell[:rows].tanh()
            saved[first:first + rows] = torch.cat([i, f, g, o, cell[:rows]], 1)
            made = made if projection is None else linear(made, projection)
        hidden[:rows] = output[first:first + rows] = made
    empty = x.new_zeros(0)
    keep = save and mode in ("gru", "lstm")
    return [output, hidden, empty if cell is None else cell, saved if keep else empty]


OPS = {
    "rnn_layer": in_f64(rnn_layer),
}
