"""The only speaker to an API server: who we are, requests, watches, and what went wrong."""
