from trialwise.procedures.base import Procedure as Procedure
