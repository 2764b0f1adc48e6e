"""Decoder processes decode and render row events on several cores, with the same results as a single one.

::

    events ──► splitter ──► chunk ──► process ──► parts ──► outputs, in order
                  └──────► statements, new tables, XA … ──► pipeline

A chunk is a range of events with the resume position before it, so that a process makes its records like a pipeline
that resumes there. Unusual events stay in the parent: the splitter passes them to the pipeline as soon as everything
before them is done, and a process declines a chunk as soon as there is an error or a log entry. The parent then
processes the rest of the chunk again, and its result, error or log entry is used.
"""
