"""The dashboard of the service: server-rendered pages of what is public, and the operator's numbers apart.

Module         Contents
``views``      what the pages show: frozen dataclasses of public data
``noise``      the noise of released points, from public settings alone
``pages``      views as HTML; ``templates`` and ``static`` have their parts
``routes``     the pages over HTTP: sessions, forms, errors
"""

from __future__ import annotations

from taciturn.service.dashboard.routes import dashboard_routes

__all__ = ["dashboard_routes"]
