// @ts-check
// What a page shows is said in its address, so that a reload, the way back and a link show it again.

const { useCallback } = globalThis.React;
const { useSearchParams } = globalThis.ReactRouterDOM;

/**
 * @typedef {Record<string, string>} Said by name; what is empty is not said
 * @typedef {(change: Said, options?: { replace: boolean }) => void} Say
 */

// Says something in the address that is read when the page is loaded. Airflow is not told: it would make the page anew.
/**
 * @param {string} name
 * @param {string} value
 */
export function noteInUrl(name, value) {
  const url = new URL(globalThis.location.href);
  url.searchParams.set(name, value);
  globalThis.history.replaceState(globalThis.history.state, "", url);
}

// What the address says under these names, and how to change that. A change is a step that the way back undoes, unless
// it takes the place of the one before.
/**
 * @param {string[]} names
 * @returns {[Said, Say]}
 */
export function useUrlState(names) {
  const [params, setParams] = useSearchParams();
  const said = names.flatMap((name) => (params.get(name) ? [[name, params.get(name) ?? ""]] : []));
  const say = useCallback(
    /** @type {Say} */
    (change, options) =>
      setParams(() => {
        const next = new URLSearchParams(globalThis.location.search); // with what was noted there
        for (const [name, value] of Object.entries(change)) value ? next.set(name, value) : next.delete(name);
        return next;
      }, options),
    [setParams],
  );
  return [Object.fromEntries(said), say];
}
