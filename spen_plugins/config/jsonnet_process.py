"""The process that evaluates a jsonnet file, so that Ctrl-C ends it: rjsonnet holds Python's lock while it works.

A bare interpreter runs this script, which imports no package besides rjsonnet, so that it starts in 30 ms. Standard
input is a request as JSON, standard output the value; the exit status `REFUSED` goes with jsonnet's own message.
"""

from __future__ import annotations

import json
import sys

REFUSED = 3


def main() -> None:
    """Answer the request of `jsonnet.evaluate`."""
    request = json.load(sys.stdin)
    sys.path += request.pop("packages")
    import rjsonnet

    try:
        value = rjsonnet.evaluate_snippet(**request)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
    sys.stdout.write(value)


if __name__ == "__main__":
    main()
