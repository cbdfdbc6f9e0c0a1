"""A local copy of the objects of one kind, kept current by list and watch.

The reflector, its state and policy, the object store, resource versions, and the decoding of listed
and watched objects. HTTP belongs in `rest`: a reflector takes any `Source`. Handlers for one kind
belong in `typed`. Tests: tests/client/informer.
"""
