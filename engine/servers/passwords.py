"""Passwords: from the environment, a file that nobody else can read, or the system's keyring."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from yomi.nets.errors import LineError
from yomi.nets.installation import pip_command

STARS = "********"


class PasswordError(LineError):
    """A password cannot be read. The message is one line and never contains it."""


class Password:
    """A password that only `reveal` shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Raise PasswordError if `text` is empty or would break a line of a protocol."""
        if not text or any(c.isspace() or ord(c) < 33 for c in text):
            raise PasswordError("the password is empty or holds blanks: expected visible characters only")
        self._text = text

    def reveal(self) -> str:
        return self._text

    def hide(self, text: str) -> str:
        """Return `text` with stars in place of the password."""
        return text.replace(self._text, STARS)

    def __repr__(self) -> str:
        return STARS


def from_environment(name: str) -> Password:
    text = os.environ.get(name)
    if text is None:
        raise PasswordError(f"the variable {name} is not set: expected the password in it")
    return _checked(text, f"the variable {name}")


def forget_environment(names: Iterable[str]) -> None:
    """Remove variables from the environment, so that started engines do not inherit them."""
    for name in names:
        os.environ.pop(name, None)


def from_file(path: Path) -> Password:
    """Read a password from the first line of a file.

    Raises:
        PasswordError: the file cannot be read, others may read it, or it contains no password.
    """
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise PasswordError(f"{path} has mode {mode:04o}: expected 0600 (chmod 600 {path})")
            text = file.readline()
    except UnicodeDecodeError:
        raise PasswordError(f"{path} is not text: expected a password in its first line") from None
    except OSError as error:
        raise PasswordError(f"cannot read {path}: {error.strerror}") from None
    return _checked(text.strip("\r\n"), str(path))


def from_keyring(service: str, user: str) -> Password:
    """Read a password from the system's keyring.

    Raises:
        PasswordError: the package `keyring` is not installed, the keyring cannot be used, or has no such entry.
    """
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise PasswordError(f"the package keyring is not installed: {pip_command('install', 'keyring')}") from None
    try:
        text = keyring.get_password(service, user)
    except KeyringError as error:
        raise PasswordError(f"the keyring cannot be used: {error}") from None
    if text is None:
        raise PasswordError(f"the keyring has no password of {user} for {service}: keyring set {service} {user}")
    return _checked(text, f"the keyring's entry {service}")


def _checked(text: str, source: str) -> Password:
    try:
        return Password(text)
    except PasswordError as error:
        raise PasswordError(f"{source}: {error}") from None
