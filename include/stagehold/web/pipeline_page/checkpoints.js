// @ts-check
// The checkpoints of the pipeline's runs, as Flink shows those of a job.

import { fetchCheckpoint, fetchCheckpoints } from "../api.js";
import { bytes, clock, duration, plural, timeToGo } from "../formats.js";
import { useAnswer, usePolled } from "../server_hooks.js";
import {
  Card,
  Cells,
  Columns,
  ColumnTable,
  html,
  Loading,
  Muted,
  Pressable,
  Problem,
  RunLink,
  SmallButton,
  Tag,
} from "../ui.js";
import { shortRun } from "./interval_texts.js";

const { Fragment, useState } = globalThis.React;
const { Box, Flex, Stack, Table, Text } = globalThis.ChakraUI;

/** @typedef {{ one: Api.CheckpointLine }} OfCheckpoint */

const PAGE = 10;
const NAMES = ["Checkpoint", "State", "Triggered", "Took", "Waited", "Acknowledged", "Size", "Of"];
/** @type {Record<Api.CheckpointState | "replaced", { mark: string, palette: string, text: string }>} */
const STATES = {
  completed: { mark: "✓", palette: "success", text: "completed" },
  replaced: { mark: "–", palette: "gray", text: "replaced" },
  failed: { mark: "✕", palette: "failed", text: "failed" },
  in_progress: { mark: "▸", palette: "running", text: "in progress" },
};

/** @param {string} word */
const spaced = (word) => word.replaceAll("_", " ");

/** @param {Api.CheckpointLine} one */
const keyOf = (one) => `${one.run_id}#${one.number}`;

/** @param {Api.CheckpointLine} one */
const triggerText = ({ trigger, savepoint }) => (savepoint ? `savepoint ${savepoint}` : spaced(trigger));

/** @param {{ runId: string, children: Content }} props */
const Run = ({ runId, children }) => html`
  <${RunLink} otherwise=${html`<${Text} as="span" title=${runId}>${children}<//>`} overflowWrap="anywhere"
    runId=${runId} title=${runId}>
    ${children}
  <//>`;

/** @param {{ name: string, count: number, palette?: string }} props */
const Count = ({ name, count, palette }) => html`
  <${Box} data-testid="count-${name}" minW="76px">
    <${Text} color=${count && palette ? `${palette}.fg` : undefined} fontSize="xl" fontWeight="semibold"
      lineHeight="1.2">
      ${count.toLocaleString()}
    <//>
    <${Muted}>${name}<//>
  <//>`;

/** @param {{ counts: Api.CheckpointCounts }} props */
const Counts = ({ counts }) => html`
  <${Flex} columnGap="6" px="4" rowGap="2" wrap="wrap">
    <${Count} count=${counts.triggered} name="triggered" />
    <${Count} count=${counts.in_progress} name="in progress" palette="running" />
    <${Count} count=${counts.completed} name="completed" palette="success" />
    <${Count} count=${counts.failed} name="failed" palette="failed" />
    <${Count} count=${counts.restored} name="restored" />
  <//>`;

/** @type {(spread: Api.Spread | null, write: (value: number) => string) => string[]} */
const told = (spread, write) =>
  spread === null
    ? ["–", "", "", "", ""]
    : [spread.least, spread.average, spread.p50, spread.p99, spread.most].map(write);

/** @param {number} seconds */
const seconds = (seconds) => (seconds < 10 ? `${seconds.toFixed(1)} s` : timeToGo(seconds));

/** @param {number} size */
const size = (size) => bytes(Math.round(size));

// How long completed ones took and waited, and how large they are, as Flink sums them up.
/** @param {{ summary: Api.CheckpointSummary }} props */
const Summary = ({ summary }) => html`
  <${Box} data-testid="checkpoint-summary">
    <${Columns} names=${["", "Least", "Average", "p50", "p99", "Most"]}
      rows=${[
        ["Duration", ...told(summary.duration, seconds)],
        ["Waited for waves to end", ...told(summary.alignment, seconds)],
        ["Written", ...told(summary.bytes_written, size)],
        ["In full", ...told(summary.bytes_full, size)],
      ]} />
    <${Muted} px="4" py="2">Of the last ${plural(summary.checkpoints, "checkpoint")} that completed.<//>
  <//>`;

/** @param {{ title: string, children?: Content, when?: string }} props */
const Latest = ({ title, children, when }) => html`
  <${Box} borderStartWidth="2px" flex="1 1 180px" minW="0" ps="3">
    <${Muted}>${title}<//>
    ${
      children
        ? html`<${Box} fontSize="sm" overflowWrap="anywhere">${children}<//>`
        : html`<${Muted} fontSize="sm">none<//>`
    }
    ${children && html`<${Muted}>${when}<//>`}
  <//>`;

/** @param {{ title: string, one: Api.CheckpointLine | null }} props */
function LatestCheckpoint({ title, one }) {
  if (one === null) return html`<${Latest} title=${title} />`;
  const { run_id, number, savepoint, interval, triggered_at, ended_at } = one;
  const took = ended_at ? `, took ${duration(triggered_at, ended_at)}` : "";
  return html`
    <${Latest} title=${title} when="${clock(triggered_at)}${took}">
      <${Run} runId=${run_id}>${savepoint ?? `#${number}`} of ${interval}<//>
    <//>`;
}

/** @param {{ one: Api.RestoreLine | null }} props */
function LatestRestore({ one }) {
  const title = "Latest restore";
  if (one === null) return html`<${Latest} title=${title} />`;
  const done = one.fulfilled_at ? "taken over" : "not all of it taken over yet";
  return html`
    <${Latest} title=${title} when="${clock(one.requested_at)}, ${done}">
      <${Box} as="span" title=${one.manifest}><${Run} runId=${one.run_id}>${shortRun(one.run_id)}<//><//>
    <//>`;
}

/** @param {{ one: Api.AttemptPart }} props */
function Attempt({ one: { attempt_id, share, answer, reason, asked_at, answered_at } }) {
  const why = reason ? `: ${spaced(reason)}` : "";
  const when = answered_at ? `, after ${duration(asked_at, answered_at)}` : "";
  return html`
    <${Muted} title=${attempt_id}>${share && `[${share}] `}${answer ?? "has not answered"}${why}${when}<//>`;
}

/** @param {Api.RegionParts} region */
const partsOf = ({ region, acknowledged, asked, asked_at, answered_at, attempts }) => [
  region,
  `${acknowledged}/${asked}`,
  answered_at ? duration(asked_at, answered_at) : "",
  html`
    <${Box}>
      ${attempts.map((one) => html`<${Attempt} key=${one.attempt_id} one=${one} />`)}
      ${asked > attempts.length && html`<${Muted}>and ${plural(asked - attempts.length, "more attempt")}<//>`}
    <//>`,
];

/** @param {Api.StagePart} part */
const stageCells = ({ stage, region, partitions, rows, bytes: held }) => [
  stage,
  region,
  partitions.toLocaleString(),
  rows.toLocaleString(),
  bytes(held),
];

// Whose part it was, region by region, and what it has, stage by stage; asked for when a row is opened, and again while
// it is in progress.
/** @param {OfCheckpoint & { dagId: string }} props */
function Parts({ dagId, one }) {
  const key = `${keyOf(one)} ${one.state} ${one.acknowledged}`;
  const { found, problem } = useAnswer(key, () => fetchCheckpoint(dagId, one.run_id, one.number));
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found) return html`<${Loading} size="sm" />`;
  return html`
    <${Stack} gap="3">
      ${
        found.regions.length === 0
          ? html`<${Muted}>No attempt had a part in it: all that it has was there already.<//>`
          : html`
              <${Columns} names=${["Region", "Acknowledged", "Took", "Attempts"]}
                rows=${found.regions.map(partsOf)} />`
      }
      ${
        found.stages.length > 0 &&
        html`
          <${Box} data-testid="stage-parts">
            <${Columns} names=${["Stage", "Region", "Partitions", "Rows", "Size"]}
              rows=${found.stages.map(stageCells)} />
          <//>`
      }
    <//>`;
}

/** @param {OfCheckpoint & { dagId: string }} props */
const Opened = ({ dagId, one }) => html`
  <${Box} bg="bg.subtle" borderRadius="md" data-testid="parts" p="3">
    <${Text} fontSize="sm">
      ${triggerText(one)}, of run <${Run} runId=${one.run_id}>${shortRun(one.run_id)}<//>
    <//>
    ${
      one.failure &&
      html`
        <${Text} color="failed.fg" fontSize="sm" whiteSpace="pre-wrap">
          ${one.failure}${one.fails_run && " This was one too many, and failed the run."}
        <//>`
    }
    <${Box} mt="2"><${Parts} dagId=${dagId} one=${one} /><//>
  <//>`;

/** @param {OfCheckpoint & { open: boolean, onToggle: () => void }} props */
const Name = ({ one, open, onToggle }) => html`
  <${Pressable} aria-expanded=${open} onClick=${onToggle} textAlign="start">
    <${Text} fontWeight="semibold">${open ? "▾" : "▸"} #${one.number}<//>
    <${Muted} maxW="160px" overflowWrap="anywhere">${triggerText(one)}<//>
  <//>`;

/** @param {OfCheckpoint} props */
function State({ one }) {
  const { mark, palette, text } = STATES[one.replaced ? "replaced" : one.state];
  return html`<${Tag} palette=${palette} title=${one.failure ?? undefined}>${mark} ${text}<//>`;
}

/** @param {OfCheckpoint} props */
function Size({ one }) {
  const completed = one.state === "completed";
  return html`
    <${Box} whiteSpace="nowrap">
      <${Text} title="written by it">${completed && bytes(one.bytes_written)}<//>
      ${completed && html`<${Muted}>${bytes(one.bytes_full)} in full<//>`}
    <//>`;
}

/** @param {OfCheckpoint & { dagId: string, open: boolean, onToggle: () => void }} props */
function Row({ dagId, one, open, onToggle }) {
  const took = one.ended_at ? duration(one.triggered_at, one.ended_at) : "";
  const cells = [
    html`<${Name} one=${one} onToggle=${onToggle} open=${open} />`,
    html`<${State} one=${one} />`,
    clock(one.triggered_at),
    html`<${Text} whiteSpace="nowrap">${took}<//>`,
    html`<${Text} whiteSpace="nowrap">${one.alignment === null ? "–" : seconds(one.alignment)}<//>`,
    one.asked ? `${one.acknowledged}/${one.asked}` : "–",
    html`<${Size} one=${one} />`,
    html`<${Run} runId=${one.run_id}>${one.interval}<//>`,
  ];
  return html`
    <${Fragment}>
      <${Cells} cells=${cells} data-state=${one.state} data-testid="checkpoint" />
      ${
        open &&
        html`
          <${Table.Row}><${Table.Cell} colSpan=${NAMES.length}><${Opened} dagId=${dagId} one=${one} /><//><//>`
      }
    <//>`;
}

/** @param {{ dagId: string, checkpoints: Api.CheckpointLine[] }} props */
function Rows({ dagId, checkpoints }) {
  const [open, setOpen] = useState(/** @type {string | null} */ (null));
  return html`
    <${ColumnTable} lastLine names=${NAMES}>
      ${checkpoints.map((one) => {
        const key = keyOf(one);
        const toggle = () => setOpen(open === key ? null : key);
        return html`<${Row} dagId=${dagId} key=${key} one=${one} onToggle=${toggle} open=${open === key} />`;
      })}
    <//>`;
}

/** @param {{ offset: number, shown: number, total: number, onTurn: (offset: number) => void }} props */
function Pager({ offset, shown, total, onTurn }) {
  if (total <= PAGE) return null;
  const [first, last] = [offset + 1, offset + shown];
  const [newer, older] = [Math.max(0, offset - PAGE), offset + PAGE];
  return html`
    <${Flex} align="center" borderTopWidth="1px" gap="2" px="4" py="2">
      <${Muted}>${first.toLocaleString()}–${last.toLocaleString()} of ${total.toLocaleString()}<//>
      <${Box} ml="auto" />
      <${SmallButton} disabled=${offset === 0} onClick=${() => onTurn(newer)}>Newer<//>
      <${SmallButton} disabled=${last >= total} onClick=${() => onTurn(older)}>Older<//>
    <//>`;
}

/** @param {{ page: Api.CheckpointPage }} props */
const Newest = ({ page }) => html`
  <${Flex} columnGap="4" px="4" py="4" rowGap="3" wrap="wrap">
    <${LatestCheckpoint} one=${page.completed} title="Latest completed" />
    <${LatestCheckpoint} one=${page.failed} title="Latest failed" />
    <${LatestCheckpoint} one=${page.savepoint} title="Latest savepoint" />
    <${LatestRestore} one=${page.restore} />
  <//>`;

/** @param {Api.CheckpointPage} page */
const hurries = (page) => page.counts.in_progress > 0;

/** @param {{ dagId: string }} props */
export function Checkpoints({ dagId }) {
  const [offset, setOffset] = useState(0);
  const ask = (/** @type {import("../api.js").Tag} */ known) => fetchCheckpoints(dagId, { limit: PAGE, offset }, known);
  const { found, problem } = usePolled(`${dagId} ${offset}`, ask, hurries);
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found) return null;
  const { counts, checkpoints } = found;
  return html`
    <${Card} data-testid="checkpoints" note="what runs had reached, for others to go on from" title="Checkpoints">
      <${Counts} counts=${counts} />
      ${counts.triggered + counts.restored > 0 && html`<${Newest} page=${found} />`}
      ${counts.triggered === 0 && html`<${Box} px="4" py="3"><${Muted} fontSize="sm">None were taken yet.<//><//>`}
      ${found.summary && html`<${Summary} summary=${found.summary} />`}
      ${checkpoints.length > 0 && html`<${Rows} checkpoints=${checkpoints} dagId=${dagId} />`}
      <${Pager} offset=${offset} onTurn=${setOffset} shown=${checkpoints.length} total=${counts.triggered} />
    <//>`;
}
