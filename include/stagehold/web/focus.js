// @ts-check
// Where the keyboard is: a way past Airflow's own parts of the page, and back from what was opened.

const { useEffect, useRef } = globalThis.React;

export const PAGE = "stagehold-page"; // the id of what the page's own elements are in

export const goToPage = () => document.getElementById(PAGE)?.focus({ preventScroll: true });

/** @param {Element | null} element */
const canBeFocused = (element) =>
  element instanceof HTMLElement && element.isConnected && element !== document.body && !element.matches(":disabled");

// What was done took its own button away, and the focus with it: then the page has it.
/** @param {unknown[]} changes after which that may be so */
export function useFocusKept(changes) {
  useEffect(() => {
    if (changes[0] && document.activeElement === document.body) goToPage();
  }, changes);
}

// What had the focus when the caller's component appeared has it again when that goes; or the page, if it cannot.
export function useFocusBack() {
  const opener = useRef(document.activeElement);
  useEffect(
    () => () => {
      if (document.activeElement && document.activeElement !== document.body) return; // it is somewhere else by now
      if (canBeFocused(opener.current)) /** @type {HTMLElement} */ (opener.current).focus();
      else goToPage();
    },
    [],
  );
}

/** @param {() => void} act */
export const onEscape = (act) => (/** @type {KeyboardEvent} */ event) => {
  if (event.key === "Escape") act();
};
