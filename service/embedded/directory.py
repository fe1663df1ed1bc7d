"""The data directory of the embedded mongod: its files, secrets and socket."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from service.embedded.errors import EmbeddedError

# The member's host in the replica set configuration. It is relative to mongod's working directory, so that
# the configuration stays valid when the data directory is moved or copied.
SOCKET_HOST = "./mongod.sock"
USER = "kalends"
MAX_SOCKET_PATH_BYTES = 100  # the kernel allows 107 bytes on Linux, 103 on macOS


@dataclass(frozen=True)
class Directory:
    """The paths of everything that belongs to one mongod."""

    root: Path

    @classmethod
    def at(cls, data_dir: Path) -> Directory:
        return cls(data_dir.expanduser().resolve())

    @property
    def db(self) -> Path:
        return self.root / "db"

    @property
    def keyfile(self) -> Path:
        return self.root / "keyfile"

    @property
    def password(self) -> Path:
        return self.root / "password"

    @property
    def log(self) -> Path:
        return self.root / "mongod.log"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def socket(self) -> Path:
        """In the data directory, or in a temporary directory if that path is too long for a socket."""
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        private = f"kalends-{os.geteuid()}-{digest}"
        places = [self.root, Path(tempfile.gettempdir(), private), Path("/tmp", private)]  # noqa: S108 - private
        paths = [place / SOCKET_HOST for place in places]
        return next((path for path in paths if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES), paths[-1])

    @property
    def client_socket(self) -> Path:
        """The socket path that clients use: a symlink that exists only while mongod is a writable primary.

        A driver that connects earlier keeps that connection, and never starts a session on it.
        """
        return self.socket.with_name("ready.sock")

    def publish_client_socket(self) -> None:
        self.client_socket.symlink_to(self.socket.name)

    def remove_client_socket(self) -> None:
        self.client_socket.unlink(missing_ok=True)

    def uri(self, socket: Path | None = None) -> str:
        place = quote(str(socket or self.client_socket), safe="")
        password = self.password.read_text().strip()
        return f"mongodb://{USER}:{password}@{place}/?directConnection=true&authSource=admin&w=majority"

    @contextmanager
    def reporting_os_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EmbeddedError(
                f"cannot use {error.filename or self.root}: {error.strerror}; "
                "set KALENDS_DATA_DIR to use another directory"
            ) from error

    def has_data(self) -> bool:
        """Whether an embedded mongod has been started here before."""
        try:
            return self.lock.is_file() and self.db.is_dir()
        except OSError:
            return False

    def make_private(self) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = self.root.stat().st_uid
        if os.geteuid() == 0 and owner != 0:
            # Files that root creates here would prevent the owner's service from starting.
            raise EmbeddedError(f"{self.root} belongs to user {owner}: run the command as that user")
        if self.lock.exists() or not any(self.root.iterdir()):
            self.root.chmod(0o700)
        # Someone's home directory or /tmp, perhaps: do not change its permissions.
        elif self.root.stat().st_mode & 0o077:
            raise EmbeddedError(f"{self.root} holds other files: set KALENDS_DATA_DIR to an empty directory")

    def make_contents(self) -> None:
        self.db.mkdir(mode=0o700, exist_ok=True)
        _make_secret(self.keyfile)
        _make_secret(self.password)
        # If a power failure lost the password after the user was created, the data would be inaccessible.
        sync_directory(self.root)
        if self.socket.parent != self.root:
            _make_private_directory(self.socket.parent)
        self.socket.unlink(missing_ok=True)

    def remove_socket_directory(self) -> None:
        self.remove_client_socket()
        if self.socket.parent != self.root:
            with suppress(OSError):  # not empty, or removed before
                self.socket.parent.rmdir()


def _make_secret(path: Path) -> None:
    if not path.exists():
        draft = path.with_name(f"{path.name}.new")
        draft.touch(mode=0o600)
        with draft.open("w") as file:
            file.write(secrets.token_hex(32))
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    # A copied directory may have lost its file modes, and mongod rejects a key file that others can read.
    path.chmod(0o600)


def sync_directory(place: Path) -> None:
    """Have the names of new files survive a power failure."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_private_directory(place: Path) -> None:
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    # In a temporary directory another user may have created this name first.
    if place.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise EmbeddedError(f"{place} belongs to someone else: remove it or shorten KALENDS_DATA_DIR")
