"""Programs with one planted fault each, and healthy ones. The user's line at fault is marked ``# FAULT``."""

import inspect

import torch


@torch.library.custom_op("depyf_watch_test::reciprocal", mutates_args=())
def reciprocal(x: torch.Tensor) -> torch.Tensor:
    """Is wrong for one value."""
    return torch.where(x == 3, torch.full_like(x, float("nan")), 1 / x)


@reciprocal.register_fake
def _(x):
    return torch.empty_like(x)


def zero_by_zero(x):
    y = x - 1
    z = y.relu()
    return z / z + 1  # FAULT


def log_of_a_negative(x):
    y = x.sin() - 2
    z = torch.log(y)  # FAULT
    return z * 3


def half_overflow(x):
    y = x.to(torch.float16) + 1
    z = y * 60000  # FAULT
    return z / 2


def infinity_minus_infinity(x):
    big = (x + 1) * 3e38
    bigger = big * 10
    z = bigger - bigger  # FAULT
    return z + 1


def square_root_backward(x):
    y = torch.sqrt(x)  # FAULT
    return torch.where(x > 0.5, y, x * 2).sum()


def arc_cosine_backward(x):
    y = torch.acos(x)  # FAULT
    return (y * 2).sum()


def custom_operation(x):
    y = torch.floor(x * 4)
    z = reciprocal(y + 1)  # FAULT
    return z.sum()


def inside_a_fused_kernel(x):
    y = x * 2
    y = torch.exp(y) + 1
    y = torch.log(0.5 - y)  # FAULT
    y = torch.sin(y)
    return y * 2 + 1


def second_graph(x):
    y = x * 2 + 1
    torch._dynamo.graph_break()
    z = torch.rsqrt(-y)  # FAULT
    return z + 1


class Block(torch.nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        if self.index == 2:
            x = torch.asin(x.abs() + 2)  # FAULT
        return x


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.Sequential(*[Block(index) for index in range(4)])

    def forward(self, x):
        return self.blocks(x)


def dynamic_shapes(x):
    y = x.reshape(-1).sum()
    return torch.log(y - x.shape[0] * 4)  # FAULT


def in_place(x):
    y = x * 3
    y[1:].sub_(5)
    y.log_()  # FAULT
    return y + 1


#: name -> (function, stop_on, backward)
FAULTS = {
    "zero_by_zero": (zero_by_zero, "nan", False),
    "log_of_a_negative": (log_of_a_negative, "nan", False),
    "half_overflow": (half_overflow, "inf", False),
    "infinity_minus_infinity": (infinity_minus_infinity, "nan", False),
    "square_root_backward": (square_root_backward, "nan", True),
    "arc_cosine_backward": (arc_cosine_backward, "inf", True),
    "custom_operation": (custom_operation, "nan", False),
    "inside_a_fused_kernel": (inside_a_fused_kernel, "nan", False),
    "second_graph": (second_graph, "nan", False),
    "deep_module": (Deep(), "nan", False),
    "dynamic_shapes": (dynamic_shapes, "nan", False),
    "in_place": (in_place, "nan", False),
}


def fault_line(function):
    """``(file, line)`` of the marked line."""
    code = Block.forward if isinstance(function, torch.nn.Module) else function
    lines, first = inspect.getsourcelines(code)
    return __file__, first + next(index for index, line in enumerate(lines) if "# FAULT" in line)


# --- healthy ones ---------------------------------------------------------------------------------
def masked_softmax(x):
    mask = torch.triu(torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool), 1)
    scores = (x @ x.transpose(-1, -2)).masked_fill(mask, float("-inf"))
    return torch.softmax(scores, -1) @ x


def attention_with_bias(x):
    bias = torch.full((x.shape[0], x.shape[0]), float("-inf")).triu(1)
    return torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=bias)


def empty_then_filled(x):
    y = torch.empty_like(x)
    y[0] = x[0]
    y[1:] = 2
    z = torch.empty(3, 4).copy_(x[:3])
    return y + z.sum()


def integers(x):
    index = (x * 2).long().clamp(0, 3)
    return x[index.reshape(-1)[:4], index.reshape(-1)[:4]], index.bitwise_and(3), index.max()


def infinities(x):
    big = x / 0.0 + 1
    return torch.clamp(big, max=10), torch.min(big, x), (x == big).any()


class Trained(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Dropout(0.3),
            torch.nn.Linear(8, 4), torch.nn.LayerNorm(4))

    def forward(self, x):
        return self.layers(x)


HEALTHY = {
    "masked_softmax": masked_softmax, "attention_with_bias": attention_with_bias, "infinities": infinities,
    "empty_then_filled": empty_then_filled, "integers": integers, "trained": Trained()}
