import { fileURLToPath } from 'node:url';

/** The checkout, or the installed package, that this file belongs to, wherever the command was called from. */
export const PROJECT_ROOT = fileURLToPath(new URL('../', import.meta.url));
