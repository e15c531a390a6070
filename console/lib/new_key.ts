// A key that was just made. It is kept apart from the page that made it: a session that ends with the old key takes the page away,
// and the key is shown once.

import type { OperatorKey } from './shapes.ts';
import { createStore } from './store.ts';

/** `isOwn`: of the operator who sits here. */
export const newKey = createStore<(OperatorKey & { readonly isOwn: boolean }) | undefined>(undefined);
