"""Residual networks for shogi: AlphaZero's form as dlshogi's author trained it, and dlshogi's own form."""

from torch import Tensor, nn

from yomi.nets.definitions.base import Bias, Network, ResidualBlock, conv, conv_norm, he_normal
from yomi.nets.dlshogi.network import ALPHAZERO_PLANES, AREA, DLSHOGI_EXTRAS, DLSHOGI_PLANES, SIDE
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import ALPHAZERO_DIRECTIONS, DLSHOGI_DIRECTIONS

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "swish": nn.SiLU}
_HIDDEN = 256


def _activation(name: str) -> type[nn.Module]:
    if name not in ACTIVATIONS:
        raise NetworkError(f"activation = {name!r} found, expected one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


class Value(nn.Module):
    """The value head: a convolution to few planes, norm, activation, a dense layer, and one number."""

    def __init__(
        self,
        channels: int,
        planes: int,
        kernel: int,
        hidden: int,
        activation: type[nn.Module],
        *,
        bias: bool,
        area: int = AREA,
    ) -> None:
        super().__init__()
        self.reduce = conv_norm(channels, planes, kernel, bias=bias)
        self.act = activation()
        self.dense = nn.Linear(planes * area, hidden)
        self.hidden_act = activation()
        self.last = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.hidden_act(self.dense(self.act(self.reduce(x)).flatten(1))))


class Policy(nn.Module):
    """The policy head: a 1×1 convolution to a plane for each direction, and a bias for each label."""

    def __init__(self, channels: int, directions: int, area: int = AREA) -> None:
        super().__init__()
        self.planes = conv(channels, directions, 1, bias=False)
        self.bias = Bias(directions * area)

    def forward(self, x: Tensor) -> Tensor:
        return self.bias(self.planes(x).flatten(1))


class AlphaZeroShogi(Network):
    """45 planes, `blocks` residual blocks of `filters` channels, policy of 139 × 81 labels, value in [-1, 1]."""

    feature_set = f"alphazero-shogi-{ALPHAZERO_PLANES}"
    board_size = SIDE

    def __init__(self, blocks: int = 20, filters: int = 256, hidden: int = _HIDDEN) -> None:
        """Create a network. dlshogi's article uses 10 blocks of 192 filters, AlphaZero's paper 20 of 256.

        Args:
            blocks: residual blocks.
            filters: channels of the trunk.
            hidden: width of the value head's dense layer.
        """
        super().__init__()
        stack = [ResidualBlock(filters, nn.ReLU) for _ in range(blocks)]
        self.body = nn.Sequential(conv_norm(ALPHAZERO_PLANES, filters, 3), nn.ReLU(), *stack)
        self.policy = Policy(filters, ALPHAZERO_DIRECTIONS)
        self.value = Value(filters, 1, 3, hidden, nn.ReLU, bias=True)
        self.squash = nn.Tanh()
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        x = self.body(planes)
        return {"policy": self.policy(x), "value": self.squash(self.value(x))}


class DlshogiResNet(Network):
    """dlshogi's `resnet{blocks}x{channels}`: 62 + 57 (or 119) planes, policy of 27 × 81 labels, value as a logit."""

    board_size = SIDE

    def __init__(
        self, blocks: int = 10, channels: int = 192, extras: int = 57, activation: str = "relu", hidden: int = _HIDDEN
    ) -> None:
        """Create a network.

        Args:
            blocks: residual blocks.
            channels: channels of the trunk.
            extras: constant planes: 57, or 119 with more.
            activation: relu or silu.
            hidden: width of the value head's dense layer.

        Raises:
            NetworkError: a value that no network of this kind has.
        """
        super().__init__()
        if extras not in DLSHOGI_EXTRAS:
            raise NetworkError(f"extras = {extras} found, expected 57 or 119")
        act = _activation(activation)
        self.feature_set = f"dlshogi-{DLSHOGI_PLANES}-{extras}"
        self.wide = conv(DLSHOGI_PLANES, channels, 3, bias=False)
        self.narrow = conv(DLSHOGI_PLANES, channels, 1, bias=False)
        self.hands = conv(extras, channels, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.act = act()
        self.blocks = nn.Sequential(*(ResidualBlock(channels, act) for _ in range(blocks)))
        self.policy = Policy(channels, DLSHOGI_DIRECTIONS)
        self.value = Value(channels, DLSHOGI_DIRECTIONS, 1, hidden, act, bias=False)
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        x = self.blocks(self.act(self.norm(self.wide(planes) + self.narrow(planes) + self.hands(globals_))))
        return {"policy": self.policy(x), "value_logit": self.value(x)}
