// What Airflow's UI puts on globalThis for plugins, as far as the pages use it.

type Component = unknown;

interface React {
  Fragment: Component;
  createElement(type: Component, props: object | null, ...children: unknown[]): unknown;
  startTransition(action: () => void): void;
  useCallback<F>(callback: F, dependencies: unknown[]): F;
  useEffect(effect: () => unknown, dependencies: unknown[]): void;
  useRef<T>(initial: T): { current: T };
  useState<T>(initial: T | (() => T)): [T, (next: T | ((now: T) => T)) => void];
  useSyncExternalStore<T>(subscribe: (changed: () => void) => () => void, snapshot: () => T): T;
}

interface ChakraUI {
  Badge: Component;
  Box: Component;
  Button: Component;
  Code: Component;
  Flex: Component;
  Grid: Component;
  Heading: Component;
  Input: Component;
  Link: Component;
  NativeSelect: { Root: Component; Field: Component; Indicator: Component };
  Spinner: Component;
  Stack: Component;
  Table: {
    ScrollArea: Component;
    Root: Component;
    Header: Component;
    Body: Component;
    Row: Component;
    ColumnHeader: Component;
    Cell: Component;
  };
  Text: Component;
}

interface ReactDOM {
  createPortal(children: unknown, container: Element): unknown;
}

interface ReactRouterDOM {
  useLocation(): unknown;
}

declare var React: React;
declare var ReactDOM: ReactDOM;
declare var ChakraUI: ChakraUI;
declare var ReactRouterDOM: ReactRouterDOM;
declare var AirflowPlugin: Component;

// What may stand between two tags, and properties that a piece hands on to an element of Chakra's.
type Content = unknown;
type Rest = Record<string, unknown>;
