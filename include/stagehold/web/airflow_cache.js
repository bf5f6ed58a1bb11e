// @ts-check
// Airflow's own badge and grid around this page: asked anew after something was cleared, not at their next poll.
//
// Airflow gives plugins no handle to its cache, so it is looked for among the components that React has put into the
// page. Where it is not found, Airflow's next poll shows the same some seconds later.

/**
 * @typedef {{ sibling: Fiber | null, child: Fiber | null, memoizedProps?: { client?: QueryClient } }} Fiber of React's
 * @typedef {{ invalidateQueries?: () => void }} QueryClient
 */

/**
 * @param {Fiber} fiber
 * @returns {Generator<Fiber>}
 */
function* fibers(fiber) {
  const waiting = [fiber];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    yield next;
    if (next.sibling) waiting.push(next.sibling);
    if (next.child) waiting.push(next.child);
  }
}

function cache() {
  for (const element of [document.getElementById("root"), ...document.body.children]) {
    const key = element && Object.keys(element).find((name) => name.startsWith("__reactContainer$"));
    if (!key) continue;
    for (const fiber of fibers(Object(element)[key])) {
      const client = fiber.memoizedProps?.client;
      if (typeof client?.invalidateQueries === "function") return client;
    }
  }
  return null;
}

export const refreshAirflow = () => cache()?.invalidateQueries?.();
