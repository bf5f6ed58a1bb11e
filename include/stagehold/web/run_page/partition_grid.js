// @ts-check
// Stages by partitions. Every square is a button: its title says what and why, a click keeps the facts below the grid.
// A stage with very many has a strip in place of squares, whose parts open.

import { fetchCells } from "../api.js";
import { plural } from "../formats.js";
import { number } from "../numbers.js";
import { textOf } from "../texts.js";
import { html, Legend, LegendItem, Muted, Panel, Pressable, Tag, tooltip } from "../ui.js";
import { useUrlState } from "../url_state.js";
import { ChosenPartition } from "./chosen_partition.js";
import { cellText, countersText, countsOf, LOOKS, paceText, partText } from "./run_texts.js";

const { useEffect, useState } = globalThis.React;
const { Box, Flex, Text } = globalThis.ChakraUI;

const FEW_PARTS = 30; // of more there is no room for marks
const PULSE = {
  "@keyframes stageholdPulse": { "50%": { opacity: 0.45 } },
  animation: "stageholdPulse 1.4s ease-in-out infinite",
};

/** @param {Api.CellState} look */
function paint(look) {
  const { palette, solid } = LOOKS[look];
  if (solid) return { bg: `${palette}.solid`, color: `${palette}.contrast`, borderColor: `${palette}.solid` };
  const dashed = look === "waiting" || look === "released";
  return {
    bg: dashed ? "transparent" : `${palette}.subtle`,
    color: `${palette}.fg`,
    borderColor: `${palette}.emphasized`,
    borderStyle: dashed ? "dashed" : "solid",
  };
}

/** @param {{ look: Api.CellState } & Rest} props */
const Square = ({ look, ...rest }) => html`
  <${Box} alignItems="center" borderRadius="sm" borderWidth="1px" boxSize="24px" display="inline-flex" flexShrink="0"
    fontSize="13px" fontWeight="bold" justifyContent="center" lineHeight="1"
    css=${look === "running" ? PULSE : undefined} ...${paint(look)} ...${rest}>
    ${LOOKS[look].mark}
  <//>`;

/**
 * @typedef {{ stage: Api.StageRow, runId: string, chosen: number | null }} InStage with the partition that is chosen
 * @typedef {{ onChoose: (cell: Api.PartitionCell) => void }} Choosing
 * @param {InStage & Choosing & { cell: Api.PartitionCell }} props
 */
function Cell({ stage, cell, runId, chosen, onChoose }) {
  const pressed = chosen === cell.partition;
  return html`
    <${Square} as="button" type="button" look=${cell.state} ...${tooltip(cellText(stage, cell, runId))}
      aria-pressed=${pressed} cursor="pointer" onClick=${() => onChoose(cell)}
      outline=${pressed ? "2px solid" : undefined} outlineColor="fg" outlineOffset="1px"
      data-testid="cell-${stage.name}-${cell.partition}" data-state=${cell.state} data-action=${cell.action}
      data-restored=${cell.restored} data-waived=${cell.waived} />`;
}

/** @param {InStage & Choosing & { cells: Api.PartitionCell[] }} props */
const Squares = ({ cells, ...shown }) => html`
  <${Flex} gap="4px" wrap="wrap">
    ${cells.map((cell) => html`<${Cell} key=${cell.partition} cell=${cell} ...${shown} />`)}
  <//>`;

/** @param {{ stage: Api.StageRow, part: Api.StripPart, open: boolean, onOpen: () => void }} props */
const Part = ({ stage, part, open, onOpen }) => html`
  <${Pressable} aria-expanded=${open} ...${tooltip(partText(stage, part))} borderWidth="1px" data-state=${part.state}
    data-testid="part-${stage.name}-${part.first}" flex="1 1 0" fontSize="10px" fontWeight="bold" h="24px" minW="6px"
    onClick=${onOpen} outline=${open ? "2px solid" : undefined} outlineColor="fg" overflow="hidden" p="0"
    ...${paint(part.state)}>
    ${stage.strip.length <= FEW_PARTS ? LOOKS[part.state].mark : null}
  <//>`;

// The cells of the open part; asked for again when the page has changed.
/**
 * @param {Api.RunGrid} grid
 * @param {string} stage
 * @param {Api.StripPart | undefined} part
 */
function useCells(grid, stage, part) {
  const [known, setKnown] = useState(
    /** @type {{ cells: Api.PartitionCell[] | null, problem: Error | null }} */ ({ cells: null, problem: null }),
  );
  useEffect(() => {
    let gone = false;
    if (!part) return undefined;
    fetchCells(grid.place, grid.run_id, stage, part).then(
      (cells) => !gone && setKnown({ cells, problem: null }),
      (problem) => !gone && setKnown({ cells: null, problem }),
    );
    return () => {
      gone = true;
    };
  }, [grid, stage, part?.first, part?.last]);
  const shown = known.cells?.[0]?.partition === part?.first ? known.cells : null;
  return { cells: shown, problem: known.problem };
}

/** @param {InStage & Choosing & { grid: Api.RunGrid }} props */
function Strip({ grid, stage, ...shown }) {
  const [first, setFirst] = useState(/** @type {number | null} */ (null));
  const part = stage.strip.find((one) => one.first === first);
  const { cells, problem } = useCells(grid, stage.name, part);
  /** @param {number} at */
  const toggle = (at) => setFirst((now) => (now === at ? null : at));
  return html`
    <${Box}>
      <${Flex} data-testid="strip-${stage.name}" gap="1px">
        ${stage.strip.map(
          (one) => html`
            <${Part} key=${one.first} stage=${stage} part=${one} open=${one === part}
              onOpen=${() => toggle(one.first)} />`,
        )}
      <//>
      ${
        part &&
        html`
          <${Box} data-testid="open-${stage.name}" mt="2">
            <${Muted} mb="1">${partText(stage, part)}<//>
            ${problem && html`<${Text} color="failed.fg" fontSize="sm">${problem.message}<//>`}
            ${cells && html`<${Squares} cells=${cells} stage=${stage} ...${shown} />`}
          <//>`
      }
    <//>`;
}

/** @param {{ stage: Api.StageRow }} props */
function StageName({ stage }) {
  const region = stage.region === stage.name ? null : textOf("stage.region", { region: stage.region });
  const notes = [region, stage.gate && textOf("stage.gate", { gate: stage.gate }), stage.table]
    .filter(Boolean)
    .join(" · ");
  return html`
    <${Box} flexShrink="0" minW="0" pt="1px" w="220px">
      <${Text} fontWeight="semibold" title=${[stage.job, ...stage.reads].join("\n")} truncate>${stage.name}<//>
      <${Muted} data-testid="state-${stage.name}">${stage.state}<//>
      ${notes && html`<${Muted} title=${notes} truncate>${notes}<//>`}
    <//>`;
}

/** @param {{ stage: Api.StageRow }} props */
function Tally({ stage }) {
  const total = stage.partitions;
  const bad = stage.counts.blocked || stage.counts.failed;
  return html`
    <${Box} flexShrink="0" pt="1px" textAlign="right" minW="72px">
      <${Tag} palette=${stage.consumable === total ? "success" : bad ? "failed" : "gray"}
        data-testid="tally-${stage.name}" fontVariantNumeric="tabular-nums">
        ${number(stage.consumable)} / ${number(total)}
      <//>
    <//>`;
}

/** @param {Choosing & { grid: Api.RunGrid, stage: Api.StageRow, chosen: number | null }} props */
function Partitions({ grid, stage, ...choosing }) {
  if (!stage.stored) return html`<${Muted} fontSize="sm">${textOf("stage.not_stored")}<//>`;
  const shown = { ...choosing, runId: grid.run_id, stage };
  return html`
    <${Box} flex="1 1 200px" minW="0">
      ${
        stage.strip.length > 0
          ? html`<${Strip} grid=${grid} ...${shown} />`
          : html`<${Squares} cells=${stage.cells} ...${shown} />`
      }
      ${stage.pace && html`<${Muted} data-testid="pace-${stage.name}" mt="1">${paceText(stage.pace)}<//>`}
      ${countersText(stage) && html`<${Muted} data-testid="counters-${stage.name}" mt="1">${countersText(stage)}<//>`}
    <//>`;
}

/** @param {Choosing & { grid: Api.RunGrid, stage: Api.StageRow, chosen: number | null, named: boolean }} props */
const StageLine = ({ grid, stage, named, ...choosing }) => html`
  <${Flex} bg=${named ? "brand.subtle" : undefined} data-named=${named}
    wrap=${{ base: "wrap", md: "nowrap" }} borderTopWidth="1px" gap="4" px="4" py="2.5" role="group"
    aria-label=${textOf("stage.tally", { all: stage.partitions, done: stage.consumable, stage: stage.name })}
    data-testid="stage-${stage.name}">
    <${StageName} stage=${stage} />
    ${stage.stored ? html`<${Tally} stage=${stage} />` : html`<${Box} w="72px" />`}
    <${Partitions} grid=${grid} stage=${stage} ...${choosing} />
  <//>`;

/** @param {{ look: Api.CellState }} props */
const LegendSquare = ({ look }) => html`<${Square} aria-hidden boxSize="18px" fontSize="11px" look=${look} />`;

/** @param {{ stages: Api.StageRow[] }} props */
const States = ({ stages }) => html`
  <${Legend}>
    ${countsOf(stages).map(
      ({ state, count }) => html`
        <${LegendItem} key=${state} word=${state} mark=${html`<${LegendSquare} look=${state} />`}>
          ${plural(count, "partition")} ${LOOKS[state].text}
        <//>`,
    )}
  <//>`;

/** @param {import("./run_header.js").Resuming & { onWaived: import("./waive.js").OnWaived }} props */
export function PartitionGrid({ grid, ...told }) {
  const [chosen, setChosen] = useState(/** @type {{ stage: string, cell: Api.PartitionCell } | null} */ (null));
  const [{ stage: named }] = useUrlState(["stage"]);
  // Whoever comes from a square of the pipeline's tab sees the partitions of that stage.
  useEffect(() => {
    if (named) document.querySelector("[data-named=true]")?.scrollIntoView({ block: "center" });
  }, [named]);
  /** @param {string} stage */
  const toggle = (stage) => (/** @type {Api.PartitionCell} */ cell) =>
    setChosen((now) => (now?.stage === stage && now.cell.partition === cell.partition ? null : { stage, cell }));
  /** @param {Api.StageRow} stage */
  const chosenIn = (stage) => (chosen?.stage === stage.name ? chosen.cell.partition : null);
  const stage = grid.stages.find((one) => one.name === chosen?.stage);
  // Of a strip the facts stay as they were when its part was opened.
  const cell = stage?.cells.find((one) => one.partition === chosen?.cell.partition) ?? chosen?.cell;
  return html`
    <${Panel} data-testid="grid" overflow="hidden">
      <${States} stages=${grid.stages.filter((one) => one.stored)} />
      ${grid.stages.map(
        (one) => html`
          <${StageLine} key=${one.name} chosen=${chosenIn(one)} grid=${grid} named=${one.name === named} stage=${one}
            onChoose=${toggle(one.name)} />`,
      )}
      ${
        stage &&
        cell &&
        html`
          <${ChosenPartition} key="${stage.name} ${cell.partition}" grid=${grid} stage=${stage} cell=${cell}
            ...${told} />`
      }
    <//>`;
}
