// The part of the address behind `?`, as views read and change it; and names in paths and commands.
import { seen } from "../parts.js";
import { hashOf, setHash } from "../store.js";

// The address with some names changed; null or "" removes one
export const changed = (params, changes) => ({ ...Object.fromEntries(params), ...changes });
export const linkTo = (view, params, changes) => hashOf(view, changed(params, changes));

// Typing replaces the address; opening something can be gone back from
export const retype = (view, params, changes) => setHash(view, changed(params, changes));
export const open = (view, params, changes) => setHash(view, changed(params, changes), { replace: false });

// A name as one part of a path. Slashes are encoded too: else `a/../b` would mean `b`
export const pathOf = (name) => encodeURIComponent(name);

// A name as one word of a command: commands are copied into shells, and a name may be whatever somebody sent
export const inShell = (name) => (/^[\w./-]+$/.test(name) ? name : `'${seen(name).replaceAll("'", "'\\''")}'`);
