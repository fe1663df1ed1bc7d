// Small conveniences; every page works without them.
"use strict";

// The visitor's own time beside that of an event in another time zone.
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const time of document.querySelectorAll("time[data-zone]")) {
  if ("allDay" in time.dataset) continue;
  const start = new Date(time.dateTime), end = new Date(time.dataset.end);
  const clock = (zone, named = {}) => {
    try {
      return new Intl.DateTimeFormat(document.documentElement.lang, {
        weekday: "short", hour: "numeric", minute: "2-digit", timeZone: zone, ...named,
      }).formatRange(start, end);
    } catch { return ""; } // a zone that the browser does not know
  };
  if (!clock(own) || clock(own) === clock(time.dataset.zone)) continue;
  const note = document.createElement("span");
  note.className = "own-time";
  note.textContent = clock(own, { timeZoneName: "short" });
  time.parentElement.append(note);
}

// A button beside each address that is there to be copied.
for (const field of document.querySelectorAll("input[data-copy]")) {
  field.addEventListener("focus", () => field.select());
  if (!navigator.clipboard) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  button.textContent = field.dataset.copy;
  button.addEventListener("click", () => navigator.clipboard.writeText(field.value));
  field.after(button);
}
