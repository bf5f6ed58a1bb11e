// @ts-check
// Failures after which a run went on: what they were, and what was not computed again.

import { fetchRecoveries } from "../api.js";
import { clock, duration, plural, timeToGo } from "../formats.js";
import { useAnswer } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { Card, Columns, html, Muted, Problem, RunLink, Tag, term } from "../ui.js";

const { Box, Text } = globalThis.ChakraUI;

const names = () => [
  textOf("column.interval"),
  textOf("recovery.failed"),
  textOf("column.why"),
  textOf("recovery.after"),
  textOf("recovery.reused"),
];

/** @param {Api.Recovery} one */
const recovered = ({ recovered_at, failed_at, attempts }) => {
  const tries = plural(attempts, "attempt");
  if (!recovered_at) return html`<${Tag} palette="failed">${textOf("recovery.not_yet", { tries })}<//>`;
  return html`
    <${Box} whiteSpace="nowrap">
      <${Text}>${duration(failed_at, recovered_at)}<//>
      <${Muted}>${tries}<//>
    <//>`;
};

/** @param {Api.Recovery} one */
const cellsOf = (one) => [
  html`<${Box} whiteSpace="nowrap"><${RunLink} runId=${one.run_id}>${one.interval}<//><//>`,
  html`
    <${Box}>
      <${Text} fontWeight="semibold">${one.subject}<//>
      <${Muted}>${clock(one.failed_at)}<//>
    <//>`,
  html`
    <${Box} minW="150px">
      <${Text} lineClamp=${2} title=${one.failure}>${one.failure}<//>
      ${one.cause && html`<${Muted}>${one.cause}<//>`}
    <//>`,
  recovered(one),
  html`
    <${Box}>
      <${Text}>${plural(one.reused, "partition")}<//>
      ${
        one.saved_seconds >= 1 &&
        html`<${Text} color="success.fg" fontSize="xs">
            ${textOf("recovery.saved", { time: timeToGo(one.saved_seconds) })}
          <//>`
      }
    <//>`,
];

/** @param {{ place: string, stamp: string }} props of which `stamp` changes when there may be more of them */
export function Recoveries({ place, stamp }) {
  const { found, problem } = useAnswer(`${place} ${stamp}`, () => fetchRecoveries(place));
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found || found.recoveries.length === 0) return null;
  const saved = found.recoveries.reduce((sum, one) => sum + one.saved_seconds, 0);
  const note = textOf("recovery.note");
  return html`
    <${Card} data-testid="recoveries" title=${term("recovery", textOf("recovery.title"))}
      note=${saved >= 1 ? note + textOf("recovery.total", { time: timeToGo(saved) }) : note}>
      <${Columns} names=${names()} rows=${found.recoveries.map(cellsOf)} />
    <//>`;
}
