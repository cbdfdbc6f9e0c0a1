"""The embedded API server: storage, resource versions, watch, REST, validation."""
