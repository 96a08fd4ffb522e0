"""Streams over HTTP: learn, predict and publish, with budgets that hold under concurrency.

Module         Contents
``app``        the story of a request: routes, limits, errors, headers
``service``    `Service`: the streams, ledgers and tokens of a store, and what is visible of them
``host``       one stream as readers see it: visible releases, models, predictions
``predictor``  predictions for a few rows
``writer``     group commit: requests that wait become one block and one transaction
``rows``       rows of a request: JSON, JSON lines or Arrow
``clock``      ticks of a public clock: when releases become visible
``tokens``     access tokens, browser sessions
``messages``   the types of requests and answers; ``openapi`` describes them
``metrics``    numbers for monitoring
``events``     releases as server-sent events
``server``     the HTTP server, with limits for slow clients
"""
