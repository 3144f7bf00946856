// Reads by requests what a stream of events would send: the numbers of the server, and those of all
// tubes, page by page. Some numbers of a tube are in the stream only; they are then unknown.

import { ApiError, get, send } from "./api.js";

const kPage = 1000;
const kColumns = ["name", "urgent", "ready", "reserved", "delayed", "buried", "held", "total",
  "using", "watching", "waiting", "reserves", "timeouts", "deletes", "pause", "pause-left"];
const kNames = { deletes: "delete" };   // in the list of tubes, where they differ

async function readServer(signal) {
  const response = await send("GET", "/server", { signal });
  const time = Date.parse(response.headers.get("Date"));
  return { ...await response.json(), time: Number.isNaN(time) ? Date.now() : time };
}

async function readTubes(signal, onAnswer) {
  const rows = [];
  let from = 0;
  do {
    const page = await get("/tubes", { from, limit: kPage }, signal);
    onAnswer();
    for (const tube of page.tubes) {
      rows.push(kColumns.map((column) => tube[column] ?? tube[kNames[column]]));
    }
    from = page.next;
  } while (from !== 0);
  return rows;
}

// Passes the events to onEvent(name, data). Calls onAnswer() after each answer.
export async function readNumbers(onEvent, signal, onAnswer) {
  const server = await readServer(signal);
  onAnswer();
  let tubes = [];
  try {
    tubes = await readTubes(signal, onAnswer);
  } catch (error) {
    // A node that does not lead its cluster has numbers of its own only.
    if (!(error instanceof ApiError) || !error.type.endsWith(":not-the-leader")) throw error;
  }
  if (signal.aborted) return;
  onEvent("tubes", { polled: true, columns: kColumns, tubes });
  onEvent("server", server);
}
