// @ts-check
// What the pages are made of: `html`, in which their elements are written, and the pieces that look alike on all of
// them. What a piece does not know is handed on to the element of Chakra's that it is made of.

import { runPage } from "./formats.js";
import htm from "./vendor/htm-3.1.1.js";

const { createElement, useState } = globalThis.React;
const { Badge, Box, Button, Code, Flex, Heading, Link, NativeSelect, Spinner, Stack, Table, Text } =
  globalThis.ChakraUI;

export const html = htm.bind(createElement);

/** @param {{ problem: Error | null, children: Content } & Rest} props */
export const Page = ({ problem, children, ...rest }) => html`
  <${Stack} css=${{ "& > *": { flexShrink: 0 } }} gap="4" h="full" overflowY="auto" p="4" ...${rest}>
    ${problem && html`<${Notice} palette="warning" role="alert">Not up to date: ${problem.message}<//>`}
    ${children}
  <//>`;

// In place of a page: its first answer is under way, or there is none; `title` says what cannot be shown.
/** @param {{ problem: (Error & { status?: number }) | null, title: string }} props */
export function Nothing({ problem, title }) {
  if (problem === null) return html`<${Flex} justify="center" p="10"><${Loading} /><//>`;
  return html`
    <${Box} data-testid="nothing" maxW="720px" p="8">
      <${Heading} as="h2" mb="2" size="md">${problem.status === 404 ? "Nothing of Stagehold here" : title}<//>
      <${Text} color="fg.muted" whiteSpace="pre-wrap">${problem.message}<//>
    <//>`;
}

/** @param {Rest} props */
export const Loading = (props) => html`<${Spinner} aria-label="Loading" ...${props} />`;

/** @param {{ palette: string, children: Content } & Rest} props */
export const Notice = ({ palette, children, ...rest }) => html`
  <${Box} bg="${palette}.subtle" borderRadius="lg" color="${palette}.fg" fontSize="sm" px="4" py="3"
    whiteSpace="pre-wrap" ...${rest}>
    ${children}
  <//>`;

// In place of a card whose answer did not come.
/** @param {{ problem: Error }} props */
export const Problem = ({ problem }) => html`<${Notice} palette="warning" role="alert">${problem.message}<//>`;

/** @param {{ children: Content } & Rest} props */
export const Muted = ({ children, ...rest }) => html`
  <${Text} color="fg.muted" fontSize="xs" ...${rest}>${children}<//>`;

/** @param {{ children: Content } & Rest} props */
export const Panel = ({ children, ...rest }) => html`
  <${Box} bg="bg" borderRadius="lg" borderWidth="1px" ...${rest}>${children}<//>`;

// The first panel of a page; its edge has the colour of what it says.
/** @param {{ palette: string, children: Content } & Rest} props */
export const Headline = ({ palette, children, ...rest }) => html`
  <${Panel} css=${{ "&&": { borderLeftColor: `${palette}.solid`, borderLeftWidth: "6px" } }} p="4" ...${rest}>
    ${children}
  <//>`;

/** @param {{ title: string, note?: Content, action?: Content, children?: Content } & Rest} props */
export const Card = ({ title, note, action, children, ...rest }) => html`
  <${Panel} overflow="hidden" ...${rest}>
    <${Flex} align="baseline" columnGap="3" px="4" py="3" wrap="wrap">
      <${Heading} as="h3" size="sm">${title}<//>
      ${note && html`<${Muted} fontSize="sm">${note}<//>`}
      ${action && html`<${Box} ml="auto">${action}<//>`}
    <//>
    ${children}
  <//>`;

// It has no elements, and asks for nothing, before it is opened.
/** @param {{ title: string, note: string, children: Content } & Rest} props */
export function FoldedCard({ title, note, children, ...rest }) {
  const [open, setOpen] = useState(false);
  /** @param {{ currentTarget: HTMLDetailsElement }} event */
  const toggle = (event) => setOpen(event.currentTarget.open);
  return html`
    <${Panel} as="details" onToggle=${toggle} overflow="hidden" ...${rest}>
      <${Box} as="summary" cursor="pointer" fontSize="sm" fontWeight="semibold" px="4" py="3">
        ${title}
        <${Text} as="span" color="fg.muted" fontWeight="normal" ml="2">${note}<//>
      <//>
      ${open && children}
    <//>`;
}

const CELLS = {
  "& th:first-of-type, & td:first-of-type": { paddingInlineStart: 4 },
  "& td": { overflowWrap: "break-word", whiteSpace: "normal" },
};
const NO_LAST_LINE = { "& tr:last-of-type td": { borderBottomWidth: 0 } };

// A table with these heads around `Cells`; `lastLine` is whether there is a line below it, too.
/** @param {{ names: string[], children: Content, lastLine?: boolean } & Rest} props */
export const ColumnTable = ({ names, children, lastLine = false, ...heads }) => html`
  <${Table.ScrollArea}>
    <${Table.Root} css=${lastLine ? CELLS : { ...CELLS, ...NO_LAST_LINE }} size="sm">
      <${Table.Header}>
        <${Table.Row}>
          ${names.map((name) => html`<${Table.ColumnHeader} key=${name} ...${heads}>${name}<//>`)}
        <//>
      <//>
      <${Table.Body}>${children}<//>
    <//>
  <//>`;

/** @param {{ cells: Content[] } & Rest} props */
export const Cells = ({ cells, ...rest }) => html`
  <${Table.Row} ...${rest}>
    ${cells.map((cell, column) => html`<${Table.Cell} key=${column} verticalAlign="top">${cell}<//>`)}
  <//>`;

/** @param {{ names: string[], rows: Content[][] }} props */
export const Columns = ({ names, rows }) => html`
  <${ColumnTable} names=${names}>${rows.map((cells, index) => html`<${Cells} cells=${cells} key=${index} />`)}<//>`;

/** @param {{ name: string, children: Content } & Rest} props */
export const Fact = ({ name, children, ...rest }) => html`
  <${Text} ...${rest}><${Text} as="span" color="fg.muted" mr="1.5">${name}<//>${children}<//>`;

/** @param {{ mark: Content, children: Content }} props */
export const LegendItem = ({ mark, children }) => html`
  <${Flex} align="center" gap="2">${mark}<${Text} fontSize="sm">${children}<//><//>`;

/** @param {{ children: Content } & Rest} props */
export const Legend = ({ children, ...rest }) => html`
  <${Flex} columnGap="5" px="4" py="3" rowGap="2" wrap="wrap" ...${rest}>${children}<//>`;

/** @param {{ palette?: string, children: Content } & Rest} props */
export const Tag = ({ palette, children, ...rest }) => html`
  <${Badge} colorPalette=${palette} variant="subtle" ...${rest}>${children}<//>`;

/** @param {{ children: Content } & Rest} props */
export const CodeBlock = ({ children, ...rest }) => html`
  <${Code} display="block" p="2" size="sm" variant="surface" whiteSpace="pre-wrap" ...${rest}>${children}<//>`;

// What the mouse is shown of an element, and what screen readers call it.
/** @param {string} text */
export const tooltip = (text) => ({ "aria-label": text, title: text });

// The page of a run of Airflow; of a command's run, which has none, there is `otherwise`.
/** @param {{ runId: string, children?: Content, otherwise?: Content } & Rest} props */
export function RunLink({ runId, children = runId, otherwise = children, ...rest }) {
  const page = runPage(runId);
  return page ? html`<${Link} href=${page} textDecoration="underline" ...${rest}>${children}<//>` : otherwise;
}

// An expectation, with how much it matters if that is not all.
/** @param {{ one: { expectation: string, severity: Api.Severity } } & Rest} props */
export const Expectation = ({ one: { expectation, severity }, ...rest }) => html`
  <${Box} fontSize="sm" overflowWrap="anywhere" ...${rest}>
    ${expectation}
    ${severity !== "critical" && html`<${Badge} colorPalette="gray" ml="2" variant="outline">${severity}<//>`}
  <//>`;

/** @param {{ children: Content } & Rest} props */
export const SmallButton = ({ children, ...rest }) => html`
  <${Button} size="xs" type="button" variant="outline" ...${rest}>${children}<//>`;

// A button that looks like what it is made of.
/** @param {{ children?: Content } & Rest} props */
export const Pressable = ({ children, ...rest }) => html`
  <${Box} as="button" cursor="pointer" type="button" ...${rest}>${children}<//>`;

// A `tight` field has its label directly above it.
/** @param {{ label: string, tight?: boolean, children: Content } & Rest} props */
export const Field = ({ label, tight = false, children, ...rest }) => html`
  <${Box} as="label" display="block" fontSize="sm" minW=${tight ? undefined : 0} ...${rest}>
    <${Text} as="span" color="fg.muted" ...${tight ? {} : { display: "block", mb: 1 }}>${label}<//>
    ${children}
  <//>`;

// What is told when something is typed into a field, or chosen in it.
/** @param {(value: string) => void} set */
export const onTyped = (set) => (/** @type {{ target: { value: string } }} */ event) => set(event.target.value);

/**
 * @typedef {{ label: string, value: string, onChange: (value: string) => void, options: string[][] }} Choice
 * @param {Choice & Rest} props of which `options` are pairs of a value and its text
 */
export const Select = ({ label, value, onChange, options, ...rest }) => html`
  <${Field} label=${label} ...${rest}>
    <${NativeSelect.Root} size="sm">
      <${NativeSelect.Field} onChange=${onTyped(onChange)} value=${value}>
        ${options.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}
      <//>
      <${NativeSelect.Indicator} />
    <//>
  <//>`;
