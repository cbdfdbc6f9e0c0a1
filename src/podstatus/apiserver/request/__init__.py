"""Parsing of requests: list options, continue tokens, selectors, patches, field validation.

Pure: functions from the query and the body to values, or to the error that kube-apiserver returns.
Nothing here reads the store. Rules of a single resource belong in `apiserver.strategies`. Tests:
tests/apiserver/request.
"""
