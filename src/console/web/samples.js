// The samples that the charts draw: one per second since the page was opened, preceded by the
// samples of GET /history. Old samples are thinned out, which keeps a page small that is open all
// day.

// Gauges of `stats`, kept unchanged.
export const kGauges = {
  ready: "current-jobs-ready",
  reserved: "current-jobs-reserved",
  delayed: "current-jobs-delayed",
  buried: "current-jobs-buried",
  memory: "job-memory",
  journal: "journal-bytes",
  journalLive: "journal-live-bytes",
  connections: "current-connections",
  workers: "current-workers",
  waiting: "current-waiting",
};
export const kRates = ["puts", "reserves", "deletes", "timeouts"];

const kMinute = 60_000;
// [age, step]: beyond each age, at most one sample per step is kept.
const kThinning = [[15 * kMinute, 5000], [70 * kMinute, 30_000]];
const kShortest = 500;   // a rate over a shorter time is unreliable
const kLongest = 24 * 60 * kMinute;

export class Samples {
  constructor() {
    this.clear();
  }

  clear() {
    this.list = [];          // {time, ready, ..., puts, ...}, in order of time
    this.counters = null;
  }

  // The next sample gets no rates.
  forgetCounters() {
    this.counters = null;
  }

  // Reservations and deletions are counted by tube, because one command may reserve or delete many
  // jobs.
  addLive(server, reserves, deletes) {
    const last = this.list.at(-1);
    if (this.counters && server.time - this.counters.time < kShortest) return last;
    const counters = { time: server.time, puts: server["total-jobs"], reserves, deletes,
      timeouts: server["job-timeouts"] };
    const sample = gauges(server.time, (key) => server[key]);
    rates(sample, this.counters, counters);
    this.counters = counters;
    this.list.push(sample);
    if (this.list.length % 60 === 0) this.#thin(server.time);
    return sample;
  }

  // Fills the time in which this page had no stream. The history of an hour has no reservations.
  seed({ columns, samples }) {
    const index = Object.fromEntries(columns.map((column, i) => [column, i]));
    const seeded = [];
    let before = null;
    for (const row of samples) {
      const stats = (key) => row[index[key]];
      const time = row[0] * 1000;
      const counters = { time, puts: stats("total-jobs"), deletes: stats("cmd-delete"),
        timeouts: stats("job-timeouts") };
      const sample = gauges(time, stats);
      rates(sample, before, counters);
      before = counters;
      seeded.push(sample);
    }
    this.list = merge(this.list, seeded);
  }

  // The samples of the last `milliseconds`, at most one per step.
  last(milliseconds, step) {
    const list = this.list;
    if (list.length === 0) return [];
    const from = list[list.length - 1].time - milliseconds;
    let start = list.length;
    while (start > 0 && list[start - 1].time >= from) start -= 1;
    return step > 1000 ? thinned(list.slice(start), step) : list.slice(start);
  }

  #thin(now) {
    let rest = this.list.filter((sample) => sample.time > now - kLongest);
    for (const [age, step] of kThinning) {
      const edge = rest.findIndex((sample) => sample.time > now - age);
      rest = [...thinned(rest.slice(0, edge), step), ...rest.slice(edge)];
    }
    this.list = rest;
  }
}

function gauges(time, stats) {
  const sample = { time };
  for (const [name, key] of Object.entries(kGauges)) sample[name] = stats(key) ?? null;
  return sample;
}

function rates(sample, before, after) {
  const seconds = before ? (after.time - before.time) / 1000 : 0;
  for (const name of kRates) {
    const change = before ? after[name] - before[name] : -1;
    sample[name] = seconds > 0 && change >= 0 ? change / seconds : null;
  }
}

function merge(live, seeded) {
  const kNear = 4000;
  const all = [...live];
  let i = 0;
  for (const sample of seeded) {
    while (i < live.length && live[i].time < sample.time - kNear) i += 1;
    if (i >= live.length || live[i].time > sample.time + kNear) all.push(sample);
  }
  return all.sort((a, b) => a.time - b.time);
}

// The last sample of each step, with the mean of the rates.
function thinned(list, step) {
  const result = [];
  let bucket = -1;
  let sums = {};
  for (const sample of list) {
    const place = Math.floor(sample.time / step);
    if (place !== bucket) {
      sums = {};
      bucket = place;
      result.push(null);
    }
    const mean = { ...sample };
    for (const name of kRates) {
      const sum = (sums[name] ??= { total: 0, count: 0 });
      if (sample[name] !== null) {
        sum.total += sample[name];
        sum.count += 1;
      }
      mean[name] = sum.count > 0 ? sum.total / sum.count : null;
    }
    result[result.length - 1] = mean;
  }
  return result;
}
