from trialwise.contrib.importers.cerberus.suite import import_cerberus as import_cerberus
from trialwise.contrib.importers.imported import Imported as Imported
from trialwise.contrib.importers.mavai.suite import import_mavai as import_mavai
from trialwise.contrib.importers.problems import ImportRefused as ImportRefused
from trialwise.contrib.importers.recognising import import_suite as import_suite
from trialwise.contrib.importers.rendering import render_yaml as render_yaml
