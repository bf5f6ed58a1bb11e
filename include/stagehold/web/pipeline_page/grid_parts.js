// @ts-check
// What tables of squares share: arrow keys go from one square to the next, heads are narrow, long tables have pages.

import { html } from "../ui.js";

const { useRef, useState } = globalThis.React;
const { Box } = globalThis.ChakraUI;

/** @type {Record<string, [number, number]>} */
const STEPS = { ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0] };

/**
 * @param {number} number
 * @param {number} count
 */
const within = (number, count) => Math.min(Math.max(number, 0), count - 1);

// Where a key leads from a place in so many rows and columns; null if it is none of ours.
/**
 * @param {KeyboardEvent} event
 * @param {number[]} place
 * @param {number[]} size
 */
function placeAfter(event, [row, column], [rows, columns]) {
  if (event.key === "Home") return [event.ctrlKey ? 0 : row, 0];
  if (event.key === "End") return [event.ctrlKey ? rows - 1 : row, columns - 1];
  const step = STEPS[event.key];
  return step ? [within(row + step[0], rows), within(column + step[1], columns)] : null;
}

// One button at a time can be reached by Tab; it is the one that had the focus last.
/** @typedef {ReturnType<typeof useRoving>} Roving */

/**
 * @param {number} rows
 * @param {number} columns
 */
export function useRoving(rows, columns) {
  const [place, setPlace] = useState([0, 0]);
  const table = useRef(/** @type {HTMLElement | null} */ (null));
  const shown = [within(place[0], rows), within(place[1], columns)];
  /** @param {number[]} next */
  const go = (next) => {
    setPlace(next);
    /** @type {HTMLElement | null | undefined} */
    const button = table.current?.querySelector(`[data-place="${next.join(",")}"]`);
    button?.focus();
  };
  return {
    at: (/** @type {number} */ row, /** @type {number} */ column) => ({
      "data-place": `${row},${column}`,
      onFocus: () => setPlace([row, column]),
      tabIndex: row === shown[0] && column === shown[1] ? 0 : -1,
    }),
    onKeyDown: (/** @type {KeyboardEvent & { target: HTMLElement }} */ event) => {
      const from = /** @type {HTMLElement | null} */ (event.target.closest("[data-place]"))?.dataset.place;
      const next = from && placeAfter(event, from.split(",").map(Number), [rows, columns]);
      if (!next) return;
      event.preventDefault();
      go(next);
    },
    table,
  };
}

// Long names break where their words do.
/** @param {string} name */
export const breakable = (name) => name.split(/(?<=[_./-])/).flatMap((part) => [part, html`<wbr key=${part} />`]);

/** @param {{ children: Content } & Rest} props */
export const Head = ({ children, ...rest }) => html`
  <${Box} as="th" bg="bg" color="fg.muted" fontSize="xs" fontWeight="semibold" px="2" py="2" scope="col"
    textAlign="start" verticalAlign="bottom" ...${rest}>
    ${children}
  <//>`;

// Pages of what is told newest first: each begins behind the last one of the page before, and none is kept when `key`
// changes, which says what was asked for.
/** @param {string} key */
export function useTurns(key) {
  const [turned, setTurned] = useState({ key, steps: /** @type {string[]} */ ([]) });
  const steps = turned.key === key ? turned.steps : [];
  const setSteps = (/** @type {string[]} */ next) => setTurned({ key, steps: next });
  return {
    before: steps.at(-1) ?? null,
    newer: steps.length > 0 ? () => setSteps(steps.slice(0, -1)) : null,
    older: (/** @type {string | null | undefined} */ following) =>
      following ? () => setSteps([...steps, following]) : null,
  };
}
