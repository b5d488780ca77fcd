"""A fleet of devices with the same pack: what their stores say about each, and about the pack.

``stores`` finds stores and evaluates their points, ``device_checks`` says what is wrong with a
device, ``retraining`` estimates what a new pack would gain, ``evaluation`` puts all of it together
and ``report`` shows it. Nothing but numpy is needed.
"""
