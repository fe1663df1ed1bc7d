"""Webhooks: changes are sent to the addresses that the operator has added."""
