"""Recognises a network file that a user names (`open_file`), and converts a Go network to ONNX (`prepare`)."""

import dataclasses
import enum
import hashlib
import importlib.util
import logging
from dataclasses import dataclass
from pathlib import Path

from yomi.errors import reraised
from yomi.nets.dlshogi.network import ShogiForm, ShogiNetwork, recognise
from yomi.nets.errors import NetworkError
from yomi.nets.files import default_cache_dir, source_digest, temporary_cache_dir, write_atomically
from yomi.nets.installation import missing_line
from yomi.nets.katago.file import looks_like_network
from yomi.nets.metadata import KATAGO_CONVERTER_VERSION, METADATA_KEY, BoardSize, NetworkInfo, size_name
from yomi.nets.nnue import looks_like_nnue
from yomi.nets.onnx_file import OnnxHeader, read_onnx_header
from yomi.nets.sparse import looks_sparse, read_info

_log = logging.getLogger("yomi.networks")

# Digits of the digest in names of cached files.
_KEY_LENGTH = 16


class NetworkKind(enum.Enum):
    YOMI_ONNX = "yomi ONNX"
    KATAGO = "KataGo network"
    DLSHOGI = "dlshogi ONNX"
    ALPHAZERO_SHOGI = "AlphaZero shogi ONNX"
    SPARSE = "sparse network"
    NNUE = "NNUE evaluation"


_SHOGI_KINDS = {ShogiForm.DLSHOGI: NetworkKind.DLSHOGI, ShogiForm.ALPHAZERO: NetworkKind.ALPHAZERO_SHOGI}


@dataclass(frozen=True, eq=False)
class NetworkFile:
    """A network's file, whose kind has been recognised."""

    path: Path
    kind: NetworkKind
    header: OnnxHeader | None = None  # None if the file is not ONNX
    info: NetworkInfo | None = None  # metadata that the file contains, if yomi made it
    shogi: ShogiNetwork | None = None  # inputs and outputs, if the file is ONNX and for shogi

    @property
    def game(self) -> str:
        if self.info is not None:
            return self.info.game
        # Only yomi's own files have a record. All other kinds belong to one game.
        return "go" if self.kind is NetworkKind.KATAGO else "shogi"

    @property
    def feature_set(self) -> str | None:
        return None if self.info is None else self.info.feature_set

    @property
    def title(self) -> str:
        features = "" if self.info is None else f" with the features {self.feature_set}"
        return f"a network for {'Go' if self.game == 'go' else self.game}{features}"

    def describe(self) -> NetworkInfo:
        """Return metadata with name and digest of the source: the file that was converted, otherwise this file.

        Raises:
            NetworkError: the file cannot be read, or is of a kind without metadata.
        """
        if self.info is not None and self.info.source_sha256:
            return self.info
        if self.info is not None:
            return dataclasses.replace(self.info, source_file=self.path.name, source_sha256=source_digest(self.path))
        if self.shogi is None:
            raise NetworkError(f"{self.path}: {self.kind.value} found, expected an ONNX file or a sparse network")
        return self.shogi.describe(self.path.name.removesuffix(".onnx"), self.path.name, source_digest(self.path))


def open_file(path: str | Path) -> NetworkFile:
    """Recognise a network file by its content, not by its name.

    Raises:
        NetworkError: the file cannot be read, or is of an unknown kind.
    """
    path = Path(path)
    with reraised(OSError, NetworkError, f"{path}: cannot be read: "):
        if path.is_dir():
            raise NetworkError(f"{path}: is a folder, expected a network file")
        header = read_onnx_header(path)
        with path.open("rb") as stream:
            start = stream.read(16)
    if header is not None:
        return _open_onnx(path, header)
    if looks_like_nnue(start):
        return NetworkFile(path, NetworkKind.NNUE)
    if looks_like_network(path):
        return NetworkFile(path, NetworkKind.KATAGO)
    if looks_sparse(start):
        return NetworkFile(path, NetworkKind.SPARSE, info=read_info(path))
    raise NetworkError(
        f"{path}: {_describe(start)} found, expected a KataGo network (.bin.gz), an ONNX file, a sparse network or "
        "an NNUE evaluation (nn.bin)"
    )


def _open_onnx(path: Path, header: OnnxHeader) -> NetworkFile:
    info = NetworkInfo.from_props(header.metadata) if METADATA_KEY in header.metadata else None
    with reraised(NetworkError, NetworkError, f"{path}: "):
        shogi = recognise(header) if info is None or info.game == "shogi" else None
    if info is not None:
        return NetworkFile(path, NetworkKind.YOMI_ONNX, header, info, shogi)
    if shogi is not None:
        return NetworkFile(path, _SHOGI_KINDS[shogi.form], header, shogi=shogi)
    names = f"inputs {', '.join(header.inputs)} and outputs {', '.join(header.outputs)}"
    raise NetworkError(
        f"{path}: an ONNX file with {names} found, expected one with yomi's metadata or a dlshogi network"
    )


def game_of(path: str | Path) -> str:
    return open_file(path).game


def prepare(file: NetworkFile, board_size: BoardSize, cache_dir: str | Path | None = None) -> tuple[Path, NetworkInfo]:
    """Return an ONNX file of a Go network for boards of `board_size`, with its metadata.

    A KataGo network is converted on first use and cached. ONNX files made by yomi are returned as they are.

    Args:
        file: the network file.
        board_size: N, or (columns, rows).
        cache_dir: folder for converted networks, by default `default_cache_dir`. If it cannot be written, a temporary
            folder is used, with a warning in the log.

    Raises:
        NetworkError: the file cannot be used, or is for another game or board size.
    """
    path = file.path
    if file.game != "go":
        raise NetworkError(f"{path}: a network for {file.game} found, expected one for Go")
    if file.kind is not NetworkKind.KATAGO:
        info = file.describe()
        if info.board_size not in (0, board_size):
            raise NetworkError(
                f"{path}: made for boards of size {info.board_size}, expected size {size_name(board_size)}"
            )
        return path, info
    # A second start hashes two files and reads a header. onnx and onnxruntime, which take a second, are not imported.
    digest = source_digest(path)
    folder = Path(cache_dir) if cache_dir is not None else default_cache_dir()
    stem = f"{digest[:_KEY_LENGTH]}-{KATAGO_CONVERTER_VERSION}-{size_name(board_size)}"
    entry = _cached(folder / "nets", stem) or _convert(path, board_size, digest, folder, stem)
    header = read_onnx_header(entry)
    assert header is not None
    return entry, dataclasses.replace(NetworkInfo.from_props(header.metadata), source_file=path.name)


def _describe(start: bytes) -> str:
    if not start:
        return "an empty file"
    kinds = {b"\x1f\x8b": "gzip data of another kind", b"PK\x03\x04": "a zip archive (or PyTorch checkpoint)"}
    for magic, kind in kinds.items():
        if start.startswith(magic):
            return kind
    if start[:1] == b"\x08" and start[2:3] in (b"\x12", b"\x3a"):  # ir_version, then producer_name or graph
        return "an ONNX file that is cut off or damaged"
    return f"a file that starts with {start!r}"


def _cached(folder: Path, stem: str) -> Path | None:
    """Return a complete file in the cache, or None. Its name ends with the digest of its content."""
    for entry in sorted(folder.glob(f"{stem}-*.onnx")):
        try:
            if source_digest(entry)[:_KEY_LENGTH] == entry.stem.rpartition("-")[2]:
                return entry
            why = "it is damaged"
        except NetworkError as error:  # such as a file of another user
            why = str(error)
        _log.warning("cached network %s cannot be used (%s): converting it again", entry, why)
    return None


def _convert(path: Path, board_size: BoardSize, digest: str, folder: Path, stem: str) -> Path:
    """Convert a KataGo network. Write it to the cache folder, or if that is impossible, to a temporary folder."""
    if importlib.util.find_spec("onnx") is None:
        raise NetworkError(missing_line("onnx", f"{path}: conversion to ONNX"))
    # Imports onnx, which a warm start has no use for.
    from yomi.nets.katago.onnx_export import convert

    _log.info("converting %s for boards of size %s", path, size_name(board_size))
    content = convert(path, board_size, digest)
    name = f"{stem}-{hashlib.sha256(content).hexdigest()[:_KEY_LENGTH]}.onnx"
    try:
        return _store(folder, name, content)
    except OSError as error:
        spare = temporary_cache_dir()
        _log.warning("cache folder %s cannot be written (%s): using %s", folder, error.strerror or error, spare)
    with reraised(OSError, NetworkError, f"{spare / 'nets' / name}: cannot be written: "):
        return _store(spare, name, content)


def _store(folder: Path, name: str, content: bytes) -> Path:
    entry = folder / "nets" / name
    entry.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(entry, content)
    return entry
