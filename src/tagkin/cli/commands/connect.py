"""tagkin connect: work on the photographs of a server."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.output import relative, say, send_json
from tagkin.cli.registry import command
from tagkin.errors import InvalidInput
from tagkin.tag_servers import SERVERS

_KEY = "TAGKIN_IMMICH_KEY"


def _check_server(server: str) -> str:
    if server in SERVERS:
        return server
    servers = " and ".join(SERVERS.values())
    raise typer.BadParameter(f"tagkin cannot connect to {server}. It connects to {servers}.")


@command("connect")
def connect(
    server: Annotated[str, options.argument("immich", _check_server)],
    address: Annotated[str, options.argument("ADDRESS")],
    eyes: Annotated[
        str | None,
        typer.Option("--eyes", metavar="ADDRESS", help="Immich's machine learning service."),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Connect to an Immich server, to tag its photographs.

    ADDRESS is where Immich answers in the browser. Immich's account settings make the key under API
    keys, with the permissions asset.read, asset.view, tag.read, tag.create, tag.asset, user.read
    and userPreference.read. The key comes from TAGKIN_IMMICH_KEY, or is asked for. It is kept in a
    file that only your user can read.

    Afterwards, immich is the name of a collection: review, scan, suggest, write, undo, status and
    other commands take it in place of a folder, and immich/2024/05 is a folder in it. Accepted tags
    go to Immich. Only these commands connect, and only to ADDRESS. A folder of your own that is
    called immich needs its absolute path then.

    With --eyes, the network in Immich's machine learning service can read the photographs of any
    folder: tagkin train FOLDER --backbone immich. The service usually has the port 3003, and takes
    no key. Its model is ViT-B-32__openai, or what follows # in its address. Squares of photographs
    and your tags go there. Connect again without --eyes to forget it.

    Examples
    --------
    tagkin connect immich https://immich.example.org
    tagkin connect immich http://192.168.1.5:2283 --eyes http://192.168.1.5:3003
    """
    from tagkin.catalogue.known_catalogues import server_folder
    from tagkin.catalogue.sources import connect as connect_server
    from tagkin.features.eyes import choose_eyes, store_eyes
    from tagkin.immich import check_address

    folder, address = server_folder(server), check_address(address)
    if dry_run:
        if as_json:
            send_json({"address": address, "dry_run": True})
            return
        say(f"Would connect to {address}, and keep the key in {relative(folder)}.")
        if eyes is not None:
            say(f"Would connect to {eyes}, and keep its address.")
        say("Dry run; nothing was sent or written.")
        return
    chosen = None if eyes is None else choose_eyes(eyes)
    user = connect_server(server, address, _read_key())
    store_eyes(chosen)
    if as_json:
        found = {} if chosen is None else {"eyes": chosen.address, "model": chosen.model}
        send_json({"address": address, "dry_run": False, "user": user, **found})
        return
    say(f"Connected to {address} as {user}.")
    if address.startswith("http://"):
        say("The key and the pictures travel unencrypted in your network: https:// is better.")
    if chosen is not None:
        say(f"{chosen.model} at {chosen.address} can read photographs.")
        say("To learn with it: ", ("tagkin train immich --backbone immich", "bold"))
    say("Next: ", ("tagkin review immich", "bold"))


def _read_key() -> str:
    """Return the key from the environment, or as a person types it, unseen."""
    from tagkin.immich import check_key

    key = os.environ.get(_KEY, "").strip()
    if not key:
        if not sys.stdin.isatty():
            raise InvalidInput(f"There is no key: put it into {_KEY}, or type it in a terminal.")
        key = str(typer.prompt("Key", hide_input=True, err=True))
    return check_key(key)
