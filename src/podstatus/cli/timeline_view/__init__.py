"""Draw the timeline of a pod or node, pure: intervals, time axis, chart, event lines.

Input is the recorded history, output is styled text. The `timeline` command and its requests belong
to `cli.timeline`. Tests: tests/cli/timeline_view.
"""
