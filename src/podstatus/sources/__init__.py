"""Where pods come from:

the API server, a folder or file, a URL. Each source yields its whole desired set, `mux` merges them
into one stream of changes, `mirror_*` maintains the mirror pods of static pods. Never here: the
running state of a pod, admission, settings. Tests: tests/sources.
"""
