// @ts-check
// Runs by stages: what each run did about each stage. A square leads to the partitions of its stage on the run's page.

import { fetchRunMatrix } from "../api.js";
import { clock, duration, lasted, plural, runPage } from "../formats.js";
import { number } from "../numbers.js";
import { usePolled } from "../server_hooks.js";
import { textOf, withTexts } from "../texts.js";
import {
  Card,
  html,
  Legend,
  LegendItem,
  Loading,
  Muted,
  Problem,
  RunLink,
  Select,
  SmallButton,
  tooltip,
} from "../ui.js";
import { useUrlState } from "../url_state.js";
import { breakable, Head, useRoving, useTurns } from "./grid_parts.js";
import { shortRun } from "./interval_texts.js";
import { FOCUSED } from "./stage_square.js";

const { useRef } = globalThis.React;
const { Box, Flex, Text } = globalThis.ChakraUI;

const ASKED = ["outcome", "stage"];
const FIRST_COLUMN = "230px";

/** @typedef {{ mark: string, palette: string, text: string, solid?: boolean, plain?: boolean }} Look */

/** @type {Record<Api.StageOutcome, Look>} */
const OUTCOMES = withTexts("matrix", {
  running: { mark: "▸", palette: "running" },
  blocked: { mark: "✕", palette: "failed", solid: true },
  failed: { mark: "✕", palette: "failed", solid: true },
  held: { mark: "‖", palette: "warning", solid: true },
  damaged: { mark: "!", palette: "warning", solid: true },
  missing: {
    mark: "◔",
    palette: "warning",
    solid: true,
  },
  healed: { mark: "✚", palette: "warning" },
  ran: { mark: "✓", palette: "success" },
  judged: { mark: "≈", palette: "success" },
  reused: { mark: "↶", palette: "success", plain: true },
  released: { mark: "–", palette: "gray", plain: true },
  none: { mark: "", palette: "gray", plain: true },
});
const IN_ORDER = /** @type {Api.StageOutcome[]} */ (Object.keys(OUTCOMES));
const CHOICES = IN_ORDER.filter((one) => one !== "none");
/** @param {Api.StageOutcome} outcome */
function paint(outcome) {
  const { palette, solid, plain } = OUTCOMES[outcome];
  if (solid) return { bg: `${palette}.solid`, borderColor: `${palette}.solid`, color: `${palette}.contrast` };
  const borderColor = palette === "gray" ? "border" : `${palette}.emphasized`;
  return { bg: plain ? "transparent" : `${palette}.subtle`, borderColor, color: plain ? "fg.muted" : `${palette}.fg` };
}

/** @param {{ outcome: Api.StageOutcome }} props */
const Mark = ({ outcome }) => html`
  <${Box} alignItems="center" aria-hidden borderRadius="sm" borderWidth="1px" boxSize="18px" display="inline-flex"
    fontSize="11px" fontWeight="bold" justifyContent="center" ...${paint(outcome)}>
    ${OUTCOMES[outcome].mark}
  <//>`;

// One sentence for each square: its title, and its name for screen readers.
/**
 * @param {Api.MatrixRun} run
 * @param {Api.RunSquare} square
 */
function squareText(run, { stage, outcome, counts, attempts, seconds, spared, cause, lost }) {
  const { interval } = run;
  const facts = [textOf("run.square", { interval, run: shortRun(run.run_id), stage, text: OUTCOMES[outcome].text })];
  const told = IN_ORDER.filter((one) => counts[one]).map(
    (one) => `${number(counts[one] ?? 0)} ${textOf(`matrix_count.${one}`)}`,
  );
  if (told.length > 0) facts.push(told.join(", "));
  if (attempts > 1) facts.push(plural(attempts, "attempt"));
  if (seconds > 0) facts.push(textOf("work.done", { time: lasted(seconds) }));
  if (spared > 0) facts.push(textOf("work.spared", { time: lasted(spared) }));
  if (cause) facts.push(cause);
  if (lost)
    facts.push(`${textOf("attempt.lost")}, ${textOf("attempt.noticed", { at: clock(lost.at), by: lost.noticed })}`);
  return facts.join(" · ");
}

/** @param {{ run: Api.MatrixRun, square: Api.RunSquare, place: Rest }} props */
function Square({ run, square, place }) {
  const { outcome, counts, attempts, stage } = square;
  const page = runPage(run.run_id);
  const link = page ? { as: "a", href: `${page}?stage=${encodeURIComponent(stage)}` } : { as: "span", role: "img" };
  return html`
    <${Box} as="td" borderTopWidth="1px" p="1">
      <${Box} ...${link} ...${place} ...${tooltip(squareText(run, square))} alignItems="center" borderRadius="sm"
        borderWidth="1px" data-outcome=${outcome} data-testid="square-${run.run_id}-${stage}" display="flex"
        fontSize="13px" fontVariantNumeric="tabular-nums" fontWeight=${OUTCOMES[outcome].solid ? "bold" : "medium"}
        gap="1.5" h="28px" minW="64px" px="2" textDecoration="none" _focusVisible=${FOCUSED} ...${paint(outcome)}>
        <${Box} aria-hidden as="span" textAlign="center" w="12px">${OUTCOMES[outcome].mark}<//>
        ${counts[outcome] && html`<${Box} as="span">${number(counts[outcome])}<//>`}
        ${
          attempts > 1 &&
          html`<${Box} aria-hidden as="span" fontSize="11px" fontWeight="normal" ml="auto">${attempts}×<//>`
        }
      <//>
    <//>`;
}

/** @param {Api.MatrixRun} run */
function tookText({ started_at, ended_at, seconds, spared }) {
  const facts = ended_at ? [duration(started_at, ended_at)] : [];
  if (seconds > 0) facts.push(textOf("work.done", { time: lasted(seconds) }));
  if (spared > 0) facts.push(textOf("work.spared", { time: lasted(spared) }));
  return facts.join(", ");
}

/** @param {{ run: Api.MatrixRun, place: Rest }} props */
function RunName({ run, place }) {
  const state = run.active || run.ended_at ? run.state : textOf("attempt.lost");
  const color = state === "failed" || !(run.active || run.ended_at) ? "failed.fg" : "fg.muted";
  const name = html`<${Text} as="span" ...${place} fontSize="sm" fontWeight="semibold">${run.interval}<//>`;
  return html`
    <${Box} as="th" bg="bg" borderEndWidth="1px" borderTopWidth="1px" fontWeight="normal" insetInlineStart="0"
      maxW=${FIRST_COLUMN} minW=${FIRST_COLUMN} position="sticky" px="3" py="1" scope="row" textAlign="start"
      zIndex="1">
      <${RunLink} ...${place} fontSize="sm" fontWeight="semibold" otherwise=${name} runId=${run.run_id}
        title=${textOf("interval.begun", { at: clock(run.started_at), run: run.run_id })}>
        ${run.interval}
      <//>
      <${Text} as="span" color=${color} fontSize="xs" ml="2">${state}, ${clock(run.started_at)}<//>
      <${Muted} data-testid="took">${tookText(run)}<//>
    <//>`;
}

/** @param {{ page: Api.RunMatrixPage }} props */
function Table({ page: { runs, stages } }) {
  const roving = useRoving(runs.length, stages.length + 1);
  return html`
    <${Box} css=${{ containerType: "inline-size" }} overflowX="auto">
      <${Box} as="table" aria-label=${textOf("run.grid")}
        css=${{ borderCollapse: "separate", borderSpacing: 0 }} minW="full" onKeyDown=${roving.onKeyDown}
        ref=${roving.table}>
        <thead>
          <tr>
            <${Head} borderEndWidth="1px" insetInlineStart="0" position="sticky" px="3" zIndex="1">
              ${textOf("run.one")}
            <//>
            ${stages.map(
              (stage) => html`<${Head} key=${stage} minW="76px" overflowWrap="break-word">${breakable(stage)}<//>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${runs.map(
            (run, row) => html`
              <tr data-testid="run-${run.run_id}" key=${run.run_id}>
                <${RunName} place=${roving.at(row, 0)} run=${run} />
                ${run.squares.map(
                  (square, column) => html`
                    <${Square} key=${square.stage} place=${roving.at(row, column + 1)} run=${run} square=${square} />`,
                )}
              </tr>`,
          )}
        </tbody>
      <//>
    <//>`;
}

/** @param {{ page: Api.RunMatrixPage }} props */
const Marks = ({ page }) => html`
  <${Legend} data-testid="matrix-legend">
    ${CHOICES.filter((one) => page.runs.some((run) => run.squares.some((square) => square.outcome === one))).map(
      (one) => html`<${LegendItem} key=${one} mark=${html`<${Mark} outcome=${one} />`}>${OUTCOMES[one].text}<//>`,
    )}
  <//>`;

/**
 * @typedef {{ asked: import("../url_state.js").Said, say: import("../url_state.js").Say }} Asking
 * @param {Asking & { stages: string[] }} props
 */
const Filters = ({ asked, say, stages }) => html`
  <${Flex} columnGap="4" data-testid="matrix-filters" px="4" rowGap="2" wrap="wrap">
    <${Select} label=${textOf("run.outcome")} onChange=${(/** @type {string} */ value) => say({ outcome: value })}
      options=${[["", textOf("run.anything")], ...CHOICES.map((one) => [one, OUTCOMES[one].text])]}
      value=${asked.outcome ?? ""} />
    <${Select} label=${textOf("column.stage")} onChange=${(/** @type {string} */ value) => say({ stage: value })}
      options=${[["", textOf("filter.any")], ...stages.map((one) => [one, one])]} value=${asked.stage ?? ""} />
  <//>`;

/** @param {Api.RunMatrixPage} page */
const noneText = ({ looked_at, following }) =>
  following ? textOf("run.none_here", { runs: plural(looked_at, "run") }) : textOf("run.none");

/** @param {Api.RunMatrixPage} page */
const hurries = (page) => page.runs.some((run) => run.active);

// Of the runs of the `dates` that were chosen.
/** @param {{ place: string, dates: import("../url_state.js").Said }} props */
export function RunMatrix({ place, dates: { first = "", last = "" } }) {
  const [asked, say] = useUrlState(ASKED);
  const query = Object.fromEntries(Object.entries({ ...asked, first, last }).filter(([, value]) => value));
  const key = `${place} ${JSON.stringify(query)}`;
  const { before, newer, older } = useTurns(key);
  const ask = (/** @type {import("../api.js").Tag} */ known) =>
    fetchRunMatrix(place, before === null ? query : { ...query, before }, known);
  const { found, problem } = usePolled(`${key} ${before}`, ask, hurries);
  const shown = useRef(/** @type {Api.RunMatrixPage | null} */ (null));
  if (found !== null) shown.current = found;
  const page = shown.current?.place === place ? shown.current : null;
  if (page === null) return problem && html`<${Problem} problem=${problem} />`;
  if (page.runs.length === 0 && Object.keys(query).length === 0) return null;
  const turnOlder = older(page.following);
  return html`
    <${Card} data-testid="run-matrix" title=${textOf("run.all")}
      note=${textOf("run.note")}>
      ${problem && html`<${Problem} problem=${problem} />`}
      <${Filters} asked=${asked} say=${say} stages=${page.stages} />
      <${Marks} page=${page} />
      ${page.runs.length > 0 ? html`<${Table} page=${page} />` : html`<${Muted} px="4" pb="3">${noneText(page)}<//>`}
      ${
        (newer || turnOlder) &&
        html`
          <${Flex} align="center" borderTopWidth="1px" gap="3" px="4" py="3">
            <${SmallButton} disabled=${!newer} onClick=${newer ?? undefined}>${textOf("run.newer")}<//>
            <${SmallButton} disabled=${!turnOlder} onClick=${turnOlder ?? undefined}>${textOf("run.older")}<//>
            ${found === null && html`<${Loading} size="sm" />`}
          <//>`
      }
    <//>`;
}
