"""Options of a command: one frozen msgspec struct becomes flags, environment and TOML keys.

A field such as

    budget_ms: Annotated[float, Meta(ge=0, le=60_000, description="longest search, ms")] = 350.0

gives `--budget-ms`, `SNAKEKIT_BUDGET_MS` and the TOML key `budget_ms`. Precedence: default, then
TOML file, then environment, then command line.
"""

import argparse
import difflib
import math
import os
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

T = TypeVar("T", bound=msgspec.Struct)

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_TRUTH = {"true": True, "1": True, "yes": True, "on": True}
_TRUTH |= {"false": False, "0": False, "no": False, "off": False}


class OptionError(ValueError):
    """A bad option; the message names the key, where it came from and what was expected."""


def add_options(parser: argparse.ArgumentParser, struct_type: type[msgspec.Struct]) -> None:
    """Add one `--field-name` for each field of `struct_type` to `parser`.

    Values are kept as text, None when not given; `load` checks them. A bool field gives
    `--flag` and `--no-flag`, a tuple or list field takes values separated by commas.

    Raises:
        TypeError: a field has a type that cannot be written on a command line.
    """
    for field in msgspec.structs.fields(struct_type):
        kind = _Kind(field.type)
        name = "--" + field.name.replace("_", "-")
        help_text = _help(field, kind)
        if kind.base is bool:
            action = argparse.BooleanOptionalAction
            parser.add_argument(name, dest=field.name, action=action, default=None, help=help_text)
        else:
            parser.add_argument(
                name, dest=field.name, default=None, metavar=kind.metavar, help=help_text
            )


def load(
    struct_type: type[T],
    args: argparse.Namespace | None,
    *,
    toml: Path | None = None,
    env_prefix: str = "SNAKEKIT_",
    environ: Mapping[str, str] = os.environ,
) -> T:
    """Build a checked `struct_type` from defaults, TOML file, environment and command line.

    Args:
        struct_type: the options.
        args: what the parser of `add_options` returned, or None for no command line.
        toml: a file of top-level keys named as the fields, or None.
        env_prefix: `port` is read from `<env_prefix>PORT`; an empty value counts as unset.
        environ: the environment.

    Raises:
        OptionError: unreadable file, unknown key, wrong type, or value out of range.
    """
    fields = {field.name: field for field in msgspec.structs.fields(struct_type)}
    values: dict[str, Any] = {}
    for key, value in _read_toml(toml).items():
        if key not in fields:
            raise OptionError(f"{key} (in {_shown(toml)}): unknown key{_hint(key, fields)}")
        values[key] = _convert(fields[key], value, f"in {_shown(toml)}", text=False)
    for name, field in fields.items():
        text = environ.get(env_prefix + name.upper(), "")
        if text:
            values[name] = _convert(field, text, f"from {env_prefix + name.upper()}", text=True)
        given = getattr(args, name, None)
        if given is not None:
            flag = "--" + name.replace("_", "-")
            values[name] = _convert(field, given, f"from {flag}", text=isinstance(given, str))
    for name, field in fields.items():
        if field.required and name not in values:
            flag = "--" + name.replace("_", "-")
            raise OptionError(f"{name}: missing, expected {_Kind(field.type).expected} ({flag})")
    try:
        return struct_type(**values)
    except (ValueError, TypeError) as error:
        raise OptionError(str(error)) from None


def _read_toml(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: not a TOML file: {error}") from None


def _shown(path: Path | None) -> str:
    return path.name if path is not None else "?"


def _hint(key: str, fields: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(key.replace("-", "_"), fields, n=1)
    return f", did you mean {near[0]}?" if near else ""


class _Kind:
    """A field's type taken apart: base type, choices, item type, ranges, and words for them."""

    def __init__(self, annotation: Any) -> None:
        self.optional = False
        self.metas: list[Meta] = []
        self.choices: tuple[Any, ...] = ()
        self.items: _Kind | None = None
        annotation = self._unwrap(annotation)
        origin = get_origin(annotation)
        if origin is Literal:
            self.choices = get_args(annotation)
            self.base: Any = type(self.choices[0])
        elif origin in (tuple, list):
            inner = get_args(annotation)[0]
            self.items, self.base = _Kind(inner), origin
        elif annotation in (tuple, list):
            raise TypeError(f"{annotation}: name the item type of a list option")
        elif annotation in _WORDS:
            self.base = annotation
        else:
            raise TypeError(f"{annotation}: not a type that a command line option can have")
        self.expected = self._expected()
        self.metavar = self._metavar()

    def _unwrap(self, annotation: Any) -> Any:
        while True:
            origin = get_origin(annotation)
            if origin is Annotated:
                self.metas += [m for m in annotation.__metadata__ if isinstance(m, Meta)]
                annotation = annotation.__origin__
            elif origin in (Union, types.UnionType):
                rest = [a for a in get_args(annotation) if a is not type(None)]
                if len(rest) != 1:
                    raise TypeError(f"{annotation}: an option has one type, or one type and None")
                self.optional, annotation = True, rest[0]
            else:
                return annotation

    def _expected(self) -> str:
        if self.choices:
            return "one of " + ", ".join(str(c) for c in self.choices)
        if self.items is not None:
            return f"values separated by commas, each {self.items.expected}"
        words = _WORDS[self.base]
        for meta in self.metas:
            low = meta.ge if meta.ge is not None else meta.gt
            high = meta.le if meta.le is not None else meta.lt
            if low is not None:
                words += f" {'of at least' if meta.ge is not None else 'above'} {low:g}"
            if high is not None:
                words += " and" if low is not None else ""
                words += f" {'at most' if meta.le is not None else 'below'} {high:g}"
            if meta.pattern is not None:
                words += f" matching {meta.pattern}"
            if meta.max_length is not None:
                words += f" of at most {meta.max_length} characters"
        return words

    def _metavar(self) -> str:
        if self.choices:
            return "{" + ",".join(str(c) for c in self.choices) + "}"
        if self.items is not None:
            return f"{self.items.metavar},..."
        return {str: "TEXT", int: "N", float: "X", bool: "BOOL"}[self.base]


def _help(field: FieldInfo, kind: _Kind) -> str:
    words = next((m.description for m in kind.metas if m.description), "")
    if field.required:
        tail = "required"
    else:
        default = (
            field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        )
        if isinstance(default, (tuple, list)):
            default = ",".join(str(item) for item in default)
        tail = "default: none" if default in (None, "") else f"default: {default}"
    text = f"{words} ({tail})" if words else tail
    return text.replace("%", "%%")


def _convert(field: FieldInfo, value: Any, source: str, *, text: bool) -> Any:
    kind = _Kind(field.type)
    try:
        parsed = _from_text(kind, value) if text else value
        result = msgspec.convert(parsed, field.type, strict=True)
        if isinstance(result, float) and not math.isfinite(result):
            raise ValueError("not finite")
    except ValueError:
        found = value if isinstance(value, str) else typing.cast(object, value)
        raise OptionError(
            f"{field.name} ({source}): expected {kind.expected}, found {found!r}"
        ) from None
    return result


def _from_text(kind: _Kind, value: str) -> Any:
    if kind.optional and value.lower() in ("none", "null"):
        return None
    if kind.items is not None:
        return [_from_text(kind.items, item.strip()) for item in value.split(",") if item.strip()]
    if kind.base is bool:
        if value.lower() not in _TRUTH:
            raise ValueError(value)
        return _TRUTH[value.lower()]
    if kind.base is str:
        return value
    return kind.base(value)
