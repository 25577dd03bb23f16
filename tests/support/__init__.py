"""Fakes and other kits that several packages' tests share. Take the lightest that shows the fault.

DynamoDB:
    memory_table   the port over memory: refuses unknown requests, keeps limits, records requests
    atomic_table   the port over memory, for simulations: no limits, no copies, fast
    expressions    conditions and updates, for both
    faults         a port that throttles, loses requests or replies, or writes half a batch
    engine_tables  the store's tables on the real engine
    loopback       a tiny HTTP server that answers as a test wants, for a client's wire

A store and its world:
    fakes          a clock that tests move, a runtime without threads, waits or chance
    stores         an event store over memory_table, events for it, whole reads
    layouts        layouts of any history, without the protocol that makes them
    gateway        the functions, as API Gateway calls them
    clients        boto3 clients that no setting of the machine reaches

Input:
    strategies     whatever a client may send, for property tests
    cursors        damaged and forged cursors
    requests       events as clients write them in JSON
    work           work counted in calls, the same on every machine

Kits of one package stand in its folder, such as `tests/control/world.py`.
"""
