"""For all tests."""

from hypothesis import settings

# The machines that run them are shared: how long one example takes says nothing.
settings.register_profile("podstatus", deadline=None)
settings.load_profile("podstatus")
