"""All metrics, with their meanings.

With several workers every process writes its values into files, and whichever is scraped adds up those of all
of them (`processes.py`). The mode of a gauge says how: `livesum` and the like leave out workers that ended.
"""

from __future__ import annotations

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from config.version import VERSION

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The buckets of durations."""
REGISTRY = CollectorRegistry()

# The times at which series were created would double their number, and have no sum over processes.
disable_created_metrics()  # type: ignore[no-untyped-call]

REQUESTS = Counter(
    "kalends_requests",
    "Responses, by the pattern of the route, method and status; `unmatched` is all paths without a route.",
    ["route", "method", "status"],
    registry=REGISTRY,
)
REQUEST_SECONDS = Histogram(
    "kalends_request_duration_seconds",
    "Time from the arrival of a request until its response was sent, by the pattern of the route and method.",
    ["route", "method"],
    buckets=SECONDS,
    registry=REGISTRY,
)
IN_FLIGHT = Gauge(
    "kalends_requests_in_flight",
    "Requests that are being handled (with this scrape), and responses that are being streamed.",
    ["state"],
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
SHED = Counter(
    "kalends_requests_shed",
    "Requests that were answered 503 because too many were in flight.",
    registry=REGISTRY,
)
COMMAND_SECONDS = Histogram(
    "kalends_mongodb_command_duration_seconds",
    "Time of MongoDB commands, from sending until the reply, by command and collection.",
    ["command", "collection"],
    buckets=SECONDS,
    registry=REGISTRY,
)
COMMAND_FAILURES = Counter(
    "kalends_mongodb_command_failures",
    "MongoDB commands that failed, not counting those that refused a document, such as a duplicate.",
    ["command", "collection"],
    registry=REGISTRY,
)
COMMANDS_RUNNING = Gauge(
    "kalends_mongodb_commands_in_progress",
    "MongoDB commands that wait for their reply; each uses one of the 50 connections of its process.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
MONGODB_UP = Gauge(
    "kalends_mongodb_up",
    "1 if MongoDB has answered every worker when it was last asked, at most ten seconds ago; otherwise 0.",
    multiprocess_mode="livemin",
    registry=REGISTRY,
)
CACHE_HITS = Counter(
    "kalends_cache_hits",
    "Look-ups that were answered from a cache, or by the work of a concurrent request, by cache.",
    ["cache"],
    registry=REGISTRY,
)
CACHE_MISSES = Counter(
    "kalends_cache_misses",
    "Look-ups that found nothing in the cache, or something outdated, by cache.",
    ["cache"],
    registry=REGISTRY,
)
BATCHED_CALLS = Counter(
    "kalends_batched_calls",
    "Calls that were made by batches; divided by the number of batches, the average size of a batch.",
    ["batch"],
    registry=REGISTRY,
)
BATCHES = Counter(
    "kalends_batches",
    "Batches that were begun: concurrent reads, creations and so on use one command together.",
    ["batch"],
    registry=REGISTRY,
)
QUEUE = Gauge(
    "kalends_batch_queue_length",
    "Calls that wait for the next batch.",
    ["batch"],
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
FANOUT_JOBS = Gauge(
    "kalends_fanout_jobs_open",
    "Changed records whose copies in events are not updated yet; NaN while MongoDB does not answer.",
    multiprocess_mode="livemostrecent",
    registry=REGISTRY,
)
FEED_LAG = Gauge(
    "kalends_change_feed_lag_seconds",
    "Time between the last write that MongoDB has committed and the last one up to which the slowest worker "
    "has read all changes. Requests read them before they use a cache, and maintenance every five seconds: "
    "an idle service shows up to ten. NaN while MongoDB does not answer.",
    multiprocess_mode="livemax",
    registry=REGISTRY,
)
UNLOGGED = Gauge(
    "kalends_changes_unlogged",
    "Changes that a worker has read and that are not in the change log and the usage counters yet.",
    multiprocess_mode="livemax",
    registry=REGISTRY,
)
DELIVERIES = Counter(
    "kalends_webhook_deliveries",
    "Messages that were sent to webhooks, by outcome: accepted or failed.",
    ["outcome"],
    registry=REGISTRY,
)
LOOP_DELAY = Histogram(
    "kalends_event_loop_delay_seconds",
    "By how much a timer of the event loop was late, twice a second: requests wait that long for their turn.",
    buckets=SECONDS,
    registry=REGISTRY,
)
WORKERS = Gauge(
    "kalends_workers", "Processes that serve requests.", multiprocess_mode="livesum", registry=REGISTRY
)
CPU_SECONDS = Counter(
    "process_cpu_seconds", "User and system CPU time of all workers, in seconds.", registry=REGISTRY
)
MEMORY = Gauge(
    "process_resident_memory_bytes",
    "Resident memory of all workers; pages that they share are counted for each.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
OPEN_FILES = Gauge(
    "process_open_fds",
    "Open file descriptors of all workers.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
BUILD = Gauge(
    "kalends_build_info",
    "Always 1; its labels are the versions of Kalends and Python.",
    ["version", "python"],
    multiprocess_mode="livemax",
    registry=REGISTRY,
).labels(VERSION, platform.python_version())
