"""From a contract to a plan, or to the reasons why there is none."""
