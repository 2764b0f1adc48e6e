"""The worker's web server: ``/health`` for people and probes, ``/metrics`` for Prometheus.

``server`` listens, ``pages`` answers, ``metrics`` and ``jmx_metrics`` render statuses in Prometheus' format.
"""
