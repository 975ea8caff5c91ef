"""Strict YAML and JSON: scalars stay text, lines are known, and what is dangerous or ambiguous is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inferplan import InputError
from inferplan.models.documents import Document, parse_json, parse_yaml, read_document, read_text

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(content: str | bytes, name: str = "some.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to_file


def fault(path: Path) -> InputError:
    """How a file is refused; the message must name the file, in one line."""
    with pytest.raises(InputError) as caught:
        read_document(path)
    text = str(caught.value)
    assert text.startswith(f"{path}:") and "\n" not in text
    return caught.value


# ---------------------------------------------------------------------------------------------- what is read


def test_scalars_stay_text() -> None:
    """PyYAML alone reads no as false, 10:30 as 630, 010 as 8 and 2001-01-01 as a date."""
    text = "no yes on off true null ~ 1e3 10:30 010 0x10 0o7 1_000 .inf .nan 2001-01-01 1.50 = +1"
    words = text.split()
    tree = parse_yaml("".join(f"k{i}: {word}\n" for i, word in enumerate(words))).tree
    assert list(tree.values()) == words


def test_keys_stay_text() -> None:
    assert parse_yaml("{1025: 0.5, no: 1, 10:30: 2, ~: 3}").tree == {
        "1025": "0.5",
        "no": "1",
        "10:30": "2",
        "~": "3",
    }


def test_json_numbers_stay_text() -> None:
    tree = parse_json('{"a": 1e3, "b": 0.10, "c": 10000000000000000000000001, "d": true, "e": null}').tree
    assert tree == {"a": "1e3", "b": "0.10", "c": "10000000000000000000000001", "d": True, "e": None}


def test_lines() -> None:
    text = "# one\na: 1\nb:\n  - x\n  - {c: 1, d:\n      2}\n  - e:\n    - 3\nf: >\n  long\n  text\ng: 4\n"
    document = parse_yaml(text)
    assert document.tree == {
        "a": "1",
        "b": ["x", {"c": "1", "d": "2"}, {"e": ["3"]}],
        "f": "long text\n",
        "g": "4",
    }
    lines = {
        ("a",): 2,
        ("b",): 3,
        ("b", 0): 4,
        ("b", 1): 5,
        ("b", 1, "c"): 5,
        ("b", 1, "d"): 5,
        ("b", 2): 7,
        ("b", 2, "e"): 7,
        ("b", 2, "e", 0): 8,
        ("f",): 9,
        ("g",): 12,
    }
    assert document.lines == lines
    assert document.line(("b", 1, "unknown", "deeper")) == 5  # of the nearest ancestor
    assert document.line(("unknown",)) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: "\ufeff" + text.replace("\n", "\r\n"),
        lambda text: text + "...\n",
        lambda text: "---\n" + text,
        lambda text: "%YAML 1.1\n---\n" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n\n# end\n\n",
    ],
    ids=[
        "crlf",
        "cr",
        "bom",
        "bom+crlf",
        "document end",
        "document start",
        "directive",
        "no newline",
        "tail",
    ],
)
def test_endings_and_marks(write: Write, change: Callable[[str], str]) -> None:
    text = "a: 1\nb:\n  - 2\n  - c: 3\n"
    found = read_document(write(change(text)))
    assert found.tree == parse_yaml(text).tree
    shift = found.lines[("a",)] - 1
    assert {at: line - shift for at, line in found.lines.items()} == parse_yaml(text).lines


def test_json_with_a_bom(write: Write) -> None:
    assert read_document(write('\ufeff{\r\n"a": [1]}', "some.json")).tree == {"a": ["1"]}


def test_quoted_text_and_languages(write: Write) -> None:
    assert read_document(write("a: \"x: y # z\"\nb: 'it''s'\nc: \"\\u00e9\"\nd: größer 中\n")).tree == {
        "a": "x: y # z",
        "b": "it's",
        "c": "é",
        "d": "größer 中",
    }


def test_aliases_are_copies() -> None:
    tree = parse_yaml("a: &x {b: [1, 2]}\nc: *x\nd: &y 7\ne: *y\n").tree
    assert tree == {"a": {"b": ["1", "2"]}, "c": {"b": ["1", "2"]}, "d": "7", "e": "7"}
    assert tree["a"] is not tree["c"] and tree["a"]["b"] is not tree["c"]["b"]


def test_merge_keys_stay_keys() -> None:
    """`<<` is a key like any other, which no schema knows; nothing is merged behind the reader's back."""
    tree = parse_yaml("a: &x {p: 1}\nb:\n  <<: *x\n  q: 2\n").tree
    assert tree["b"] == {"<<": {"p": "1"}, "q": "2"}


def test_nesting_up_to_the_limit() -> None:
    assert parse_yaml("[" * 40 + "]" * 40).tree


# ---------------------------------------------------------------------------------------------- what is refused


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' stands twice"),
        ("a:\n  b: 1\n  'b': 2\n", 3, "the key 'b' stands twice"),
        ("- {a: 1, a: 1}\n", 1, "the key 'a' stands twice"),
        ('1: x\n"1": y\n', 2, "the key '1' stands twice"),
        ("<<: 1\n<<: 2\n", 2, "the key '<<' stands twice"),
        (
            "a: 1\nb: !!python/object/apply:os.system [ls]\n",
            2,
            "python/object/apply:os.system' is not allowed",
        ),
        ("a: !!python/name:os.system x\n", 1, "is not allowed"),
        ("a: !!python/object/new:type {args: [x]}\n", 1, "is not allowed"),
        ("!!map {a: 1}\n", 1, "the tag 'tag:yaml.org,2002:map' is not allowed"),
        ("a: !!int 5\n", 1, "the tag 'tag:yaml.org,2002:int' is not allowed"),
        ("a: !!binary aGk=\n", 1, "is not allowed"),
        ("a: !!set {b, c}\n", 1, "is not allowed"),
        ("\n\na: !mine 5\n", 3, "the tag '!mine' is not allowed; write plain values"),
        ("%TAG ! tag:x,2000:\n---\na: !y 1\n", 3, "the tag 'tag:x,2000:y' is not allowed"),
        ("a: !<tag:x> 1\n", 1, "is not allowed"),
        ("? !!str a\n: 1\n", 1, "is not allowed"),
        ("a: &x [*x]\n", 1, "the alias *x stands before its anchor has ended"),
        ("a: &x\n  b:\n    c: *x\n", 3, "the alias *x stands before its anchor has ended"),
        ("a: *x\n", 1, "the alias *x stands before its anchor"),
        ("a: 1\nb: *x\nc: &x 2\n", 2, "the alias *x stands before its anchor"),
        ("a: 1\n---\nb: 2\n", 2, "holds a second document; one is expected"),
        ("a: 1\n...\n---\n", 3, "holds a second document"),
        ("[" * 41 + "]" * 41, 1, "nested more than 40 levels"),
        ("[" * 100_000, 1, "nest"),  # our limit, or libyaml's own
        ("{a: " * 100_000, 1, "nested more than 40 levels"),
        ("- " * 100_000, 1, "nested more than 40 levels"),
        ("".join("  " * i + f"k{i}:\n" for i in range(60)), 41, "nested more than 40 levels"),
        (BOMB, 5, "grows beyond 200000 values (aliases?)"),
        ("- x\n" * 200_001, 200_000, "grows beyond 200000 values"),
        ("a:\n\tb: 1\n", 2, "is not valid YAML: "),
        ("\ta: 1\n", 1, "is not valid YAML: "),
        ("a: b: c\n", 1, "is not valid YAML: "),
        ("a: [1, 2\n", 2, "is not valid YAML: "),
        ("a: 'x\n", 2, "is not valid YAML: "),
        ("a: 1\n b: 2\n", 2, "is not valid YAML: "),
        ("a: @x\n", 1, "is not valid YAML: "),
        ("a: %x\n", 1, "is not valid YAML: "),
        ('a: "\\q"\n', 1, "is not valid YAML: "),
        ('a: "\\ud800"\n', 1, "is not valid YAML: "),
        ("? [a]\n: b\n", 1, "a key must be plain text"),
        ("x: 1\n? {a: b}\n: b\n", 2, "a key must be plain text"),
        ("a: &x [1]\n*x : 2\n", 2, "a key must be plain text"),
    ],
    ids=lambda value: value[:24].replace("\n", "|") if isinstance(value, str) else str(value),
)
def test_refused_with_the_line(write: Write, text: str, line: int, words: str) -> None:
    path = write(text)
    found = fault(path)
    assert words in found.problem
    near = 1 if words.startswith("grows") else 0  # of 200,001 values, the line on which the last one fell
    assert found.line is not None and abs(found.line - line) <= near
    assert str(found).startswith(f"{path}:{found.line}: ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("# only\n# comments\n", "is empty"),
        ("---\n", "is empty"),
        ("---\n...\n", "is empty"),
        ("\ufeff", "is empty"),
        ("''", "is empty"),
        ("a: \0\n", "is a binary file"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "is a binary file"),
        ("a: \x01\n", "is not valid YAML: "),
        ("a: \x1b[31m\n", "is not valid YAML: "),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_refused(write: Write, content: str | bytes, words: str) -> None:
    assert words in fault(write(content)).problem


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a: 1\nb: \xe9t\xe9\n", 2),
        (b"\xff\xfea\0:\0", 1),
        ("a: 1\n".encode("utf-16"), 1),
        (b"a: 1\r\nb: 2\r\nc: \x80\r\n", 3),
        pytest.param(
            b"\xef\xbb\xbfa: 1\n\xc3\n",
            2,
        ),
        (b"a: \xed\xa0\x80\n", 1),  # a surrogate
        (b"a: \xc0\xaf\n", 1),  # overlong
        (b"\x89PNG\r\n\x1a\n", 1),
        (b"\x1f\x8b\x08\0\0", 1),
    ],
)
def test_other_encodings_name_the_line(write: Write, content: bytes, line: int) -> None:
    found = fault(write(content))
    assert found.line == line and "is not UTF-8 text (byte " in found.problem
    assert "save it as UTF-8" in found.problem


def test_nesting_by_aliases(write: Write) -> None:
    """Each anchor nests 36 levels and holds the one before: 80 lines are 2,880 levels, below 200,000 values."""
    text = "x0: &x0 a\n" + "".join(f"x{i}: &x{i} {'[' * 36}*x{i - 1}{']' * 36}\n" for i in range(1, 81))
    assert "nested more than" in fault(write(text)).problem


@pytest.mark.parametrize("name", ["some.yaml", "some.json"])
def test_files_that_are_none(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    assert "is a folder; give a file" in fault(folder).problem
    assert "cannot be read: No such file or directory" in fault(tmp_path / f"no-{name}").problem
    assert "cannot be read: Not a directory" in fault(_file(tmp_path / "f") / name).problem
    assert "cannot be read: File name too long" in fault(tmp_path / (300 * "x" + name)).problem
    loop = tmp_path / f"loop-{name}"
    loop.symlink_to(loop)
    assert "cannot be read: Too many levels" in fault(loop).problem
    with pytest.raises(InputError, match="is no usable file name"):
        read_document(tmp_path / f"a\0{name}")


def _file(path: Path) -> Path:
    path.write_text("x", encoding="utf-8")
    return path


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable(write: Write) -> None:
    path = write("a: 1\n")
    path.chmod(0)
    assert "cannot be read: Permission denied" in fault(path).problem


def test_huge_file(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(2**26 + 1)
    assert f"is too large; at most {2**26} bytes are read" in fault(path).problem


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_endless_file() -> None:
    """A device tells no size; reading must stop by itself. The memory of this process is limited."""
    code = (
        "import resource\n"
        "from pathlib import Path\n"
        "from inferplan.models.documents import InputError, read_text\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))\n"
        "try:\n    read_text(Path('/dev/zero'))\n"
        "except InputError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "at most" in run.stdout


# ---------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 1}', "the key 'a' stands twice in one object"),
        ('{"a": {"b": 1, "b": 2}}', "the key 'b' stands twice"),
        ('{"a": NaN}', "NaN is not a number that can be used"),
        ('{"a": [Infinity]}', "Infinity is not a number"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ("[" * 100_000, "is nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "is nested too deeply"),
        ('{"a":' * 100_000, "is nested too deeply"),
        ('{"a": "\0"}', "is a binary file"),
    ],
    ids=lambda value: value[:16],
)
def test_json_refused(write: Write, text: str, words: str) -> None:
    assert words in fault(write(text, "some.json")).problem


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{\n'a': 1}", 2),
        ('{"a": 1,\n\n}', 3),
        ('{"a": 01}', 1),
        ('{"a": 1}\n{}', 2),
        ("// no\n{}", 1),
        ('{"a": "\n"}', 1),
        ('{"a": .5}', 1),
        ('{"a": 0x1}', 1),
    ],
)
def test_no_json(write: Write, text: str, line: int) -> None:
    found = fault(write(text, "some.json"))
    assert found.problem.startswith("is not valid JSON: ") and found.line == line


def test_json_huge_numbers_cost_nothing() -> None:
    digits = "9" * 100_000
    assert parse_json(f'{{"a": {digits}, "b": 1e999999999}}').tree == {"a": digits, "b": "1e999999999"}


# ---------------------------------------------------------------------------------------------- whatever comes


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.text(alphabet=st.sampled_from("ab:-[]{},#&*!|>'\"%@`\n \t?~<=0\\\x00\x85\u2028\ufeffé"), max_size=40)
)
def test_any_text(text: str) -> None:
    """Any text is a tree or an InputError, in YAML and in JSON."""
    for parse in (parse_yaml, parse_json):
        try:
            found = parse(text)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert isinstance(found, Document)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(content=st.binary(max_size=60))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        assert isinstance(read_text(path), str)
    except InputError as error:
        assert str(path) in str(error)
