"""The slow, obvious forward pass of a KataGo network: one position, float64, one line for each line of the format."""

import numpy as np

from yomi.nets.katago.network import (
    Activation,
    AttentionBlock,
    BatchNorm,
    Block,
    BottleneckBlock,
    Conv,
    FeedForwardBlock,
    GlobalPoolingBlock,
    KataGoNetwork,
    OrdinaryBlock,
    RmsNorm,
)


def forward(network: KataGoNetwork, spatial: np.ndarray, global_: np.ndarray) -> dict[str, np.ndarray]:
    """Return the raw policy [channels, A + 1], value [3], misc [4 or 6] and ownership [A] of one position.

    spatial is [22, H, W], global_ is [19], or with metadata [19 + 192].
    """
    trunk = network.trunk
    t = _conv(trunk.conv, spatial.astype(np.float64)) + (global_[:19] @ trunk.matmul.weights)[:, None, None]
    if (encoder := trunk.meta_encoder) is not None:
        h = _act(encoder.act1, global_[19:] @ encoder.matmul1.weights + encoder.bias1.bias)
        h = _act(encoder.act2, h @ encoder.matmul2.weights + encoder.bias2.bias)
        t += (h @ encoder.matmul3.weights)[:, None, None]
    for block in trunk.blocks:
        t = _block(block, t)
    norm = _rms if isinstance(trunk.tip_norm, RmsNorm) else _norm
    t = _act(trunk.tip_act, norm(trunk.tip_norm, t))
    return {"policy": _policy(network, t), **_value(network, t)}


def _policy(network: KataGoNetwork, t: np.ndarray) -> np.ndarray:
    head = network.policy_head
    pooled = _gpool(_act(head.act_g1, _norm(head.norm_g1, _conv(head.g1, t))))
    p = _conv(head.p1, t) + (pooled @ head.matmul.weights)[:, None, None]
    board = _conv(head.p2, _act(head.act_p1, _norm(head.norm_p1, p)))
    passing = pooled @ head.matmul_pass.weights
    if network.version >= 15:
        passing = _act(head.act_pass, passing + head.bias_pass.bias) @ head.matmul_pass2.weights
    return np.concatenate([board.reshape(board.shape[0], -1), passing[:, None]], axis=1)


def _value(network: KataGoNetwork, t: np.ndarray) -> dict[str, np.ndarray]:
    head = network.value_head
    v = _act(head.act_v1, _norm(head.norm_v1, _conv(head.v1, t)))
    mean, width = v.mean(axis=(1, 2)), np.sqrt(v.shape[1] * v.shape[2]) - 14
    pooled = np.concatenate([mean, mean * width * 0.1, mean * (width**2 * 0.01 - 0.1)])
    h = _act(head.act_v2, pooled @ head.v2.weights + head.v2_bias.bias)
    return {
        "value": h @ head.v3.weights + head.v3_bias.bias,
        "misc": h @ head.sv3.weights + head.sv3_bias.bias,
        "ownership": _conv(head.ownership, v).ravel(),
    }


def _block(block: Block, t: np.ndarray) -> np.ndarray:
    if isinstance(block, AttentionBlock):
        return t + _attention(block, _rms(block.norm, t))
    if isinstance(block, FeedForwardBlock):
        u = _rms(block.norm, t)
        hidden = _act(Activation.SILU, _linear(block.w1.weights, u))
        if block.gate is not None:
            hidden = hidden * _linear(block.gate.weights, u)
        return t + _linear(block.w2.weights, hidden)
    u = _act(block.act1, _norm(block.norm1, t))
    if isinstance(block, OrdinaryBlock):
        r = _conv(block.conv1, u)
    elif isinstance(block, GlobalPoolingBlock):
        g = _act(block.act_gpool, _norm(block.norm_gpool, _conv(block.conv_gpool, u)))
        r = _conv(block.conv_regular, u) + (_gpool(g) @ block.matmul.weights)[:, None, None]
    else:
        assert isinstance(block, BottleneckBlock)
        r = _conv(block.conv1, u)
        for inner in block.blocks:
            r = _block(inner, r)
    return t + _conv(block.conv2, _act(block.act2, _norm(block.norm2, r)))


def _attention(block: AttentionBlock, u: np.ndarray) -> np.ndarray:
    _, height, width = u.shape
    points = u.reshape(u.shape[0], -1).T
    y, x = np.divmod(np.arange(height * width), width)
    outputs = []
    for head in range(block.heads):
        kv = head // (block.heads // block.kv_heads)
        q = (points @ block.q.weights)[:, head * block.q_dim : (head + 1) * block.q_dim]
        k = (points @ block.k.weights)[:, kv * block.q_dim : (kv + 1) * block.q_dim]
        v = (points @ block.v.weights)[:, kv * block.v_dim : (kv + 1) * block.v_dim]
        if block.rope is not None:
            turns = block.rope[kv].astype(np.float64)
            angle = x[:, None] * turns[:, 0] + y[:, None] * turns[:, 1]
            q, k = _rotate(q, angle), _rotate(k, angle)
        scores = np.exp(q @ k.T / np.sqrt(block.q_dim))
        outputs.append(scores / scores.sum(axis=1, keepdims=True) @ v)
    return (np.concatenate(outputs, axis=1) @ block.out.weights).T.reshape(u.shape[0], height, width)


def _rotate(vectors: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Rotate channel pairs (2p, 2p + 1) of [A, C] by angle [A, C / 2]."""
    a, b = vectors[:, 0::2], vectors[:, 1::2]
    rotated = np.empty_like(vectors)
    rotated[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    rotated[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return rotated


def _conv(conv: Conv, t: np.ndarray) -> np.ndarray:
    """Cross-correlate [C, H, W] with zero padding."""
    _, _, ky, kx = conv.weights.shape
    _, height, width = t.shape
    padded = np.pad(t, ((0, 0), (ky // 2, ky // 2), (kx // 2, kx // 2)))
    out = np.zeros((conv.out_channels, height, width))
    for dy in range(ky):
        for dx in range(kx):
            part = padded[:, dy : dy + height, dx : dx + width]
            out += np.tensordot(conv.weights[:, :, dy, dx].astype(np.float64), part, axes=1)
    return out


def _linear(weights: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.einsum("io,ihw->ohw", weights.astype(np.float64), t)


def _norm(norm: BatchNorm, t: np.ndarray) -> np.ndarray:
    def column(values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64)[:, None, None]

    return (t - column(norm.mean)) * column(norm.scale) / np.sqrt(column(norm.variance) + norm.epsilon) + column(
        norm.bias
    )


def _rms(norm: RmsNorm, t: np.ndarray) -> np.ndarray:
    square = (t**2).mean() if norm.spatial else (t**2).mean(axis=0, keepdims=True)
    return t / np.sqrt(square + norm.epsilon) * norm.gamma[:, None, None] + norm.beta[:, None, None]


def _gpool(g: np.ndarray) -> np.ndarray:
    mean = g.mean(axis=(1, 2))
    return np.concatenate([mean, mean * (np.sqrt(g.shape[1] * g.shape[2]) - 14) * 0.1, g.max(axis=(1, 2))])


def _act(activation: Activation | None, x: np.ndarray) -> np.ndarray:
    if activation is Activation.RELU:
        return np.maximum(x, 0)
    if activation is Activation.MISH:
        return x * np.tanh(np.logaddexp(0, x))
    if activation is Activation.SILU:
        return x / (1 + np.exp(-x))
    return x
