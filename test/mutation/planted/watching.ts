// Bugs of what watches and measures the product, as they would come back.

import type { Bug } from '../bugs.ts';

export const WATCHING: readonly Bug[] = [
];
