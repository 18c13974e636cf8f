"""The help of every command, a page per group in docs/commands: `python -m tests.cli.reference`."""

from pathlib import Path
from typing import Any

import typer.main

from tagkin.cli import app, registry

FOLDER = Path(__file__).parents[2] / "docs" / "commands"
OVERVIEW = FOLDER / "index.md"
PAGES = {
    "Tag photographs": FOLDER / "tag.md",
    "Ask questions": FOLDER / "ask.md",
    "Manage": FOLDER / "manage.md",
}


def commands(group: Any = None, prefix: str = "") -> dict[str, Any]:
    """All commands by their whole names, those of groups in the place of the group."""
    group = group or typer.main.get_command(app)
    by_name: dict[str, Any] = {}
    for name in group.list_commands(None):
        command, whole = group.get_command(None, name), f"{prefix}{name}"
        inner = hasattr(command, "commands")
        by_name |= commands(command, f"{whole} ") if inner else {whole: command}
    return by_name


def page_of(panel: str) -> str:
    """Usage, text, options and examples of the commands of a group, in Markdown."""
    by_name = commands()
    names = list(registry.PANELS[panel])
    links = [f"[`{name}`](#tagkin-{name.replace(' ', '-')})" for name in names]
    others = [f"[{other}]({page.name})" for other, page in PAGES.items() if other != panel]
    parts = [
        f"# Commands: {panel[0].lower()}{panel[1:]}\n\n"
        f"{' · '.join(links)}\n\n"
        f"Other groups: {', '.join(others)}. "
        "[The command line](index.md) says what all commands share.\n"
    ]
    for name in names:
        command = by_name[name]
        arguments = " ".join(_argument(p) for p in command.params if p.param_type_name != "option")
        usage = f"tagkin {name} {arguments} [OPTIONS]".replace("  ", " ")
        options = [_option(p) for p in command.params if p.param_type_name == "option"]
        rows = "".join(f"| {names} | {text} |\n" for names, text in options)
        table = f"\n| option | meaning |\n|---|---|\n{rows}" if options else ""
        examples = command.epilog.replace("\b\nExamples:\n", "").rstrip()
        examples = "\n".join(line.strip() for line in examples.splitlines())
        parts.append(
            f"## tagkin {name}\n\n```text\n{usage}\n```\n\n{_prose(command.help)}\n\n"
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


if __name__ == "__main__":
    for panel, page in PAGES.items():
        page.write_text(page_of(panel), encoding="utf-8")
