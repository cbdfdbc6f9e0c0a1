"""Decide about in-place resizes:

whether a resize fits, which pending resize comes first, what the runtime has to change, and the
message for events and conditions. Pure. Never here: stores and tasks (`allocation`). Tests:
tests/workers/resize.
"""
