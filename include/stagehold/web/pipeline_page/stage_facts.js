// @ts-check
// All that is on record of one stage for one interval.

import { bytes, clock, lasted, plural, runPage } from "../formats.js";
import { number } from "../numbers.js";
import { textOf } from "../texts.js";
import { CodeBlock, Fact, html, RunLink } from "../ui.js";
import { amountText, gateText, madeText, recorded, STATES, shortRun, staleText } from "./interval_texts.js";

const { Box, Button, Flex, Text } = globalThis.ChakraUI;

/** @param {string} name */
const factKey = (name) => /** @type {import("../texts.js").Key} */ (`fact.${name}`);

/** @param {{ cell: Api.StageCell }} props */
const MadeBy = ({ cell: { made_by } }) => html`
  <${Fact} data-testid="made-by" name=${textOf("fact.computed_by")}>
    ${made_by.map(
      ({ run_id, partitions }, index) => html`
        <span key=${run_id}>
          ${index > 0 && ", "}
          <${RunLink} runId=${run_id}>${shortRun(run_id)}<//>
          ${made_by.length > 1 && ` (${partitions})`}
        </span>`,
    )}
  <//>`;

/** @param {{ failure: Api.TryFailure }} props */
const Failure = ({ failure: { cause, failure, tries, lost } }) => html`
  <${Box} data-testid="failure" px="4" pb="3">
    ${
      cause &&
      html`
        <${Text} color="failed.fg" fontWeight="semibold">${tries > 1 && `${plural(tries, "task")}: `}${cause}<//>`
    }
    ${
      lost &&
      html`
        <${Text} color="failed.fg" data-testid="lost" fontWeight="semibold">
          ${textOf("attempt.lost")}, ${textOf("attempt.noticed", { at: clock(lost.at), by: lost.noticed })}
        <//>`
    }
    <${CodeBlock}>${failure ?? textOf("attempt.silent")}<//>
  <//>`;

/**
 * @param {Api.StageColumn} column
 * @param {Api.StageCell} cell
 */
function factsOf(column, cell) {
  const counts = Object.entries(cell.counts).map(([state, count]) => `${number(count)} ${state}`);
  const known = recorded(cell) > 0;
  return Object.entries({
    partitions: known ? `${amountText(cell)} (${counts.join(", ")})` : null,
    made: known ? madeText(cell) : null,
    rows: known ? number(cell.rows) : null,
    size: cell.bytes ? bytes(cell.bytes) : null,
    work: cell.seconds ? lasted(cell.seconds) : null,
    recorded: cell.recorded_at && clock(cell.recorded_at),
    gate: known ? gateText(cell, column.gate) : null,
  }).filter(([, value]) => value);
}

/**
 * @typedef {{ column: Api.StageColumn, cell: Api.StageCell, stale: Api.StaleStage | null }} OfStage
 * @param {OfStage & { row: Api.IntervalRow }} props
 */
export function StageFacts({ row, column, cell, stale }) {
  const page = row.run && runPage(row.run.run_id);
  return html`
    <${Box} bg="bg.subtle" borderTopWidth="1px" data-testid="facts" fontSize="sm" insetInlineStart="0" position="sticky"
      w="100cqw">
      <${Flex} align="baseline" columnGap="6" px="4" py="3" rowGap="1" wrap="wrap">
        <${Text} w="full">
          <${Text} as="span" fontWeight="semibold">
            ${textOf("header.for", { interval: row.interval, pipeline: column.name })}
          <//>
          : ${STATES[cell.state].text}${stale && `, ${staleText(stale)}`}
        <//>
        ${factsOf(column, cell).map(
          ([name, value]) => html`<${Fact} key=${name} name=${textOf(factKey(name))} word=${name}>${value}<//>`,
        )}
        ${cell.made_by.length > 0 && html`<${MadeBy} cell=${cell} />`}
        ${
          page &&
          html`
            <${Button} asChild size="xs" variant="outline">
              <a href="${page}?stage=${encodeURIComponent(column.name)}">${textOf("fact.show")}</a>
            <//>`
        }
      <//>
      ${cell.failures.map((one) => html`<${Failure} failure=${one} key="${one.cause} ${one.failure}" />`)}
    <//>`;
}
