"""Whose file it is, told by its contents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trialwise.contrib.importers.imported import Imported
from trialwise.contrib.importers.problems import check
from trialwise.contrib.importers.reading import read_yaml
from trialwise.suite.nodes import Node
from trialwise.suite.suite_problems import Problems

__all__ = ["import_suite"]

_KNOWN = (
    "the file is of no kind that is read: a cerberus file has `adapter` and `studies`, a mavai "
    "file has `format: mavai-contract/1` or `format: mavai-services/1`"
)


def import_suite(
    *paths: Path,
    bindings_path: Path | None = None,
    samples: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Imported:
    """The suite that a neighbour's file describes, whichever neighbour it is.

    Args:
        paths: One file; or a contract and its services file, in any order.
        bindings_path: Of a mavai file, see `import_mavai`.
        samples: Likewise.
        environment: Likewise.

    Raises:
        ImportRefused: A file is of no known kind, wrong, or has no counterpart.
    """
    from trialwise.errors import InvalidArgument

    if not paths:
        raise InvalidArgument("paths", paths, "name at least one file")
    kinds = _kinds(paths)
    if kinds == ["cerberus"]:
        from trialwise.contrib.importers.cerberus.suite import import_cerberus

        return import_cerberus(paths[0])
    from trialwise.contrib.importers.mavai.suite import import_mavai, import_services

    contract = paths[kinds.index("contract")] if "contract" in kinds else None
    services = paths[kinds.index("services")] if "services" in kinds else None
    if contract is None:
        assert services is not None
        return import_services(services, bindings_path=bindings_path, environment=environment)
    return import_mavai(
        contract,
        services,
        bindings_path=bindings_path,
        samples=samples,
        environment=environment,
    )


def _kinds(paths: tuple[Path, ...]) -> list[str]:
    """What each file is, once it is sure that they go together."""
    problems = Problems()
    kinds: list[str] = []
    for path in paths:
        root = read_yaml(path, problems)
        kind = "" if root is None else _kind(root)
        if root is not None and not kind:
            problems.add(root, _KNOWN)
        elif root is not None and (kind in kinds or (kinds and "cerberus" in (kind, kinds[0]))):
            problems.add(root, "only a contract and its services file are imported together")
        kinds.append(kind)
    check(problems)
    return kinds


def _kind(root: Node) -> str:
    if not root.is_mapping:
        return ""
    keys = set(root.entries)
    if "format" in keys:
        is_contract = bool(keys & {"contract", "criteria", "inputs"})
        text = str(root.entries["format"][1].value)
        if text.startswith("mavai-") or is_contract or "services" in keys:
            is_services = text.startswith("mavai-services") or (
                "services" in keys and not is_contract
            )
            return "services" if is_services else "contract"
        return ""
    if keys & {"adapter", "studies"}:
        return "cerberus"
    return "contract" if keys & {"contract", "criteria"} and "service" in keys else ""
