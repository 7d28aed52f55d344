"""Training the built-in pair, and distilling its draft from the target."""
