"""The networks that are part of yomi. nets/README.md describes their training."""

from dataclasses import dataclass
from pathlib import Path

# Results of comparing these networks' lower precisions with fp32, as written by `yomi.engine.players.precision`.
PRECISION_DIR = Path(__file__).parent / "precision"

# The default network of each game, for every device.
MODELS = {"go": "katago-b10c384h6nbttflrs.bin.xz", "shogi": "yomi-shogi-6x64.onnx"}
# A stronger default for processors, which yomi's own kernels compute. No other device can.
FOR_PROCESSORS = {"shogi": "yomi-shogi-sparse.safetensors"}
# The network of levels below full strength, on every device. The Elo of the levels was measured with it.
FOR_LEVELS = {"go": "yomi-go-b6c96.bin.gz"}
# Evaluations for alpha-beta searches on processors: the strongest players there.
FOR_ALPHA_BETA = {"shogi": "suisho-petite.nn.bin"}
# Networks that are faster than the default. A game without an entry has none.
FOR_SPEED = {"go": "yomi-go-b6c96.bin.gz"}

# Name of a game's fastest bundled network.
FAST = "fast"


@dataclass(frozen=True, slots=True)
class Bundled:
    """A network that is part of yomi."""

    file: str
    game: str
    architecture: str
    purpose: str
    source: str  # licence and origin

    @property
    def name(self) -> str:
        return self.file.partition(".")[0]

    @property
    def path(self) -> Path:
        return Path(__file__).parent / self.file


BUNDLED = (
    Bundled(
        MODELS["go"],
        "go",
        "transformer of 10 blocks, 384 channels: 10.5 million parameters",
        "strongest for Go",
        "David J Wu, KataGo 1.17.0: free to use, https://katagotraining.org/network_license/; weights rounded",
    ),
    Bundled(
        FOR_LEVELS["go"],
        "go",
        "convolutions, 6 blocks of 96 channels: 1.0 million parameters",
        "fast reviews, old processors",
        "trained by yomi, GPL-3.0-or-later",
    ),
    Bundled(
        FOR_ALPHA_BETA["shogi"],
        "shogi",
        "NNUE, K-P 256x2-32-32: 0.5 million parameters",
        "strongest for shogi on processors, by alpha-beta search",
        "SuishoPetite (tayayan, 2021), GPL-3.0",
    ),
    Bundled(
        FOR_PROCESSORS["shogi"],
        "shogi",
        "sparse rows, 512 + 128 wide: 16.5 million parameters",
        "shogi on processors by tree search: --visits, self-play, policies",
        "trained by yomi, GPL-3.0-or-later",
    ),
    Bundled(
        MODELS["shogi"],
        "shogi",
        "convolutions, 6 blocks of 64 channels: 1.0 million parameters",
        "shogi on GPUs",
        "trained by yomi, GPL-3.0-or-later",
    ),
)


def default_network(game: str, *, on_processor: bool = False) -> Path:
    """Return the network for a game if the user names none.

    Args:
        game: go or shogi.
        on_processor: whether yomi's own kernels compute it, in integers.
    """
    names = MODELS | FOR_PROCESSORS if on_processor else MODELS
    return Path(__file__).parent / names[game]


def fast_network(game: str, *, on_processor: bool = False) -> Path:
    """Return the fastest bundled network for a game. The arguments are those of `default_network`."""
    file = FOR_SPEED.get(game)
    return default_network(game, on_processor=on_processor) if file is None else Path(__file__).parent / file


def network_of_levels(game: str) -> Path | None:
    """Return the network of levels below full strength; None if the game has none."""
    return Path(__file__).parent / FOR_LEVELS[game] if game in FOR_LEVELS else None


def bundled(name: str) -> Bundled | None:
    """Return the bundled network with a name (suffixes may be missing), or None."""
    return next((each for each in BUNDLED if name in (each.name, each.file)), None)
