"""tagkin model suggest: suggest tags by a model in a folder."""

from __future__ import annotations

from tagkin.cli import options
from tagkin.cli.model_folders import (
    files_of,
    note_unknown_words,
    open_model,
    read_photographs,
    read_words,
    report_missing,
    report_problems,
)
from tagkin.cli.output import progress_bar
from tagkin.cli.registry import command
from tagkin.cli.suggestions import send_csv, send_json, show_suggestions


@command("model suggest")
def suggest(
    photos: options.Photos,
    model: options.Model,
    tags: options.Tags = None,
    column: options.Column = None,
    only_untagged: options.OnlyUntagged = False,
    threshold: options.Threshold = None,
    precision: options.Precision = None,
    n: options.NTags = None,
    n_kin: options.NKin = 5,
    vocabulary: options.Vocabulary = None,
    device: options.Device = None,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
    as_csv: options.AsCsv = False,
) -> None:
    """Suggest tags for photographs with a model in a folder.

    PHOTOS are photographs, and folders that are searched with their subfolders. MODEL is a folder
    that tagkin model train wrote. Nothing is stored.

    Every suggestion has a confidence, the probability that the tag is right, and kin: the most
    similar tagged photographs with the tag. Tags that a photograph already has are not suggested.
    --json writes a line for each photograph, --csv a row for each suggestion.

    Examples
    --------
    tagkin model suggest new-photos my-tags
    tagkin model suggest ~/Pictures my-tags --only-untagged --csv > new.csv
    tagkin model suggest photo.jpg my-tags -n 3 --json
    """
    words = None if vocabulary is None else read_words(vocabulary)
    with progress_bar() as step:
        annotator = open_model(model, photos)
        photographs = read_photographs(photos, tags, column, step)
        if only_untagged:
            photographs = photographs.untagged()
        if words is not None:
            note_unknown_words(annotator, words)
        suggested = (
            annotator.suggest(
                photographs,
                n=n,
                threshold=threshold,
                precision=precision,
                n_kin=n_kin,
                vocabulary=words,
                progress=step,
            )
            if len(photographs)
            else []
        )
        readable = {photo.file for photo in suggested}
        unread = [file for file in photographs.files if file not in readable]
        failures = annotator.read_features(unread).failures if unread else []
        if only_untagged:  # the model may know tags that are no longer in files
            suggested = [photo for photo in suggested if not photo.tags]
    report_problems([*photographs.failures, *failures], verbose)
    report_missing(files_of(suggested), model)
    if as_json:
        send_json(suggested)
    elif as_csv:
        send_csv(suggested)
    else:
        show_suggestions(suggested, with_kin=n_kin > 0)
