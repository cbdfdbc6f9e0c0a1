"""The decisions of the controllers: which node a pod gets, which taints a node has.

Pure: values in, values out. Loops, retries and writes belong in `apiserver.controllers`. Tests:
tests/apiserver/controllers.
"""
