// The data of the stream of events: the server's numbers, every tube with a short history of its
// ready jobs, and rates. Views read from the store and are called after each change.

import { Samples } from "./samples.js";

export const kSparkLength = 60;

const kSmoothing = 0.25;   // of a tube's rates, per second

// Keeps the tube's last row unchanged. Its columns are properties: see defineColumns.
class Tube {
  constructor(name) {
    this.name = name;
    this.row = null;
    this.spark = null;              // ready jobs per second, a ring; null: all equal `flat`
    this.flat = 0;
    this.putRate = 0;
    this.deleteRate = 0;
    this.tickTotal = 0;             // `total` and `deletes` at the last tick
    this.tickDeletes = 0;
    this.waitingSince = 0;          // since when jobs are ready without new reservations
    this.buriedMarks = null;        // see alerts.js
  }

  // Called for the first row of a stream; this page counts from its counters.
  begin() {
    this.tickTotal = this.total;
    this.tickDeletes = this.deletes;
    if (this.spark === null) this.flat = this.ready;
  }

  noteReady(place) {
    const { ready } = this;
    if (this.spark === null) {
      if (ready === this.flat) return;
      this.spark = new Uint32Array(kSparkLength).fill(this.flat);
    }
    this.spark[place] = ready;
  }
}

// Thousands of rows arrive every second, so nothing is copied out of them.
function defineColumns(columns) {
  columns.forEach((column, i) => {
    if (column === "name") return;
    Object.defineProperty(Tube.prototype, column, { configurable: true, get() {
      return this.row[i];
    } });
  });
}

class Store {
  constructor() {
    this.listeners = new Set();
    this.samples = new Samples();
    this.clear();
  }

  clear() {
    this.server = null;
    this.tubes = new Map();
    this.previous = new Map();      // tubes before a reset, to continue their sparks
    this.ticks = 0;                 // seconds of events, which give the place in a spark
    this.tickedAt = 0;              // by the server's clock
    this.polled = false;            // the rows come from requests, without some columns
    this.clockSkew = 0;
    this.reserves = 0;              // reservations and deletions since the page was opened
    this.deletes = 0;
    this.rates = null;
    this.loaded = false;
    this.samples.clear();
  }

  subscribe(listener) {
    this.listeners.add(listener);
  }

  // The server's time, from which ages give absolute times.
  now() {
    return Date.now() + this.clockSkew;
  }

  // Called before a new stream, whose first second must not include changes made before it.
  reconnecting() {
    this.samples.forgetCounters();
  }

  onEvent(name, data) {
    if (name === "server") this.#onServer(data);
    else if (name === "tubes") this.#onTubes(data);
  }

  #onServer(server) {
    this.clockSkew = server.time - Date.now();
    this.server = server;
    this.#tick(server.time);
    this.rates = this.samples.addLive(server, this.polled ? NaN : this.reserves, this.deletes);
    this.#changed();
  }

  // `polled`: the rows are those of all tubes.
  #onTubes({ reset, columns, tubes, gone, polled = false }) {
    if (polled && this.polled) {
      const present = new Set(tubes.map(([name]) => name));
      gone = [...this.tubes.keys()].filter((name) => !present.has(name));
    } else if (reset || polled) {
      this.polled = polled;
      defineColumns(columns);
      this.previous = this.tubes;
      this.tubes = new Map();
    }
    const now = Date.now();
    for (const row of tubes) {
      const known = this.tubes.get(row[0]);
      if (known) this.#update(known, row, now);
      else this.#add(row, now);
    }
    for (const name of gone ?? []) this.tubes.delete(name);
    this.loaded = true;
    this.#changed();
  }

  #update(tube, row, now) {
    const { ready, reserves, deletes } = tube;
    tube.row = row;
    if (ready === 0 || tube.reserves !== reserves) tube.waitingSince = now;
    this.reserves += Math.max(0, tube.reserves - reserves) || 0;   // unknown if polled
    this.deletes += Math.max(0, tube.deletes - deletes);
  }

  #add(row, now) {
    const tube = this.previous.get(row[0]) ?? new Tube(row[0]);
    const before = tube.row;
    tube.row = row;
    if (before === null) tube.waitingSince = now;
    tube.begin();
    this.tubes.set(row[0], tube);
  }

  // Events come each second, or every few seconds if they are polled.
  #tick(time) {
    if (this.loaded) this.previous = new Map();
    const passed = this.tickedAt ? Math.round((time - this.tickedAt) / 1000) : 1;
    const seconds = Math.max(1, Math.min(passed, kSparkLength));
    const smoothing = 1 - (1 - kSmoothing) ** seconds;
    this.tickedAt = time;
    for (const tube of this.tubes.values()) {
      for (let i = 0; i < seconds; ++i) tube.noteReady((this.ticks + i) % kSparkLength);
      const puts = Math.max(0, tube.total - tube.tickTotal) / seconds;
      const deletes = Math.max(0, tube.deletes - tube.tickDeletes) / seconds;
      tube.putRate += smoothing * (puts - tube.putRate);
      tube.deleteRate += smoothing * (deletes - tube.deleteRate);
      tube.tickTotal = tube.total;
      tube.tickDeletes = tube.deletes;
    }
    this.ticks += seconds;
  }

  #changed() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      for (const listener of this.listeners) listener();
    });
  }
}

export const store = new Store();
