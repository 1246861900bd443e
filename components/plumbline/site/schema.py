"""The JSON Schema of the declaration, for editors: `python -m plumbline.site.schema > stacks/site.schema.json`."""

import json
from typing import Any

from plumbline.site.model import Site


def stack_schema() -> dict[str, Any]:
    """The schema of a stack's file: the site under `config`, everything else left to Pulumi."""
    site = Site.model_json_schema(mode="validation")
    definitions = site.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Pulumi stack that declares a Plumbline site",
        "type": "object",
        "properties": {"config": {"type": "object", "properties": {"plumbline:site": site}}},
        "$defs": definitions,
    }


def text() -> str:
    """The schema as the file holds it."""
    return json.dumps(stack_schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")
