"""The one place that uses the network: a file over https, up to a limit."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

from dszog.errors import InputError

TIMEOUT = 30.0
"""Seconds without an answer after which the source counts as not reachable."""
_CHUNK = 2**16


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    """Follows a source that moved, but not to where anybody could alter the answer."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        _check_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(url: str) -> Any:
    """Open an https address for reading."""
    opener = urllib.request.build_opener(_OnlyHttps)
    return opener.open(url, timeout=TIMEOUT)


def download(
    url: str, *, max_bytes: int, report: Callable[[int], None] | None = None
) -> bytes:
    """Return what an https address holds; raise OSError if that cannot be had.

    Parameters
    ----------
    url : str
        The address.
    max_bytes : int
        Refuse anything longer.
    report : callable, optional
        Called with the number of bytes so far.
    """
    _check_https(url)
    content = bytearray()
    try:
        with open_url(url) as answer:
            while chunk := answer.read(_CHUNK):
                content += chunk
                if len(content) > max_bytes:
                    raise InputError(
                        f"{url}: the file is longer than {max_bytes} bytes, so it is "
                        "not the one expected. Open the address in a browser and look."
                    )
                if report:
                    report(len(content))
    except HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    return bytes(content)


def _check_https(url: str) -> None:
    if not url.startswith("https://"):
        raise InputError(
            f"{url}: only https addresses are read, so that nobody can alter the "
            "answer. Download the file yourself and name its folder with --data."
        )
