"""An Immich server as a source of photographs and tags: `ImmichServer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from tagkin.errors import ServerError, UnreadableImage, WriteError
from tagkin.images import Failure
from tagkin.immich.client import Client, Connection, Json, UnusableAnswer
from tagkin.immich.http import one_line
from tagkin.immich.library import (
    Asset,
    check_answer,
    check_writable,
    is_shown,
    read_asset,
    read_assets,
    read_checksum,
    read_id,
    read_tag,
    store_assets,
    to_value,
)
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
MAX_PHOTOGRAPHS = 1_000_000
"""Of a listing."""
MAX_TAGS = 100_000
"""Of a server: each is one search, at least."""


class ImmichServer:
    """A server, and what was listed of it. Every method may raise `ServerError`.

    Paths are those of a catalogue: from its root, unique and lasting.
    The listing is kept in `folder`.
    """

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
        return self.user["name"]

    # --- reading -------------------------------------------------------------------------

    def list_photographs(
        self, step: Progress, *, keep: bool
    ) -> tuple[list[tuple[Asset, list[str]]], list[Failure]]:
        """Return all photographs with their tags, and why others are left out.

        With `keep`, the list is kept on this machine.
        """
        self.check()
        by_path, failures = self._list_assets(step)
        assets = {asset.id: asset for asset in by_path.values()}
        tags_of = self._list_tags(assets, step, failures)
        if keep:
            self._keep(by_path)
        photos = [(asset, tags_of.get(asset.id, [])) for asset in assets.values()]
        return photos, [Failure(self.address, reason) for reason in failures]

    def _list_assets(self, step: Progress) -> tuple[dict[str, Asset], list[str]]:
        """Return photographs by path, and why others are left out."""
        known = {asset.id: asset for asset in self._assets.values()}
        assets: dict[str, Asset] = {}
        seen: set[str] = set()
        unread: list[str] = []
        n_waiting = 0

        def add(id: str, item: Mapping[str, Json]) -> None:
            nonlocal n_waiting
            if item.get("ownerId") != self.user["id"]:
                return  # a partner's, with tags of their own
            n_waiting += item.get("thumbhash") is None
            asset = known.get(id)
            try:
                asset = read_asset(self.address, item, asset) if is_shown(item) else None
            except ServerError as error:  # a known photograph stays as it was
                unread.append(str(error))
            if asset is not None:
                assets[asset.path] = asset

        for n, (id, item) in enumerate(self._search({"type": "IMAGE", "withExif": True})):
            if n % _PAGE == 0:
                step("Looking for photographs", n, n + _PAGE)
            if id is None:
                unread.append("it has no id")
            else:
                seen.add(id)
                add(id, item)
        # a list loses a photograph if others are removed while it is read, page by page
        missing = sorted(known.keys() - seen)
        for n, id in enumerate(missing):
            step("Looking for missing photographs", n, len(missing))
            try:
                item = self._client.find(f"assets/{id}")
            except UnusableAnswer as error:
                unread.append(str(error))
                assets[known[id].path] = known[id]
            else:
                if isinstance(item, dict):
                    add(id, item)
        failures = []
        if n_waiting:
            waiting = count(n_waiting, "new photograph")
            failures.append(f"Immich is still reading {waiting}; scan again later")
        if unread:
            photographs = count(len(unread), "photograph")
            failures.append(f"{photographs} cannot be read; the first: {unread[0]}")
        return assets, failures

    def _search(self, query: Mapping[str, Json]) -> Iterator[tuple[str | None, Mapping[str, Json]]]:
        """Yield the photographs that a search finds, by their ids, or None without a valid id.

        A tag that was deleted meanwhile has none.
        """
        place: dict[str, Json] | None = {"page": 1}
        seen: set[str | None] = set()
        while place is not None:
            answer = self._client.send(
                "POST",
                "search/metadata",
                {**query, "size": _PAGE, **place},
                may_be_absent="tagIds" in query,
            )
            if answer is None and "tagIds" in query:
                return
            with check_answer(self.address):
                found = answer["assets"]
                items = [(_id_or_none(item), item) for item in found["items"]]
                place = _read_place(found)
            new = {id for id, _ in items} - seen
            if place is not None and not new:
                raise ServerError(
                    f"{self.address} lists no new photograph after {len(seen):,}, and says that "
                    "there are more. If photographs are being uploaded, scan again later."
                )
            seen |= new
            if len(seen) > MAX_PHOTOGRAPHS:
                raise ServerError(
                    f"{self.address} lists more than {MAX_PHOTOGRAPHS:,} photographs, which is too "
                    "much for tagkin."
                )
            yield from items

    def _list_tags(
        self, assets: Mapping[str, Asset], step: Progress, failures: list[str]
    ) -> dict[str, list[str]]:
        """Return the tags of photographs, by id: the deepest of each branch.

        Search results have no tags, and a search for a tag finds those of its descendants as well.
        """
        names: dict[str, str] = {}
        parents: dict[str, Json] = {}
        n_unread = 0
        with check_answer(self.address):
            tags = list(self._client.get("tags"))
        if len(tags) > MAX_TAGS:
            raise ServerError(f"{self.address} has more than {MAX_TAGS:,} tags.")
        for tag in tags:
            try:
                with check_answer(self.address):
                    id, name = read_tag(tag)
                    names[id], parents[id] = name, tag.get("parentId")
            except ServerError:
                n_unread += 1
        if n_unread:
            failures.append(f"{count(n_unread, 'tag')} cannot be read")
        holders: dict[str, set[str]] = {}
        for i, id in enumerate(names):
            step("Reading tags", i, len(names))
            found = self._search({"type": "IMAGE", "tagIds": [id]})
            holders[id] = {photo for photo, _ in found if photo is not None} & assets.keys()
        below: dict[str, set[str]] = {id: set() for id in names}
        for id, parent in parents.items():
            if isinstance(parent, str) and parent in below:
                below[parent] |= holders[id]
        tags_of: dict[str, list[str]] = {}
        for id, name in names.items():
            for asset in holders[id] - below[id]:
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
        preview = f"assets/{self._asset(path).id}/thumbnail"
        try:
            data = self._client.find_bytes(preview, size="preview")
        except UnusableAnswer as error:
            raise UnreadableImage(str(error)) from error
        if not data:
            raise UnreadableImage("Immich has no preview of it; scan again later")
        return data

    # --- writing -------------------------------------------------------------------------

    def find_tags(self, path: str, *, to_write: bool = False) -> dict[str, str] | None:
        """Return the tags of a photograph by their ids, as Immich has them now; None if it is gone.

        Raises `WriteError` if it is another photograph now, or, with `to_write`, if Immich would
        not keep its tags.
        """
        asset = self._assets.get(path)
        with _check_one(self.address):
            item = None if asset is None else self._client.find(f"assets/{asset.id}")
            if asset is None or item is None:
                return None
            checksum = read_checksum(item["checksum"])
            tags = dict(map(read_tag, item.get("tags") or ()))
        if checksum != asset.checksum:
            raise WriteError(
                f"{path}: Immich has another photograph there since the last scan. Scan, then try "
                "again."
            )
        if to_write:
            check_writable(path, item)
        return tags

    def make_tags(self, tags: Sequence[str]) -> dict[str, str]:
        """Return the ids of tags; Immich makes missing ones, with their parents."""
        values = {tag: to_value(tag) for tag in tags}
        body = {"tags": list(dict.fromkeys(values.values()))}
        with _check_one(self.address):
            answer = self._client.send("PUT", "tags", body)
            ids = {made["value"]: read_id(made) for made in answer}
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
            with _check_one(self.address):
                answers = self._client.send(method, f"tags/{id}/assets", body, may_be_absent=True)
                for answer in answers or [{"success": False, "error": "not_found"}]:
                    if not answer["success"]:
                        refused[id] = one_line(str(answer.get("error") or "unknown"))
        return refused

    def _asset(self, path: str) -> Asset:
        asset = self._assets.get(path)
        if asset is None:
            raise UnreadableImage("not in the last listing of Immich; scan again")
        return asset


@contextmanager
def _check_one(address: str) -> Iterator[None]:
    """Turn an answer about one photograph that cannot be used into a `WriteError`."""
    try:
        with check_answer(address):
            yield
    except UnusableAnswer as error:
        raise WriteError(str(error)) from error


def _id_or_none(item: Json) -> str | None:
    try:
        return read_id(item)
    except (TypeError, KeyError, ValueError):
        return None


def _read_place(found: Mapping[str, Json]) -> dict[str, Json] | None:
    """Return where a search goes on: a cursor, which Immich has since 3.2, or a page."""
    cursor, page = found.get("nextCursor"), found["nextPage"]
    if isinstance(cursor, str) and cursor:
        return {"cursor": cursor}
    return None if page is None else {"page": int(page)}


def _check_server(client: Client) -> dict[str, str]:
    """Return the id and the name of the user of a key.

    Raises `ServerError` if the server, the key or the settings do not allow tagkin to work.
    """
    version = client.find("server/version")
    try:
        number = ".".join(str(int(version[part])) for part in ("major", "minor", "patch"))
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise ServerError(f"{client.address} is not an Immich server.") from error
    if version["major"] != _VERSION:
        raise ServerError(
            f"{client.address} is Immich {number[:20]}. tagkin works with Immich {_VERSION}.x."
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
        user = client.get("users/me")
        name = user.get("name") or user.get("email") or user["id"]
        user = {"id": read_id(user), "name": str(name)[:80]}
        has_tags = client.get("users/me/preferences")["tags"]["enabled"]
    if not has_tags:
        raise ServerError(
            "Tags are switched off for you in Immich, so you would not see them. Switch them on in "
            "Immich's account settings, under Features."
        )
    return user
