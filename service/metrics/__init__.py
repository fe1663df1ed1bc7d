"""Metrics for Prometheus, at `/metrics`."""

from __future__ import annotations

PATH = "/metrics"
