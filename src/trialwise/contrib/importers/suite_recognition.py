"""Find the importer of a suite file by the file's contents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported
from trialwise.contrib.importers.suite_importer import (
    ImportRequest,
    SuiteImporter,
    built_in_importers,
    extension_importers,
)
from trialwise.contrib.importers.yaml_mappings import read_yaml
from trialwise.declarations.written import Node
from trialwise.errors import InvalidArgument
from trialwise.suite.suite_problems import Problems

__all__ = ["import_suite"]


def import_suite(
    *paths: Path,
    bindings_path: Path | None = None,
    samples: int | None = None,
    at_least: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Imported:
    """Convert the suite that another tool's file describes.

    Args:
        paths: One file; or a contract and its services file, in any order.
        bindings_path: For a mavai file, see `import_mavai`.
        samples: For a mavai file.
        at_least: The rate that criteria require, for a file that asks for no rate.
        environment: For a mavai file.

    Raises:
        ImportRefused: A file is of no known kind, is wrong, or holds what cannot be converted.
    """
    if not paths:
        raise InvalidArgument("paths", paths, "name at least one file")
    importer, files = _recognise(paths)
    request = ImportRequest(
        files=files,
        bindings_path=bindings_path,
        samples=samples,
        at_least=at_least,
        environment=environment or {},
    )
    return importer.import_files(request)


def _recognise(paths: tuple[Path, ...]) -> tuple[SuiteImporter, dict[str, Path]]:
    """Find the one importer of all files, and what each file is for it."""
    problems = Problems()
    importer: SuiteImporter | None = None
    files: dict[str, Path] = {}
    for path in paths:
        root = read_yaml(path, problems)
        if root is None:
            continue
        found = _find_importer(root)
        if found is None:
            problems.add(root, _describe_known_files())
            continue
        one, role = found
        if role in files or (importer is not None and importer.name != one.name):
            problems.add(root, "only a contract and its services file are imported together")
        importer, files[role] = one, path
    check(problems)
    assert importer is not None
    return importer, files


def _find_importer(root: Node) -> tuple[SuiteImporter, str] | None:
    if not root.is_mapping:
        return None
    for importers in (built_in_importers, extension_importers):
        for one in importers():
            role = one.find_role(root)
            if role is not None:
                return one, role
    return None


def _describe_known_files() -> str:
    signs = ", ".join(f"a {one.name} file {one.signs}" for one in built_in_importers())
    return f"the file is of no kind that is read: {signs}"
