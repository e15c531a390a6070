export const KEYS = { slots: 'slots', requests: 'requests', stream: 'claims' };
export const GROUP = 'ledger';
