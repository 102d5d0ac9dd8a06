"""Find a data file: in the user's folder, in the cache, or at its public source.

Downloads, and the cache that they are kept in, are pooch's.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
from pathlib import Path
from typing import Any, TypeAlias

from dszog.errors import InputError, MissingExtraError
from dszog.readers.content import read_content
from dszog_paper.data.sources import DataFile

Folder: TypeAlias = str | os.PathLike[str]

VARIABLE = "DSZOG_DATA"
"""The environment variable that names the user's data folder."""
TIMEOUT = 30.0
"""Seconds without an answer after which the source counts as not reachable."""
_ENDINGS = ("", ".xz", ".gz", ".bz2")


def fetch(
    file: DataFile, *, data: Folder | None = None, allow_download: bool = True
) -> Path:
    """Return the path of a data file whose content is what it should be."""
    # Looked for in `data`, or else in the folder that ``DSZOG_DATA`` names; then in the
    # user's cache; then, if `allow_download`, at its source, from where it is put into
    # the cache.
    path = find(file, data=data)
    if path:
        return path
    folder = named_folder(data)
    if allow_download:
        return _download(file, folder)
    if folder is None:
        raise _not_found(file, folder, "and downloads are switched off")
    raise InputError(
        f"{file.name} is not in {folder}, the folder that was named, nor in "
        f"{cache_folder()}. Name the folder that has it: --data FOLDER, or "
        f"{VARIABLE}=FOLDER. It is published at {file.url}"
    )


def find(file: DataFile, *, data: Folder | None = None) -> Path | None:
    """Return the path of a data file that is at hand, and None where it is not."""
    # One whose content is not what it should be is refused, as `fetch` does.
    for folder in filter(None, (named_folder(data), cache_folder())):
        for ending in _ENDINGS:
            path = folder / f"{file.name}{ending}"
            if path.exists():
                _check_sum(file, read_content(path), str(path))
                return path
    return None


def named_folder(data: Folder | None) -> Path | None:
    """Return the folder that the user names, as an argument or in the environment."""
    named, how = (data, "`data`") if data else (os.environ.get(VARIABLE), VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"{how} must name a folder with data files, got {str(named)!r}, which is "
            "none. Correct the path, or leave it out."
        )
    return folder


def cache_folder() -> Path:
    """Return the folder for downloads: ``dszog`` in the user's folder of caches."""
    # Known without pooch, which is only needed to put something there.
    home = Path.home()
    base = {
        "win32": Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"),
        "darwin": home / "Library" / "Caches",
    }.get(sys.platform, home / ".cache")
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else base) / "dszog"


# ------------------------------------------------------------------------ the download


def _download(file: DataFile, folder: Path | None) -> Path:
    """Put a file from its source into the cache, whole and checked, or not at all."""
    try:
        import pooch
        import requests
    except ImportError as missing:
        owner = f"A download of {file.name}"
        raise MissingExtraError.of(owner, missing.name, "paper") from missing

    def download(url: str, output: str, _: Any) -> None:
        content = _Limited(file)
        pooch.HTTPDownloader(timeout=TIMEOUT)(url, content, None)
        _check_sum(file, content.getvalue(), file.url)
        Path(output).write_bytes(content.getvalue().replace(b"\r\n", b"\n"))

    cache = cache_folder()
    try:
        _make_private(cache)
        kept = pooch.retrieve(
            file.url,
            f"sha256:{file.sha256}",
            fname=file.name,
            path=cache,
            downloader=download,
        )
    except requests.RequestException as error:
        why = f"and the download failed ({str(error) or type(error).__name__})"
        raise _not_found(file, folder, why) from None
    except OSError as error:
        raise InputError(
            f"{cache}: cannot write there ({error.strerror or error}). Set "
            "XDG_CACHE_HOME to a folder that you may write into, or name one with the "
            "data: --data."
        ) from None
    return Path(kept)


class _Limited(io.BytesIO):
    """What was downloaded so far; more than is expected is refused."""

    def __init__(self, file: DataFile) -> None:
        super().__init__()
        self._file = file

    def write(self, chunk: Any) -> int:
        most = 2 * self._file.n_bytes  # line ends may take two bytes there
        if self.tell() + len(chunk) > most:
            raise InputError(
                f"{self._file.url}: the file is longer than {most} bytes, so it is not "
                "the one expected. Open the address in a browser and look."
            )
        return super().write(chunk)


def _make_private(folder: Path) -> None:
    """Make a folder that only its owner may change, or refuse one that others may."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and folder.stat().st_mode & stat.S_IWOTH:
        raise InputError(
            f"{folder}: anybody may write into this folder, so nothing is kept there. "
            f"Run: chmod o-w {folder}"
        )


def _check_sum(file: DataFile, content: bytes, where: str) -> None:
    """Refuse other content, whatever its line ends are."""
    text = content.replace(b"\r\n", b"\n")
    found = hashlib.sha256(text).hexdigest()
    if found != file.sha256:
        raise InputError(
            f"{where}: this is not the published {file.name}: it has {len(text)} bytes "
            f"and sha256 {found}, expected {file.n_bytes} bytes and {file.sha256}. It "
            "is cut off, altered or another version: delete it, and get it again from "
            f"{file.url}"
        )


def _not_found(file: DataFile, folder: Path | None, why: str) -> InputError:
    looked = " and ".join(str(each) for each in (folder, cache_folder()) if each)
    return InputError(
        f"{file.name} is not in {looked}, {why}. Download {file.url}, put it as "
        f"{file.name} into a folder of yours, and name that folder: --data FOLDER, or "
        f"{VARIABLE}=FOLDER."
    )
