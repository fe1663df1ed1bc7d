// Uses the generated types to list events, create one, read it by its slug, and be refused.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { argv: string[] };

function check(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

const client = createClient<paths>({ baseUrl: process.argv[2] });

const empty = await client.GET("/events", { params: { query: { per_page: 5, order: "desc" } } });
check(empty.data?.total === 0, "there are no events yet");

const created = await client.POST("/events", {
  body: {
    title: "Typed concert",
    start_date: "2027-06-01 19:00",
    end_date: "2027-06-01 22:00",
    cost: 15,
    categories: ["Concerts", "Open air"],
    venue: { venue: "New Hall", city: "Springfield" },
  },
});
check(created.response.status === 201 && created.data !== undefined, "the event is created");
check(created.data.cost_details.values[0] === "15", "the cost is read");
check(created.data.categories.map((one) => one.name).join() === "Concerts,Open air", "names become categories");

const { venue } = created.data;
check(!Array.isArray(venue) && venue.city === "Springfield", "the venue is created");

const read = await client.GET("/events/by-slug/{slug}", { params: { path: { slug: created.data.slug } } });
check(read.data?.id === created.data.id, "the event is read by its slug");

const listed = await client.GET("/events", { params: { query: { categories: ["open-air"], orderby: "title" } } });
check(listed.data?.events[0]?.title === "Typed concert", "the event is found by the slug of a category");

const missing = await client.GET("/events/{id}", { params: { path: { id: 4711 } } });
check(missing.error?.code === "event-not-found" && missing.error.data.status === 404, "404 is an error with a code");

const refused = await client.POST("/events", { body: { title: " ", start_date: "now", end_date: "never" } });
const params = refused.error?.data.params;
check(refused.response.status === 400 && params !== undefined && !Array.isArray(params), "400 names the fields");
check(Object.keys(params).sort().join() === "end_date,title", "all wrong fields are named");
