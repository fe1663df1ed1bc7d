// Conveniences of the editor; every form works without them.
"use strict";

const form = document.querySelector("form.record");
const input = (name) => form.elements.namedItem(name);

// Shows what the service answers to a typed value in the note of its field. Only the last answer counts.
function preview(field, address, values) {
  const note = document.getElementById(`${field.id}-note`);
  const url = new URL(address, location.href);
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  field.asked = url.href;
  fetch(url, { credentials: "same-origin" })
    .then((answer) => (answer.ok && !answer.redirected ? answer.json() : { text: "" }))
    .then((found) => {
      if (field.asked !== url.href) return;
      note.textContent = found.text;
      note.classList.toggle("warning", Boolean(found.is_warning));
    })
    .catch(() => {}); // offline: the note is only a help
}

function later(act) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(act, 300); };
}

function previewTimes() {
  const zone = input("timezone");
  const times = [...form.querySelectorAll(".of-moment input")];
  const ask = (time) => {
    const own = zone && !("siteZone" in time.dataset) ? zone.value : "";
    preview(time, form.dataset.time, { value: time.value, timezone: own });
  };
  for (const time of times) time.addEventListener("input", later(() => ask(time)));
  if (zone) zone.addEventListener("input", later(() => times.forEach(ask)));
}

// An event of whole days has dates, others have times.
function switchTimes(start, end, allDay) {
  const clocks = new Map([[start, "19:00"], [end, "22:00"]]);
  allDay.addEventListener("change", () => {
    for (const [field, clock] of clocks) {
      const [day, time] = field.value.split("T");
      if (time) clocks.set(field, time);
      field.type = allDay.checked ? "date" : "datetime-local";
      field.value = allDay.checked || !day ? day : `${day}T${clock}`;
    }
  });
}

// A new end follows the start by two hours until it is typed. A start that is being typed changes with every
// digit, so that its year may be 2 or 202 for a moment.
function proposeEnd(start, end) {
  let isTyped = end.value !== "";
  end.addEventListener("input", (event) => { if (event.isTrusted) isTyped = end.value !== ""; });
  start.addEventListener("change", () => {
    if (isTyped || !/^[1-9]\d{3}-/.test(start.value)) return;
    end.value = start.type === "date" ? start.value : twoHoursAfter(start.value);
    end.dispatchEvent(new Event("input"));
  });
}

function twoHoursAfter(time) {
  const later = new Date(`${time}Z`);
  later.setUTCHours(later.getUTCHours() + 2);
  return later.toISOString().slice(0, 16);
}

function previewPictures() {
  for (const field of form.querySelectorAll("input[data-preview]")) {
    const image = document.getElementById(field.dataset.preview);
    image.addEventListener("error", () => { image.hidden = true; });
    image.addEventListener("load", () => { image.hidden = false; });
    field.addEventListener("change", () => {
      image.hidden = true;
      if (/^https?:\/\//.test(field.value)) image.src = field.value;
    });
  }
}

if (form) {
  previewTimes();
  previewPictures();
  const cost = form.querySelector(".of-cost input");
  if (cost) cost.addEventListener("input", later(() => preview(cost, form.dataset.cost, { value: cost.value })));
  const [start, end, allDay] = ["start_date", "end_date", "all_day"].map(input);
  if (start && end) {
    proposeEnd(start, end);
    if (allDay) switchTimes(start, end, allDay);
  }
}

const summary = document.getElementById("summary");
if (summary) summary.focus();
