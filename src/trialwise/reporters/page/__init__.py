"""What every page of a report shares: safe markup, axes and colours."""
