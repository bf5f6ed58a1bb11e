// @ts-check
// The intervals of a pipeline that need somebody, newest first: why, and the one button of each.

import { refreshAirflow } from "../airflow_cache.js";
import { fetchResumePreview, resume, startRun } from "../api.js";
import { plural, runOf } from "../formats.js";
import { textOf } from "../texts.js";
import { html, Muted, RunLink, SmallButton } from "../ui.js";
import { lookPage, needText, stepText } from "./overview_texts.js";

const { useState } = globalThis.React;
const { Box, Flex, Link, Stack, Text } = globalThis.ChakraUI;

const MOST = 3;

/** @typedef {{ row: Api.PipelineRow, mark: Api.IntervalMark, onStarted: () => void }} OfNeed */

// More than what failed is cleared on the run's page alone, which says before what that is.
/** @param {Api.IntervalMark} mark */
async function resumed(mark) {
  const { place, run } = runOf(mark.run_id);
  const { again, refusal } = await fetchResumePreview(place, run);
  if (refusal) return refusal;
  if (again > 0) return textOf("step.again", { partitions: plural(again, "partition") });
  await resume(place, run);
  return null;
}

/** @param {OfNeed} props */
function Step({ row, mark, onStarted }) {
  const [told, setTold] = useState(/** @type {string | null} */ (null));
  const [busy, setBusy] = useState(false);
  const text = stepText(mark);
  if (mark.step === "look") return html`<${SmallButton} as="a" href=${lookPage(row, mark)}>${text}<//>`;
  const press = async () => {
    setBusy(true);
    try {
      const kept = mark.step === "run" ? await startRun(row.place, { interval: mark.interval }) : null;
      const problem = kept ? null : await resumed(mark);
      setTold(problem ?? (kept ? textOf("step.started") : textOf("step.goes_on")));
      if (problem === null) {
        refreshAirflow();
        onStarted();
      }
    } catch (problem) {
      setTold(/** @type {Error} */ (problem).message);
    }
    setBusy(false);
  };
  const label = textOf("step.label", { interval: mark.interval, pipeline: row.name, step: text });
  return html`
    <${Box}>
      <${SmallButton} aria-label=${label} disabled=${busy} loading=${busy}
        onClick=${press}>
        ${text}
      <//>
      ${told && html`<${Muted} maxW="220px" role="status">${told}<//>`}
    <//>`;
}

/** @param {OfNeed} props */
const Need = ({ row, mark, ...rest }) => html`
  <${Flex} align="start" data-need=${mark.need} data-testid="need-${row.name}-${mark.interval}" gap="3"
    justify="space-between">
    <${Box} minW="0">
      <${RunLink} fontSize="sm" fontWeight="medium" otherwise=${html`<${Text} fontSize="sm">${mark.interval}<//>`}
        runId=${mark.run_id}>
        ${mark.interval}
      <//>
      <${Muted} lineClamp=${3} overflowWrap="anywhere" title=${needText(mark)}>${needText(mark)}<//>
    <//>
    <${Box} flexShrink="0"><${Step} mark=${mark} row=${row} ...${rest} /><//>
  <//>`;

/** @param {{ row: Api.PipelineRow, onStarted: () => void }} props */
export function Needs({ row, onStarted }) {
  const [all, setAll] = useState(false);
  const needs = row.marks.filter((mark) => mark.need).toReversed();
  const shown = all ? needs : needs.slice(0, MOST);
  if (needs.length === 0) return null;
  return html`
    <${Stack} gap="2" mt="2">
      ${shown.map((mark) => html`<${Need} key=${mark.interval} mark=${mark} onStarted=${onStarted} row=${row} />`)}
      ${
        needs.length > shown.length &&
        html`
          <${Link} as="button" fontSize="xs" onClick=${() => setAll(true)} type="button">
            ${textOf("need.more", { count: needs.length - shown.length })}
          <//>`
      }
    <//>`;
}
