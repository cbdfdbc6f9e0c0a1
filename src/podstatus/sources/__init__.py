"""Where pods come from: the API server, a folder, a URL; and their merged stream of changes."""
