import { openClaims } from './claims/history.ts';
import type { Subject } from './engine.ts';
import { openEvents } from './events/history.ts';
import { openOrders } from './orders/history.ts';

export const CLAIMS: Subject = { name: 'claims', open: openClaims };
export const EVENTS: Subject = { name: 'events', open: openEvents };
export const ORDERS: Subject = { name: 'orders', open: openOrders };
export const SUBJECTS: readonly Subject[] = [CLAIMS, EVENTS, ORDERS];
