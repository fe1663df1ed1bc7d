// Reads an iCalendar file with ical.js, as Thunderbird does, and prints its events as JSON.
import ICAL from "ical.js";
import { readFileSync } from "node:fs";

const calendar = new ICAL.Component(ICAL.parse(readFileSync(process.argv[2], "utf8")));
for (const zone of calendar.getAllSubcomponents("vtimezone")) {
  ICAL.TimezoneService.register(new ICAL.Timezone(zone));
}
const shown = (time) =>
  time.isDate ? time.toString() : time.convertToZone(ICAL.Timezone.utcTimezone).toString();
const events = calendar.getAllSubcomponents("vevent").map((component) => {
  const event = new ICAL.Event(component);
  return {
    url: component.getFirstPropertyValue("url"),
    title: event.summary,
    isAllDay: event.startDate.isDate,
    start: shown(event.startDate),
    end: shown(event.endDate),
  };
});
console.log(JSON.stringify(events));
