"""From a contract and its services to a suite that asks the same of the same service."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported, Place
from trialwise.contrib.importers.mavai.bindings import Bindings, read_bindings
from trialwise.contrib.importers.mavai.check_forms import Check
from trialwise.contrib.importers.mavai.check_spelling import spell_check
from trialwise.contrib.importers.mavai.companion_module import Companion
from trialwise.contrib.importers.mavai.contract_file import (
    ContractRead,
    CriterionRead,
    read_contract,
)
from trialwise.contrib.importers.mavai.contract_inputs import Given, Media
from trialwise.contrib.importers.mavai.contract_trials import latency_of, trials_of
from trialwise.contrib.importers.mavai.form_comparison import element
from trialwise.contrib.importers.mavai.language_models import model_input, model_service
from trialwise.contrib.importers.mavai.services_file import ServiceRead, read_services
from trialwise.contrib.importers.suite_importer import ImportRequest, SuiteImporter
from trialwise.contrib.importers.yaml_mappings import read_yaml
from trialwise.declarations.written import Node
from trialwise.suite.suite_problems import Problems

__all__ = ["IMPORTER", "import_mavai", "import_services"]

SERVICES_NAME = "mavai-services.yaml"
BINDINGS_NAME = "mavai-bindings.py"
#: Inputs that are longer together have a file of their own.
_INLINE = 20_000
_STRICT = "JSON is read strictly: a reply with a repeated key, or with NaN, is not JSON."
_BASELINE = (
    "Measure a baseline first: without one the run is refused, where baseltest skips the criterion."
)


def import_mavai(
    contract_path: Path,
    services_path: Path | None = None,
    *,
    bindings_path: Path | None = None,
    samples: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Imported:
    """The suite that a contract file describes, with the service that a services file gives it.

    baseltest takes the number of samples when a test is run. Without one a test has the fewest
    that can show every threshold, which is what the suite then says.

    Args:
        contract_path: A `mavai-contract/1` file.
        services_path: A `mavai-services/1` file; mavai-services.yaml beside the contract if none
            is given.
        bindings_path: The registrations in code, read and not run; mavai-bindings.py beside the
            contract if none is given.
        samples: How many trials a test has.
        environment: Where `MAVAI_ROOT_<NAME>` may stand for a root.

    Raises:
        ImportRefused: Something is wrong, or has no counterpart; every such thing is listed.
    """
    problems = Problems()
    folder = contract_path.parent
    bindings = read_bindings(bindings_path or _beside(folder, BINDINGS_NAME), problems)
    services_path = services_path or _beside(folder, SERVICES_NAME)
    services = None
    if services_path is not None:
        services = _services(services_path, bindings, environment or {}, problems)
    root = read_yaml(contract_path, problems)
    contract = None if root is None else read_contract(root, folder, environment or {}, problems)
    builder = _Builder(contract_path, services_path, bindings, services, samples, problems)
    suite = None
    if contract is not None and not len(problems):
        suite = builder.suite(contract)
    check(problems)
    assert suite is not None
    return builder.build_result(suite)


def import_services(
    path: Path, *, bindings_path: Path | None = None, environment: Mapping[str, str] | None = None
) -> Imported:
    """The services of a services file alone: a part of a suite, to be included in one.

    Args:
        path: A `mavai-services/1` file.
        bindings_path: The registrations in code; mavai-bindings.py beside it if none is given.
        environment: Where `MAVAI_ROOT_<NAME>` may stand for a root.

    Raises:
        ImportRefused: Something is wrong, or has no counterpart; every such thing is listed.
    """
    problems = Problems()
    bindings = read_bindings(bindings_path or _beside(path.parent, BINDINGS_NAME), problems)
    services = _services(path, bindings, environment or {}, problems)
    builder = _Builder(path, path, bindings, services, None, problems)
    suite: dict[str, Any] = {"services": {}}
    if not len(problems):
        for name, service in services.items():
            suite["services"][name] = builder.service(service)
            builder.comments[("services", name)] = f"`{name}`, line {service.line}"
    check(problems)
    builder.notes.append("These are services only: include this file in a suite that names them.")
    return builder.build_result(suite, is_whole=False)


def _beside(folder: Path, name: str) -> Path | None:
    path = folder / name
    return path if path.is_file() else None


def _services(
    path: Path, bindings: Bindings, environment: Mapping[str, str], problems: Problems
) -> dict[str, ServiceRead]:
    root = read_yaml(path, problems)
    if root is None:
        return {}
    return read_services(root, path.parent, environment, bindings, problems)


@dataclass(slots=True)
class _Builder:
    """One suite being built."""

    path: Path
    services_path: Path | None
    bindings: Bindings
    services: dict[str, ServiceRead] | None
    samples: int | None
    problems: Problems
    notes: list[str] = field(default_factory=list)
    comments: dict[Place, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    companion: Companion = field(init=False)

    def __post_init__(self) -> None:
        slug = re.sub(r"[^a-z0-9]+", "_", self.path.stem.lower()).strip("_")[:50] or "contract"
        self.companion = Companion(f"mavai_{slug}", self.path.name, self.bindings)

    def build_result(self, suite: dict[str, Any], *, is_whole: bool = True) -> Imported:
        """What comes of it."""
        companion = self.companion
        if companion.is_needed:
            self.files[f"{companion.name}.py"] = companion.text
            self.notes.append(f"{companion.name}.py holds what a suite has no words for.")
        if companion.stubs:
            left = "; ".join(companion.stubs)
            self.notes.append(
                f"To be written in {companion.name}.py, where it raises until then, so that every "
                f"trial FAILs: {left}."
            )
        if self.bindings.path is not None and companion.uses_bindings:
            self.notes.append(
                f"{self.bindings.path.name} is imported when the suite is loaded, and needs what "
                "it imports itself."
            )
        used = [self.path, *([self.services_path] if self.services_path else [])]
        return Imported(
            format="mavai",
            sources=tuple(dict.fromkeys(map(str, used))),
            suite=suite,
            notes=tuple(dict.fromkeys(self.notes)),
            files=self.files,
            comments=self.comments,
            is_whole=is_whole,
        )

    def suite(self, contract: ContractRead) -> dict[str, Any]:
        """The suite of a contract."""
        service = self._service_of(contract)
        # The family's own rule set: another one decides some counts otherwise.
        suite: dict[str, Any] = {"name": contract.name, "service": {}, "rule": "fisher"}
        self.notes.append("The rule set is `fisher`, by which baseltest decides.")
        if contract.is_smoke:
            suite["intent"] = "smoke"
        sizes = trials_of(contract, self.samples, self.problems)
        self.notes += sizes.notes
        if sizes.for_all is not None:
            suite["trials"] = sizes.for_all
        latency, notes = latency_of(contract, sizes.for_all)
        self.notes += notes
        suite |= {"latency": latency} if latency else {}
        values = [self._input(one, service) for one in contract.inputs]
        suite |= self._identity(contract, service)
        suite["inputs"] = self._inputs(values)
        expected = self._collect_expected(contract, values)
        suite["service"] = self._spelled_service(contract, service)
        # The companion counts a non-response as a failure (§1.4.5).
        suite["analysis"] = "intent-to-treat"
        suite["criteria"] = [
            self._criterion(number, one, contract, expected, sizes.for_criterion(one))
            for number, one in enumerate(contract.criteria)
        ]
        if any(view == "json" for view in contract.views.values()):
            self.notes.append(_STRICT)
        return suite

    # --- The service --------------------------------------------------------------------------

    def _service_of(self, contract: ContractRead) -> ServiceRead | None:
        """The service's definition; None where it is a function."""
        name = contract.service
        if self.services is not None and name in self.services:
            return self.services[name]
        if self.services is not None and name not in self.bindings.services:
            known = ", ".join(f"`{one}`" for one in (*self.services, *self.bindings.services))
            message = f"there is no service `{name}` in {self.services_path}; there are {known}"
            self.problems.add(contract.service_node, f"`service`: {message}")
        return None

    def _spelled_service(self, contract: ContractRead, service: ServiceRead | None) -> Any:
        self.comments[("service",)] = f"`{contract.service}`"
        if service is None:
            return {"python": self.companion.service(contract.service)}
        file = "" if self.services_path is None else f" of {self.services_path.name}"
        self.comments[("service",)] = f"`{service.name}`, line {service.line}{file}"
        return self.service(service)

    def service(self, service: ServiceRead) -> dict[str, Any]:
        """A service as a suite describes it."""
        self.notes += service.notes
        if not service.is_model:
            made = self.companion.add_configured_service(
                service.name, service.type, service.configuration
            )
            return {"python": made}
        try:
            spelled_service, notes = model_service(service.configuration)
        except ValueError as error:
            self.problems.add(service.node, f"the service `{service.name}`: {error}")
            return {}
        self.notes += notes
        return spelled_service

    def _identity(self, contract: ContractRead, service: ServiceRead | None) -> dict[str, Any]:
        """What a baseline is measured under: another configuration is no reference there."""
        empirical = any(one.threshold is None for one in contract.criteria)
        if contract.latency is not None and contract.latency.empirical:
            empirical = True
        if not empirical or service is None:
            return {}
        covariates = [
            {"name": key, "value": _identify_value(value), "critical": True}
            for key, value in service.configuration.items()
        ]
        return {"covariates": covariates}

    # --- Inputs -------------------------------------------------------------------------------

    def _input(self, given: Given, service: ServiceRead | None) -> Any:
        if service is not None and service.is_model:
            return model_input(given, service.configuration, self.problems)
        parts = [_describe_media(part) if isinstance(part, Media) else part for part in given.parts]
        return parts[0] if len(parts) == 1 else {"parts": parts}

    def _inputs(self, values: list[Any]) -> Any:
        written = [{"value": value} if isinstance(value, dict) else value for value in values]
        lines = [json.dumps({"value": value}, ensure_ascii=False) for value in values]
        if sum(map(len, lines)) <= _INLINE:
            return written
        name = f"{self.companion.name}.inputs.jsonl"
        self.files[name] = "\n".join(lines) + "\n"
        return {"jsonl": name}

    def _collect_expected(
        self, contract: ContractRead, values: list[Any]
    ) -> list[tuple[Any, list[dict[str, Any]]]]:
        """What single inputs expect, by the input itself."""
        found: dict[str, tuple[Any, list[dict[str, Any]]]] = {}
        for given, value in zip(contract.inputs, values, strict=True):
            key = json.dumps(value, sort_keys=True)
            specs = [one.spec for one in given.expected]
            if key in found and found[key][1] != specs:
                message = (
                    "two inputs are the same and expect different things: nothing tells them apart"
                )
                self.problems.add(given.node, message)
            found.setdefault(key, (value, specs))
        return [one for one in found.values() if one[1]]

    # --- Criteria -----------------------------------------------------------------------------

    def _criterion(
        self,
        number: int,
        read: CriterionRead,
        contract: ContractRead,
        expected: list[tuple[Any, list[dict[str, Any]]]],
        trials: int | None,
    ) -> dict[str, Any]:
        self.comments[("criteria", number)] = f"criterion `{read.name}`, line {read.line}"
        criterion: dict[str, Any] = {"name": read.name}
        criterion |= self._postconditions(read, contract, expected)
        if read.threshold is None:
            criterion["no_worse_than"] = "baseline"
            self._about_baseline(read)
        else:
            criterion["at_least"] = read.threshold
        if trials is not None:
            criterion["trials"] = trials
        confidence = contract.confidence if read.confidence is None else read.confidence
        if confidence != 0.95:
            criterion["confidence"] = confidence
        if read.origin is not None:
            criterion["origin"] = read.origin.upper()
        if read.ref is not None:
            criterion["ref"] = read.ref
        return criterion

    def _about_baseline(self, read: CriterionRead) -> None:
        self.notes.append(
            f"`{read.name}` (line {read.line}) is held against a baseline. {_BASELINE}"
        )
        if read.tolerate is not None:
            self.notes.append(
                f"`{read.name}` tolerates a rate of {read.tolerate:g}, from which baseltest "
                "takes its number of samples. Here `margin` is the distance below the baseline's "
                f"rate: once that is measured, set it to the rate less {read.tolerate:g}, or give "
                "`trials`."
            )

    def _about_set(self, check_read: Check) -> None:
        if check_read.form != "set-of":
            return
        for name in ("required", "optional"):
            members = check_read.operand.get(name, [])
            if len({element(one) for one in members}) < len(members):
                line = check_read.node.line + 1
                self.notes.append(f"`{name}` of `set-of` (line {line}) lists a member twice.")

    def _postconditions(
        self,
        read: CriterionRead,
        contract: ContractRead,
        expected: list[tuple[Any, list[dict[str, Any]]]],
    ) -> dict[str, Any]:
        """The checks: as postconditions, and the rest as one function."""
        native: list[dict[str, Any]] = []
        rest: list[dict[str, Any]] = []
        has_slack = read.slack not in (0, "0%")
        for one in read.checks:
            self._about_set(one)
            is_plain = not (one.is_optional and has_slack)
            found = spell_check(one, contract.views) if is_plain else None
            if found is None:
                rest.append(one.spec)
            else:
                native += [spec for spec in found if spec not in native]
        if rest or expected:
            where = self.companion.criterion(
                read.name, checks=rest, views=contract.views, slack=read.slack, expected=expected
            )
            native.append({"python": where})
        return dict(native[0]) if len(native) == 1 else {"postconditions": native}


def _describe_media(media: Media) -> dict[str, str]:
    """A file by its name and content."""
    return {media.kind: media.path, "sha256": hashlib.sha256(media.content).hexdigest()}


def _identify_value(value: Any) -> str:
    """A parameter as a covariate shows it: long ones by their content."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    if len(text) <= 60 and text.isprintable() and "${" not in text:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _find_role(root: Node) -> str | None:
    keys = set(root.entries)
    is_contract = bool(keys & {"contract", "criteria", "inputs"})
    if "format" in keys:
        text = str(root.entries["format"][1].value)
        if not (text.startswith("mavai-") or is_contract or "services" in keys):
            return None
        is_services = text.startswith("mavai-services")
        return "services" if is_services or ("services" in keys and not is_contract) else "contract"
    # A contract without its format is reported as a contract, not as an unknown file.
    return "contract" if keys & {"contract", "criteria"} and "service" in keys else None


def _import_files(request: ImportRequest) -> Imported:
    services = request.files.get("services")
    if "contract" not in request.files:
        assert services is not None
        return import_services(
            services, bindings_path=request.bindings_path, environment=request.environment
        )
    return import_mavai(
        request.files["contract"],
        services,
        bindings_path=request.bindings_path,
        samples=request.samples,
        environment=request.environment,
    )


IMPORTER = SuiteImporter(
    name="mavai",
    signs="has `format: mavai-contract/1` or `format: mavai-services/1`",
    find_role=_find_role,
    import_files=_import_files,
)
