"""Options: four sources, one precedence, errors that name key, source and expectation."""

import argparse
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from snakekit.runtime.options import OptionError, add_options, load


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    port: Annotated[int, Meta(ge=0, le=65535, description="the port, 100 % free")] = 8000
    ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    mode: Annotated[Literal["hybrid", "policy"], Meta(description="how")] = "hybrid"
    loud: Annotated[bool, Meta(description="noise")] = True
    model: Annotated[str | None, Meta(description="file")] = None
    sizes: Annotated[tuple[int, ...], Meta(description="batch sizes")] = (1, 2)


class Needy(msgspec.Struct, frozen=True):
    count: int


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser, Demo)
    return parser.parse_args(words)


def test_defaults() -> None:
    assert load(Demo, parse(), environ={}) == Demo()
    assert load(Demo, None, environ={}) == Demo()


def test_precedence(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('port = 1\nmode = "policy"\nratio = 0.25\nsizes = [4]\n')
    environ = {"SNAKEKIT_PORT": "2", "SNAKEKIT_RATIO": "0.75", "SNAKEKIT_MODE": ""}
    loaded = load(Demo, parse("--port", "3"), toml=file, environ=environ)
    assert (loaded.port, loaded.ratio, loaded.mode, loaded.sizes) == (3, 0.75, "policy", (4,))


def test_text_forms() -> None:
    args = parse("--no-loud", "--model", "x.onnx", "--sizes", "1, 8,16")
    loaded = load(Demo, args, environ={"SNAKEKIT_LOUD": "yes"})
    assert (loaded.loud, loaded.model, loaded.sizes) == (False, "x.onnx", (1, 8, 16))
    assert load(Demo, parse(), environ={"SNAKEKIT_LOUD": "off"}).loud is False
    assert load(Demo, parse("--model", "none"), environ={}).model is None


@pytest.mark.parametrize(
    ("words", "environ", "expected"),
    [
        (["--port", "65536"], {}, ["port", "--port", "at most 65535", "65536"]),
        (["--port", "x"], {}, ["port", "--port", "whole number", "'x'"]),
        (["--ratio", "1"], {}, ["ratio", "--ratio", "above 0", "below 1"]),
        (["--ratio", "nan"], {}, ["ratio", "--ratio"]),
        (["--mode", "fast"], {}, ["mode", "--mode", "one of hybrid, policy", "fast"]),
        (["--sizes", "1,a"], {}, ["sizes", "--sizes", "separated by commas"]),
        ([], {"SNAKEKIT_LOUD": "maybe"}, ["loud", "SNAKEKIT_LOUD", "true or false"]),
        ([], {"SNAKEKIT_PORT": "-1"}, ["port", "SNAKEKIT_PORT", "at least 0"]),
    ],
)
def test_refusals(words: list[str], environ: dict[str, str], expected: list[str]) -> None:
    with pytest.raises(OptionError) as error:
        load(Demo, parse(*words), environ=environ)
    assert all(part in str(error.value) for part in expected), str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prot = 1", ["prot", "unknown key", "did you mean port?", "c.toml"]),
        ("port = '1'", ["port", "c.toml", "whole number"]),
        ("port = 1.5", ["port", "c.toml", "whole number"]),
        ("[server]\nport = 1", ["server", "unknown key"]),
        ("port = ", ["c.toml", "not a TOML file"]),
    ],
)
def test_toml_refusals(tmp_path: Path, text: str, expected: list[str]) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(OptionError) as error:
        load(Demo, None, toml=file, environ={})
    assert all(part in str(error.value) for part in expected), str(error.value)


def test_missing_file_and_missing_field(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot be read"):
        load(Demo, None, toml=tmp_path / "none.toml", environ={})
    with pytest.raises(OptionError, match=r"count: missing, expected a whole number \(--count\)"):
        load(Needy, None, environ={})


def test_help_shows_description_and_default() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, Demo)
    text = " ".join(parser.format_help().split())
    assert "the port, 100 % free (default: 8000)" in text
    assert "--no-loud" in text
    assert "batch sizes (default: 1,2)" in text
    assert "file (default: none)" in text


def test_odd_types_are_refused_at_once() -> None:
    class Odd(msgspec.Struct):
        table: dict[str, int] = {}

    with pytest.raises(TypeError, match="not a type"):
        add_options(argparse.ArgumentParser(), Odd)
