"""A bridge from a published station to EPICS PV Access, in a process of its own.

    $ pip install hairspring[epics]
    $ hairspring serve station.toml --publish shutter &
    $ hairspring-ioc shutter

The bridge reads the page that the station publishes, and posts what has changed. It can hang, die or read slowly without cost to the
station. It publishes states, never events: all counters are absolute, so an update that is lost loses nothing. It serves loopback only,
unless ``--interface`` says otherwise.

`bridge.py` decides what is posted when, `values.py` knows the types of PV Access, `main.py` the command line. Only `values.py` and
`main.py` import p4p; importing `hairspring` imports none of this.
"""
