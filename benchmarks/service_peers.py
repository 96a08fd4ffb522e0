"""Servers beside which `service.py` measures: a bare ASGI application, and a service with a model of river.

Both are run by uvicorn, in one process, as `uvicorn service_peers:bare`.
"""

from typing import Any

import msgspec
import numpy as np

FEATURES = 54
NAMES = [f"x{number}" for number in range(FEATURES)]
WEIGHTS = np.linspace(-1.0, 1.0, FEATURES)
TYPE = [(b"content-type", b"application/json")]

decode = msgspec.json.Decoder().decode


async def bare(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """One product for each row of a request: no token, no route, no check of a row, no header but the content type."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    rows = np.array([[row[name] for name in NAMES] for row in decode(body)["rows"]])
    scores = rows @ WEIGHTS
    answer = msgspec.json.encode({"predictions": ["yes" if score > 0.0 else "no" for score in scores.tolist()]})
    length = (b"content-length", str(len(answer)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*TYPE, length]})
    await send({"type": "http.response.body", "body": answer})


def river() -> Any:
    """A service as people write one around a model of river: FastAPI, the model in memory, nothing durable."""
    from fastapi import FastAPI
    from pydantic import BaseModel
    from river import compose, linear_model, preprocessing

    class Row(BaseModel):
        features: dict[str, float]
        y: bool | None = None

    app = FastAPI()
    model = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())

    @app.post("/learn")
    async def learn(row: Row) -> dict[str, bool]:
        model.learn_one(row.features, row.y)
        return {"learnt": True}

    @app.post("/predict")
    async def predict(row: Row) -> dict[str, Any]:
        return {"prediction": model.predict_one(row.features)}

    return app
