"""What the process is told: settings and logging."""

from config.settings import FLAGS, SettingError, Settings, read_settings

__all__ = ["FLAGS", "SettingError", "Settings", "read_settings"]
