"""The page on the command line is whole and current, and so is the help."""

import re

from typer.main import get_command

from tagkin.cli import app
from tagkin.cli.commands import SUMMARIES

from .reference import PAGE, commands, with_reference


def test_every_command_and_option_is_in_the_documentation():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_reference(page), "run `python -m tests.cli.reference`"


def test_every_command_teaches_with_examples_and_every_option_with_words():
    assert len(commands()) == 27
    for name, command in commands().items():
        assert re.search(rf"^  tagkin {name}\b", command.epilog, flags=re.MULTILINE)
        assert max(map(len, command.epilog.splitlines())) < 79
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.help, (name, parameter.name)
            else:
                assert parameter.metavar in command.help, (name, parameter.name)


def test_help_says_of_each_command_what_its_own_help_begins_with():
    """All of them, though none is imported for it."""
    every = get_command(app).commands
    assert list(every) == list(SUMMARIES)
    for name, command in every.items():
        first = " ".join(command.help.partition("\n\n")[0].split())
        assert SUMMARIES[name] == first, name


def test_exit_codes_are_in_help_and_documentation():
    page = PAGE.read_text(encoding="utf-8")
    for code in ("0", "1", "2", "130"):
        assert f"\n  {code:5}" in app.info.epilog
        assert f"\n| {code} |" in page
