"""Schemas of responses for the API description: errors, lists, and anything else."""

from __future__ import annotations

from typing import Any

from marshmallow import INCLUDE, Schema, fields

from handlers.routes import Operation
from schemas.kind import ResponseSchema
from schemas.kinds.post import describe
from schemas.language import Text


class ErrorDataResponse(ResponseSchema):
    """The details of an error."""

    class Meta:
        unknown = INCLUDE

    status = fields.Integer(metadata=describe(Text("HTTP status")))
    params = fields.Raw(
        metadata=describe(
            Text("names of missing fields, or what is wrong with each field"),
            absent=True,
            one_of=(fields.List(fields.String()), fields.Dict(values=fields.String())),
        )
    )


class ErrorResponse(ResponseSchema):
    """The body of every error response."""

    code = fields.String(
        metadata=describe(Text("what went wrong, for programs"), example="rest_invalid_param")
    )
    message = fields.String(metadata=describe(Text("what went wrong, for people")))
    data = fields.Nested(ErrorDataResponse)


class AnyResponse(Schema):
    """An object with arbitrary members."""

    class Meta:
        unknown = INCLUDE


def response_schema(operation: Operation) -> type[Schema]:
    if not (kind := operation.kind):
        return operation.response or AnyResponse
    if not operation.is_list:
        return kind.response_schema
    members: Any = {
        kind.plural: fields.List(fields.Nested(kind.response_schema)),
        "rest_url": fields.String(),
        "next_rest_url": fields.String(metadata=describe(Text("absent on the last page"), absent=True)),
        "previous_rest_url": fields.String(metadata=describe(Text("absent on the first page"), absent=True)),
        "total": fields.Integer(),
        "total_pages": fields.Integer(),
    }
    return ResponseSchema.from_dict(members, name=f"{kind.name.capitalize()}List")
