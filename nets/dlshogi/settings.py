"""The settings that dlshogi keeps beside a network: `MODEL.onnx.ini` with lines Name=Value."""

from __future__ import annotations

from pathlib import Path

from yomi.nets.errors import NetworkError


def read_settings(network: str | Path) -> dict[str, str]:
    """Return the options that a network recommends, by dlshogi's names (C_init, ...); empty if there is no such file.

    Empty lines, comments (# or ;) and section headers are skipped. Values are not interpreted here.

    Args:
        network: the network's file; the settings are in the file of that name with `.ini` appended.

    Raises:
        NetworkError: the file cannot be read, is not text, or has a line of another form.
    """
    path = Path(f"{network}.ini")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NetworkError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise NetworkError(f"{path}: no UTF-8 text found (byte {error.start}), expected lines Name=Value") from None
    settings: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;[":
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise NetworkError(f"{path}: line {number} is {line!r}, expected Name=Value")
        settings[name.strip()] = value.strip()
    return settings
