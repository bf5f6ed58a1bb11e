// A small line chart of what an expectation observed over the last intervals, between the bounds that it had then; and
// the parts that all our charts over intervals are made of.

const { createElement: h } = globalThis.React;
const { Box } = globalThis.ChakraUI;

const WIDTH = 420;
const HEIGHT = 110;
const LEFT = 64;
const BOTTOM = 18;
const MARGIN = 8;

const short = (number) => number.toLocaleString([], { maximumSignificantDigits: 4 });

// Where the points of so many intervals are, of which the least and the greatest value are among `values`.
export function scales(count, values) {
  const known = values.filter((value) => value !== null);
  const [bottom, top] = [Math.min(...known), Math.max(...known)];
  const step = count > 1 ? (WIDTH - LEFT - MARGIN) / (count - 1) : 0;
  const height = HEIGHT - BOTTOM - 2 * MARGIN;
  return {
    bottom,
    top,
    x: (index) => LEFT + index * step,
    y: (value) => MARGIN + (top === bottom ? height / 2 : (height * (top - value)) / (top - bottom)),
  };
}

export const coloured = (color, ...children) => h(Box, { as: "g", color }, ...children);

// Through the points that have this value.
export function line(points, value, { x, y }, rest) {
  const places = points
    .map((one, index) => [one, index])
    .filter(([one]) => one[value] !== null)
    .map(([one, index]) => `${x(index)},${y(one[value])}`);
  // One point alone is no line; of a bound it is shown as a short one.
  if (places.length === 1) places.push(places[0].replace(/^[\d.]+/, (at) => `${Number(at) + 12}`));
  return h("polyline", { fill: "none", points: places.join(" "), stroke: "currentColor", ...rest });
}

function band(points, { x, y }) {
  const upper = points.map((one, index) => `${x(index)},${y(one.high)}`);
  const lower = points.map((one, index) => `${x(index)},${y(one.low)}`).reverse();
  return h("polygon", { fill: "currentColor", opacity: 0.18, points: [...upper, ...lower].join(" ") });
}

export function pointText({ interval, low, middle, high, partitions, failed, least, most }) {
  const spread = partitions > 1 ? ` (${short(low)} to ${short(high)} in ${partitions} partitions)` : "";
  const allowed = [least !== null && `at least ${short(least)}`, most !== null && `at most ${short(most)}`];
  const bounds = allowed.filter(Boolean).join(", ");
  return `${interval}: ${short(middle)}${spread}${bounds && `; ${bounds}`}${failed ? `; ${failed} failed` : ""}`;
}

function dots(points, { x, y }) {
  return points.map((one, index) =>
    h(
      Box,
      { as: "g", color: one.failed ? "failed.solid" : "success.solid", key: one.interval },
      h(
        "circle",
        { cx: x(index), cy: y(one.middle), "data-failed": one.failed > 0, fill: "currentColor", r: 3.5 },
        h("title", null, pointText(one)),
      ),
    ),
  );
}

// Both ends' names have to fit below the line.
const named = (interval) => (interval.length > 20 ? `${interval.slice(0, 19)}…` : interval);

const label = (x, y, anchor, text) =>
  h("text", { fill: "currentColor", fontSize: 10, key: `${x} ${y}`, textAnchor: anchor, x, y }, text);

// What is beside and below the line: the greatest and the least value, the first and the last interval.
function labels(intervals, scale, write) {
  const last = intervals.length - 1;
  return coloured(
    "fg.muted",
    label(LEFT - 8, scale.y(scale.top) + 4, "end", write(scale.top)),
    scale.top !== scale.bottom && label(LEFT - 8, scale.y(scale.bottom) + 4, "end", write(scale.bottom)),
    label(LEFT, HEIGHT - 4, "start", named(intervals[0])),
    last > 0 && label(WIDTH - MARGIN, HEIGHT - 4, "end", named(intervals[last])),
  );
}

// A drawing over intervals; `text` says the same in words.
export const Drawing = ({ intervals, scale, text, write = short, children, ...rest }) =>
  h(
    "svg",
    {
      "aria-label": text,
      height: HEIGHT,
      role: "img",
      style: { maxWidth: "100%" },
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      ...rest,
    },
    children,
    labels(intervals, scale, write),
  );

export function Chart({ points }) {
  const scale = scales(
    points.length,
    points.flatMap((one) => [one.low, one.high, one.least, one.most]),
  );
  return h(
    Drawing,
    {
      "data-testid": "chart",
      intervals: points.map((one) => one.interval),
      scale,
      text: points.map(pointText).join(". "),
    },
    coloured("success.solid", band(points, scale)),
    coloured("success.solid", line(points, "middle", scale, { strokeWidth: 1.5 })),
    coloured(
      "failed.solid",
      line(points, "least", scale, { "data-testid": "least", strokeDasharray: "4 3" }),
      line(points, "most", scale, { "data-testid": "most", strokeDasharray: "4 3" }),
    ),
    dots(points, scale),
  );
}
