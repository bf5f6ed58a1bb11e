// @ts-check
// How the pages ask the server: again and again what they show, and once what somebody wants to know.

const { startTransition, useCallback, useEffect, useRef, useState } = globalThis.React;

const BUSY_SECONDS = 1.5;
const IDLE_SECONDS = 10;
// After a button was pressed the scheduler takes a moment to show that something goes on.
const SETTLE_SECONDS = 20;

/**
 * @template T
 * @typedef {{ found: T | null, key: string }} Keyed an answer with what its question depended on
 */

// The same answer, looked at anew.
/**
 * @template T
 * @param {Keyed<T>} answer
 * @param {string} at
 * @returns {Keyed<T>}
 */
function lookedAt({ found, key }, at) {
  const { looked } = /** @type {{ looked?: object }} */ (found ?? {});
  return { found: found && { ...found, looked: { ...looked, at } }, key };
}

// Polls `fetch`, which is given the ETag of what is there; more often while what was `found` hurries. Asks anew, and
// forgets what was there, when `key` changes, which says all that the question depends on.
/**
 * @template T
 * @param {string} key
 * @param {(known: import("./api.js").Tag) => Promise<import("./api.js").Fresh<T>>} fetch
 * @param {(found: T) => boolean} hurries
 */
export function usePolled(key, fetch, hurries) {
  const [answer, setAnswer] = useState(/** @type {Keyed<T>} */ ({ found: null, key }));
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const [eagerUntil, setEagerUntil] = useState(0);
  const tag = useRef(/** @type {{ key: string, tag: import("./api.js").Tag } | null} */ (null));
  const wanted = useRef(key);
  wanted.current = key;
  const found = answer.key === key ? answer.found : null;
  const load = useCallback(
    () =>
      fetch(tag.current?.key === key ? tag.current.tag : null).then((fresh) => {
        if (wanted.current !== key) return;
        if ("found" in fresh) {
          tag.current = { key, tag: fresh.tag };
          startTransition(() => setAnswer({ found: fresh.found, key }));
        } else {
          const at = fresh.lookedAt;
          if (at) startTransition(() => setAnswer((before) => lookedAt(before, at)));
        }
        setProblem(null);
      }, setProblem),
    [key],
  );
  const hurry = useCallback(() => setEagerUntil(Date.now() + SETTLE_SECONDS * 1000), []);
  const busy = found !== null && hurries(found);
  useEffect(() => {
    /** @type {ReturnType<typeof setTimeout>} */
    let timer;
    let stopped = false;
    const tick = async () => {
      if (!document.hidden) await load();
      if (!stopped) timer = setTimeout(tick, (busy || Date.now() < eagerUntil ? BUSY_SECONDS : IDLE_SECONDS) * 1000);
    };
    tick();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, busy, eagerUntil]);
  return { found, problem, load, hurry };
}

// Ask when `key` changes, as long as it is not null: it says all that the question depends on. What was there stays
// until the answer comes.
/**
 * @template T
 * @param {string | number | null} key
 * @param {() => Promise<T>} ask
 */
export function useAnswer(key, ask) {
  const [answer, setAnswer] = useState(
    /** @type {{ found: T | null, problem: Error | null }} */ ({ found: null, problem: null }),
  );
  useEffect(() => {
    let wanted = key !== null;
    if (wanted)
      ask().then(
        (found) => wanted && setAnswer({ found, problem: null }),
        (problem) => wanted && setAnswer((before) => ({ ...before, problem })),
      );
    return () => {
      wanted = false;
    };
  }, [key]);
  return answer;
}
