"""A residual network for games of the user: planes in, a policy of moves by point and a value out."""

from torch import Tensor, nn

from yomi.nets.definitions.base import Network, ResidualBlock, conv_norm, he_normal
from yomi.nets.definitions.shogi import Policy, Value
from yomi.nets.metadata import feature_set


class BoardResNet(Network):
    """Policy [B, moves by plane and point] without the pass, and value [B, 1] in [-1, 1]."""

    def __init__(
        self, features: str = "", board_size: int = 8, blocks: int = 4, channels: int = 48, hidden: int = 48
    ) -> None:
        """Create a network.

        Args:
            features: feature set of the game.
            board_size: side of the board.
            blocks: residual blocks.
            channels: channels of the trunk.
            hidden: width of the value head's dense layer.

        Raises:
            NetworkError: the feature set is unknown.
        """
        super().__init__()
        found, area = feature_set(features), board_size**2
        self.feature_set, self.board_size = features, board_size
        stack = [ResidualBlock(channels, nn.ReLU) for _ in range(blocks)]
        self.body = nn.Sequential(conv_norm(found.planes, channels, 3), nn.ReLU(), *stack)
        self.policy = Policy(channels, found.directions or 1, area)
        self.value = Value(channels, 4, 1, hidden, nn.ReLU, bias=False, area=area)
        self.squash = nn.Tanh()
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        x = self.body(planes)
        return {"policy": self.policy(x), "value": self.squash(self.value(x))}
