// Peer: Fastify and the MongoDB driver for Node.js on the same collection; one process.
'use strict'

const fastify = require('fastify')
const { MongoClient } = require('mongodb')
const schemas = require('./schemas')

const { BENCH_URI, BENCH_DATABASE, BENCH_TOTALS, BENCH_PORT } = process.env
const client = new MongoClient(BENCH_URI, { writeConcern: { w: 'majority' } })
const database = client.db(BENCH_DATABASE)
const events = database.collection('events')
const created = database.collection('bench_fastify_new')
const changed = database.collection('bench_fastify_changed')
const app = fastify()

function filterOf (query) {
  const within = { $gte: new Date(query.since), $lte: new Date(query.until) }
  const filter = {
    hide_from_listings: false,
    status: query.status ?? { $ne: 'trash' },
    start_utc: within,
    end_utc: within
  }
  if (query.category !== undefined) filter['categories._id'] = query.category
  if (query.venue !== undefined) filter['venue._id'] = query.venue
  if (query.tag !== undefined) filter['tags._id'] = query.tag
  if (query.word !== undefined) filter.text = { $regex: query.word }
  return filter
}

async function venuesNear ({ lng, lat, angle }) {
  const point = { $geoWithin: { $centerSphere: [[lng, lat], angle] } }
  return database.collection('venues').distinct('_id', { status: 'publish', point })
}

function known (event, reply) {
  return event ?? reply.code(404).send({ message: 'not found' })
}

app.get('/events', { schema: schemas.list }, async ({ query }) => {
  const filter = filterOf(query)
  if (query.angle !== undefined) filter['venue._id'] = { $in: await venuesNear(query) }
  const rows = events.find(filter, { projection: schemas.FIELDS }).sort({ start_utc: 1, _id: 1 })
  const [found, total] = await Promise.all([
    rows.skip((query.page - 1) * 12).limit(12).toArray(),
    BENCH_TOTALS === '0' ? null : events.countDocuments(filter)
  ])
  return { events: found, total }
})

app.get('/events/:id(^\\d+$)', { schema: schemas.byId }, async ({ params }, reply) =>
  known(await events.findOne({ _id: params.id }, { projection: schemas.FIELDS }), reply))

app.get('/events/:slug', { schema: schemas.bySlug }, async ({ params }, reply) =>
  known(await events.findOne({ slug: params.slug }, { projection: schemas.FIELDS }), reply))

app.post('/new', { schema: schemas.create }, async ({ body }, reply) => {
  const event = { ...body }
  for (const name of schemas.TIMES) event[name] = new Date(event[name])
  await created.insertOne(event)
  reply.code(201)
  return event
})

app.patch('/changed/:id', { schema: schemas.rename }, async ({ params, body }, reply) => {
  const options = { returnDocument: 'after', projection: schemas.FIELDS }
  return known(await changed.findOneAndUpdate({ _id: params.id }, { $set: { title: body.title } }, options), reply)
})

async function main () {
  await client.connect()
  await app.listen({ host: '127.0.0.1', port: Number(BENCH_PORT) })
}

for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => app.close().then(() => client.close()))
main()
