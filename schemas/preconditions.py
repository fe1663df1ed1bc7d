"""Conditions of writes: which version a change may replace, and what makes a creation safe to repeat."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

Versions = frozenset[int] | None
"""Versions of a record; None for all."""
VersionTags = frozenset[str] | None
"""Versions of a record as `version_tag` names them; None for all."""


def version_tag(record: Mapping[str, Any]) -> str:
    """The version of a record and a digest of its id and time, with which its ETags begin. The number alone
    is not enough: after a restore it may be given again, but not with the same time."""
    digest = hashlib.blake2b(f"{record['_id']} {record['modified_utc']}".encode(), digest_size=4).hexdigest()
    return f"{record['version']}-{digest}"


class Preconditions(NamedTuple):
    """What a change depends on: the password of a protected event, and the state that it may replace."""

    password: str | None = None
    versions: Versions = None
    """The versions that may be replaced."""
    unmodified_since: datetime | None = None
    """The time, in UTC, after which the record must not have been changed."""
    tags: VersionTags = None
    """The same, as ETags name them."""
    excluded: VersionTags = frozenset()
    """The versions that must not be replaced, as ETags name them."""

    def allow(self, record: Mapping[str, Any]) -> bool:
        """Whether the record is in a state that may be replaced."""
        modified = record["modified_utc"].replace(microsecond=0)  # as clients know it
        if self.unmodified_since is not None and modified > self.unmodified_since:
            return False
        if self.versions is not None and record["version"] not in self.versions:
            return False
        if self.tags is not None and version_tag(record) not in self.tags:
            return False
        return self.excluded is not None and version_tag(record) not in self.excluded

    def versions_to_remove(self, record: Mapping[str, Any]) -> Versions:
        """The versions that may be removed, given a record that is in an allowed state."""
        is_unconditional = self._replace(password=None) == NO_PRECONDITIONS
        return None if is_unconditional else frozenset([record["version"]])


NO_PRECONDITIONS = Preconditions()


class IdempotencyKey(NamedTuple):
    """The key of a creation that may be sent more than once. The key itself and the body are not stored."""

    id: bytes
    """A digest of the key, its caller and the kind of the record."""
    body: bytes
    """A digest of the body, made with the key."""


class CreationConditions(NamedTuple):
    """What a creation depends on."""

    key: IdempotencyKey | None = None
    needs_new_slug: bool = False
    """Whether to refuse a record whose slug is taken, instead of giving it another one."""


NO_CONDITIONS = CreationConditions()
