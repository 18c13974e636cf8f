"""What scripts ask and do: every answer against the catalogue itself."""

import threading

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.photographs import check_invariants
from tests.catalogue.suggested import content, decisions, open_suggestions

from .browser import Browser, Running
from .conftest import OFFERED, tag
from .served import put_map

N_OFFERED = sum(map(len, OFFERED.values()))


def test_state(browser: Browser) -> None:
    state = browser.get("/api/v1/state").json
    assert (state["suggestions"], state["to_review"], state["photographs"]) == (N_OFFERED, 4, 5)
    assert state["expected"] == pytest.approx(
        sum(p for row in OFFERED.values() for p in row.values()), abs=0.05
    )
    assert (state["can_undo"], state["can_redo"]) == (False, False)
    assert state["fit"] == {"state": "idle", "text": ""}


def test_tags_and_pages_of_suggestions(browser: Browser, catalogue: Catalogue) -> None:
    answer = browser.get("/api/v1/tags").json
    worth = [tag["expected"] for tag in answer["tags"]]
    assert worth == sorted(worth, reverse=True)
    assert {tag["name"] for tag in answer["tags"]} == {t for row in OFFERED.values() for t in row}
    for name in ("beach", "holiday"):
        seen: list[tuple[int, float]] = []
        after = ""
        while True:
            path = f"/api/v1/tags/{tag(catalogue, name)}/suggestions?n=1{after}"
            part = browser.get(path).json
            seen += [
                (suggestion["content"], suggestion["confidence"])
                for suggestion in part["suggestions"]
            ]
            if part["next"] is None:
                break
            after = f"&after={part['next']}"
        expected = sorted(
            ((content(catalogue, p), row[name]) for p, row in OFFERED.items() if name in row),
            key=lambda pair: -pair[1],
        )
        assert seen == expected


@pytest.mark.parametrize("after", ["", "x", "0.5", "0.5:x", "0.5:-1", f"0.5:{2**63}"])
def test_where_no_part_of_a_list_ended_is_said(
    browser: Browser, catalogue: Catalogue, after: str
) -> None:
    for path in ("/api/v1/tags/{}/suggestions", "/tags/{}"):
        response = browser.get(f"{path.format(tag(catalogue, 'beach'))}?after={after}")
        assert response.status == 400
        assert "must be the `next` of an earlier answer" in response.text


def test_a_photograph(browser: Browser) -> None:
    answer = browser.photograph("b.jpg")
    assert (answer["name"], answer["folder"]) == ("b.jpg", "")
    assert [suggestion["name"] for suggestion in answer["suggestions"]][:2] == ["sea", "holiday"]
    kin = answer["suggestions"][0]["kin"]
    assert [(neighbor["name"], neighbor["share"]) for neighbor in kin] == [
        ("a.jpg", 0.45),
        ("b.jpg", 0.15),
    ]
    text = "60 % by its kin, 30 % by the photograph itself, 10 % by the meaning of the tag's name"
    assert answer["suggestions"][0]["shares"] == text
    (beach,) = answer["tags"]
    assert (beach["name"], beach["state"]) == ("beach", "found")
    assert beach["said"][0]["text"] == "is in b.jpg.xmp"


# --- deciding --------------------------------------------------------------------------------


def test_accept_all_but_exceptions_is_one_step(browser: Browser, catalogue: Catalogue) -> None:
    holiday = tag(catalogue, "holiday")
    a, b = content(catalogue, "a.jpg"), content(catalogue, "b.jpg")
    before = browser.get("/api/v1/state").json
    done = browser.decide_page(holiday, {"accept": [a], "reject": [b]}).json
    assert (done["accepted"], done["rejected"], done["already"]) == (1, 1, 0)
    assert done["state"]["suggestions"] == N_OFFERED - 2
    assert done["state"]["version"] != before["version"]
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}
    undone = browser.post("/api/v1/undo").json
    assert undone["decisions"] == 2
    assert open_suggestions(catalogue) == OFFERED
    assert decisions(catalogue) == {}
    assert browser.post("/api/v1/redo").json["decisions"] == 2
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}
    check_invariants(catalogue)


def test_undo_has_no_limit_and_redo_goes_back(browser: Browser, catalogue: Catalogue) -> None:
    steps = []
    for path, row in OFFERED.items():
        for name in row:
            pair = [content(catalogue, path), tag(catalogue, name)]
            browser.post("/api/v1/decisions", {"accept": [pair]})
            steps.append(decisions(catalogue))
    for expected in [*steps[-2::-1], {}]:
        assert browser.post("/api/v1/undo").json["decisions"] == 1
        assert decisions(catalogue) == expected
    assert browser.post("/api/v1/undo").json["run"] is None
    assert open_suggestions(catalogue) == OFFERED
    for expected in steps[:3]:
        browser.post("/api/v1/redo")
        assert decisions(catalogue) == expected
    browser.post("/api/v1/undo")
    assert decisions(catalogue) == steps[1]
    pair = [content(catalogue, "2024/d.jpg"), tag(catalogue, "dog")]
    browser.post("/api/v1/decisions", {"reject": [pair]})
    assert browser.get("/api/v1/state").json["can_redo"] is False
    assert browser.post("/api/v1/redo").json["run"] is None
    check_invariants(catalogue)


def test_a_run_by_number_is_taken_back(browser: Browser, catalogue: Catalogue) -> None:
    first = browser.post(
        "/api/v1/decisions", {"accept": [[content(catalogue, "a.jpg"), "dog"]]}
    ).json
    browser.post("/api/v1/decisions", {"accept": [[content(catalogue, "b.jpg"), "sea"]]})
    assert browser.post("/api/v1/undo", {"run": first["run"]}).json["decisions"] == 1
    assert decisions(catalogue) == {("b.jpg", "sea"): 1}
    assert [(run.said, run.can_undo) for run in browser.runs()[:3]] == [
        (f"Undid run {first['run']}", False),
        ('Accepted 1 tag on 1 photograph: "sea"', True),
        ('Accepted 1 tag on 1 photograph: "dog"', False),
    ]
    assert browser.post("/api/v1/undo", {"run": 12345}).status == 404


def test_a_declaration_of_the_command_line_can_be_taken_back(
    browser: Browser, catalogue: Catalogue
) -> None:
    declared = catalogue.completeness.declare_incomplete("2024").run

    def listed() -> tuple[str, bool]:
        (run,) = (run for run in browser.runs() if run.id == declared)
        return run.said, run.can_undo

    assert listed() == ("Declared incomplete: the tags in 2024", True)
    assert f'data-undo="{declared}"' in browser.get("/overview").text
    assert browser.post("/api/v1/undo", {"run": declared}).json["run"] is not None
    assert catalogue.status().incomplete_folders == []
    assert listed() == ("Declared incomplete: the tags in 2024", False)
    assert browser.post("/api/v1/undo", {"run": declared}).status == 400


def test_tags_typed_by_hand(browser: Browser, catalogue: Catalogue) -> None:
    number = content(catalogue, "2024/d.jpg")
    assert browser.post("/api/v1/decisions", {"accept": [[number, " Winter light "]]}).json[
        "accepted"
    ]
    assert browser.post("/api/v1/decisions", {"accept": [[number, "BEACH"]]}).json["accepted"] == 1
    assert decisions(catalogue) == {("2024/d.jpg", "Winter light"): 1, ("2024/d.jpg", "beach"): 1}
    assert browser.post("/api/v1/decisions", {"accept": [[number, "   "]]}).status == 400
    completed = browser.get("/api/v1/tags/complete?text=E").json["tags"]
    assert {"beach", "sea"} <= {tag["name"] for tag in completed}
    assert completed[0]["name"] != "sea"  # of fewer photographs than beach
    answer = browser.get("/api/v1/tags/complete?text=winter").json["tags"]
    assert [tag["name"] for tag in answer] == ["Winter light"]
    both = [[content(catalogue, path), "winter lights"] for path in ("a.jpg", "b.jpg")]
    browser.post("/api/v1/decisions", {"accept": both})
    answer = browser.get("/api/v1/tags/complete?text=WINTER%20LIGHT").json["tags"]
    # the tag itself comes before tags of more photographs
    assert [tag["name"] for tag in answer] == ["Winter light", "winter lights"]
    check_invariants(catalogue)


def test_doubts_are_removed_kept_and_added(browser: Browser, catalogue: Catalogue) -> None:
    wrong, missing = browser.doubts()
    assert wrong["aria-label"] == "sea seems wrong on a.jpg"
    (alone,) = browser.doubts("?kind=missing")
    assert alone | {"tabindex": "-1"} == missing
    pair = [int(wrong["data-content"]), int(wrong["data-tag"])]
    for verdict in ("accept", "reject"):  # kept, then removed after all
        assert browser.post("/api/v1/decisions", {verdict: [pair]}).json["run"] is not None
        assert [doubt["data-kind"] for doubt in browser.doubts()] == ["missing"]
    assert decisions(catalogue) == {("a.jpg", "sea"): -1}
    browser.post("/api/v1/undo")
    assert decisions(catalogue) == {("a.jpg", "sea"): 1}
    browser.post("/api/v1/undo")
    assert len(browser.doubts()) == 2
    pair = [int(missing["data-content"]), int(missing["data-tag"])]
    browser.post("/api/v1/decisions", {"accept": [pair]})
    assert [doubt["data-kind"] for doubt in browser.doubts()] == ["wrong"]


def test_deciding_twice_is_harmless_and_told(
    running: Running, browser: Browser, catalogue: Catalogue
) -> None:
    other = Browser(running.port)
    other.open(running.access.key)
    holiday = tag(catalogue, "holiday")
    body = {"accept": [content(catalogue, "a.jpg")], "reject": [content(catalogue, "b.jpg")]}
    answers = []
    threads = [
        threading.Thread(target=lambda who=who: answers.append(who.decide_page(holiday, body).json))
        for who in (browser, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["already"] for answer in answers) == [0, 2]
    # an old page does not turn around what was decided in another window
    old = {"accept": [content(catalogue, "b.jpg")]}
    done = other.decide_page(holiday, old).json
    assert (done["run"], done["already"]) == (None, 1)
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}


def test_what_cannot_be_decided_changes_nothing(browser: Browser, catalogue: Catalogue) -> None:
    a, holiday = content(catalogue, "a.jpg"), tag(catalogue, "holiday")
    for body in (
        {"accept": [[a, holiday]], "reject": [[a, holiday]]},
        {"accept": [[a, holiday], [99999, holiday]]},
        {"accept": [[a, 99999]]},
    ):
        response = browser.post("/api/v1/decisions", body)
        assert response.status == 400
        assert response.json["error"].endswith(".")
    odd: list[dict[str, object]] = [
        {"accept": "all"},
        {"accept": [[a]]},
        {"accept": [[-1, 1]]},
        {"drop": 1},
    ]
    for bad_body in odd:
        assert browser.post("/api/v1/decisions", bad_body).status == 422
    assert decisions(catalogue) == {}


def test_what_cannot_be_kept_is_a_sentence(browser: Browser, catalogue: Catalogue) -> None:
    number = content(catalogue, "a.jpg")
    catalogue.close()  # as good as a disk that is gone
    response = browser.post("/api/v1/decisions", {"accept": [[number, "holiday"]]})
    assert response.status == 503
    assert response.json["error"].startswith(f"The catalogue {catalogue.path} cannot be written: ")
    assert browser.get("/api/v1/state").json["accepted"] == 0


# --- search and overview -----------------------------------------------------------------------


def test_search(browser: Browser, catalogue: Catalogue) -> None:
    def names(query: str) -> list[str]:
        return sorted(browser.search(query).names)

    assert names(f"tag={tag(catalogue, 'beach')}") == ["a.jpg", "b.jpg"]
    assert names(f"tag={tag(catalogue, 'beach')}&tag={tag(catalogue, 'sea')}") == ["a.jpg"]
    assert names("name=2024/") == ["c.jpg", "d.jpg"]
    assert names("name=C.JPG") == ["c.jpg"]
    assert "d.jpg" in names("untagged=true")
    assert names("untagged=true&name=d.j") == ["d.jpg"]
    first = browser.search("n=3")
    rest = browser.search(f"n=3&after={first.next}")
    assert len(first.names) == 3
    assert len(rest.names) == 2
    assert rest.next == ""


def test_overview(browser: Browser) -> None:
    page = browser.get("/overview")
    assert "5 photographs, 2 without tags" in page.text
    strong = page.elements("//dl[@class='facts']//dt[.='Suggestions']/..//strong/text()")
    assert strong == [str(N_OFFERED)]
    (row,) = page.elements("//table[@id='quality']//tr[th/a='beach']")
    assert row.xpath("td[1]/@data-value") == ["2"]
    assert [run.said.partition(" ")[0] for run in browser.runs()] == ["Suggested", "Scanned"]


def test_tags_are_changed_once(browser: Browser, catalogue: Catalogue) -> None:
    beach = tag(catalogue, "beach")
    before = browser.get(f"/api/v1/tags/{beach}/suggestions").json["tag"]
    assert (before["name"], before["n_suggested"], before["is_forgotten"]) == ("beach", 2, False)
    address = f"/api/v1/tags/{beach}/change"
    first = browser.post(address, {"what": "rename", "into": "strand", "step": "1"}).json
    assert browser.post(address, {"what": "rename", "into": "strand", "step": "1"}).json == first
    assert (
        browser.get(f"/api/v1/tags/{beach}/suggestions").json["tag"]["name"] == "strand"
    )  # the former number
    undone = browser.post("/api/v1/undo").json
    assert (undone["edited"], undone["decisions"]) == (["beach"], 0)
    assert browser.get(f"/api/v1/tags/{beach}/suggestions").json["tag"] == before
    for body, status in (
        ({"what": "rename"}, 400),
        ({"what": "forget", "into": "strand"}, 400),
        ({"what": "rename", "into": "sea"}, 400),
        ({"what": "rename", "into": " "}, 400),
        ({"what": "write"}, 422),
    ):
        assert browser.post(address, body).status == status, body
    assert browser.post("/api/v1/tags/999/change", {"what": "forget"}).status == 404
    assert browser.post(f"/api/v1/tags/{beach}/change", {"what": "restore"}).status == 400


def test_names_and_pictures_of_photographs_on_the_map(
    browser: Browser, catalogue: Catalogue
) -> None:
    numbers = [content(catalogue, name) for name in ("a.jpg", "b.jpg")]
    assert browser.get("/api/v1/map").json == {"tags": [], "dots": []}
    put_map(catalogue, [*numbers, 999])
    drawn = browser.get("/api/v1/map").json
    assert drawn["tags"] == ["beach"]
    assert [dot["content"] for dot in drawn["dots"]] == numbers  # the third is gone
    assert [dot["name"] for dot in drawn["dots"]] == ["a.jpg", "b.jpg"]
    assert [dot["position"] for dot in drawn["dots"]] == [[0, 0.5], [0.5, 0.5]]
    address = "/" + drawn["dots"][0]["thumbnail"]
    assert browser.get(address).status == 200
    assert browser.get(address.replace("/256/", "/2048/")).status == 200
    assert browser.get(address.replace("/256/", "/4096/")).status == 404
    filtered = browser.get(f"/api/v1/map?tag={tag(catalogue, 'sea')}").json["dots"]
    assert [dot["selected"] for dot in filtered] == [True, False]
