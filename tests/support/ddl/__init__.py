"""Generates DDL statements, records them with real servers, and compares the resulting structures."""
