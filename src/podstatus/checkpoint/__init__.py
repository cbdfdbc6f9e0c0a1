"""Small durable state: atomic, checksummed files."""
