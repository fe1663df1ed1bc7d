"""The commands beside `serve` and `import`."""
