"""Every test that SECURITY.md names is there, and every guarantee of docs/never.md has one."""

import ast
import re
from pathlib import Path

from tests.rules import obey

ROOT = Path(__file__).parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text("utf-8"))

SIDECARS, COLLECTION = "tests/collection/sidecars", "tests/collection"
CATALOGUE, CLI, SERVER = "tests/catalogue", "tests/cli", "tests/server"
GUARANTEES = {
    "tagkin never opens a photograph for writing.": (
        f"{SIDECARS}/test_writing.py::test_photographs_are_never_opened_for_writing_and_stay",
        f"{CATALOGUE}/test_sequences.py::test_sequences",
        f"{SIDECARS}/test_embedding.py::test_written_and_taken_back",
    ),
    "It never writes a tag that you did not accept.": (
        f"{CATALOGUE}/test_writing.py::test_written_and_undone",
        f"{CATALOGUE}/test_writing.py::test_decisions_that_change_meanwhile",
    ),
    "It never tags the wrong photograph.": (
        f"{CATALOGUE}/test_renaming.py::test_another_photograph_gets_no_tag_after_a_scan",
        f"{CATALOGUE}/test_targets.py::test_another_picture_under_the_name_gets_no_tags",
    ),
    "It never removes or replaces your tags": (
        f"{CATALOGUE}/test_sequences.py::test_sequences",
        f"{CATALOGUE}/test_tags.py::test_a_renamed_tag_has_its_new_name_everywhere_but_in_files",
        f"{CLI}/test_writing.py::test_a_rejected_tag_leaves_the_sidecar_when_asked",
    ),
    "It never changes anything else in a [sidecar](glossary.md#sidecar).": (
        f"{SIDECARS}/test_editing_at_random.py::test_everything_but_the_tags_stays",
        f"{SIDECARS}/test_editing.py::test_a_sidecar_in_another_encoding_becomes_utf_8",
    ),
    "It never creates a second sidecar": (
        f"{SIDECARS}/test_names.py::test_a_second_one_is_never_made",
        f"{CATALOGUE}/test_several_files.py::test_both_sidecars_get_the_tags_and_their_bytes_back",
    ),
    "It never writes half a file.": (
        f"{SIDECARS}/test_kills.py::test_killed_at_every_step",
        f"{SIDECARS}/test_writing.py::test_a_full_disk_at_every_step",
        f"{SIDECARS}/test_writing.py::test_a_closed_folder_and_a_protected_file",
        f"{CATALOGUE}/test_writing.py::test_killed_at_every_step_and_finished_by_a_second_run",
    ),
    "It never touches a sidecar that it cannot parse.": (
        f"{SIDECARS}/test_writing.py::test_one_that_cannot_be_parsed_stays_byte_for_byte",
    ),
    "It never writes anything that you cannot undo.": (
        f"{SIDECARS}/test_writing.py::test_what_is_recorded_is_recorded_before",
        f"{CATALOGUE}/test_removing.py::test_runs_are_undone_to_the_byte_in_any_order",
        f"{SIDECARS}/test_undo.py::test_where_somebody_wrote_since_only_our_tags_go",
    ),
    "It never removes a tag in Immich that it did not add.": (
        "tests/immich/test_writing.py::test_only_added_tags_are_removed",
        "tests/immich/test_writing.py::test_killed_at_a_request",
    ),
    "It never confuses your tags with its own.": (
        f"{CATALOGUE}/test_renaming.py::test_only_values_that_the_mark_names_are_removed",
        f"{CATALOGUE}/test_renaming.py::test_tags_inside_are_undone_by_their_mark",
        f"{CATALOGUE}/test_renaming.py::test_files_that_are_away_and_come_back_can_still_be_undone",
        f"{CLI}/test_writing.py::test_undo_after_renames_says_what_is_left_in_one_line_each",
    ),
    "It never sends anything of yours anywhere.": (
        f"{CLI}/test_nothing_leaves.py"
        "::test_no_socket_is_opened_and_only_what_was_asked_for_is_written",
        f"{SERVER}/test_security.py::test_bound_to_loopback_only",
        f"{SERVER}/test_other_machines.py::test_never_without_a_password",
        "tests/immich/test_eyes.py::test_without_eyes_there_is_no_request",
    ),
    "It never writes elsewhere.": (
        f"{CLI}/test_nothing_leaves.py"
        "::test_no_socket_is_opened_and_only_what_was_asked_for_is_written",
        f"{CATALOGUE}/test_database.py::test_what_a_catalogue_keeps_is_for_its_user_alone",
        f"{SERVER}/test_only_server.py::test_the_address_is_for_its_user_alone",
    ),
    "It never leaves the collection.": (
        f"{CATALOGUE}/test_targets.py::test_no_tags_are_written_through_a_link",
        f"{CATALOGUE}/test_targets.py::test_nothing_is_undone_through_a_link",
        f"{CATALOGUE}/test_targets.py::test_a_catalogue_edited_by_hand_leads_nowhere",
    ),
    "It is never the only copy of your tags.": (
        f"{CATALOGUE}/test_exchange.py::test_a_catalogue_that_was_lost_comes_back",
    ),
    "It never suggests a rejected tag again": (
        "tests/annotator/test_rejections.py::test_what_was_rejected_is_never_suggested_again",
    ),
    "It never recognises faces, and never names places.": (
        f"{COLLECTION}/test_keywords.py::test_names_of_faces_and_places_are_no_tags",
    ),
}
"""The guarantees of docs/never.md, and their tests."""

PROMISES = {
    "tagkin runs nothing that it reads": (
        "tests/storage/test_storage.py::test_only_listed_classes_are_built",
        f"{COLLECTION}/test_keywords.py::test_entities_are_refused",
        f"{SIDECARS}/test_exiftool.py::test_no_configuration_beside_photographs_is_run",
    ),
    "A bad file is reported by name and skipped.": (
        "tests/hardening/test_photographs.py::test_what_does_not_fit_costs_one_photograph",
        "tests/hardening/test_fuzzers.py::test_some_inputs_of_each",
        f"{CATALOGUE}/test_writing.py::test_one_bad_file_is_one_failure",
    ),
    "tagkin only reads photographs, unless you write with `--embed`.": (
        *GUARANTEES["tagkin never opens a photograph for writing."],
        *GUARANTEES["It never writes half a file."],
        *GUARANTEES["It never writes anything that you cannot undo."],
    ),
    "`tagkin write` and `tagkin undo` create, change, delete and follow nothing outside": (
        GUARANTEES["It never leaves the collection."]
    ),
    "Only your user can read what tagkin stores about your photographs.": (
        f"{CATALOGUE}/test_database.py::test_what_a_catalogue_keeps_is_for_its_user_alone",
        "tests/features/test_cache.py::test_the_cache_is_for_its_user_alone",
        f"{SERVER}/test_thumbnails.py::test_they_are_for_their_user_alone",
    ),
    "Nothing of yours leaves the machine.": (
        GUARANTEES["It never sends anything of yours anywhere."]
    ),
}
"""The promises at the top of SECURITY.md, by how they begin, and their tests."""


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_guarantee_has_a_test():
    text = " ".join((ROOT / "docs" / "never.md").read_text("utf-8").split())
    guarantees = set(re.findall(r"- \*\*(.+?)\*\*", text))
    obey(
        "every guarantee of docs/never.md has a test",
        sorted(guarantees ^ GUARANTEES.keys()),
        "name it and its tests in GUARANTEES of tests/hardening/test_promises.py",
    )


def test_every_promise_at_the_top_has_a_test():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    (section,) = re.findall(r"## Promises\n(.*?)\n## ", text, re.DOTALL)
    promises = [" ".join(promise.split()) for promise in re.split(r"^- ", section, flags=re.M)[1:]]
    begun = {p: [start for start in PROMISES if p.startswith(start)] for p in promises}
    obey(
        "every promise at the top of SECURITY.md has a test",
        [promise for promise, starts in begun.items() if len(starts) != 1],
        "name it and its tests in PROMISES of tests/hardening/test_promises.py",
    )
    assert len(promises) == len(PROMISES)


def test_every_test_that_is_named_exists():
    assert len(NAMED) > 20
    by_promise = [*GUARANTEES.values(), *PROMISES.values()]
    promised = [tuple(test.split("::")) for tests in by_promise for test in tests]
    missing = [
        f"{path}::{name}"
        for path, name in [*NAMED, *promised]
        if not (ROOT / path).is_file() or name not in functions_of(ROOT / path)
    ]
    obey(
        "tests that SECURITY.md and promises name exist",
        missing,
        "write the test's name in SECURITY.md or in tests/hardening/test_promises.py",
    )


def test_every_line_that_says_cannot_names_a_test():
    lines = (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
    promised = [line for line in lines if line.startswith("| cannot")]
    assert promised
    obey(
        "every promise of SECURITY.md names a test",
        [line for line in promised if "::test_" not in line],
        "name the test in that line of SECURITY.md, and write it if there is none",
    )
