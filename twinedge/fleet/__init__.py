"""A fleet of devices with the same pack: what their stores say about each, and about the pack.

``reading`` finds stores and evaluates their points, ``checks`` says what is wrong with a device,
``retraining`` estimates what a new pack would gain, ``survey`` puts all of it together and ``page``
shows it. Nothing but numpy is needed.
"""
