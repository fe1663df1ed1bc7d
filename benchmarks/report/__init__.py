"""What a run reports: tables, targets, a chart and the machine."""
