"""The shop's HTTP service: it stores what makes its answer true, emits what has happened, and answers.

uvicorn examples.invoices.web:app
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field, StringConstraints
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from examples.invoices import tables
from examples.invoices.tables import Customer, Invoice
from workers import emit, volatile, volatile_shutdown

recently: deque[int] = deque(maxlen=20)  # invoices, for a page that nobody minds to find empty after a restart

Line = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]


class NewCustomer(BaseModel):
    """What POST /customers takes."""

    name: Line
    notify_url: Line
    card: Line


class NewInvoice(BaseModel):
    """What POST /invoices and POST /drafts take."""

    customer_id: Annotated[int, Field(ge=1, lt=2**31)]
    number: Line
    total: Annotated[Decimal, Field(gt=0, max_digits=10, decimal_places=2)]


class Stored(BaseModel):
    """The number under which it is stored."""

    id: int


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Tables before the first request; volatile work is waited for after the last one."""
    await asyncio.to_thread(tables.create)
    yield
    await asyncio.to_thread(volatile_shutdown)


app = FastAPI(title="Invoices", lifespan=lifespan)


@app.exception_handler(RequestValidationError)
def wrong(_: Request, error: RequestValidationError) -> JSONResponse:
    """One sentence that names the field. What was sent is not repeated: half a character could not even be written."""
    first = error.errors()[0]
    return JSONResponse({"detail": f"{'.'.join(str(part) for part in first['loc'][1:])}: {first['msg']}."}, 422)


@app.post("/customers", status_code=201)
def join(new: NewCustomer) -> Stored:
    """Store a customer; what follows (account, trial, first charge) is a workflow's business."""
    with Session(tables.engine()) as session, session.begin():
        statement = insert(Customer).values(**new.model_dump()).on_conflict_do_nothing().returning(Customer.id)
        found = session.scalar(statement) or session.scalars(select(Customer.id).where(Customer.name == new.name)).one()
        emit(session, "customer.joined", {"id": found, "card": new.card}, key=f"customer-{found}")
    return Stored(id=found)


@app.post("/invoices", status_code=201)
def issue(new: NewInvoice) -> Stored:
    """Store an invoice and say that it was issued, in one transaction. Nothing else must be true before the answer."""
    with Session(tables.engine()) as session, session.begin():
        found = _store(session, new, issued=True)
        emit(session, "invoice.issued", {"id": found, "customer_id": new.customer_id}, key=f"invoice-{found}")
    volatile(recently.append, found)
    return Stored(id=found)


@app.post("/drafts", status_code=201)
def draft(new: NewInvoice) -> Stored:
    """Store an invoice that is not issued yet: the same work, with nothing to emit."""
    with Session(tables.engine()) as session, session.begin():
        found = _store(session, new, issued=False)
    volatile(recently.append, found)
    return Stored(id=found)


@app.get("/recently")
def recent() -> list[int]:
    """The latest invoices that this process has stored."""
    return list(recently)


@app.get("/metrics")
def metrics() -> Response:
    """For Prometheus; among them the counts of volatile work."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def _store(session: Session, new: NewInvoice, *, issued: bool) -> int:
    if session.get(Customer, new.customer_id) is None:
        raise HTTPException(404, f"customer_id: there is no customer {new.customer_id}.")
    # Whoever got no answer asks again, and gets the invoice that is there.
    statement = insert(Invoice).values(**new.model_dump(), issued=issued).on_conflict_do_nothing().returning(Invoice.id)
    same = select(Invoice).where(Invoice.customer_id == new.customer_id, Invoice.number == new.number)
    found = session.scalar(statement)
    if found is not None:
        return found
    known = session.scalars(same).one()
    if (known.total, known.issued) != (new.total, issued):
        raise HTTPException(409, f"number: {new.number} of this customer is another invoice already.")
    return known.id
