from trialwise.importers.cerberus.suite import import_cerberus as import_cerberus
from trialwise.importers.imported import Imported as Imported
from trialwise.importers.mavai.suite import import_mavai as import_mavai
from trialwise.importers.problems import ImportRefused as ImportRefused
from trialwise.importers.recognising import import_suite as import_suite
from trialwise.importers.rendering import render_yaml as render_yaml
