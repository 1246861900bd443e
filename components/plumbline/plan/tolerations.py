"""Whether pods tolerate a taint."""

from collections.abc import Iterable, Mapping
from typing import Any


def tolerates(tolerations: Iterable[Mapping[str, Any]], key: str, value: str, effect: str) -> bool:
    """Whether one of the tolerations, as in a pod's spec, is for the taint.

    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    """
    return any(_is_for(each, key, value, effect) for each in tolerations)


def _is_for(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") not in (None, "", effect):
        return False
    operator = toleration.get("operator") or "Equal"
    if not toleration.get("key"):
        return bool(operator == "Exists")
    if toleration["key"] != key:
        return False
    return bool(operator == "Exists" or (toleration.get("value") or "") == value)
