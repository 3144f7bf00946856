// A small curve of a tube's ready jobs in the last minute, drawn on a canvas.

import { kSparkLength } from "./store.js";

const kWidth = 84;
const kHeight = 20;

let color = "";

function lineColor() {
  if (!color) {
    color = getComputedStyle(document.documentElement).getPropertyValue("--ready").trim();
  }
  return color;
}

addEventListener("themechange", () => {
  color = "";
});

// Draws into the cell, unless `stamp` is the same as the last time.
export function drawSpark(td, tube, ticks) {
  let canvas = td.firstChild;
  if (!canvas) {
    canvas = document.createElement("canvas");
    canvas.className = "spark";
    canvas.setAttribute("aria-hidden", "true");
    td.append(canvas);
  }
  const scale = Math.min(3, devicePixelRatio || 1);
  const stamp = `${tube.name} ${ticks} ${scale} ${lineColor()}`;
  if (canvas.stamp === stamp) return;
  canvas.stamp = stamp;
  canvas.width = kWidth * scale;
  canvas.height = kHeight * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  if (tube.spark === null) flat(context, tube.flat);
  else curve(context, tube.spark, ticks);
}

function flat(context, value) {
  const y = value === 0 ? kHeight - 2 : kHeight / 2;
  context.beginPath();
  context.moveTo(1, y);
  context.lineTo(kWidth - 1, y);
  stroke(context, 0.5);
}

function curve(context, spark, ticks) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of spark) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (high === low) {
    flat(context, high);
    return;
  }
  context.beginPath();
  for (let i = 0; i < kSparkLength; ++i) {
    const value = spark[(ticks + i) % kSparkLength];
    context.lineTo(1 + (i * (kWidth - 2)) / (kSparkLength - 1),
      kHeight - 2 - ((value - low) / (high - low)) * (kHeight - 4));
  }
  stroke(context, 1);
}

function stroke(context, alpha) {
  context.strokeStyle = lineColor();
  context.globalAlpha = alpha;
  context.lineWidth = 1.25;
  context.stroke();
}
