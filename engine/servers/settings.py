"""The TOML file of servers and accounts, and their passwords. Errors name the line and the key.

    records = "games"                 # folder of the game records
    events = "events.jsonl"           # events, for programs

    [servers.home]
    protocol = "cgos"                 # or csa
    host = "127.0.0.1"
    port = 6809

    [accounts.yomi-9]
    server = "home"
    user = "yomi-9"
    password_file = "~/.yomi-9"       # or password_env = "NAME", or password_keyring = "SERVICE"
    games = 0                         # games to play; 0: no limit
    engine.visits = 400               # any option of yomi help options
    #command = "gnugo --mode gtp"     # another engine in yomi's place

Relative paths start at the file's own folder: records, events, password files, files that options name, and an engine
in `command` whose name contains a slash. The arguments of a command are not changed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from yomi.engine.clients.spec import MAX_COMMAND, text_of
from yomi.engine.default_network import is_bundled
from yomi.engine.options import NETWORK, OptionError, Options, Value, find
from yomi.errors import LineError, reraised
from yomi.nets.installation import pip_command
from yomi.nets.text import parse_toml
from yomi.system import split_command

CGOS, CSA = "cgos", "csa"
GAMES = {CGOS: "go", CSA: "shogi"}
DECIDED = ("size", "komi", "rules")  # options of Go that the server decides for each game
PASSWORD_KEYS = ("password_env", "password_file", "password_keyring")
NAME = re.compile(r"[A-Za-z0-9_.@-]+")
MAX_KEEPALIVE = 86400.0
MAX_LINE = 1000  # characters of a line that is searched for a key: the patterns need quadratic time


class SettingsError(LineError):
    """The file contains a mistake. The message is one line with the file, the line, the key and the value."""


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    protocol: str
    host: str
    port: int
    size: int = 19  # Go: board size to load the engine for. A game of another size loads it again.
    game_name: str = ""  # CSA: kind of game sent with the login, such as `floodgate-300-10F`
    # CSA: seconds of silence after which an empty line is sent; 0: never. Servers want 30 at least.
    keepalive: float = 60.0
    comments: bool = True  # send evaluations with the moves: CGOS's analysis, floodgate's comments


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    server: Server
    user: str
    password_key: str
    password_source: str
    games: int = 0
    options: Mapping[str, Value] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)  # file, line and key of each option, for errors
    command: tuple[str, ...] = ()  # command line of another engine, or empty for yomi
    usi_options: Mapping[str, str] = field(default_factory=dict)
    go: str = ""  # arguments of `go` for that engine (USI), such as `nodes 20000`; empty for the clocks

    def password(self) -> Password:
        match self.password_key:
            case "password_env":
                return from_environment(self.password_source)
            case "password_file":
                return from_file(Path(self.password_source))
        return from_keyring(self.password_source, self.user)


@dataclass(frozen=True, slots=True)
class Settings:
    accounts: tuple[Account, ...]
    records: Path
    events: Path | None = None
    in_turn: bool = False  # play the accounts one after the other, each its number of games (or 1), repeatedly
    # Environment variables with passwords, including passwords for the other protocol's accounts.
    password_variables: tuple[str, ...] = ()


def read_settings(path: Path, protocol: str) -> Settings:
    with reraised(OSError, SettingsError, f"cannot read {path}: "):
        content = path.read_bytes()
    with reraised(ValueError, SettingsError, f"{path} is not a TOML file: "):
        text = content.decode("utf-8")
        data = parse_toml(text)
    return _Reader(path, text).read(data, protocol)


class _Reader:
    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()

    def read(self, data: dict[str, object], protocol: str) -> Settings:
        top = _Table(self, (), data)
        top.only("records", "events", "in_turn", "servers", "accounts")
        servers = {name: self._server(name, table) for name, table in top.tables("servers").items()}
        accounts = [self._account(name, table, servers) for name, table in top.tables("accounts").items()]
        chosen = tuple(account for account in accounts if account.server.protocol == protocol)
        if not chosen:
            raise SettingsError(f'{self.path}: no account on a server with protocol = "{protocol}"')
        events = top.text("events", "")
        return Settings(
            chosen,
            top.beside("records", top.text("records", "games")),
            top.beside("events", events) if events else None,
            top.flag("in_turn", False),
            tuple(account.password_source for account in accounts if account.password_key == "password_env"),
        )

    def _server(self, name: str, table: _Table) -> Server:
        protocol = table.choice("protocol", (CGOS, CSA))
        keys = {CGOS: ("size",), CSA: ("game_name", "keepalive")}[protocol]
        table.only("protocol", "host", "port", "comments", *keys)
        game_name = table.text("game_name", "")
        if game_name and not NAME.fullmatch(game_name):
            raise table.error("game_name", "a name such as floodgate-300-10F")
        return Server(
            name,
            protocol,
            table.text("host"),
            table.integer("port", None, 1, 65535),
            size=table.integer("size", 19, 2, 19),
            game_name=game_name,
            keepalive=table.integer("keepalive", 60, 0, int(MAX_KEEPALIVE)),
            comments=table.flag("comments", True),
        )

    def _account(self, name: str, table: _Table, servers: Mapping[str, Server]) -> Account:
        table.only("server", "user", "games", "engine", "command", "usi_options", "go", *PASSWORD_KEYS)
        if not NAME.fullmatch(name):
            raise SettingsError(f"{table.where()}: expected a name of letters, digits, _ . @ and -")
        server_name = table.text("server")
        if server_name not in servers:
            raise table.error("server", f"one of the servers {', '.join(servers) or '(the file has none)'}")
        server = servers[server_name]
        keys = [key for key in PASSWORD_KEYS if key in table.data]
        if len(keys) != 1:
            found = " and ".join(keys) or "no password"
            raise SettingsError(f"{table.where()}: found {found}, expected one of {', '.join(PASSWORD_KEYS)}")
        source = table.text(keys[0])
        user = table.text("user")
        if not NAME.fullmatch(user):
            raise table.error("user", "a name of letters, digits, _ . @ and -")
        command = self._command(table)
        if command and "engine" in table.data:
            raise table.error("engine", "either engine (options of yomi) or command (another engine)")
        for key in ("usi_options", "go"):
            if key in table.data and not (command and server.protocol == CSA):
                raise table.error(key, 'it with a command on a server with protocol = "csa" only')
        options, places = self._options(table.table("engine"), GAMES[server.protocol])
        return Account(
            name,
            server,
            user,
            keys[0],
            str(table.beside(keys[0], source)) if keys[0] == "password_file" else source,
            games=table.integer("games", 0, 0, 10**9),
            options=options,
            places=places,
            command=command,
            usi_options={key: text_of(value) for key, value in table.table("usi_options").data.items()},
            go=table.text("go", ""),
        )

    def _command(self, table: _Table) -> tuple[str, ...]:
        # A path of the engine starts at the file's folder.
        text = table.text("command", "")
        if len(text) > MAX_COMMAND:
            raise table.error("command", f"at most {MAX_COMMAND} characters")
        try:
            words = split_command(text)
        except ValueError as error:
            raise table.error("command", f"a command line ({str(error).lower()})") from None
        if words and Path(words[0]).name != words[0]:
            words[0] = str(table.beside("command", words[0]).absolute())
        return tuple(words)

    def _options(self, table: _Table, game: str) -> tuple[dict[str, Value], dict[str, str]]:
        options = Options.for_game(game)
        found: dict[str, Value] = {}
        places: dict[str, str] = {}
        for key, value in table.data.items():
            with reraised(OptionError, SettingsError, f"{table.where(key)}: "):
                row = find(key, game)
                options.set(key, None if value == "none" else value)
            checked = options.get(key)
            if row.kind == "file" and checked is not None:
                path = table.beside(key, str(checked))
                if path.is_file() or row.group != NETWORK or not is_bundled(str(checked)):
                    checked = str(path)
            found[row.name] = checked
            places[row.name] = table.where(key)
            if game == "go" and row.name in DECIDED:
                raise SettingsError(f"{table.where(key)}: the server decides it, expected other options")
        return found, places

    def line_of(self, keys: tuple[str, ...]) -> int | None:
        """Return the line number of a key. If the key is missing, it is that of the longest part of its path."""
        section: tuple[str, ...] = ()
        best, length = None, 0
        for number, line in enumerate(self.lines, 1):
            if len(line) > MAX_LINE:
                continue
            if header := re.fullmatch(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?", line):
                section = _path(header[1])
                here = section
            elif assignment := re.match(r"\s*([\w.\"'@ -]+?)\s*=", line):
                here = (*section, *_path(assignment[1]))
            else:
                continue
            if keys[: len(here)] == here and len(here) > length:
                best, length = number, len(here)
            elif best is None and here[: len(keys)] == keys:
                best = number
        return best


def _path(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.]+', text))


class _Table:
    def __init__(self, reader: _Reader, path: tuple[str, ...], data: Mapping[str, object]) -> None:
        self.reader, self.path, self.data = reader, path, data

    def where(self, key: str | None = None) -> str:
        keys = self.path if key is None else (*self.path, key)
        line = self.reader.line_of(keys)
        return f"{self.reader.path}{'' if line is None else f', line {line}'}: {'.'.join(keys)}"

    def error(self, key: str, expected: str) -> SettingsError:
        if key not in self.data:
            return SettingsError(f"{self.where()}: {key} is missing, expected {expected}")
        return SettingsError(f"{self.where(key)}: found {self.data[key]!r:.100}, expected {expected}")

    def only(self, *keys: str) -> None:
        for key in self.data:
            if key == "password":
                raise SettingsError(f"{self.where(key)}: no password belongs here, expected one of {PASSWORD_KEYS}")
            if key not in keys:
                raise SettingsError(f"{self.where(key)}: unknown key, expected one of {', '.join(keys)}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.error(key, "text")
        return value

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.data.get(key)
        if value not in choices:
            raise self.error(key, " or ".join(choices))
        return str(value)

    def integer(self, key: str, default: int | None, low: int, high: int) -> int:
        value = self.data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(key, f"an integer from {low} to {high}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def beside(self, key: str, text: str) -> Path:
        """Return the path that a key contains. Relative paths start at the file's folder."""
        try:
            return self.reader.path.parent / Path(text).expanduser()
        except RuntimeError:
            raise self.error(key, "a path (no such home folder is known)") from None

    def table(self, key: str) -> _Table:
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, "a table")
        return _Table(self.reader, (*self.path, key), value)

    def tables(self, key: str) -> dict[str, _Table]:
        table = self.table(key)
        return {name: table.table(name) for name in table.data}


# -- passwords ------------------------------------------------------------------------------------------------------

STARS = "********"


class PasswordError(LineError):
    """A password cannot be read. The message is one line and never contains it."""


class Password:
    __slots__ = ("_text",)

    def __init__(self, text: str, source: str = "") -> None:
        """Raise PasswordError if `text` is empty or would break a line of a protocol."""
        if not text or any(c.isspace() or ord(c) < 33 for c in text):
            where = f"{source}: " if source else ""
            raise PasswordError(f"{where}the password is empty or holds blanks: expected visible characters only")
        self._text = text

    def reveal(self) -> str:
        return self._text

    def hide(self, text: str) -> str:
        return text.replace(self._text, STARS)

    def __repr__(self) -> str:
        return STARS


def from_environment(name: str) -> Password:
    text = os.environ.get(name)
    if text is None:
        raise PasswordError(f"the variable {name} is not set: expected the password in it")
    return Password(text, f"the variable {name}")


def forget_environment(names: Iterable[str]) -> None:
    # Engines that are started would inherit them.
    for name in names:
        os.environ.pop(name, None)


def from_file(path: Path) -> Password:
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            # The mode of the open file: a path may lead elsewhere a moment later.
            if os.name == "posix" and mode & 0o077:
                raise PasswordError(f"{path} has mode {mode:04o}: expected 0600 (chmod 600 {path})")
            text = file.readline()
    except UnicodeDecodeError:
        raise PasswordError(f"{path} is not text: expected a password in its first line") from None
    except OSError as error:
        raise PasswordError(f"cannot read {path}: {error.strerror}") from None
    return Password(text.strip("\r\n"), str(path))


def from_keyring(service: str, user: str) -> Password:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise PasswordError(f"the package keyring is not installed: {pip_command('install', 'keyring')}") from None
    with reraised(KeyringError, PasswordError, "the keyring cannot be used: "):
        text = keyring.get_password(service, user)
    if text is None:
        raise PasswordError(f"the keyring has no password of {user} for {service}: keyring set {service} {user}")
    return Password(text, f"the keyring's entry {service}")
