from trialwise.contrib.importers.cerberus.cerberus_suite import import_cerberus as import_cerberus
from trialwise.contrib.importers.import_refusal import ImportRefused as ImportRefused
from trialwise.contrib.importers.imported_suite import Imported as Imported
from trialwise.contrib.importers.mavai.mavai_suite import import_mavai as import_mavai
from trialwise.contrib.importers.mcptest.mcptest_suite import import_mcptest as import_mcptest
from trialwise.contrib.importers.promptfoo.promptfoo_suite import (
    import_promptfoo as import_promptfoo,
)
from trialwise.contrib.importers.suite_importer import ImportRequest as ImportRequest
from trialwise.contrib.importers.suite_importer import SuiteImporter as SuiteImporter
from trialwise.contrib.importers.suite_recognition import import_suite as import_suite
from trialwise.contrib.importers.suite_rendering import render_yaml as render_yaml
from trialwise.contrib.importers.vally.vally_suite import import_vally as import_vally
