// The few names of Preact that views use, and its tagged templates.
import { Fragment, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./vendor/hooks.js";
export { Fragment, h, render };
export const html = htm.bind(h);
