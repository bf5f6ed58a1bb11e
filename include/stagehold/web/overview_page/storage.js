// @ts-check
// How large ledger and lake are, and what is installed.

import { bytes, plural } from "../formats.js";
import { contentOf, textOf } from "../texts.js";
import { Card, html, Muted, term } from "../ui.js";
import { BACK_ENDS } from "./overview_texts.js";

const { Box, Flex, Text } = globalThis.ChakraUI;

/**
 * @param {Api.PipelineSize[]} sizes
 * @param {"partitions" | "bytes"} field
 */
const sum = (sizes, field) => sizes.reduce((total, one) => total + one[field], 0);

/** @param {{ name: Content, value: string, note?: string }} props */
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
  const back_end = BACK_ENDS[ledger.back_end] ?? ledger.back_end;
  const facts = { back_end, ledger: term("ledger", textOf("storage.ledger")), schema: ledger.schema_version };
  const name = contentOf("storage.schema", facts);
  if (ledger.bytes === null) return html`<${Line} name=${name} note=${textOf("storage.untold")} value="–" />`;
  const kind = ledger.back_end === "sqlite" ? textOf("storage.file") : textOf("storage.tables");
  return html`<${Line} name=${name} note=${kind} value=${bytes(ledger.bytes)} />`;
}

/** @param {{ sizes: Api.SizesSeen | null }} props */
function Lake({ sizes }) {
  const lake = term("lake", textOf("storage.lake"));
  if (!sizes?.counted) return html`<${Line} name=${lake} note=${textOf("storage.adding")} value="…" />`;
  const name = html`<span>${lake}, ${plural(sum(sizes.pipelines, "partitions"), "partition")}</span>`;
  return html`<${Line} name=${name} note=${textOf("storage.named")} value=${bytes(sum(sizes.pipelines, "bytes"))} />`;
}

/** @param {{ sizes: Api.SizesSeen | null }} props */
export const Storage = ({ sizes }) => html`
  <${Card} data-testid="storage" flex="1 1 320px" note=${textOf("storage.note")} title=${textOf("storage.title")}>
    ${(sizes?.ledgers ?? []).map((ledger, index) => html`<${Ledger} key=${index} ledger=${ledger} />`)}
    <${Lake} sizes=${sizes} />
  <//>`;

/** @param {{ versions: Api.InstalledVersion[] }} props */
export const Versions = ({ versions }) => html`
  <${Card} data-testid="versions" flex="1 1 320px" note=${textOf("versions.note")} title=${textOf("versions.title")}>
    ${versions.map((one) => html`<${Line} key=${one.package} name=${one.package} value=${one.version} />`)}
  <//>`;
