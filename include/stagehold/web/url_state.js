// @ts-check
// What a page shows is said in its address, so that a reload, the way back and a link show it again.
//
// Airflow's router is not told of such a change: Airflow draws a plugin's page anew after the first step that it takes
// itself, and what was chosen or opened there would be gone.

const { useSyncExternalStore } = globalThis.React;
const { useLocation } = globalThis.ReactRouterDOM;

/**
 * @typedef {Record<string, string>} Said by name; what is empty is not said
 * @typedef {(change: Said, options?: { replace: boolean }) => void} Say
 */

// The pipeline that is chosen, in a DAG with several.
export const CHOSEN = ["pipeline"];

/** @type {Set<() => void>} */
const watching = new Set();

/** @param {() => void} look */
function watch(look) {
  watching.add(look);
  globalThis.addEventListener("popstate", look);
  return () => {
    watching.delete(look);
    globalThis.removeEventListener("popstate", look);
  };
}

const address = () => globalThis.location.search;

// The router counts the steps of a visit in `idx`, and knows each by its `key`.
/** @param {{ idx?: number } | null} state */
const nextStep = (state) => ({ ...state, idx: (state?.idx ?? 0) + 1, key: Math.random().toString(36).slice(2, 10) });

/** @type {Say} */
function say(change, { replace } = { replace: false }) {
  const url = new URL(globalThis.location.href);
  for (const [name, value] of Object.entries(change))
    value ? url.searchParams.set(name, value) : url.searchParams.delete(name);
  if (url.href === globalThis.location.href) return;
  const { history } = globalThis;
  if (replace) history.replaceState(history.state, "", url);
  else history.pushState(nextStep(history.state), "", url);
  for (const look of watching) look();
}

// What the address says under these names, and how to change that. A change is a step that the way back undoes, unless
// it takes the place of the one before.
/**
 * @param {string[]} names
 * @returns {[Said, Say]}
 */
export function useUrlState(names) {
  useLocation(); // a link of Airflow's to this page changes the address, too
  const params = new URLSearchParams(useSyncExternalStore(watch, address));
  const said = names.flatMap((name) => (params.get(name) ? [[name, params.get(name) ?? ""]] : []));
  return [Object.fromEntries(said), say];
}
