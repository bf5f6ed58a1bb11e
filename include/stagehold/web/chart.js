// @ts-check
// A small line chart of what an expectation observed over the last intervals, between the bounds that it had then; and
// the parts that all our charts over intervals are made of.

import { plural } from "./formats.js";
import { number } from "./numbers.js";
import { textOf } from "./texts.js";
import { html } from "./ui.js";

const { Box } = globalThis.ChakraUI;

const WIDTH = 420;
const HEIGHT = 110;
const LEFT = 64;
const BOTTOM = 18;
const MARGIN = 8;

/** @param {number} value */
const short = (value) => number(value, { maximumSignificantDigits: 4 });

// Where the points of so many intervals are, of which the least and the greatest value are among `values`.
/**
 * @param {number} count
 * @param {(number | null)[]} values
 */
export function scales(count, values) {
  const known = values.filter((value) => value !== null);
  const [bottom, top] = [Math.min(...known), Math.max(...known)];
  const step = count > 1 ? (WIDTH - LEFT - MARGIN) / (count - 1) : 0;
  const height = HEIGHT - BOTTOM - 2 * MARGIN;
  return {
    bottom,
    top,
    x: (/** @type {number} */ index) => LEFT + index * step,
    y: (/** @type {number} */ value) =>
      MARGIN + (top === bottom ? height / 2 : (height * (top - value)) / (top - bottom)),
  };
}

/** @typedef {ReturnType<typeof scales>} Scale */

/** @param {{ color: string, children: Content }} props */
export const Coloured = ({ color, children }) => html`<${Box} as="g" color=${color}>${children}<//>`;

/** @param {{ values: (number | null)[], scale: Scale } & Rest} props */
export function Line({ values, scale: { x, y }, ...rest }) {
  const places = values.flatMap((value, index) => (value === null ? [] : [[x(index), y(value)]]));
  // One point alone is no line; of a bound it is shown as a short one.
  if (places.length === 1) places.push([places[0][0] + 12, places[0][1]]);
  return html`<polyline fill="none" points=${places.join(" ")} stroke="currentColor" ...${rest} />`;
}

/** @typedef {{ points: Api.ObservedPoint[], scale: Scale }} Observed */

/** @param {Observed} props */
function Band({ points, scale: { x, y } }) {
  const upper = points.map((one, index) => `${x(index)},${y(one.high)}`);
  const lower = points.map((one, index) => `${x(index)},${y(one.low)}`).reverse();
  return html`<polygon fill="currentColor" opacity=${0.18} points=${[...upper, ...lower].join(" ")} />`;
}

/** @param {Api.ObservedPoint} point */
export function pointText({ interval, low, middle, high, partitions, failed, least, most }) {
  const facts = { high: short(high), low: short(low), partitions: plural(partitions, "partition") };
  const spread = partitions > 1 ? textOf("point.spread", facts) : "";
  const lower = least === null ? "" : textOf("point.least", { least: short(least) });
  const upper = most === null ? "" : textOf("point.most", { most: short(most) });
  const bounds = [lower, upper].filter(Boolean).join(", ");
  const told = failed ? textOf("point.failed", { failed }) : "";
  return `${interval}: ${short(middle)}${spread}${bounds && `; ${bounds}`}${told}`;
}

/** @param {Observed} props */
const Dots = ({ points, scale: { x, y } }) =>
  points.map(
    (one, index) => html`
      <${Coloured} color=${one.failed ? "failed.solid" : "success.solid"} key=${one.interval}>
        <circle cx=${x(index)} cy=${y(one.middle)} data-failed=${one.failed > 0} fill="currentColor" r=${3.5}>
          <title>${pointText(one)}</title>
        </circle>
      <//>`,
  );

// Both ends' names have to fit below the line.
/** @param {string} interval */
const named = (interval) => (interval.length > 20 ? `${interval.slice(0, 19)}…` : interval);

/** @param {{ x: number, y: number, anchor: string, children: Content }} props */
const Label = ({ anchor, children, ...place }) => html`
  <text fill="currentColor" fontSize=${10} textAnchor=${anchor} ...${place}>${children}</text>`;

// What is beside and below the line: the greatest and the least value, the first and the last interval.
/** @param {Required<Axes>} props */
function Labels({ intervals, scale: { top, bottom, y }, write }) {
  const last = intervals.length - 1;
  return html`
    <${Coloured} color="fg.muted">
      <${Label} anchor="end" x=${LEFT - 8} y=${y(top) + 4}>${write(top)}<//>
      ${top !== bottom && html`<${Label} anchor="end" x=${LEFT - 8} y=${y(bottom) + 4}>${write(bottom)}<//>`}
      <${Label} anchor="start" x=${LEFT} y=${HEIGHT - 4}>${named(intervals[0])}<//>
      ${last > 0 && html`<${Label} anchor="end" x=${WIDTH - MARGIN} y=${HEIGHT - 4}>${named(intervals[last])}<//>`}
    <//>`;
}

/**
 * @typedef {{ intervals: string[], scale: Scale, write?: (value: number) => string }} Axes
 * @param {Axes & { text: string, children: Content } & Rest} props of which `text` says the same in words
 */
export const Drawing = ({ intervals, scale, text, write = short, children, ...rest }) => html`
  <svg aria-label=${text} height=${HEIGHT} role="img" style=${{ maxWidth: "100%" }} viewBox="0 0 ${WIDTH} ${HEIGHT}"
    width=${WIDTH} ...${rest}>
    ${children}
    <${Labels} intervals=${intervals} scale=${scale} write=${write} />
  </svg>`;

/** @param {{ points: Api.ObservedPoint[] }} props */
export function ObservedChart({ points }) {
  const scale = scales(
    points.length,
    points.flatMap((one) => [one.low, one.high, one.least, one.most]),
  );
  /** @param {"least" | "most"} name */
  const bound = (name) => html`
    <${Line} data-testid=${name} scale=${scale} strokeDasharray="4 3"
      values=${points.map((one) => one[name])} />`;
  return html`
    <${Drawing} data-testid="chart" intervals=${points.map((one) => one.interval)} scale=${scale}
      text=${points.map(pointText).join(". ")}>
      <${Coloured} color="success.solid"><${Band} points=${points} scale=${scale} /><//>
      <${Coloured} color="success.solid">
        <${Line} scale=${scale} strokeWidth=${1.5} values=${points.map((one) => one.middle)} />
      <//>
      <${Coloured} color="failed.solid">${bound("least")}${bound("most")}<//>
      <${Dots} points=${points} scale=${scale} />
    <//>`;
}
