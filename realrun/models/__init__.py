"""A compact decoder with a static cache, and the files its weights come from."""
