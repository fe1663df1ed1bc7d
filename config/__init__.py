"""Configuration: settings and logging."""

from config.settings import FIELDS, SettingError, Settings, read_settings

__all__ = ["FIELDS", "SettingError", "Settings", "read_settings"]
