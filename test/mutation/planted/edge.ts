// Bugs of Edge Functions and of databases without our workers, as they would come back.

import type { Bug } from '../bugs.ts';

export const EDGE: readonly Bug[] = [];
