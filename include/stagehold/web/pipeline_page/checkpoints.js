// @ts-check
// The checkpoints of the pipeline's runs, as Flink shows those of a job.

import { fetchCheckpoint, fetchCheckpoints } from "../api.js";
import { bareClock, bytes, clock, duration, lasted, plural, zoned } from "../formats.js";
import { number } from "../numbers.js";
import { useAnswer, usePolled } from "../server_hooks.js";
import { contentOf, textOf, withTexts } from "../texts.js";
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
  term,
} from "../ui.js";
import { shortRun } from "./interval_texts.js";

const { Fragment, useState } = globalThis.React;
const { Box, Flex, Stack, Table, Text } = globalThis.ChakraUI;

/** @typedef {{ one: Api.CheckpointLine }} OfCheckpoint */

const PAGE = 10;
const names = () => [
  textOf("checkpoint.one"),
  textOf("column.state"),
  zoned(textOf("checkpoint.triggered")),
  textOf("fact.took"),
  textOf("checkpoint.waited"),
  textOf("checkpoint.acknowledged"),
  textOf("fact.size"),
  textOf("column.of"),
];
/** @type {Record<Api.CheckpointState | "replaced", { mark: string, palette: string, text: string }>} */
const STATES = withTexts("checkpoint_state", {
  completed: { mark: "✓", palette: "success" },
  replaced: { mark: "–", palette: "gray" },
  failed: { mark: "✕", palette: "failed" },
  in_progress: { mark: "▸", palette: "running" },
});

/** @param {string} word */
const spaced = (word) => word.replaceAll("_", " ");

/** @param {Api.CheckpointLine} one */
const keyOf = (one) => `${one.run_id}#${one.number}`;

/** @param {Api.CheckpointLine} one */
const triggerText = ({ trigger, savepoint }) =>
  savepoint ? textOf("checkpoint.savepoint", { name: savepoint }) : spaced(trigger);

/** @param {{ runId: string, children: Content }} props */
const Run = ({ runId, children }) => html`
  <${RunLink} otherwise=${html`<${Text} as="span" title=${runId}>${children}<//>`} overflowWrap="anywhere"
    runId=${runId} title=${runId}>
    ${children}
  <//>`;

/**
 * @typedef {"triggered" | "in_progress" | "completed" | "failed" | "restored"} CountName
 * @param {{ name: CountName, count: number, palette?: string }} props
 */
const Count = ({ name, count, palette }) => html`
  <${Box} data-testid="count-${name}" minW="76px">
    <${Text} color=${count && palette ? `${palette}.fg` : undefined} fontSize="xl" fontWeight="semibold"
      lineHeight="1.2">
      ${number(count)}
    <//>
    <${Muted}>${textOf(`checkpoint_count.${name}`)}<//>
  <//>`;

/** @param {{ counts: Api.CheckpointCounts }} props */
const Counts = ({ counts }) => html`
  <${Flex} columnGap="6" px="4" rowGap="2" wrap="wrap">
    <${Count} count=${counts.triggered} name="triggered" />
    <${Count} count=${counts.in_progress} name="in_progress" palette="running" />
    <${Count} count=${counts.completed} name="completed" palette="success" />
    <${Count} count=${counts.failed} name="failed" palette="failed" />
    <${Count} count=${counts.restored} name="restored" />
  <//>`;

/** @type {(spread: Api.Spread | null, write: (value: number) => string) => string[]} */
const told = (spread, write) =>
  spread === null
    ? ["–", "", "", "", ""]
    : [spread.least, spread.average, spread.p50, spread.p99, spread.most].map(write);

/** @param {number} size */
const size = (size) => bytes(Math.round(size));

const spreadNames = () => [
  textOf("spread.of"),
  textOf("spread.least"),
  textOf("spread.average"),
  "p50",
  "p99",
  textOf("spread.most"),
];

// How long completed ones took and waited, and how large they are, as Flink sums them up.
/** @param {{ summary: Api.CheckpointSummary }} props */
const Summary = ({ summary }) => html`
  <${Box} data-testid="checkpoint-summary">
    <${Columns} names=${spreadNames()}
      rows=${[
        [textOf("metric.seconds"), ...told(summary.duration, lasted)],
        [textOf("checkpoint.alignment"), ...told(summary.alignment, lasted)],
        [textOf("checkpoint.written"), ...told(summary.bytes_written, size)],
        [textOf("checkpoint.full"), ...told(summary.bytes_full, size)],
      ]} />
    <${Muted} px="4" py="2">
      ${textOf("checkpoint.summed", { checkpoints: plural(summary.checkpoints, "checkpoint") })}
    <//>
  <//>`;

/** @param {{ title: string, children?: Content, when?: string }} props */
const Latest = ({ title, children, when }) => html`
  <${Box} borderStartWidth="2px" flex="1 1 180px" minW="0" ps="3">
    <${Muted}>${title}<//>
    ${
      children
        ? html`<${Box} fontSize="sm" overflowWrap="anywhere">${children}<//>`
        : html`<${Muted} fontSize="sm">${textOf("checkpoint.none")}<//>`
    }
    ${children && html`<${Muted}>${when}<//>`}
  <//>`;

/** @param {{ title: string, one: Api.CheckpointLine | null }} props */
function LatestCheckpoint({ title, one }) {
  if (one === null) return html`<${Latest} title=${title} />`;
  const { run_id, number, savepoint, interval, triggered_at, ended_at } = one;
  const took = ended_at ? textOf("checkpoint.took", { time: duration(triggered_at, ended_at) }) : "";
  return html`
    <${Latest} title=${title} when="${clock(triggered_at)}${took}">
      <${Run} runId=${run_id}>${textOf("checkpoint.of", { interval, name: savepoint ?? `#${number}` })}<//>
    <//>`;
}

/** @param {{ one: Api.RestoreLine | null }} props */
function LatestRestore({ one }) {
  const title = textOf("checkpoint.latest_restore");
  if (one === null) return html`<${Latest} title=${title} />`;
  const done = one.fulfilled_at ? textOf("checkpoint.taken") : textOf("checkpoint.not_taken");
  return html`
    <${Latest} title=${title} when="${clock(one.requested_at)}, ${done}">
      <${Box} as="span" title=${one.manifest}><${Run} runId=${one.run_id}>${shortRun(one.run_id)}<//><//>
    <//>`;
}

/** @param {{ one: Api.AttemptPart }} props */
function Attempt({ one: { attempt_id, share, answer, reason, asked_at, answered_at } }) {
  const why = reason ? `: ${spaced(reason)}` : "";
  const when = answered_at ? textOf("checkpoint.after", { time: duration(asked_at, answered_at) }) : "";
  return html`
    <${Muted} title=${attempt_id}>${share && `[${share}] `}${answer ?? textOf("checkpoint.silent")}${why}${when}<//>`;
}

/** @param {Api.RegionParts} region */
const partsOf = ({ region, acknowledged, asked, asked_at, answered_at, attempts }) => [
  region,
  `${acknowledged}/${asked}`,
  answered_at ? duration(asked_at, answered_at) : "",
  html`
    <${Box}>
      ${attempts.map((one) => html`<${Attempt} key=${one.attempt_id} one=${one} />`)}
      ${
        asked > attempts.length &&
        html`<${Muted}>${textOf("more", { more: plural(asked - attempts.length, "more attempt") })}<//>`
      }
    <//>`,
];

const stageNames = () => [
  term("stage", textOf("column.stage")),
  term("region", textOf("column.region")),
  term("partition", textOf("column.partitions")),
  textOf("fact.rows"),
  textOf("fact.size"),
];

const regionNames = () => [
  term("region", textOf("column.region")),
  textOf("checkpoint.acknowledged"),
  textOf("fact.took"),
  term("attempt", textOf("checkpoint.attempts")),
];

/** @param {Api.StagePart} part */
const stageCells = ({ stage, region, partitions, rows, bytes: held }) => [
  stage,
  region,
  number(partitions),
  number(rows),
  bytes(held),
];

// Whose part it was, region by region, and what it has, stage by stage; asked for when a row is opened, and again while
// it is in progress.
/** @param {OfCheckpoint & { place: string }} props */
function Parts({ place, one }) {
  const key = `${keyOf(one)} ${one.state} ${one.acknowledged}`;
  const { found, problem } = useAnswer(key, () => fetchCheckpoint(place, one.run_id, one.number));
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found) return html`<${Loading} size="sm" />`;
  return html`
    <${Stack} gap="3">
      ${
        found.regions.length === 0
          ? html`<${Muted}>${textOf("checkpoint.no_part")}<//>`
          : html`
              <${Columns} names=${regionNames()}
                rows=${found.regions.map(partsOf)} />`
      }
      ${
        found.stages.length > 0 &&
        html`
          <${Box} data-testid="stage-parts">
            <${Columns} names=${stageNames()}
              rows=${found.stages.map(stageCells)} />
          <//>`
      }
    <//>`;
}

/** @param {OfCheckpoint & { place: string }} props */
const Opened = ({ place, one }) => html`
  <${Box} bg="bg.subtle" borderRadius="md" data-testid="parts" p="3">
    <${Text} fontSize="sm">
      ${triggerText(one)},${" "}
      ${contentOf("checkpoint.run", { run: html`<${Run} runId=${one.run_id}>${shortRun(one.run_id)}<//>` })}
    <//>
    ${
      one.failure &&
      html`
        <${Text} color="failed.fg" fontSize="sm" whiteSpace="pre-wrap">
          ${one.failure}${one.fails_run && ` ${textOf("checkpoint.too_many")}`}
        <//>`
    }
    ${one.untold && html`<${Muted} data-testid="untold">${textOf("checkpoint.untold")}<//>`}
    <${Box} mt="2"><${Parts} place=${place} one=${one} /><//>
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
      <${Text} title=${textOf("checkpoint.written_by")}>${completed && bytes(one.bytes_written)}<//>
      ${completed && html`<${Muted}>${textOf("checkpoint.in_full", { size: bytes(one.bytes_full) })}<//>`}
    <//>`;
}

/** @param {OfCheckpoint & { place: string, open: boolean, onToggle: () => void }} props */
function Row({ place, one, open, onToggle }) {
  const took = one.ended_at ? duration(one.triggered_at, one.ended_at) : "";
  const cells = [
    html`<${Name} one=${one} onToggle=${onToggle} open=${open} />`,
    html`<${State} one=${one} />`,
    bareClock(one.triggered_at),
    html`<${Text} whiteSpace="nowrap">${took}<//>`,
    html`<${Text} whiteSpace="nowrap">${one.alignment === null ? "–" : lasted(one.alignment)}<//>`,
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
          <${Table.Row}><${Table.Cell} colSpan=${names().length}><${Opened} place=${place} one=${one} /><//><//>`
      }
    <//>`;
}

/** @param {{ place: string, checkpoints: Api.CheckpointLine[] }} props */
function Rows({ place, checkpoints }) {
  const [open, setOpen] = useState(/** @type {string | null} */ (null));
  return html`
    <${ColumnTable} lastLine names=${names()}>
      ${checkpoints.map((one) => {
        const key = keyOf(one);
        const toggle = () => setOpen(open === key ? null : key);
        return html`<${Row} place=${place} key=${key} one=${one} onToggle=${toggle} open=${open === key} />`;
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
      <${Muted}>${textOf("turn.found", { all: total, found: `${number(first)}–${number(last)}` })}<//>
      <${Box} ml="auto" />
      <${SmallButton} disabled=${offset === 0} onClick=${() => onTurn(newer)}>${textOf("turn.newer")}<//>
      <${SmallButton} disabled=${last >= total} onClick=${() => onTurn(older)}>${textOf("turn.older")}<//>
    <//>`;
}

/** @param {{ page: Api.CheckpointPage }} props */
const Newest = ({ page }) => html`
  <${Flex} columnGap="4" px="4" py="4" rowGap="3" wrap="wrap">
    <${LatestCheckpoint} one=${page.completed} title=${textOf("checkpoint.latest_completed")} />
    <${LatestCheckpoint} one=${page.failed} title=${textOf("checkpoint.latest_failed")} />
    <${LatestCheckpoint} one=${page.savepoint} title=${textOf("checkpoint.latest_savepoint")} />
    <${LatestRestore} one=${page.restore} />
  <//>`;

/** @param {Api.CheckpointPage} page */
const hurries = (page) => page.counts.in_progress > 0;

/** @param {{ place: string }} props */
export function Checkpoints({ place }) {
  const [offset, setOffset] = useState(0);
  const ask = (/** @type {import("../api.js").Tag} */ known) => fetchCheckpoints(place, { limit: PAGE, offset }, known);
  const { found, problem } = usePolled(`${place} ${offset}`, ask, hurries);
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found) return null;
  const { counts, checkpoints } = found;
  return html`
    <${Card} data-testid="checkpoints" note=${textOf("checkpoint.note")}
      title=${term("checkpoint", textOf("checkpoint.title"))}>
      <${Counts} counts=${counts} />
      ${counts.triggered + counts.restored > 0 && html`<${Newest} page=${found} />`}
      ${counts.triggered === 0 && html`<${Muted} fontSize="sm" px="4" py="3">${textOf("checkpoint.never")}<//>`}
      ${found.summary && html`<${Summary} summary=${found.summary} />`}
      ${checkpoints.length > 0 && html`<${Rows} checkpoints=${checkpoints} place=${place} />`}
      <${Pager} offset=${offset} onTurn=${setOffset} shown=${checkpoints.length} total=${counts.triggered} />
    <//>`;
}
