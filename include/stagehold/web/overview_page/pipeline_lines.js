// @ts-check
// Each pipeline on a line: how it stands, its newest intervals, and how much of the newest one is there.

import { bytes, clock, lookedText, runPage } from "../formats.js";
import { textOf } from "../texts.js";
import { Cells, ColumnTable, html, Muted, RunLink, Tag, tooltip } from "../ui.js";
import { Needs } from "./needs.js";
import { KINDS, markLook, markText, pipelinePage, staleText, standingText, whenText } from "./overview_texts.js";

const { Badge, Box, Flex, Link, Text } = globalThis.ChakraUI;

/** @typedef {{ row: Api.PipelineRow }} OfRow */

/** @param {OfRow} props */
const Name = ({ row }) => html`
  <${Box}>
    <${Link} fontWeight="semibold" href=${pipelinePage(row)} textDecoration="underline">${row.name}<//>
    <${Flex} align="center" gap="2" mt="0.5">
      <${Muted}>${row.schedule ?? textOf("line.no_schedule")}<//>
      ${row.paused && html`<${Badge} size="xs" variant="outline">${textOf("line.paused")}<//>`}
      ${row.tags.map((tag) => html`<${Badge} key=${tag} size="xs" variant="surface">${tag}<//>`)}
    <//>
  <//>`;

/** @param {OfRow & { onStarted: () => void }} props */
function State({ row, onStarted }) {
  const { mark, palette, solid, text } = KINDS[row.standing];
  return html`
    <${Box} maxW="440px" minW="180px">
      <${Tag} palette=${palette} variant=${solid ? "solid" : "subtle"}>${mark} ${text}<//>
      <${Muted} mt="1" overflowWrap="anywhere">${standingText(row)}<//>
      <${Needs} onStarted=${onStarted} row=${row} />
    <//>`;
}

/** @param {{ mark: Api.IntervalMark }} props */
function Mark({ mark }) {
  const { palette, solid, mark: sign } = markLook(mark);
  const page = runPage(mark.run_id);
  const hover = { outline: "2px solid", outlineColor: "fg.muted" };
  const place = page ? { as: "a", href: page, _hover: hover } : { as: "span", role: "img" };
  return html`
    <${Flex} align="center" bg="${palette}.${solid ? "solid" : "subtle"}" borderColor="${palette}.emphasized"
      borderRadius="3px" borderWidth="1px" boxSize="18px" color="${palette}.${solid ? "contrast" : "fg"}"
      data-need=${mark.need} data-word=${mark.word} flexShrink="0" fontSize="10px" fontWeight="bold" justify="center"
      ...${tooltip(markText(mark))} ...${place}>
      ${sign}
    <//>`;
}

/** @param {{ stale: Api.PipelineStaleness, planned_at: string }} props */
function Stale({ stale, planned_at }) {
  const { first } = stale;
  const why = first ? `${first.interval}, ${first.stage}: ${first.reason}. ` : "";
  return html`
    <${Text} color=${first ? "warning.fg" : "fg.muted"} data-testid="stale" fontSize="xs" lineClamp=${2}
      overflowWrap="anywhere" title="${why}${textOf("stale.as_of", { at: clock(planned_at) })}">
      ${staleText(stale)}
    <//>`;
}

/** @param {OfRow & { stale?: Api.PipelineStaleness }} props */
function Marks({ row, stale }) {
  if (row.newest === null) return html`<${Muted}>${textOf("line.none_yet")}<//>`;
  const { mark } = row.newest;
  return html`
    <${Box}>
      <${Flex} gap="2px">${row.marks.map((one) => html`<${Mark} key=${one.interval} mark=${one} />`)}<//>
      <${Text} fontSize="xs" mt="1" overflowWrap="anywhere">
        <${RunLink} data-testid="newest" runId=${mark.run_id}>${mark.interval}<//>
        <${Text} as="span" color="fg.muted">, ${whenText(mark)}${runPage(mark.run_id) ? "" : textOf("mark.command")}<//>
      <//>
      ${stale?.planned_at && html`<${Stale} planned_at=${stale.planned_at} stale=${stale} />`}
      ${stale?.problem && html`<${Muted} lineClamp=${2} title=${stale.problem}>${staleText(stale)}<//>`}
    <//>`;
}

/** @param {{ newest: Api.NewestInterval | null, size?: Api.PipelineSize }} props */
function Done({ newest, size }) {
  if (newest === null) return html`<${Muted}>${textOf("line.none")}<//>`;
  const share = newest.partitions ? (100 * newest.done) / newest.partitions : 0;
  return html`
    <${Box} minW="120px">
      <${Box} bg="bg.emphasized" borderRadius="full" h="4px" overflow="hidden">
        <${Box} bg=${share === 100 ? "success.solid" : "warning.solid"} h="full" style=${{ width: `${share}%` }} />
      <//>
      <${Muted} mt="1">${newest.text}<//>
      ${size && html`<${Muted}>${textOf("line.size", { size: bytes(size.bytes) })}<//>`}
    <//>`;
}

/**
 * @typedef {{ rows: Api.PipelineRow[], sizes: Api.SizesSeen | null, stale: Api.StaleOverview | null }} Pipelines
 * @param {Pipelines & { looked: Api.Looked, onStarted: () => void }} props
 */
export function PipelineLines({ rows, looked, sizes, stale, onStarted }) {
  const sizeOf = new Map(sizes?.pipelines.map((one) => [one.name, one]));
  const staleOf = new Map(stale?.pipelines.map((one) => [one.name, one]));
  /** @param {Api.PipelineRow} row */
  const cells = (row) => [
    html`<${Name} row=${row} />`,
    html`<${State} onStarted=${onStarted} row=${row} />`,
    row.standing === "hidden" ? "" : html`<${Marks} row=${row} stale=${staleOf.get(row.name)} />`,
    row.standing === "hidden" ? "" : html`<${Done} newest=${row.newest} size=${sizeOf.get(row.name)} />`,
  ];
  const names = [
    textOf("line.pipeline"),
    textOf("line.state"),
    textOf("line.newest"),
    textOf("line.data", { looked: lookedText(looked) }),
  ];
  return html`
    <${ColumnTable} names=${names} whiteSpace="nowrap">
      ${rows.map(
        (row) => html`
          <${Cells} cells=${cells(row)} data-standing=${row.standing} data-testid="pipeline-${row.name}"
            key=${row.name} />`,
      )}
    <//>`;
}
