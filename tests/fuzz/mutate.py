"""Mutations that know what they mutate: text in fields, JSON in a signed container.

All take a generator and return bytes; the same generator state gives the same bytes.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import struct
import zlib
from typing import Any, TypeVar

import numpy as np

Rng = np.random.Generator
T = TypeVar("T")

PACKERS = (gzip.compress, bz2.compress, lzma.compress)
TOKENS = (
    *("nan", "inf", "-inf", "1e999", "-1e999", "1e-999", "1_0", "0x1p3", "1,2", "+-1"),
    *("0:1", "1:", ":1", "1:1:1", "1:nan", "1:1e999", "2147483648:1", "qid:3"),
    "3:1 1:1",
    *("99999999999:1", "1:1 1:2", "-1:2", "1.5:2", "16777217:1", "16777216:1", "a:b"),
    *("\u0661", "\u0661:1", "#", "# x", "\x00", "\r", "\ufeff", "\u202e", "\x1b[31m"),
    *('"', '""', '"a', 'a"b', "'", ",", ",,", ";", "\t", " ", "\n", "\n\n", "\r\n"),
    *("=cmd|' /C calc'!A0", "../../etc/passwd", "%s%n", "{0.__class__}", "?", "x" * 50),
    *("__import__('os').system('true')", "9" * 400, "1e" + "9" * 30, "M" * 200_000),
)
ENTRIES = ("1:1e999", "12345678901:1", "qid:1", "0:1", "1:1 1:2", "2:x", "2:", "zz")
FIELDS = ('"', '"a', 'a"b', "", "?", "nan", "1e999", "\n", " 3", "a b", "\u0661")
RAW = (
    *(b"", b"\x80\x04\x95", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK\x03\x04"),
    b"\xff",
    *(b"\x93NUMPY\x01\x00", b"\x89HDF", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c"),
    *(b"\xef\xbb\xbf", b"DSZOG\r\n\x1a", b"DSZOGJN\n", bytes(64)),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**48, 2**62, 2**63, -(2**63), 2**64, 10**30),
    *("", "nan", "inf", "0x1p99999", "-0x0.0p+0", "zz", "\u00e9", "\x1b[31m"),
    "1" * 5000,
    *([], {}, [[]], {"": None}, {"array": 0}, {"array": 10**9}, {"array": True}),
    *({"float": "nan"}, {"float": "inf"}, {"float": 3}, {"float": "0x1p99999"}),
    *({"float64": "-0x1p-1074"}, {"int64": 2**70}, {"int64": "1"}, {"int64": -1}),
    *({"bytes": "zz"}, {"bytes": ""}, {"bytes": 3}, {"size": True}, {"list": 3}),
    *({"tuple": []}, {"list": []}, {"dict": []}, {"dict": [["a", 1], ["a", 2]]}),
    *({"dict": [[1, 2]]}, {"dict": 3}, {"dict": [[1]]}, {"object": ["os.system", []]}),
    *({"object": ["DSZOGState", []]}, {"object": 3}, {"object": [[], []]}, {"x": 1}),
    *({"object": ["StartPass", {"dict": []}]}, {"tuple": [None, None, None]}),
    *({"tuple": [1, 1, {"float": "0x1p3"}]}, {"tuple": ["a", 1, 1]}, {"array": -1}),
)


def pick(rng: Rng, items: Any) -> Any:
    """Return one of a sequence; NumPy would turn it into an array."""
    return items[int(rng.integers(len(items)))]


def flipped(rng: Rng, content: bytes) -> bytes:
    """Flip, insert, delete, cut or repeat some bytes."""
    made = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(len(made) + 1))
        kind = int(rng.integers(5))
        if kind == 0 and place < len(made):
            made[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            made[place:place] = pick(rng, RAW)
        elif kind == 2:
            del made[place : place + int(rng.integers(1, 9))]
        elif kind == 3:
            del made[place:]
        else:
            made[place:place] = made[place : place + int(rng.integers(1, 33))]
    return bytes(made)


# ------------------------------------------------------------------------------- text
def text(rng: Rng, seed: bytes, parting: str) -> bytes:
    """Change fields of lines; now and then bytes, line ends, or the packing."""
    tokens: tuple[str, ...] = ENTRIES if parting == " " else FIELDS
    tokens = tokens if rng.random() < 0.5 else TOKENS
    lines = [line.split(parting) for line in seed.decode().split("\n")]
    for _ in range(int(rng.integers(0, 4))):
        line = pick(rng, lines)
        place = int(rng.integers(len(line)))
        kind = int(rng.integers(6))
        if kind == 0:
            line[place] = pick(rng, tokens)
        elif kind == 1:
            line.insert(place, pick(rng, tokens))
        elif kind == 2 and len(line) > 1:
            del line[place]
        elif kind == 3:
            line.append(line[place])
        elif kind == 4:
            token = line[place]
            cut = int(rng.integers(len(token) + 1))
            line[place] = token[:cut] + pick(rng, tokens)[:40] + token[cut:]
        else:
            lines.insert(int(rng.integers(len(lines) + 1)), list(pick(rng, lines)))
    made = "\n".join(parting.join(line) for line in lines).encode("utf-8")
    chance = rng.random()
    if chance < 0.05:
        made = made.replace(b"\n", b"\r\n")
    elif chance < 0.08:
        made = b"\xef\xbb\xbf" + made
    elif chance < 0.11:
        made = made.rstrip(b"\n")
    elif chance < 0.15:
        made = b"\n".join(b"# " + line for line in made.split(b"\n")[:-1]) + b"\n"
    elif chance < 0.30:
        made = flipped(rng, made)
    if rng.random() < 0.2:
        made = packed(rng, made)
    elif rng.random() < 0.03:
        made = pick(rng, RAW) + made
    elif rng.random() < 0.003:
        made = b"1" * (2**24 + 1) + b"\n"
    return made


def packed(rng: Rng, content: bytes) -> bytes:
    """Return content as a packed file: in many streams, a bomb, or damaged."""
    pack = pick(rng, PACKERS)
    chance = rng.random()
    if chance < 0.1:
        return bytes(pack(content) * int(rng.integers(2, 4)))
    if chance < 0.13:
        return bytes(pack(b"") * 1_001)
    if chance < 0.16:
        return bytes(pack(b"1 1:1\n" * 2**22))
    made = bytes(pack(content))
    return made if chance < 0.5 else flipped(rng, made)


# ------------------------------------------------------------------------------- JSON
def tree(rng: Rng, value: Any, n_changes: int) -> Any:
    """Return JSON with some of its nodes replaced, deleted, repeated or exchanged."""
    made = json.loads(json.dumps(value))
    for _ in range(n_changes):
        places = list(holders(made))
        if not places:
            return pick(rng, VALUES)
        holder, key = pick(rng, places)
        other, other_key = pick(rng, places)
        kind = int(rng.integers(6))
        if kind <= 2:
            holder[key] = json.loads(json.dumps(pick(rng, VALUES)))
        elif kind == 3:
            del holder[key]
        elif kind == 4 and isinstance(holder, list):
            holder.append(json.loads(json.dumps(holder[key])))
        else:
            holder[key] = json.loads(json.dumps(other[other_key]))
    return made


def holders(value: Any) -> Any:
    """Yield every place of a tree as a container and a key."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            places: Any = list(node)
        elif isinstance(node, list):
            places = range(len(node))
        else:
            continue
        for key in places:
            yield node, key
            stack.append(node[key])


def json_bytes(rng: Rng, value: Any) -> bytes:
    """Return JSON as text, now and then such as no encoder writes."""
    made = json.dumps(value, separators=(",", ":"))
    chance = rng.random()
    if chance < 0.03:
        made = made.replace("1", "1.5", 1)
    elif chance < 0.05:
        made = made.replace("0", "NaN", 1)
    elif chance < 0.07:
        made = made.replace("{", '{"a":1,"a":2,', 1)
    elif chance < 0.08:
        made = "[" * 20_000 + "]" * 20_000
    elif chance < 0.09:
        made = '{"list":[' * 350 + "1" + "]}" * 350
    elif chance < 0.10:
        made = made + pick(rng, ("]", "}", " ", "x"))
    elif chance < 0.12:
        made = made.replace("a", "\u00e4", 1)
    return made.encode("utf-8")


# -------------------------------------------------------------------------- checkpoint

PREFIX = struct.Struct("<8sI24sI")


def checkpoint(rng: Rng, seed: bytes) -> bytes:
    """Change the parts of a checkpoint and sign it again; or change its bytes."""
    chance = rng.random()
    if chance < 0.10:
        return flipped(rng, seed)
    prefix, header, arrays = opened(seed)
    if chance < 0.25:
        header = tree(rng, header, int(rng.integers(1, 3)))
    elif chance < 0.75 and arrays:
        content = json.loads(arrays[0])
        content = tree(rng, content, int(rng.integers(1, 4)))
        arrays[0] = json_bytes(rng, content)
        header["arrays"][0] = ["|u1", [len(arrays[0])]]
    elif chance < 0.78:
        header = pick(rng, ({}, [], {"facts": 3, "arrays": []}, {"facts": {}}, 3))
        arrays = []
    elif chance < 0.95 and len(arrays) > 1:
        place = int(rng.integers(1, len(arrays)))
        _change_array(rng, header["arrays"], arrays, place)
    else:
        prefix[1] = pick(rng, (0, 2, 2**31, prefix[1]))
        prefix[2] = pick(rng, (b"9.9\x1b[31m", b"\xff" * 24, prefix[2]))
    body = (
        json_bytes(rng, header) if rng.random() < 0.2 else json.dumps(header).encode()
    )
    claimed = len(body) if rng.random() < 0.95 else pick(rng, (0, 2**31, 2**16 + 1))
    return signed(prefix, claimed, body, arrays)


def opened(seed: bytes) -> tuple[list[Any], Any, list[bytes]]:
    """Return the parts of a container: what comes first, the header, the arrays."""
    *prefix, length = PREFIX.unpack_from(seed)
    header = json.loads(seed[PREFIX.size : PREFIX.size + length])
    return prefix, header, _cut(header["arrays"], seed[PREFIX.size + length : -32])


def signed(prefix: list[Any], length: int, body: bytes, arrays: list[bytes]) -> bytes:
    """Return a container of these parts, with the checksum that fits them."""
    made = PREFIX.pack(*prefix, length) + body + b"".join(arrays)
    return made + hashlib.sha256(made).digest()


def _cut(table: Any, body: bytes) -> list[bytes]:
    arrays, start = [], 0
    for code, shape in table:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(code).itemsize
        arrays.append(body[start : start + size])
        start += size
    return arrays


def _change_array(rng: Rng, table: list[Any], arrays: list[bytes], place: int) -> None:
    kind = int(rng.integers(5 if len(arrays) > 1 else 4))
    if kind == 0:  # other values
        made = np.frombuffer(arrays[place], dtype=np.uint8).copy()
        special = struct.pack("<d", pick(rng, (np.nan, np.inf, -1.0, 1e300, 0.0)))
        if len(made) >= 8:
            at = 8 * int(rng.integers(len(made) // 8))
            made[at : at + 8] = np.frombuffer(special, dtype=np.uint8)
        arrays[place] = made.tobytes()
    elif kind == 1:  # longer or shorter, and said so
        n = int(rng.integers(0, 6))
        table[place] = [pick(rng, ("<f8", "<i8")), [n]]
        arrays[place] = bytes(8 * n)
    elif kind == 2:  # another type of the same size
        table[place][0] = pick(rng, ("<f8", "<i8", "|u1", ">f8", "|O8", "<U2", 3))
    elif kind == 3:  # another shape
        table[place][1] = pick(
            rng, ([], [-1], [2**47, 2**47], [True], "x", [1] * 5, [0], [1, 1], [2**48])
        )
    else:
        other = int(rng.integers(1, len(arrays)))
        arrays[place], arrays[other] = arrays[other], arrays[place]
        table[place], table[other] = table[other], table[place]


# ----------------------------------------------------------------------------- journal

HEAD = 40  # bytes: magic, format, run, generation, CRC
RECORD = struct.Struct("<II")


def journal(rng: Rng, seed: bytes) -> bytes:
    """Change, drop, repeat and reorder records and sign them again; or bytes."""
    chance = rng.random()
    if chance < 0.15:
        return flipped(rng, seed)
    if chance < 0.20:
        return seed[: int(rng.integers(HEAD + 9))]
    records = _records(seed)
    for _ in range(int(rng.integers(1, 4))):
        if not records:
            break
        place = int(rng.integers(len(records)))
        kind = int(rng.integers(7))
        if kind == 0:
            records[place] = flipped(rng, records[place])
        elif kind == 1:
            del records[place]
        elif kind == 2:
            records.insert(int(rng.integers(len(records) + 1)), records[place])
        elif kind == 3:
            records[place] = records[place][
                : int(rng.integers(len(records[place]) + 1))
            ]
        elif kind == 4:
            records[place] += bytes(int(rng.integers(1, 9)))
        elif kind == 5:
            records[place] = pick(rng, _SPECIAL)
        else:
            records[place] = _with_failures(rng, records[place])
    made = seed[:HEAD]
    for content in records:
        made += RECORD.pack(len(content), zlib.crc32(content, len(made))) + content
    return made


def _records(seed: bytes) -> list[bytes]:
    found, place = [], HEAD
    while place + RECORD.size <= len(seed):
        length, _ = RECORD.unpack_from(seed, place)
        found.append(seed[place + RECORD.size : place + RECORD.size + length])
        place += RECORD.size + length
    return found


_ANSWER = struct.Struct("<BddI")
_REPLY = struct.Struct("<8II")
_SPECIAL = (
    struct.pack("<Bqqqd", 1, -1, 0, 5, 0.0),
    struct.pack("<Bqqqd", 1, 3, 4, 5, float("nan")),
    struct.pack("<Bqqqd", 1, 3, 4, 5, 1.0),
    struct.pack("<Bq", 3, -5),
    struct.pack("<Bq", 3, 7),
    struct.pack("<B", 9),
    struct.pack("<B", 2),
    _ANSWER.pack(2, float("inf"), 0.0, 0),
    _ANSWER.pack(2, 0.0, float("nan"), 1),
    _ANSWER.pack(2, 1.0, 1.0, 2**32 - 1),
    _ANSWER.pack(2, 1.0, 1.0, 1) + _REPLY.pack(*[2**32 - 1] * 8, 0),
    _ANSWER.pack(2, 1.0, 1.0, 1) + _REPLY.pack(1, 0, 1, 0, 0, 2**31, 0, 0, 5),
    _ANSWER.pack(2, 1.0, 1.0, 1) + _REPLY.pack(1, 1, 0, 0, 0, 0, 0, 0, 0) + bytes(8),
)
_FAILURE = {
    "kind": "nan",
    "what": "losses",
    "index": 1,
    "iteration": 2,
    "x": ["0x1p0"],
    "message": "m",
}


def _with_failures(rng: Rng, record: bytes) -> bytes:
    """Return an answer of one reply without values and with failures."""
    failures = tree(rng, [_FAILURE, _FAILURE], int(rng.integers(0, 3)))
    content = json_bytes(rng, failures)
    shapes = (0, 0, 0, 0, 0, 0, 0, 0)
    return _ANSWER.pack(2, 1.0, 1.0, 1) + _REPLY.pack(*shapes, len(content)) + content
