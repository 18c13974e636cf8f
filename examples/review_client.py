"""A small client of the review: ask for a photograph's suggestions, and hand back decisions.

Start ``tagkin review --no-browser`` and pass the address that it prints::

    python -m examples.review_client 'http://127.0.0.1:8642/?key=...' photo.jpg
    python -m examples.review_client 'http://127.0.0.1:8642/?key=...' photo.jpg --accept dog

It needs nothing but Python, so a plug-in of another program can do the same. docs/how-to.md
describes the interface.
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from http.cookiejar import CookieJar
from typing import Any


class ReviewClient:
    """Speaks to a running review.

    Parameters
    ----------
    address : str
        The address that ``tagkin review`` prints, with its key.
    """

    def __init__(self, address: str):
        # no proxy: the review is on this machine
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(*handlers)
        # the key opens the review: it answers with a cookie, and leads to its secret folder
        with self._opener.open(address) as answer:
            self.base = urllib.parse.urljoin(answer.url, "api/v1/")

    def get(self, route: str, **query: Any) -> Any:
        """Ask for something."""
        with self._opener.open(f"{self.base}{route}?{urllib.parse.urlencode(query)}") as answer:
            return json.load(answer)

    def post(self, route: str, **body: Any) -> Any:
        """Change something."""
        request = urllib.request.Request(  # noqa: S310 (the review's own address)
            f"{self.base}{route}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with self._opener.open(request) as answer:
            return json.load(answer)

    def photograph(self, path: str | os.PathLike[str]) -> Any:
        """Return a photograph with its suggestions and tags."""
        return self.get("photographs/at", path=os.path.abspath(path))

    def decide(
        self, photograph: Any, accept: Sequence[str] = (), reject: Sequence[str] = ()
    ) -> Any:
        """Accept and reject tags of a photograph by name, in one step that can be undone.

        A suggested tag goes back with the confidence and the run that were shown.
        """
        shown = {
            s["name"]: [s["tag"], s["confidence"], s["run"]] for s in photograph["suggestions"]
        }
        accepted, rejected = (
            [[photograph["content"], *shown.get(name, [name])] for name in names]
            for names in (accept, reject)
        )
        return self.post("decisions", accept=accepted, reject=rejected)

    def undo(self, run: int) -> Any:
        """Undo a step."""
        return self.post("undo", run=run)


def main(arguments: Sequence[str] | None = None) -> int:
    """Show a photograph's tags and suggestions, or decide on them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("address", help="the address that tagkin review prints")
    parser.add_argument("photo", help="a photograph of the collection")
    parser.add_argument("--accept", action="append", default=[], metavar="TAG")
    parser.add_argument("--reject", action="append", default=[], metavar="TAG")
    options = parser.parse_args(arguments)
    try:
        client = ReviewClient(options.address)
        photograph = client.photograph(options.photo)
        if options.accept or options.reject:
            decided = client.decide(photograph, options.accept, options.reject)
            print(
                f"Run {decided['run']}: {decided['accepted']} accepted, "
                f"{decided['rejected']} rejected."
            )
            return 0
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        print(json.loads(text)["error"] if text.startswith("{") else text, file=sys.stderr)
        return 1
    except urllib.error.URLError as error:
        print(f"No review answers at {options.address} ({error.reason}).", file=sys.stderr)
        return 1
    tags = [tag["name"] for tag in photograph["tags"] if tag["state"] != "rejected"]
    print("Tags:", ", ".join(tags) or "none")
    for suggestion in photograph["suggestions"]:
        print(f"{suggestion['confidence']:5.0%}  {suggestion['name']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
