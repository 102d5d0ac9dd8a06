"""A file comes from the user's folder, the cache or the net, and always checked."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pooch")

import requests
from urllib3 import HTTPResponse

from dszog.errors import InputError
from dszog_paper.data import DATA_SETS, DataFile
from dszog_paper.data.fetch import fetch

CONTENT = b"+1 1:1\n-1 2:1\n" * 10_000


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


URL = "https://example.org/rows"
FILE = DataFile(name="rows", url=URL, sha256=sha256(CONTENT), n_bytes=len(CONTENT))


class Net:
    """A network that answers with what it is told to, and remembers what was asked."""

    def __init__(self) -> None:
        self.answer: bytes | Exception = CONTENT
        self.headers: dict[str, str] = {}
        self.asked: list[str] = []

    def send(self, adapter: Any, request: Any, **_: Any) -> requests.Response:
        """Take the place of what `requests` sends a request with."""
        self.asked.append(request.url)
        if isinstance(self.answer, Exception):
            raise self.answer
        raw = HTTPResponse(
            body=io.BytesIO(self.answer),
            status=200,
            headers=self.headers,
            preload_content=False,
        )
        answer: requests.Response = adapter.build_response(request, raw)
        return answer


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Net]:
    net = Net()
    monkeypatch.setattr(
        requests.adapters.HTTPAdapter,
        "send",
        lambda adapter, request, **more: net.send(adapter, request, **more),
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    yield net
    assert list(tmp_path.rglob("tmp*")) == []  # no temporary file stays behind


def test_the_named_folder_comes_first_then_the_cache_then_the_net(
    net: Net, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = tmp_path / "cache" / "dszog" / "rows"
    assert fetch(FILE) == cached
    assert cached.read_bytes() == CONTENT
    assert fetch(FILE, allow_download=False) == cached
    assert net.asked == [FILE.url]
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "rows").write_bytes(CONTENT)
    monkeypatch.setenv("DSZOG_DATA", str(tmp_path / "environment"))
    assert fetch(FILE) == tmp_path / "environment" / "rows"
    (tmp_path / "argument").mkdir()
    assert fetch(FILE, data=tmp_path / "argument") == cached
    (tmp_path / "argument" / "rows").write_bytes(CONTENT)
    assert fetch(FILE, data=str(tmp_path / "argument")).parent.name == "argument"
    assert net.asked == [FILE.url]


@pytest.mark.parametrize(
    "content",
    [CONTENT[:-7], CONTENT.replace(b"2", b"3", 1), b"", b"<html>sorry</html>"],
)
def test_an_altered_file_is_refused(net: Net, tmp_path: Path, content: bytes) -> None:
    said = r"rows: this is not the published rows: it has \d+ bytes and sha256 .* del"
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(InputError, match=said):
        fetch(FILE, data=tmp_path)
    net.answer = content
    with pytest.raises(InputError, match=said):
        fetch(FILE)
    folder = tmp_path / "cache" / "dszog"
    assert not (folder / "rows").exists()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows").write_bytes(content)
    with pytest.raises(InputError, match=said):
        fetch(FILE)


@pytest.mark.parametrize(
    "error",
    [
        requests.ConnectionError("Name or service not known"),
        requests.Timeout(),
        requests.HTTPError("404 Client Error: Not Found"),
    ],
)
def test_without_a_network_the_error_says_what_to_do(
    net: Net, tmp_path: Path, error: Exception
) -> None:
    net.answer = error
    with pytest.raises(InputError) as caught:
        fetch(FILE, data=tmp_path)
    said = str(caught.value)
    assert f"rows is not in {tmp_path} and {tmp_path / 'cache' / 'dszog'}" in said
    assert "the download failed (" in said
    assert "Download https://example.org/rows, put it as rows into a folder" in said
    assert said.endswith("name that folder: --data FOLDER, or DSZOG_DATA=FOLDER.")


def test_every_source_is_read_by_https() -> None:
    files = [file for parts in DATA_SETS.values() for file in parts.values()]
    assert len(files) == 6
    assert all(file.url.startswith("https://") for file in files)


def test_downloads_can_be_switched_off(net: Net) -> None:
    with pytest.raises(InputError, match=r"downloads are switched off. Download https"):
        fetch(FILE, allow_download=False)
    assert net.asked == []


def test_a_download_too_long_or_cut_has_failed(net: Net, tmp_path: Path) -> None:
    net.answer = bytes(3 * len(CONTENT))
    with pytest.raises(InputError, match="is longer than 280000 bytes"):
        fetch(FILE)
    net.answer, net.headers = CONTENT[:100], {"Content-Length": str(len(CONTENT))}
    with pytest.raises(InputError, match=r"the download failed \(.*IncompleteRead"):
        fetch(FILE)
    assert list((tmp_path / "cache" / "dszog").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_cache_belongs_to_the_user_alone(net: Net, tmp_path: Path) -> None:
    path = fetch(FILE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.unlink()
    path.parent.chmod(0o777)
    with pytest.raises(InputError, match=r"anybody may write .* chmod o-w"):
        fetch(FILE)


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_in_the_cache_is_not_followed(net: Net, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    folder = tmp_path / "cache" / "dszog"
    folder.mkdir(parents=True)
    (folder / "rows").symlink_to(victim)  # which is not there
    fetch(FILE)
    assert not victim.exists()
    assert not (folder / "rows").is_symlink()


def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(
    net: Net, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"cannot write there .* Set XDG_CACHE_HOME"):
        fetch(FILE)
    (tmp_path / "cache").unlink()
    monkeypatch.setattr(shutil, "move", full)
    with pytest.raises(InputError, match="No space left"):
        fetch(FILE)
    assert list((tmp_path / "cache" / "dszog").iterdir()) == []
