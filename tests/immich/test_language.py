"""The server of these tests speaks Immich's language: a client of others understands it.

immichpy checks every answer against the OpenAPI document of Immich. It is not among tagkin's own
packages: install it (``pip install immichpy``) to run this.
"""

import asyncio
import uuid
from typing import Any

import pytest


def test_immichpy_understands_the_server(immich, photos):
    client = pytest.importorskip("immichpy", reason="immichpy is not installed").AsyncClient
    models = pytest.importorskip("immichpy.client.generated.models")
    asyncio.run(speak(client(api_key="a-key-of-the-tests", base_url=immich.address), models))
    assert immich.tags_of(photos[3]) == set()


async def speak(client: Any, models: Any) -> None:
    """Do what tagkin does, by the functions of immichpy."""
    async with client as api:
        assert (await api.server.get_server_version()).major == 3
        permissions = {p.value for p in (await api.api_keys.get_my_api_key()).permissions}
        assert {"asset.read", "tag.asset"} <= permissions
        search = models.MetadataSearchDto
        page = (await api.search.search_assets(search(size=4, type="IMAGE", with_exif=True))).assets
        assert (page.count, page.next_page) == (4, "2")
        assert page.items[3].exif_info.make == "Kamera"
        photo = page.items[3].id
        assert {tag.value for tag in await api.tags.get_all_tags()} == {
            *("animals", "animals/dog", "beach")
        }
        (tag,) = await api.tags.upsert_tags(models.TagUpsertDto(tags=["sky/dusk"]))
        body = models.BulkIdsDto(ids=[photo])
        (first,) = await api.tags.tag_assets(tag.id, body)
        (second,) = await api.tags.tag_assets(tag.id, body)
        assert first.success
        assert second.error.value == "duplicate"
        assert [t.value for t in (await api.assets.get_asset_info(photo)).tags] == ["sky/dusk"]
        below = await api.search.search_assets(search(tag_ids=[uuid.UUID(tag.parent_id)]))
        assert [item.id for item in below.assets.items] == [photo]
        assert (await api.assets.view_asset(photo, size="preview"))[:2] == b"\xff\xd8"
        (removed,) = await api.tags.untag_assets(tag.id, body)
        assert removed.success
