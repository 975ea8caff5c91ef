"""Files are read strictly: what YAML and JSON could smuggle in is refused, with the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from inferplan.models.documents import InputError, parse_json, parse_yaml, read_document


def test_scalars_stay_text() -> None:
    tree = parse_yaml("a: 1e3\nb: 10:30\nc: no\nd: 010\ne: ~\nf: '7'\n").tree
    assert tree == {"a": "1e3", "b": "10:30", "c": "no", "d": "010", "e": "~", "f": "7"}


def test_lines_are_known() -> None:
    document = parse_yaml("a: 1\nb:\n  - x\n  - {c: 2}\n")
    assert document.lines[("b", 1, "c")] == 4
    assert document.line(("b", 1, "nowhere")) == 4


BOMB = "".join(f"{c}: &{c} [{', '.join([f'*{p}' if p else 'x'] * 9)}]\n" for p, c in zip(" abcdef".strip().rjust(7).replace(" ", "\0"), "abcdefg", strict=True)).replace("*\0", "x")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "3: the key 'a' stands twice"),
        ("a: !!python/object/apply:os.system ['true']\n", "1: the tag"),
        ("a: !mine 1\n", "1: the tag"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("a: &a [*a]\n", "before its anchor has ended"),
        (BOMB, "grows beyond"),
        ("[" * 100_000, "nesting depth"),
        ("a: [" + "[" * 50 + "]" * 50 + "]", "levels deep"),
        ("a: [1, 2\n", "not valid YAML"),
        ("a:\n\t- 1\n", "not valid YAML"),
        ("? [a]\n: 1\n", "a key must be plain text"),
        ("", "is empty"),
        ("# only this\n", "is empty"),
    ],
)
def test_refused_yaml(text: str, words: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_yaml(text)
    assert words in str(raised.value)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": Infinity}', "{", "[" * 100_000])
def test_refused_json(text: str) -> None:
    with pytest.raises(InputError):
        parse_json(text)


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: [2, 3]\r\n")
    assert read_document(path).tree == {"a": "1", "b": ["2", "3"]}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    cases = {"binary.yaml": (b"a: \0\0", "binary"), "latin.yaml": (b"a: 1\nb: \xe9\n", ":2: is not UTF-8")}
    for name, (data, words) in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=words):
            read_document(tmp_path / name)
    with pytest.raises(InputError, match="is a folder"):
        read_document(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read_document(tmp_path / "none.yaml")


def test_an_alias_is_a_copy() -> None:
    tree = parse_yaml("a: &x {b: 1}\nc: *x\n").tree
    tree["c"]["b"] = "2"
    assert tree["a"]["b"] == "1"
