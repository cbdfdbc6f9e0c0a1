"""The volumes of pods: made, filled, updated and removed on disk.

Which files a volume has is decided in `spec/projections.py`. Mounting never belongs here: see
`sandbox`. Tests: tests/runtime/process/volumes.
"""
