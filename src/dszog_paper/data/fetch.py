"""Find a data file: in the user's folder, in the cache, or at its public source."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from dszog.errors import InputError
from dszog.readers.content import read_content
from dszog_paper.data.download import download
from dszog_paper.data.files import safe_folder, write_atomically
from dszog_paper.data.sources import DataFile

Folder: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[str, int, int], None]

VARIABLE = "DSZOG_DATA"
"""The environment variable that names the user's data folder."""
_ENDINGS = ("", ".xz", ".gz", ".bz2")


def fetch(
    file: DataFile,
    *,
    data: Folder | None = None,
    allow_download: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Return the path of a data file whose content is what it should be.

    Looked for in `data`, or else in the folder that ``DSZOG_DATA`` names; then in the
    user's cache; then at its source, from where it is put into the cache.

    Parameters
    ----------
    file : DataFile
        Which file.
    data : str or os.PathLike, optional
        The user's folder with data files.
    allow_download : bool
        Whether the network may be used.
    progress : callable, optional
        Called as ``progress(name, bytes_so_far, bytes_expected)`` during a download.
    """
    path = find(file, data=data)
    if path:
        return path
    folder, cache = named_folder(data), cache_folder()
    if folder and not allow_download:
        raise InputError(
            f"{file.name} is not in {folder}, the folder that was named, nor in "
            f"{cache_folder()}. Name the folder that has it: --data FOLDER, or "
            f"{VARIABLE}=FOLDER. It is published at {file.url}"
        )
    if not allow_download:
        raise _not_found(file, folder, "and downloads are switched off")

    def report(n_bytes: int) -> None:
        if progress:
            progress(file.name, n_bytes, file.n_bytes)

    try:
        content = download(file.url, max_bytes=file.max_bytes, report=report)
    except OSError as error:
        reason = str(error) or type(error).__name__
        raise _not_found(file, folder, f"and the download failed ({reason})") from None
    path = safe_folder(cache) / file.name
    write_atomically(path, _prepared(file, content))
    return path


def find(file: DataFile, *, data: Folder | None = None) -> Path | None:
    """Return the path of a data file that is at hand, and None where it is not.

    One whose content is not what it should be is refused, as `fetch` does.
    """
    for place in (named_folder(data), cache_folder()):
        path = _in_folder(place, file)
        if path:
            _verify(file, read_content(path), str(path))
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
    home = Path.home()
    base = {
        "win32": Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"),
        "darwin": home / "Library" / "Caches",
    }.get(sys.platform, home / ".cache")
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else base) / "dszog"


def _in_folder(folder: Path | None, file: DataFile) -> Path | None:
    paths = [folder / f"{file.name}{end}" for end in _ENDINGS] if folder else []
    return next((path for path in paths if path.exists()), None)


def _prepared(file: DataFile, content: bytes) -> bytes:
    """Return a download as it is kept, after checking it before and after."""
    text = content.replace(b"\r\n", b"\n")
    if file.original:
        _check_sum(file, (content, text), file.original.sha256, file.url)
        text = file.original.prepare(text)
    _verify(file, text, file.url)
    return text


def _verify(file: DataFile, content: bytes, where: str) -> None:
    versions = (content, content.replace(b"\r\n", b"\n"))
    _check_sum(file, versions, file.sha256, where)


def _check_sum(
    file: DataFile, versions: tuple[bytes, ...], expected: str, where: str
) -> None:
    sums = [hashlib.sha256(version).hexdigest() for version in versions]
    if expected not in sums:
        raise InputError(
            f"{where}: this is not the published {file.name}: it has "
            f"{len(versions[-1])} bytes and sha256 {sums[-1]}, expected "
            f"{file.n_bytes} bytes and {expected}. It is cut off, altered or another "
            f"version: delete it, and get it again from {file.url}"
        )


def _not_found(file: DataFile, folder: Path | None, why: str) -> InputError:
    looked = " and ".join(str(each) for each in (folder, cache_folder()) if each)
    advice = (
        f"Download {file.url}, put it as {file.name} into a folder of yours, and name "
        f"that folder: --data FOLDER, or {VARIABLE}=FOLDER."
    )
    if file.original:
        advice = (
            f"Where there is a network, run the same command once: it makes "
            f"{file.name} from {file.url} and keeps it in {cache_folder()}. Copy that "
            f"file to a folder here, and name the folder: --data FOLDER, or "
            f"{VARIABLE}=FOLDER."
        )
    return InputError(f"{file.name} is not in {looked}, {why}. {advice}")
