"""Reads scrapes of metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import Api

Sample = tuple[str, frozenset[tuple[str, str]]]


class Scrape:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples: dict[Sample, float] = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """A value; 0 if nothing has been counted yet."""
        return self.samples.get((name, frozenset(labels.items())), 0.0)

    def values(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """All samples of a name, by the values of these labels: those that differ in others are added up."""
        sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for key, value in self.samples.items():
            if key[0] == name:
                sums[tuple(dict(key[1])[label] for label in labels)] += value
        return dict(sums)

    def since(self, before: Scrape, name: str, *labels: str) -> Mapping[tuple[str, ...], float]:
        """By how much the samples of a name have grown, without those that have not."""
        old = before.values(name, *labels)
        grown = {key: value - old.get(key, 0) for key, value in self.values(name, *labels).items()}
        return {key: value for key, value in grown.items() if value}


async def scrape(api: Api) -> Scrape:
    status, text = await api.send("GET", "//metrics")
    assert status == 200, text
    return Scrape(text)
