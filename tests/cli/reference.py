"""The help of every command as a part of docs/command-line.md: `python -m tests.cli.reference`."""

from pathlib import Path
from typing import Any

import typer.main

from tagkin.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
BEGIN, END = "<!-- commands: begin -->", "<!-- commands: end -->"


def commands(group: Any = None, prefix: str = "") -> dict[str, Any]:
    """All commands by their whole names, those of groups in the place of the group."""
    group = group or typer.main.get_command(app)
    found: dict[str, Any] = {}
    for name in group.list_commands(None):
        command, whole = group.get_command(None, name), f"{prefix}{name}"
        inner = hasattr(command, "commands")
        found |= commands(command, f"{whole} ") if inner else {whole: command}
    return found


def reference() -> str:
    """Usage, text, options and examples of every command, in Markdown."""
    parts = []
    for name, command in commands().items():
        arguments = " ".join(_argument(p) for p in command.params if p.param_type_name != "option")
        usage = f"tagkin {name} {arguments} [OPTIONS]".replace("  ", " ")
        options = [_option(p) for p in command.params if p.param_type_name == "option"]
        rows = "".join(f"| {names} | {text} |\n" for names, text in options)
        table = f"\n| option | meaning |\n|---|---|\n{rows}" if options else ""
        examples = command.epilog.replace("\b\nExamples:\n", "").rstrip()
        examples = "\n".join(line.strip() for line in examples.splitlines())
        parts.append(
            f"### tagkin {name}\n\n```text\n{usage}\n```\n\n{_prose(command.help)}\n\n"
            f"```sh\n{examples}\n```\n{table}"
        )
    return "\n".join(parts)


def _prose(text: str) -> str:
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in paragraphs)


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name
    name = f"{name}..." if parameter.nargs != 1 else name
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> tuple[str, str]:
    value = f" {parameter.metavar}" if parameter.metavar else ""
    names = ", ".join(sorted(parameter.opts, key=len))
    text = parameter.help
    if parameter.required:
        text += " Required."
    elif parameter.default is not None and parameter.default is not False:
        text += f" Default: {parameter.default}."
    return f"`{names}{value}`".replace("|", "\\|"), text.replace("|", "\\|")


def with_reference(page: str) -> str:
    """The page with what stands between the marks made anew."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{reference()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
