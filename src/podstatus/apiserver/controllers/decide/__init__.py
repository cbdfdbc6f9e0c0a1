"""The decisions of the controllers: the node of a pod, the taints of a node.

Pure: values in, values out. Loops, retries and writes belong in `apiserver.controllers`. Tests:
tests/apiserver/controllers.
"""
