"""An Immich server as a source of photographs and tags: `ImmichServer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tagkin.errors import ServerError, SidecarError, UnreadableImage
from tagkin.images import Failure
from tagkin.immich.client import Client, Connection, Json
from tagkin.immich.library import (
    Asset,
    check_answer,
    check_writable,
    from_value,
    is_shown,
    nonsense,
    read_asset,
    read_assets,
    read_checksum,
    store_assets,
    to_value,
)
from tagkin.immich.name import NAME
from tagkin.progress import Progress
from tagkin.wording import count

__all__ = ["PERMISSIONS", "ImmichServer"]

PERMISSIONS = (
    *("asset.read", "asset.view", "tag.read", "tag.create", "tag.asset"),
    *("user.read", "userPreference.read"),
)
"""The permissions that a key needs."""
_VERSION = 3  # of the server
_PAGE = 1000  # photographs of an answer; Immich gives no more


class ImmichServer:
    """A server, and what was listed of it. Every method may raise `ServerError`.

    Paths are those of a catalogue: from its root, unique and lasting.
    The listing is kept in `folder`.
    """

    name = NAME

    def __init__(self, connection: Connection, folder: Path):
        self._connection, self._folder = connection, folder

    @property
    def address(self) -> str:
        """Where it is."""
        return self._connection.address

    @cached_property
    def _assets(self) -> dict[str, Asset]:
        """The photographs as last listed, by path."""
        return read_assets(self._folder)

    @cached_property
    def _client(self) -> Client:
        """The interface of the server; it is checked at first use."""
        client = Client(self._connection)
        self.user = _check_server(client)
        return client

    def check(self) -> str:
        """Check version, permissions and settings; return the name of the user.

        Raises
        ------
        ServerError
            If the server, the key or the user's settings do not allow tagkin to work.
        """
        self._client  # noqa: B018 (the first use checks)
        return str(self.user.get("name") or self.user.get("email") or self.user["id"])

    # --- reading -------------------------------------------------------------------------

    def list_photographs(
        self, step: Progress, *, keep: bool
    ) -> tuple[dict[Asset, list[str]], list[Failure]]:
        """Return all photographs with their tags, and why others are left out.

        With `keep`, the list is kept on this machine.
        """
        self.check()
        by_path, n_waiting = self._list_assets(step)
        assets = {asset.id: asset for asset in by_path.values()}
        tags_of = self._list_tags(assets, step)
        if keep:
            self._keep(by_path)
        photos = {asset: tags_of.get(asset.id, []) for asset in assets.values()}
        waiting = f"Immich is still reading {count(n_waiting, 'new photograph')}; scan again later"
        return photos, [Failure(self.address, waiting)] if n_waiting else []

    def _list_assets(self, step: Progress) -> tuple[dict[str, Asset], int]:
        """Return photographs by path, and how many are not ready yet."""
        known = {asset.id: asset for asset in self._assets.values()}
        assets: dict[str, Asset] = {}
        n_waiting = 0
        for n, item in enumerate(self._search({"type": "IMAGE", "withExif": True})):
            if n % _PAGE == 0:
                step("Looking for photographs", n, n + _PAGE)
            if item.get("ownerId") != self.user["id"]:
                continue  # a partner's, with tags of their own
            n_waiting += item.get("thumbhash") is None
            if is_shown(item):
                asset = read_asset(self.address, item, known.get(str(item.get("id"))))
                assets[asset.path] = asset
        return assets, n_waiting

    def _search(self, query: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
        """Yield the photographs that a search finds, page by page."""
        page: int | None = 1
        while page is not None:
            answer = self._client.send(
                "POST", "search/metadata", {**query, "size": _PAGE, "page": page}
            )
            with check_answer(self.address):
                found = answer["assets"]
                items, following = list(found["items"]), found["nextPage"]
                following = None if following is None else int(following)
            if following is not None and following <= page:
                raise nonsense(self.address, f"page {following} after page {page}")
            yield from items
            page = following

    def _list_tags(self, assets: Mapping[str, Asset], step: Progress) -> dict[str, list[str]]:
        """Return the tags of photographs, by id: the deepest of each branch.

        Search results have no tags, and a search for a tag finds those of its descendants as well.
        """
        tags = self._client.get("tags")
        with check_answer(self.address):
            parents = {tag["id"]: tag.get("parentId") for tag in tags}
            names = {tag["id"]: from_value(tag["value"]) for tag in tags}
        holders: dict[str, set[str]] = {}
        for i, tag in enumerate(names):
            step("Reading tags", i, len(names))
            items = self._search({"type": "IMAGE", "tagIds": [tag]})
            holders[tag] = {item["id"] for item in items} & assets.keys()
        below: dict[str, set[str]] = {tag: set() for tag in names}
        for tag, parent in parents.items():
            if parent in below:
                below[parent] |= holders[tag]
        tags_of: dict[str, list[str]] = {}
        for tag, name in names.items():
            for asset in holders[tag] - below[tag]:
                if name:
                    tags_of.setdefault(asset, []).append(name)
        return tags_of

    def _keep(self, assets: dict[str, Asset]) -> None:
        """Keep a new listing; remove the copies of photographs that are gone or replaced."""
        for path, asset in self._assets.items():
            new = assets.get(path)
            if new is None or new.checksum != asset.checksum:
                (self._folder / path).unlink(missing_ok=True)
        if assets != self._assets:
            store_assets(self._folder, assets)
        self._assets = assets

    def read_pixels(self, path: str) -> bytes:
        """Return Immich's preview of a photograph."""
        data = self._client.get_bytes(f"assets/{self._asset(path).id}/thumbnail", size="preview")
        if not data:
            raise UnreadableImage("Immich has no preview of it; scan again later")
        return data

    # --- writing -------------------------------------------------------------------------

    def find_tags(self, path: str, *, to_write: bool = False) -> dict[str, str] | None:
        """Return the tags of a photograph by their ids, as Immich has them now; None if it is gone.

        Raises `SidecarError` if it is another photograph now, or, with `to_write`, if Immich would
        not keep its tags.
        """
        asset = self._assets.get(path)
        item = None if asset is None else self._client.get(f"assets/{asset.id}")
        if asset is None or item is None:
            return None
        with check_answer(self.address):
            checksum = read_checksum(item["checksum"])
            tags = {tag["id"]: from_value(tag["value"]) for tag in item.get("tags") or ()}
        if checksum != asset.checksum:
            raise SidecarError(
                f"{path}: Immich has another photograph there since the last scan. Scan, then try "
                "again."
            )
        if to_write:
            check_writable(path, item)
        return tags

    def make_tags(self, tags: Sequence[str]) -> dict[str, str]:
        """Return the ids of tags; Immich makes missing ones, with their parents."""
        values = {tag: to_value(tag) for tag in tags}
        answer = self._client.send("PUT", "tags", {"tags": list(dict.fromkeys(values.values()))})
        with check_answer(self.address):
            ids = {made["value"]: str(made["id"]) for made in answer}
            return {tag: ids[value] for tag, value in values.items()}

    def add_tags(self, path: str, ids: Sequence[str]) -> dict[str, str]:
        """Add tags to a photograph by their ids; return the reasons of those that were refused."""
        return self._change("PUT", path, ids)

    def remove_tags(self, path: str, ids: Sequence[str]) -> dict[str, str]:
        """Remove tags from a photograph as `add_tags` adds them; they stay in Immich."""
        return self._change("DELETE", path, ids)

    def _change(self, method: str, path: str, ids: Sequence[str]) -> dict[str, str]:
        body, refused = {"ids": [self._asset(path).id]}, {}
        for id in ids:
            answers = self._client.send(method, f"tags/{id}/assets", body)
            with check_answer(self.address):
                for answer in answers or [{"success": False, "error": "not_found"}]:
                    if not answer["success"]:
                        refused[id] = str(answer.get("error") or "unknown")
        return refused

    def _asset(self, path: str) -> Asset:
        asset = self._assets.get(path)
        if asset is None:
            raise UnreadableImage("not in the last listing of Immich; scan again")
        return asset


def _check_server(client: Client) -> dict[str, Json]:
    """Return the user of a key, if the server, the key and the settings allow tagkin to work."""
    version = client.get("server/version")
    try:
        number = ".".join(str(int(version[part])) for part in ("major", "minor", "patch"))
    except (TypeError, KeyError, ValueError) as error:
        raise ServerError(f"{client.address} is not an Immich server.") from error
    if version["major"] != _VERSION:
        raise ServerError(
            f"{client.address} is Immich {number}. tagkin works with Immich {_VERSION}.x."
        )
    with check_answer(client.address):
        permissions = set(client.get("api-keys/me")["permissions"])
        missing = [name for name in PERMISSIONS if not permissions & {"all", name}]
        if missing:
            raise ServerError(
                f"The key for {client.address} lacks {', '.join(missing)}. Add "
                f"{'it' if len(missing) == 1 else 'them'} in Immich's account settings, under API "
                "keys."
            )
        user = dict(client.get("users/me"))
        has_tags = client.get("users/me/preferences")["tags"]["enabled"]
    if not has_tags:
        raise ServerError(
            "Tags are switched off for you in Immich, so you would not see them. Switch them on in "
            "Immich's account settings, under Features."
        )
    return user
