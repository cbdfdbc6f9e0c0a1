"""Tell users what happened: events, with repeats put together and floods held back."""
