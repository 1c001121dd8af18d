"""The description of a game by its author: `yomi.BoardGame`, and how a file of one is loaded.

docs/how-to/games.md is the guide to it.
"""

import hashlib
import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from yomi.errors import LineError, one_line
from yomi.nets.files import default_cache_dir, write_atomically
from yomi.nets.user_files import PythonFileError, load_from_source
from yomi.settings import OptionError

RESERVED = ("side_to_move", "ply", "history_length")  # fields of a record that yomi adds
MAX_SIZE, MAX_MOVES = 32, 2**16 - 1
FUNCTIONS = ("legal", "play", "result", "encode", "begin")


class BoardGameError(LineError, ValueError):
    """A description of a game is wrong, or its functions cannot be compiled."""


def _keep_zeros(state: Any) -> None:
    """Begin with a record of zeros."""


def _no_board(state: Any) -> str:
    return ""


@dataclass(frozen=True, kw_only=True, eq=False)
class BoardGame:
    """A game of two players who move in turn, without chance and hidden information.

    Its functions get `state`, a record with the fields of `state`, and with `side_to_move` (1 for the first player,
    otherwise 2) and `ply`, which yomi counts. numba compiles them, with the functions of their file that they call.
    They may not create arrays.

    A move is a number below `move_planes * size * size`: (plane * size + y) * size + x. With one plane, `size * size`
    is a further move, the pass.
    """

    title: str  # in texts; in lower case and with dashes it names folders and options
    size: int  # the network sees a board of size × size points
    planes: int  # of zeros and ones that the network sees
    state: Any  # structured numpy dtype, or a list of its fields
    legal: Callable[..., Any]
    """legal(state, moves): write 1 to moves[m] for each legal move m. `moves` has zeros. Some move must be legal."""
    play: Callable[..., Any]
    """play(state, move): change the state by a legal move."""
    result: Callable[..., Any]
    """result(state) -> (over, value): value 1.0 if the side to move has won, -1.0 if it has lost, 0.0 for a draw."""
    encode: Callable[..., Any]
    """encode(state, planes): write 1 to float32[planes, size, size], which has zeros, as the side to move sees it."""
    begin: Callable[..., Any] = _keep_zeros
    """begin(state): write the first position into a record of zeros."""
    move_planes: int = 1
    symmetric: bool = False  # whether training may turn and mirror boards; moves must be points
    move_text: Callable[[int], str] = str
    board_text: Callable[[Any], str] = _no_board  # text of a numpy record

    def __post_init__(self) -> None:
        """Check the description. Raises BoardGameError."""
        if not isinstance(self.title, str) or not self.name:
            raise BoardGameError(f"title {self.title!r} found, expected text with letters a-z or digits")
        if self.name in ("go", "shogi"):
            raise BoardGameError(f"title {self.title!r} found, expected the name of another game than Go and shogi")
        for name, low, high in (("size", 2, MAX_SIZE), ("planes", 1, 1000), ("move_planes", 1, 1000)):
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise BoardGameError(f"{self.title}: {name} {value!r} found, expected a number from {low} to {high}")
        if self.policy_size > MAX_MOVES:
            raise BoardGameError(f"{self.title}: {self.policy_size} moves found, expected at most {MAX_MOVES}")
        if self.symmetric and self.move_planes > 1:
            raise BoardGameError(f"{self.title}: symmetric found with move_planes {self.move_planes}, expected 1")
        for name in FUNCTIONS:
            if not callable(getattr(self, name)):
                raise BoardGameError(f"{self.title}: {name} {getattr(self, name)!r} found, expected a function")
        _ = self.dtype

    @cached_property
    def name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def features(self) -> str:
        """Name of the feature set of the game's networks."""
        return f"{self.name}-{self.planes}"

    @property
    def policy_size(self) -> int:
        return self.move_planes * self.size**2 + (self.move_planes == 1)

    @cached_property
    def source(self) -> bytes:
        """The content of the file of the functions."""
        try:
            return Path(self.file).read_bytes()
        except (OSError, TypeError):  # typed in by hand, or built-in functions
            raise BoardGameError(f"{self.title}: play is in no file: put the functions into a file") from None

    @cached_property
    def file(self) -> str:
        """The file of the functions."""
        return inspect.getfile(inspect.unwrap(getattr(self.play, "py_func", self.play)))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of the description, of the file of its functions, and of the kernels around them."""
        source = self.source + Path(__file__).with_name("kernels.py").read_bytes()
        source += b"".join(_imported(value) for value in getattr(self.play, "py_func", self.play).__globals__.values())
        # Two games of one file may have different functions.
        source += b"".join(_content(getattr(self, name)) for name in FUNCTIONS)
        facts = self.title, self.size, self.planes, self.move_planes, self.symmetric, str(np.dtype(self.state))
        return hashlib.sha256(repr(facts).encode() + source).hexdigest()[:16]

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The dtype of position records: the author's fields and yomi's."""
        try:
            own = np.dtype(self.state)
        except (TypeError, ValueError) as error:
            raise BoardGameError(f"{self.title}: state: {error}, expected a structured dtype of numpy") from None
        if own.fields is None or own.hasobject:
            raise BoardGameError(f"{self.title}: state {own} found, expected a structured dtype of numbers")
        if taken := [name for name in RESERVED if name in own.fields]:
            raise BoardGameError(f"{self.title}: state has a field {taken[0]}, which yomi adds: expected another name")
        fields = [(name, own.fields[name][0]) for name in own.names or ()]
        added = [("side_to_move", np.uint8), ("history_length", np.uint8), ("ply", np.uint16)]
        # Kernels are found by the type: this field makes records of two games different types. It also makes records
        # whole words.
        mark = (f"game_{self.digest}", np.uint64)
        return np.dtype([*fields, *added, mark], align=True)


def _imported(value: Any) -> bytes:
    """Return the part of a global of the author's file that kernels may contain, and another file may define."""
    if isinstance(value, int | float | tuple | np.generic | np.ndarray):
        return _content(value)
    try:
        return Path(inspect.getfile(getattr(value, "py_func", value))).read_bytes()
    except (TypeError, OSError):
        return b""


def _content(value: Any, above: tuple[Any, ...] = ()) -> bytes:
    """Return the part of a value that kernels may contain: of a function its code and the values that it keeps."""
    inner = getattr(value, "py_func", value)
    code = getattr(inner, "__code__", None)
    if code is not None:
        if any(inner is each for each in above):  # it calls itself
            return b""
        kept = [inner.__defaults__, *(cell.cell_contents for cell in inner.__closure__ or ())]
        kept += [each for each in code.co_consts if not hasattr(each, "co_code")]
        place = repr((inner.__qualname__, code.co_firstlineno, code.co_code)).encode() + _imported(inner)
        return place + b"".join(_content(each, (*above, inner)) for each in kept)
    if isinstance(value, tuple):
        return b"".join(b"," + _content(each, above) for each in value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}".encode() + value.tobytes()
    # Other objects have texts that differ between processes.
    return repr(value if isinstance(value, str | bytes | int | float | np.generic) else type(value)).encode()


def fault_of(error: Exception, file: str) -> str:
    """Return an error of the author's functions as one line, with the line of the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return one_line(f"{file}{f', line {lines[-1]}' if lines else ''}: {type(error).__name__}: {error}")


def load_board_game(name: str, source: str) -> BoardGame:
    """Return the game `FILE.py:NAME` from the text of the file.

    Raises:
        BoardGameError, OptionError: the text has no such game, or raises an error.
    """
    path, _, wanted = name.rpartition(":")
    file = Path(path)
    if not file.is_file() or file.read_text(encoding="utf-8") != source:  # on another machine
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        file = default_cache_dir() / "games" / digest / file.name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, source.encode())
    try:
        found = load_from_source(source, str(file), wanted)
    except (BoardGameError, PythonFileError) as error:
        raise OptionError(f"{name}: {error}") from None
    except SyntaxError as error:
        raise OptionError(f"{path}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        raise OptionError(fault_of(error, str(file))) from None
    if not isinstance(found, BoardGame):
        raise OptionError(f"{name}: {type(found).__name__} found, expected a yomi.BoardGame")
    return found
