"""Laws of one step: one file a mechanism."""
