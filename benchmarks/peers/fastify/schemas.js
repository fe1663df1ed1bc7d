// JSON schemas: Fastify validates requests with them and compiles them to fast serializers of responses.
'use strict'

const text = { type: 'string' }
const optional = { type: ['string', 'null'] }
const flag = { type: 'boolean' }
const whole = { type: 'integer' }
const number = { type: 'number' }
const time = { type: 'string', format: 'date-time' }

const all = (names, schema) => Object.fromEntries(names.map((name) => [name, schema]))

const copies = {
  type: 'array',
  items: {
    type: 'object',
    properties: { _id: whole, version: whole, slug: text, description: optional },
    additionalProperties: true
  }
}
const cost = {
  type: 'object',
  properties: {
    text,
    details: {
      type: 'object',
      properties: {
        ...all(['currency_symbol', 'currency_code', 'currency_position'], text),
        values: { type: 'array', items: text }
      }
    }
  }
}
const TIMES = ['start', 'end', 'start_utc', 'end_utc', 'date_utc', 'modified_utc']
const body = {
  ...all(['title', 'slug', 'status', 'timezone'], text),
  ...all(['description', 'excerpt', 'website'], optional),
  ...all(['author', 'post_parent', 'version'], whole),
  ...all(TIMES, time),
  ...all(['all_day', 'show_map', 'show_map_link', 'hide_from_listings'], flag),
  ...all(['sticky', 'featured', 'ticketed'], flag),
  ...all(['venue', 'organizer', 'categories', 'tags'], copies),
  cost
}
const required = ['title', 'slug', 'status', 'timezone', ...TIMES]

const event = { type: 'object', properties: { _id: whole, ...body } }
const created = { type: 'object', properties: { _id: text, ...body } }
const page = {
  type: 'object',
  properties: { events: { type: 'array', items: event }, total: { type: ['integer', 'null'] } }
}

module.exports = {
  TIMES,
  FIELDS: all(Object.keys(body), 1),
  list: {
    querystring: {
      type: 'object',
      required: ['since', 'until'],
      properties: {
        ...all(['since', 'until'], time),
        ...all(['status', 'word'], text),
        ...all(['category', 'venue', 'tag'], whole),
        ...all(['lat', 'lng', 'angle'], number),
        page: { type: 'integer', minimum: 1, default: 1 }
      }
    },
    response: { 200: page }
  },
  byId: { params: { type: 'object', properties: { id: whole } }, response: { 200: event } },
  bySlug: { params: { type: 'object', properties: { slug: text } }, response: { 200: event } },
  create: { body: { type: 'object', required, properties: body }, response: { 201: created } },
  rename: {
    params: { type: 'object', properties: { id: whole } },
    body: { type: 'object', required: ['title'], properties: { title: text } },
    response: { 200: event }
  }
}
