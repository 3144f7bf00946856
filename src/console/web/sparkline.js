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

// Draws into the cell, again only if `stamp` differs from that of the last time.
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
  curve(context, tube.spark, ticks);
}

function curve(context, spark, ticks) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of spark) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const range = high - low || 1;
  const flat = high === low;
  const y = (value) => {
    if (flat) return high === 0 ? kHeight - 2 : kHeight / 2;
    return kHeight - 2 - ((value - low) / range) * (kHeight - 4);
  };
  context.beginPath();
  for (let i = 0; i < kSparkLength; ++i) {
    context.lineTo(1 + (i * (kWidth - 2)) / (kSparkLength - 1),
      y(spark[(ticks + i) % kSparkLength]));
  }
  context.strokeStyle = lineColor();
  context.globalAlpha = flat ? 0.5 : 1;
  context.lineWidth = 1.25;
  context.stroke();
}
