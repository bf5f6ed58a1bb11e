// @ts-check
// How long each stage took and how much it made, from interval to interval.

import { fetchGrowth } from "../api.js";
import { Coloured, Drawing, Line, scales } from "../chart.js";
import { useAnswer } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { Card, html, Muted, Problem, SmallButton } from "../ui.js";
import { METRICS } from "./interval_texts.js";

const { useState } = globalThis.React;
const { Box, Flex, Grid, Text } = globalThis.ChakraUI;

/** @typedef {import("./interval_texts.js").Metric} Metric */

const MOST_DOTS = 40; // of more intervals the line alone can be read

/** @typedef {{ interval: string, value: number, index: number }} Point */

/** @param {{ points: Point[], scale: import("../chart.js").Scale, write: (value: number) => string }} props */
const Dots = ({ points, scale, write }) =>
  points.map(
    ({ interval, value, index }) => html`
      <circle cx=${scale.x(index)} cy=${scale.y(value)} fill="currentColor" key=${interval} r=${2.5}>
        <title>${interval}: ${write(value)}</title>
      </circle>`,
  );

/** @param {{ intervals: string[], stage: Api.StageHistory, metric: Metric, known: Point[] }} props */
function StageLine({ intervals, stage, metric, known }) {
  const { text: name, write } = METRICS[metric];
  // From zero, so that a small change does not look like a large one.
  const scale = scales(intervals.length, [0, ...stage[metric]]);
  const text = known.map(({ interval, value }) => `${interval}: ${write(value)}`).join(". ");
  return html`
    <${Drawing} intervals=${intervals} scale=${scale}
      text=${textOf("growth.of", { metric: name, stage: stage.stage, text })} write=${write}>
      <${Coloured} color="brand.solid">
        <${Line} scale=${scale} strokeWidth=${1.5} values=${stage[metric]} />
        ${known.length <= MOST_DOTS && html`<${Dots} points=${known} scale=${scale} write=${write} />`}
      <//>
    <//>`;
}

/** @param {{ intervals: string[], stage: Api.StageHistory, metric: Metric }} props */
function StageChart({ intervals, stage, metric }) {
  const known = intervals.flatMap((interval, index) => {
    const value = stage[metric][index];
    return value === null ? [] : [{ interval, value, index }];
  });
  const newest = known.at(-1);
  return html`
    <${Box} data-testid="growth-${stage.stage}" minW="0">
      <${Flex} align="baseline" fontSize="sm" gap="2" justify="space-between">
        <${Text} fontWeight="semibold" title=${stage.stage} truncate>${stage.stage}<//>
        ${
          newest &&
          html`
            <${Text} color="fg.muted" flexShrink="0" title=${newest.interval}>
              ${METRICS[metric].write(newest.value)}
            <//>`
        }
      <//>
      ${
        newest
          ? html`<${StageLine} intervals=${intervals} known=${known} metric=${metric} stage=${stage} />`
          : html`<${Muted} fontSize="sm">${textOf("growth.none")}<//>`
      }
    <//>`;
}

const IN_ORDER = /** @type {Metric[]} */ (Object.keys(METRICS));

/** @param {{ metric: Metric, onChoose: (metric: Metric) => void }} props */
const Choice = ({ metric, onChoose }) => html`
  <${Flex} aria-label=${textOf("growth.choice")} gap="1" role="group">
    ${IN_ORDER.map(
      (one) => html`
        <${SmallButton} aria-pressed=${one === metric} key=${one} onClick=${() => onChoose(one)}
          variant=${one === metric ? "subtle" : "ghost"}>
          ${METRICS[one].text}
        <//>`,
    )}
  <//>`;

/** @param {{ place: string, stamp: string }} props of which `stamp` changes when they may have grown */
export function GrowthCharts({ place, stamp }) {
  const [metric, setMetric] = useState(/** @type {Metric} */ ("seconds"));
  const { found, problem } = useAnswer(`${place} ${stamp}`, () => fetchGrowth(place));
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found || found.intervals.length === 0) return null;
  const { intervals, stages } = found;
  return html`
    <${Card} action=${html`<${Choice} metric=${metric} onChoose=${setMetric} />`} data-testid="growth"
      note=${textOf(`growth_note.${metric}`)} title=${textOf("growth.title", { all: intervals.length })}>
      <${Grid} gap="5" pb="4" px="4" templateColumns="repeat(auto-fill, minmax(260px, 1fr))">
        ${stages.map(
          (stage) => html`
            <${StageChart} intervals=${intervals} key=${stage.stage} metric=${metric} stage=${stage} />`,
        )}
      <//>
    <//>`;
}
