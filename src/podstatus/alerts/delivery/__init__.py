"""Delivery: each alert reaches each of its receivers, across failures and restarts.

The dispatcher has one receiver task per receiver, each with a queue and a retry schedule; `store`
and `persister` hold active alerts and deliveries on disk. How a message is sent belongs in
notifiers. Tests: tests/alerts/delivery.
"""
