"""Everything that an extension of trialwise imports, under the promise of `docs/compatibility.md`.

    a check       Check, CheckResult, Reply, Unreadable, text_of, failed, preview
    a service     TrialContext, Reply, ServiceError, ErrorClass
    a setting     Arg, Natural, Positive, Seconds, Dollars, Share, File: annotations of arguments
    a report      report_format, ReportSource
    a procedure   Procedure, Criterion, Situation, CriterionPlan, ProcedureDesign, Refused;
                  Counts, Conclusion, Evidence, Decision, Finding; Characteristic, Chance,
                  RuleError; Section, Facts
    an importer   SuiteImporter, Node, ImportRequest, Imported
    a command     a click command, or a function that returns an exit code

`docs/guides/extending.md` has a recipe for each. A name loads its module on first use; type
checkers read `extend.pyi`.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "trialwise.checks.check_base": "Check Unreadable failed preview",
    "trialwise.checks.reply_reading": "text_of",
    "trialwise.contrib.importers": "ImportRequest Imported SuiteImporter",
    "trialwise.declarations.resources": "File",
    "trialwise.declarations.signatures": "Arg Dollars Natural Positive Seconds Share",
    "trialwise.documents.blocks": "Facts Section",
    "trialwise.engine.ports": "ServiceError TrialContext",
    "trialwise.model.evidence": "Evidence",
    "trialwise.model.criterion": "Criterion",
    "trialwise.model.plan": "CriterionPlan",
    "trialwise.model.reply": "Reply",
    "trialwise.model.trial": "CheckResult ErrorClass",
    "trialwise.model.verdict": "Decision Finding ProcedureDesign",
    "trialwise.procedures.base": "Conclusion Counts Procedure Refused Situation",
    "trialwise.procedures.characteristic": "Chance Characteristic RuleError",
    "trialwise.reports.formats": "ReportSource report_format",
    "trialwise.declarations.written": "Node",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
