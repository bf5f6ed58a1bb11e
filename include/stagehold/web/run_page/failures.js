// @ts-check
// What went wrong: attempts that failed, and what gates refused, which may be waived here.

import { textOf } from "../texts.js";
import { Card, Columns, html, LongCode, Muted, Tag, term } from "../ui.js";
import { ranges, STANDINGS, wordsOf } from "./run_texts.js";
import { Waive, WaiveButton } from "./waive.js";

const { useState } = globalThis.React;
const { Box, Text } = globalThis.ChakraUI;

/** @param {{ region: string, text: string }} props */
const Trace = ({ region, text }) => html`
  <${Box} as="details" data-testid="trace-${region}" fontSize="sm" mt="1">
    <${Box} as="summary" color="fg.muted" cursor="pointer">${textOf("failure.trace")}<//>
    <${LongCode} fontSize="xs" maxH="24em" whiteSpace="pre">${text}<//>
  <//>`;

// What failure enrichers say of it.
/** @param {{ attempt: Api.AttemptLine }} props */
const Labels = ({ attempt: { region, labels } }) =>
  Object.entries(labels).map(
    ([name, label]) => html`<${Tag} data-testid="label-${region}" key=${name} mb="1" mr="1">${name}: ${label}<//>`,
  );

/** @param {{ attempt: Api.AttemptLine }} props */
const Failure = ({ attempt }) => html`
  <${Box} pb="3" px="4">
    <${Text} fontWeight="semibold" mb="1">
      ${attempt.region},${" "}
      ${attempt.epoch ? textOf("failure.epoch", { epoch: `${attempt.epoch}` }) : textOf("failure.before")}
    <//>
    ${attempt.cause && html`<${Muted} data-testid="cause-${attempt.region}" fontSize="sm" mb="1">${attempt.cause}<//>`}
    <${Labels} attempt=${attempt} />
    <${LongCode} data-testid="failure-${attempt.region}" fontSize="sm" maxH="16em">${attempt.failure}<//>
    ${attempt.trace && html`<${Trace} region=${attempt.region} text=${attempt.trace} />`}
  <//>`;

/** @param {{ failure: Api.GateFailure }} props */
const Seen = ({ failure }) => html`
  <${Box}>
    <${Text}>${failure.expectation}<//>
    <${Muted}>
      ${textOf("failure.got", { gate: failure.suite, observed: failure.observed })}
      ${failure.count > 1 && textOf("failure.first", { all: failure.count })}
    <//>
  <//>`;

/** @param {{ failure: Api.GateFailure }} props */
const Standing = ({ failure }) => html`
  <${Box} data-testid="standing-${failure.stage}">
    <${Tag} palette=${STANDINGS[failure.standing].palette}>${STANDINGS[failure.standing].text}<//>
    ${wordsOf(failure).map((text) => html`<${Text} fontSize="xs" key=${text} mt="1">${text}<//>`)}
  <//>`;

/**
 * @typedef {{ grid: Api.RunGrid, onWaived: import("./waive.js").OnWaived }} GridToWaive
 * @param {GridToWaive & { failures: Api.GateFailure[] }} props
 */
function Unmet({ grid, failures, onWaived }) {
  // As it was when it was chosen: no partition joins it unseen.
  const [chosen, setChosen] = useState(/** @type {Api.GateFailure | null} */ (null));
  const rows = failures.map((failure) => [
    `${failure.stage}[${ranges(failure.partitions)}]`,
    html`<${Seen} failure=${failure} />`,
    html`<${Standing} failure=${failure} />`,
    html`<${WaiveButton} grid=${grid} failure=${failure} onClick=${() => setChosen(failure)} />`,
  ]);
  const names = [
    term("partition", textOf("column.partitions")),
    textOf("column.unmet"),
    textOf("column.now"),
    textOf("column.act"),
  ];
  const key = chosen && `${chosen.stage} ${chosen.expectation} ${chosen.standing} ${ranges(chosen.partitions)}`;
  return html`
    <${Box} data-testid="unmet">
      <${Columns} names=${names} rows=${rows} />
      ${
        chosen &&
        html`
          <${Waive} key=${key} grid=${grid} failure=${chosen} onClose=${() => setChosen(null)} onWaived=${onWaived} />`
      }
    <//>`;
}

/** @param {GridToWaive} props */
export function Failures({ grid, onWaived }) {
  const unmet = grid.gate_failures.filter((one) => one.standing !== "published");
  if (grid.failures.length === 0 && unmet.length === 0) return null;
  return html`
    <${Card} borderColor="failed.emphasized" data-testid="failures" title=${textOf("failure.title")}
      note=${grid.active ? textOf("failure.going_on") : null}>
      ${grid.failures.map((attempt) => html`<${Failure} key=${attempt.region} attempt=${attempt} />`)}
      ${unmet.length > 0 && html`<${Unmet} grid=${grid} failures=${unmet} onWaived=${onWaived} />`}
    <//>`;
}
