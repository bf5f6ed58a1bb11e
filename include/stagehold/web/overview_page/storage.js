// @ts-check
// How large ledger and lake are, and what is installed.

import { bytes, plural } from "../formats.js";
import { Card, html, Muted } from "../ui.js";
import { BACK_ENDS } from "./overview_texts.js";

const { Box, Flex, Text } = globalThis.ChakraUI;

const UNTOLD = "its size is told to who may see the runs of all its pipelines";
const LAKE = "what the newest records of partitions name, with kept state; not what these replaced, nor checkpoints";

/**
 * @param {Api.PipelineSize[]} sizes
 * @param {"partitions" | "bytes"} field
 */
const sum = (sizes, field) => sizes.reduce((total, one) => total + one[field], 0);

/** @param {{ name: string, value: string, note?: string }} props */
const Line = ({ name, value, note }) => html`
  <${Box} borderTopWidth="1px" px="4" py="2">
    <${Flex} gap="3" justify="space-between">
      <${Text} fontSize="sm">${name}<//>
      <${Text} fontSize="sm" fontWeight="semibold" whiteSpace="nowrap">${value}<//>
    <//>
    ${note && html`<${Muted}>${note}<//>`}
  <//>`;

/** @param {{ ledger: Api.LedgerSize }} props */
function Ledger({ ledger }) {
  const name = `Ledger, ${BACK_ENDS[ledger.back_end] ?? ledger.back_end}, schema ${ledger.schema_version}`;
  if (ledger.bytes === null) return html`<${Line} name=${name} note=${UNTOLD} value="–" />`;
  const kind = ledger.back_end === "sqlite" ? "its file, without its log" : "our tables, with their indexes";
  return html`<${Line} name=${name} note=${kind} value=${bytes(ledger.bytes)} />`;
}

/** @param {{ sizes: Api.SizesSeen | null }} props */
function Lake({ sizes }) {
  if (!sizes?.counted)
    return html`<${Line} name="Lake" note="is being added up from what the ledger has on record" value="…" />`;
  const name = `Lake, ${plural(sum(sizes.pipelines, "partitions"), "partition")}`;
  return html`<${Line} name=${name} note=${LAKE} value=${bytes(sum(sizes.pipelines, "bytes"))} />`;
}

/** @param {{ sizes: Api.SizesSeen | null }} props */
export const Storage = ({ sizes }) => html`
  <${Card} data-testid="storage" flex="1 1 320px" note="as the ledger knows it" title="Storage">
    ${(sizes?.ledgers ?? []).map((ledger, index) => html`<${Ledger} key=${index} ledger=${ledger} />`)}
    <${Lake} sizes=${sizes} />
  <//>`;

/** @param {{ versions: Api.InstalledVersion[] }} props */
export const Versions = ({ versions }) => html`
  <${Card} data-testid="versions" flex="1 1 320px" note="where this page comes from" title="Versions">
    ${versions.map((one) => html`<${Line} key=${one.package} name=${one.package} value=${one.version} />`)}
  <//>`;
