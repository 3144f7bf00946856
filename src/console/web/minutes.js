// The history of the server or of a tube with one point a minute, from GET /history.

import { detailOf, get } from "./api.js";
import { kGauges, kRates } from "./samples.js";
import { Poller } from "./poller.js";

const kEveryMs = 20_000;

export const kHour = 60 * 60_000;
export const kDay = 24 * kHour;
// Points that are further apart have a gap between them, in which nothing is known.
export const kGap = 90_000;

// Loads the history while it is shown, and calls `show` after each answer.
export class MinuteHistory {
  // tube: its name, or undefined for the server
  constructor(tube, show) {
    this.samples = null;     // null: none has come yet
    this.problem = "";
    this.poller = new Poller(async (signal) => {
      try {
        this.samples = samplesOf(await get("/history", { span: "day", tube }, signal));
        this.problem = "";
      } catch (error) {
        this.problem = detailOf(error);
      }
      if (!signal.aborted) show();
    }, kEveryMs);
  }

  stop() {
    this.poller.stop();
  }
}

// {time, ready, ..., puts, ...}: gauges at the end of the minute, and rates a second.
function samplesOf({ columns, samples }) {
  const names = columns.map((column) =>
    Object.keys(kGauges).find((name) => kGauges[name] === column) ?? column);
  return samples.map((row) => {
    const sample = Object.fromEntries(names.map((name, i) => [name, row[i]]));
    sample.time *= 1000;
    for (const name of kRates) sample[name] /= sample.seconds;
    return sample;
  });
}
