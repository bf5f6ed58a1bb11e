// @ts-check
// What the pages are made of: `html`, in which their elements are written, and the pieces that look alike on all of
// them. What a piece does not know is handed on to the element of Chakra's that it is made of.

import { goToPage, PAGE } from "./focus.js";
import { runPage } from "./formats.js";
import { meaningOf, textOf } from "./texts.js";
import htm from "./vendor/htm-3.1.1.js";

const { createElement, useEffect, useRef, useState } = globalThis.React;
const { createPortal } = globalThis.ReactDOM;
const { Badge, Box, Button, Code, Flex, Heading, Link, NativeSelect, Spinner, Table, Text } = globalThis.ChakraUI;

export const html = htm.bind(createElement);

// The first that Tab comes to; nobody sees it before.
const AWAY = { insetBlockStart: "-100px", insetInlineStart: "2", position: "fixed", zIndex: "skipNav" };
const HERE = { insetBlockStart: "2", outline: "2px solid", outlineColor: "brand.solid" };

/** @param {{ children: Content }} props */
function SkipLink({ children }) {
  const [place] = useState(() => document.createElement("div"));
  useEffect(() => {
    document.body.prepend(place);
    return () => place.remove();
  }, [place]);
  const follow = (/** @type {Event} */ event) => {
    event.preventDefault(); // a link to here is another page where Airflow is served under a path
    goToPage();
  };
  const link = html`
    <${Link} bg="bg" borderRadius="md" href="#${PAGE}" onClick=${follow} px="4" py="2" _focus=${HERE} ...${AWAY}>
      ${children}
    <//>`;
  return createPortal(link, place);
}

// Airflow's title says the same on all tabs of a run. It may come later, and it changes by itself.
/** @param {string} name */
function useTitle(name) {
  useEffect(() => {
    let theirs = document.title;
    const say = () => {
      if (document.title.startsWith(`${name} - `)) return;
      theirs = document.title;
      document.title = `${name} - ${theirs}`;
    };
    const watch = new MutationObserver(say);
    watch.observe(document.head, { characterData: true, childList: true, subtree: true });
    say();
    return () => {
      watch.disconnect();
      document.title = theirs;
    };
  }, [name]);
}

// What all of a page is in: what it is called, and the way to it past Airflow's own parts.
/** @param {{ name: string, children: Content } & Rest} props */
function Frame({ name, children, ...rest }) {
  useTitle(name);
  return html`
    <${Box} aria-label=${name} id=${PAGE} role="region" tabIndex=${-1} _focusVisible=${{ outline: "none" }} ...${rest}>
      <${SkipLink}>${textOf("page.skip", { page: name })}<//>
      ${children}
    <//>`;
}

/** @param {{ name: string, problem: Error | null, children: Content } & Rest} props */
export const Page = ({ name, problem, children, ...rest }) => html`
  <${Frame} css=${{ "& > *": { flexShrink: 0 } }} display="flex" flexDirection="column" gap="4" h="full" name=${name}
    overflowY="auto" p="4" ...${rest}>
    ${problem && html`<${Warning}>${textOf("page.late", { problem: problem.message })}<//>`}
    ${children}
  <//>`;

// In place of a page: its first answer is under way, or there is none; `title` says what cannot be shown.
/** @param {{ name: string, problem: (Error & { status?: number }) | null, title: string }} props */
export function Nothing({ name, problem, title }) {
  if (problem === null)
    return html`<${Frame} display="flex" justifyContent="center" name=${name} p="10"><${Loading} /><//>`;
  return html`
    <${Frame} data-testid="nothing" maxW="720px" name=${name} p="8">
      <${Heading} as="h2" mb="2" size="md">${problem.status === 404 ? textOf("page.nothing") : title}<//>
      <${Text} color="fg.muted" whiteSpace="pre-wrap">${problem.message}<//>
    <//>`;
}

/** @param {Rest} props */
export const Loading = (props) => html`<${Spinner} aria-label=${textOf("page.loading")} ...${props} />`;

/** @param {{ palette: string, children: Content } & Rest} props */
export const Notice = ({ palette, children, ...rest }) => html`
  <${Box} bg="${palette}.subtle" borderRadius="lg" color="${palette}.fg" fontSize="sm" px="4" py="3"
    whiteSpace="pre-wrap" ...${rest}>
    ${children}
  <//>`;

/** @param {{ children: Content }} props */
const Warning = ({ children }) => html`<${Notice} palette="warning" role="alert">${children}<//>`;

// In place of a card whose answer did not come.
/** @param {{ problem: Error }} props */
export const Problem = ({ problem }) => html`<${Warning}>${problem.message}<//>`;

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

/** @param {{ title: Content, note?: Content, action?: Content, children?: Content } & Rest} props */
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
/** @param {{ title: Content, note: string, children: Content } & Rest} props */
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

// What is larger than its place is moved by arrow keys, so Tab leads to it; to what is all in sight it does not.
/** @param {string} label */
function useScrolling(label) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [larger, setLarger] = useState(false);
  useEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    const watch = new ResizeObserver(() =>
      setLarger(box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight),
    );
    for (const part of [box, ...box.children]) watch.observe(part);
    return () => watch.disconnect();
  }, []);
  return larger ? { "aria-label": label, ref: place, role: "group", tabIndex: 0 } : { ref: place };
}

/** @param {{ children: Content }} props */
export const ScrollingTable = ({ children }) => html`
  <${Table.ScrollArea} ...${useScrolling(textOf("scroll.table"))}>${children}<//>`;

// A table with these heads around `Cells`; `lastLine` is whether there is a line below it, too.
/** @param {{ names: Content[], children: Content, lastLine?: boolean } & Rest} props */
export const ColumnTable = ({ names, children, lastLine = false, ...heads }) => html`
  <${ScrollingTable}>
    <${Table.Root} css=${lastLine ? CELLS : { ...CELLS, ...NO_LAST_LINE }} size="sm">
      <${Table.Header}>
        <${Table.Row}>
          ${names.map((name, column) => html`<${Table.ColumnHeader} key=${column} ...${heads}>${name}<//>`)}
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

/** @param {{ names: Content[], rows: Content[][] }} props */
export const Columns = ({ names, rows }) => html`
  <${ColumnTable} names=${names}>${rows.map((cells, index) => html`<${Cells} cells=${cells} key=${index} />`)}<//>`;

// A `word` may have a meaning to be told.
/** @param {{ name: string, word?: string, children: Content } & Rest} props */
export const Fact = ({ name, word = "", children, ...rest }) => html`
  <${Text} ...${rest}>
    <${Text} as="span" color="fg.muted" mr="1.5" title=${meaningOf(word)}>${name}<//>
    ${children}
  <//>`;

/** @param {{ mark: Content, word?: string, children: Content }} props of which `word` may have a meaning to be told */
export const LegendItem = ({ mark, word = "", children }) => html`
  <${Flex} align="center" gap="2" title=${meaningOf(word)}>${mark}<${Text} fontSize="sm">${children}<//><//>`;

/** @param {{ children: Content } & Rest} props */
export const Legend = ({ children, ...rest }) => html`
  <${Flex} columnGap="5" px="4" py="3" rowGap="2" wrap="wrap" ...${rest}>${children}<//>`;

/** @param {{ palette?: string, children: Content } & Rest} props */
export const Tag = ({ palette, children, ...rest }) => html`
  <${Badge} colorPalette=${palette} variant="subtle" ...${rest}>${children}<//>`;

/** @param {{ children: Content } & Rest} props */
export const CodeBlock = ({ children, ...rest }) => html`
  <${Code} display="block" p="2" size="sm" variant="surface" whiteSpace="pre-wrap" ...${rest}>${children}<//>`;

// One that may be longer than its place.
/** @param {{ children: Content } & Rest} props */
export const LongCode = ({ children, ...rest }) => html`
  <${CodeBlock} overflow="auto" p="3" size=${undefined} ...${useScrolling(textOf("scroll.text"))} ...${rest}>
    ${children}
  <//>`;

// What stands between backticks is for a terminal or a file.
/** @param {{ text: string }} props */
export const Coded = ({ text }) =>
  text.split("`").map((part, index) => (index % 2 ? html`<${Code} key=${index} size="sm">${part}<//>` : part));

// What somebody can do, one thing a line.
/** @param {{ lines: string[] } & Rest} props */
export const Steps = ({ lines, ...rest }) => html`
  <${Box} as="ol" fontSize="sm" listStylePosition="inside" listStyleType="decimal" ...${rest}>
    ${lines.map((line) => html`<${Box} as="li" key=${line} py="1"><${Coded} text=${line} /><//>`)}
  <//>`;

// A word of Stagehold's, with its sentence for whoever points at it.
/** @param {{ of: import("./texts.js").Term, children: Content }} props */
const Term = ({ of, children }) => html`
  <${Box} as="abbr" cursor="help" textDecoration="underline dotted" textUnderlineOffset="3px"
    title=${meaningOf(of)}>
    ${children}
  <//>`;

/** @type {(of: import("./texts.js").Term, text: string) => unknown} */
export const term = (of, text) => html`<${Term} of=${of}>${text}<//>`;

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

// The pipelines of a DAG that has several, of which the page shows one.
/** @param {{ chosen: string, places: Record<string, string>, say: import("./url_state.js").Say }} props */
export const Pipelines = ({ chosen, places, say }) =>
  Object.keys(places).length > 1 &&
  html`
    <${Flex} aria-label=${textOf("page.pipelines")} data-testid="pipelines" gap="2" role="group" wrap="wrap">
      ${Object.keys(places).map((name) => {
        const pressed = name === chosen;
        return html`
          <${SmallButton} aria-pressed=${pressed} key=${name} onClick=${() => say({ pipeline: name })}
            variant=${pressed ? "solid" : "outline"}>
            ${name}
          <//>`;
      })}
    <//>`;

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
