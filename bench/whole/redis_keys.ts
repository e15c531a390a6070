export const KEYS = { slots: 'slots', requests: 'requests', users: 'users', stream: 'claims' };
export const GROUP = 'ledger';
