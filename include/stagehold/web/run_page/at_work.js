// @ts-check
// Who works for the run now: every lease with its holder, and what the holder's last heartbeat said of the work.

import { fetchLeases } from "../api.js";
import { bareClock, bytes, zoned } from "../formats.js";
import { number } from "../numbers.js";
import { usePolled } from "../server_hooks.js";
import { textOf, withTexts } from "../texts.js";
import { Card, Columns, html, Muted, term } from "../ui.js";

const { Box, Text } = globalThis.ChakraUI;

/** @type {Record<Api.Side, { text: string }>} */
const SIDES = withTexts("side", { function: {}, judging: {}, publishing: {}, reading: {}, writing: {} });

const KINDS = withTexts("at_work", { coordinator: {}, helper: {} });

/** @param {Api.PulseAnswer} pulse */
function memory({ client_bytes, server_bytes }) {
  if (client_bytes === null) return null;
  const client = bytes(client_bytes);
  if (server_bytes === null) return textOf("at_work.memory_client", { client });
  return textOf("at_work.memory", { client, server: bytes(server_bytes) });
}

// How an attempt gets on.
/** @param {{ pulse: Api.PulseAnswer }} props */
function Pulse({ pulse }) {
  const { bytes_a_second, doing, done, partitions, rows_a_second, share_of_slowest, slowest, stage, wave } = pulse;
  const rates = { bytes: bytes(bytes_a_second), rows: number(Math.round(rows_a_second)) };
  const slow = slowest && { share: Math.round(100 * share_of_slowest), side: SIDES[slowest].text };
  const told = [
    rows_a_second > 0 && textOf("at_work.rates", rates),
    slow && textOf("at_work.slowest", slow),
    memory(pulse),
  ].filter(Boolean);
  return html`
    <${Box} data-testid="pulse">
      <${Text}>
        ${textOf("at_work.done", { done, partitions, stage, wave })}${doing && `, ${SIDES[doing].text}`}
      <//>
      ${told.map((text) => html`<${Muted} fontSize="sm" key=${text}>${text}<//>`)}
    <//>`;
}

/** @param {Api.LeaseAnswer} lease */
const ends = ({ seconds_left }) =>
  textOf(seconds_left > 0 ? "at_work.ends" : "at_work.ended", { seconds: Math.round(Math.abs(seconds_left)) });

/** @param {Api.LeaseAnswer} lease */
function cells(lease) {
  const { epoch, host, kind, owner, pid, pulse, renewed_at, subject, taken_at } = lease;
  return [
    kind === "coordinator" || kind === "helper" ? KINDS[kind].text : subject,
    html`<${Text} title=${owner}>${host === null ? owner : textOf("at_work.holder", { host, pid: `${pid}` })}<//>`,
    epoch,
    taken_at && bareClock(taken_at),
    renewed_at && bareClock(renewed_at),
    ends(lease),
    pulse && html`<${Pulse} pulse=${pulse} />`,
  ];
}

/** @param {{ grid: Api.RunGrid }} props */
export function AtWork({ grid: { place, run_id } }) {
  const { found } = usePolled(
    `${place}/${run_id}/leases`,
    () => fetchLeases(place, run_id),
    () => true,
  );
  if (found === null || found.leases.length + found.left_out.length === 0) return null;
  const names = [
    textOf("column.for"),
    textOf("column.holder"),
    term("epoch", textOf("column.epoch")),
    zoned(textOf("column.since")),
    textOf("column.heartbeat"),
    textOf("column.ends"),
    textOf("column.now"),
  ];
  return html`
    <${Card} data-testid="at-work" note=${textOf("at_work.note")} title=${textOf("at_work.title")}>
      ${found.left_out.map(
        ({ failures, host, rule, until }) => html`
          <${Text} color="fg.warning" data-testid="left-out" key=${host}>
            ${textOf("at_work.left_out", { failures, host, rule, until: bareClock(until) })}
          <//>`,
      )}
      ${found.leases.length > 0 && html`<${Columns} names=${names} rows=${found.leases.map(cells)} />`}
    <//>`;
}
