"""Records of other sites by the address of a game. Only the sites of `SITES` are asked."""

import re
import time
import urllib.request
from typing import Any

import yomi
from yomi.language import tr

# address of a game's page or record, address of its record
SITES = (
    (
        r"https://online-go\.com/(?:game|api/v1/games)/(\d{1,12})(?:[/?#]\S*)?",
        "https://online-go.com/api/v1/games/{}/sgf",
    ),
    (r"https://lishogi\.org/(?:game/export/)?(\w{8})(?:\w{4})?(?:[/?#]\S*)?", "https://lishogi.org/game/export/{}"),
)
SECONDS = 10.0
MAX_BYTES = 1_000_000


class _Stay(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they could lead to another site."""

    def redirect_request(self, *_: Any) -> None:
        return None


def record_at(text: str) -> str:
    """Return the record at an address of SITES, and any other text as it is.

    Raises:
        Error: the site does not answer, or its answer is too long.
    """
    for pattern, address in SITES:
        if found := re.fullmatch(pattern, text.strip(), re.ASCII):
            return _download(address.format(found[1]))
    return text


def _download(address: str) -> str:
    end, text = time.monotonic() + SECONDS, b""
    try:
        with urllib.request.build_opener(_Stay).open(address, timeout=SECONDS) as answer:
            while part := answer.read1(1 << 16):
                text += part
                if len(text) > MAX_BYTES or time.monotonic() > end:
                    raise OSError(f"more than {MAX_BYTES} bytes or {SECONDS:.0f} s")
    except OSError as error:  # also urllib's errors
        values = {"address": address, "why": getattr(error, "reason", error)}
        raise yomi.Error(
            tr("no record at {address} ({why}): save the game there as a file and open it", **values)
        ) from None
    return text.decode("utf-8", "replace")
