"""The worker's web server: ``/health`` for people and probes, ``/metrics`` for Prometheus.

``server`` listens, ``pages`` answers, ``metrics`` renders a status in Prometheus' format.
"""
