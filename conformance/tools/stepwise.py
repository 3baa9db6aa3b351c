"""Calls whose intermediate results or numbers PyTorch rounds to the dtype, which the oracle does not."""


def first(made):
    return made[0] if isinstance(made, (list, tuple)) else made


def in_f64(call):
    """`call` with its values from f64, and its dtype, shape and errors from the dtype itself."""

    def widened(torch, *args):
        made = call(torch, *args)
        if first(made).dtype not in (torch.float16, torch.bfloat16, torch.float32):
            return made

        def wide(a):
            if isinstance(a, list):
                return [wide(each) for each in a]
            return a.double() if torch.is_tensor(a) and a.is_floating_point() else a

        exact = call(torch, *(wide(a) for a in args))
        if torch.is_tensor(made):
            return exact.to(made.dtype)
        return [e.to(m.dtype) for e, m in zip(exact, made)]

    # For those who ask what the call costs.
    widened.plain = call
    return widened
