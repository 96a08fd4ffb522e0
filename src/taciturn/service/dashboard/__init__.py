"""The dashboard of the service: server-rendered pages of what is public, and the operator's numbers apart."""
