"""Programs under many conditions, plain and watched."""
