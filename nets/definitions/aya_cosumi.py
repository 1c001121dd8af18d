"""Small Go networks: Aya's policy and value (Hiroshi Yamashita, 2016), and COSUMI's scores (2017).

Sources: Yamashita's article on deep learning for Go and his posts to the computer-go list; the article on a
deep-learning evaluation for COSUMI's Go.
"""

from torch import Tensor, nn

from yomi.nets.definitions.base import Network, conv, glorot_uniform, he_normal
from yomi.nets.errors import NetworkError


class AyaPolicy(Network):
    """12 convolutions: 5×5, ten of 3×3, and 3×3 to one filter, the policy without a pass. Works on all board sizes."""

    feature_set = "aya-49"
    board_size = 0

    def __init__(self, filters: int = 128, layers: int = 12) -> None:
        """Create a network. Aya's own network has 128 filters and 12 layers.

        Args:
            filters: channels of each convolution except the last.
            layers: number of convolutions.
        """
        super().__init__()
        inner = [module for _ in range(layers - 2) for module in (conv(filters, filters, 3), nn.ReLU())]
        self.body = nn.Sequential(conv(49, filters, 5), nn.ReLU(), *inner, conv(filters, 1, 3))
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        return {"policy": self.body(planes).flatten(1)}


class AyaValue(Network):
    """Convolutions (5×5, eleven of 3×3, 1×1), a dense layer of 256 units, and tanh.

    The value is Black's, since the planes are ordered by color.
    """

    feature_set = "aya-50"

    def __init__(self, filters: int = 32, board_size: int = 19) -> None:
        """Create a network. Aya's own networks have 32 or 128 filters.

        Args:
            filters: channels of each convolution.
            board_size: side of the board.
        """
        super().__init__()
        self.board_size = board_size
        inner = [module for _ in range(11) for module in (conv(filters, filters, 3), nn.ReLU())]
        self.body = nn.Sequential(conv(50, filters, 5), nn.ReLU(), *inner, conv(filters, filters, 1), nn.ReLU())
        self.dense = nn.Linear(filters * board_size**2, 256)
        self.act = nn.ReLU()
        self.last = nn.Linear(256, 1)
        self.squash = nn.Tanh()
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        hidden = self.act(self.dense(self.body(planes).flatten(1)))
        return {"value": self.squash(self.last(hidden))}


NORMS = ("none", "before", "after")
PLANES = {2: "go-stones-2", 3: "cosumi-3"}


def _norm(channels: int) -> nn.BatchNorm2d:
    # Keras's constants.
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def _checked_planes(planes: int) -> str:
    if planes not in PLANES:
        raise NetworkError(f"planes = {planes} found, expected 2 or 3")
    return PLANES[planes]


def _outputs(points: Tensor, training: bool) -> dict[str, Tensor]:
    # In training also the map, whose entries have a loss of their own.
    score = {"score": points.mean((2, 3))}
    return {**score, "points": points} if training else score


class ScoreStack(Network):
    """COSUMI's first network: 3×3 convolutions without padding, 1×1 to one filter, and the mean over the points left.

    The score is the lead of the side to move in points, without komi. The loss is its absolute error.
    """

    def __init__(
        self,
        layers: int = 9,
        filters: int = 32,
        planes: int = 3,
        norm: str = "none",
        board_size: int = 19,
        init_scale: float = 1.0,
    ) -> None:
        """Create a network.

        Args:
            layers: 3×3 convolutions; 9 at most on 19×19.
            filters: channels of each.
            planes: 2, or 3 with liberties.
            norm: batch normalisation before or after the activation, or none.
            board_size: side of the board.
            init_scale: scale of the uniform initialisation; 1 is Keras's, 0.1 learned fastest.

        Raises:
            NetworkError: a value that no network of this kind has.
        """
        super().__init__()
        if norm not in NORMS:
            raise NetworkError(f"norm = {norm!r} found, expected one of {', '.join(NORMS)}")
        if not 1 <= layers <= (board_size - 1) // 2:
            raise NetworkError(f"layers = {layers} found, expected 1 to {(board_size - 1) // 2}")
        self.feature_set = _checked_planes(planes)
        self.board_size = board_size
        modules: list[nn.Module] = []
        for layer in range(layers):
            modules.append(conv(planes if layer == 0 else filters, filters, 3, padded=False))
            if norm == "before":
                modules.append(_norm(filters))
            modules.append(nn.ReLU())
            if norm == "after":
                modules.append(_norm(filters))
        self.body = nn.Sequential(*modules, conv(filters, 1, 1))
        glorot_uniform(self, init_scale)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        return _outputs(self.body(planes), self.training)


class _Step(nn.Module):
    """ReLU, norm and convolution, in the order that COSUMI found best."""

    def __init__(self, filters: int, outputs: int, *, padded: bool = True) -> None:
        super().__init__()
        self.act = nn.ReLU()
        self.norm = _norm(filters)
        self.conv = conv(filters, outputs, 3, padded=padded)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(self.norm(self.act(x)))


class _Residual(nn.Module):
    """A residual block: the input plus the result of two steps."""

    def __init__(self, filters: int) -> None:
        super().__init__()
        self.steps = nn.Sequential(_Step(filters, filters), _Step(filters, filters))

    def forward(self, x: Tensor) -> Tensor:
        return self.steps(x) + x


class ScoreResidual(Network):
    """COSUMI's deep network: a 3×3 convolution, residual blocks of two steps, and an unpadded step with one filter.

    The score is the mean of the last map.
    """

    def __init__(
        self, layers: int = 30, filters: int = 48, planes: int = 3, board_size: int = 19, init_scale: float = 1.0
    ) -> None:
        """Create a network. COSUMI's last network has 30 layers of 48 filters.

        Args:
            layers: 3×3 convolutions; an even number.
            filters: channels of each.
            planes: 2, or 3 with liberties.
            board_size: side of the board.
            init_scale: scale of the uniform initialisation; 1 is Keras's.

        Raises:
            NetworkError: a value that no network of this kind has.
        """
        super().__init__()
        if layers < 4 or layers % 2:
            raise NetworkError(f"layers = {layers} found, expected an even number from 4 on")
        self.feature_set = _checked_planes(planes)
        self.board_size = board_size
        blocks = [_Residual(filters) for _ in range((layers - 2) // 2)]
        self.body = nn.Sequential(conv(planes, filters, 3), *blocks, _Step(filters, 1, padded=False))
        glorot_uniform(self, init_scale)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        return _outputs(self.body(planes), self.training)
