"""Parse, merge and validate kubeconfigs.

Pure: text to values, with errors of one line that never repeat the content of the file. Reading the
files belongs in `client.auth.load_kubeconfig`. Tests: tests/client/kubeconfig.
"""
